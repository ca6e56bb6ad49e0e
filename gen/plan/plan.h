/* plan: simplified head + target -> how the kernel runs. What the templates print.
 *
 * Vocabulary. A *row* is one scalar a token that features are products of: a coordinate of
 * the input, a projected coordinate, or either with a weight on the key side. A *piece* is a
 * run of consecutive features that share all factors but the last, whose rows are consecutive.
 * Given: a simplified head and a target. Gives: all sizes and tables that the templates print, and the facts
 * that callers see. c/ and cuda/ hold what is particular to the back ends. */
#ifndef FPAC_GEN_PLAN_PLAN_H
#define FPAC_GEN_PLAN_PLAN_H

#include <stdio.h>

#include "abi/source.h"
#include "machine/target.h"
#include "gen/plan/c/c.h"
#include "gen/plan/cuda/cuda.h"
#include "gen/simplify/simplify.h"
#include "passes.h"
#include "row_head.h"

/* A row that is another row times gram on the key side. */
typedef struct fpa_weighted_row {
    int row, from;
    double gram;
} fpa_weighted_row;

typedef struct fpa_piece {
    int64_t feature;   /* index of its first feature */
    int width;         /* features */
    int prefix_count;  /* factors shared by all of them */
    const int *prefix; /* [prefix_count] packed rows */
    int base;          /* packed row of the last factor of the first feature */
    double weight;     /* on the key side */
    int degree;        /* factors of the head: head->scale enters as often */
} fpa_piece;

typedef struct fpa_dot {
    int row_count;
    const int *rows; /* packed rows; the key side carries the weights */
} fpa_dot;

typedef struct fpa_plan {
    arena memory;
    const fpa_head *head;    /* as simplified: a polynomial of coordinates; not owned */
    const fpa_head *written; /* as written, which has the lift; not owned */
    const fpa_score *score;
    const fpa_target *target;
    bool backward;        /* gradients are printed, not the forward pass */
    bool packs_in_blocks; /* of gradients, whose blocks make packed rows themselves */
    bool pass;            /* of another head's gradients: whole sequences, without the recurrent form */
    fpa_pass_rows passes; /* of gradients: rows of forward passes that they may be; width 0: they are none */
    fpa_row_head
        made; /* of gradients: rows that are made before other kernels run, and `head` is of; width 0: they are not */
    int forced; /* mechanism that was asked for, as the back end counts them; -1: none */
    /* the packed input: x[row][token] */
    int row_count;
    int ones_row; /* 1 for every token, 0 behind the last one */
    int projection_count;
    fpa_projection *projections;
    int weighted_count;
    fpa_weighted_row *weighted;
    /* the features */
    int64_t features; /* D */
    double minimum;   /* the fewest features known (simplify.h) */
    int piece_count;
    fpa_piece *pieces;
    bool weighs; /* weights, of pieces or of rows, are in the text */
    /* the score */
    fpa_dot *dots; /* [score->dot_count] */
    /* what the back end chooses */
    int chunk;        /* tokens between state updates */
    int pair_queries; /* that take keys and values together from memory, in the parallel form */
    int chunk_states; /* states that a chunk moves, in the chunked form: what is read, and what is written */
    fpa_c_plan c;     /* of C targets: tiles of features and of registers */
    fpa_cuda_plan cuda;  /* of CUDA targets: mechanisms, each with a plan of its own */
    double bytes[FORMS]; /* moved per token and head (parallel: per visible pair), by the plan's count */
    fpa_facts facts;
} fpa_plan;

/* simple and written must outlive the plan. UNSUPPORTED, with the figures, when state or code would be
 * absurd. plan_free frees what plan_choose made. */
fpa_status plan_choose(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                       fpa_plan *plan, fpa_error *error);
/* The same by one mechanism (NULL: what is fastest): UNSUPPORTED with the reason when it does not suit,
 * INVALID with all names when there is none of that name. */
fpa_status plan_choose_as(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                          const char *mechanism, fpa_plan *plan, fpa_error *error);
/* The same of a head whose forward passes are gradients of another one. */
fpa_status plan_choose_pass(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                            const char *mechanism, fpa_plan *plan, fpa_error *error);
/* Whether its kernels contract its states (NAME_chunk_contraction). */
bool plan_contracts(const fpa_plan *plan);
/* The most columns of q and k, and of v, that kernels of the target take, whatever the head; 0: any number. */
int plan_widest(const fpa_target *target);
int plan_widest_values(const fpa_target *target);
/* What has no gradients yet. */
fpa_status plan_check_backward(const fpa_head *written, const fpa_target *target, fpa_error *error);
/* Whose operands kernels of gradients have: q and k, or where there are matrices or weights rows of them (made->width), and whether forward passes
 * of these, or of their features (made->line), are gradients. Passes take q and k as they are given where they can. */
fpa_status plan_operands(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                         fpa_row_head *made, bool *has_passes, fpa_error *error);
/* What passes of gradients are of: `simple`, or rows or features in its place. */
const fpa_simplified *plan_passed(const fpa_simplified *simple, const fpa_row_head *made);
/* Of the gradients: chunk, facts and templates are theirs. UNSUPPORTED, with what is missing: of heads without a mask or
 * with a lift, and of targets whose kernels have none. */
fpa_status plan_choose_backward(const fpa_simplified *simple, const fpa_head *written,
                                const fpa_target *target, fpa_plan *plan, fpa_error *error);
void plan_free(fpa_plan *plan);

/* The plan for a person (--dump=plan), malloc'ed. */
char *plan_print(const fpa_plan *plan);

/* Each back end's part of plan_choose and of plan_print. The former is given head, score, target and
 * features, and fills rows, pieces and dots (plan_features), its own sizes, chunk, pair_queries,
 * chunk_states, facts.arithmetic and facts.crossover. UNSUPPORTED names what is too large. */
fpa_status plan_c(fpa_plan *plan, fpa_error *error);
fpa_status plan_cuda(fpa_plan *plan, fpa_error *error);
/* The same of the gradients of a plan that is there: chunk and sizes of their own, facts.arithmetic. */
fpa_status plan_c_backward(fpa_plan *plan, fpa_error *error);
fpa_status plan_cuda_backward(fpa_plan *plan, fpa_error *error);
/* Table number i of fields that their templates read; false: there are no more. */
bool c_field_set(const fpa_plan *plan, int i, fpa_field_set *set);
bool cuda_field_set(const fpa_plan *plan, int i, fpa_field_set *set);
const char *cuda_mechanism_name(int i);                             /* NULL: there are no more */
bool cuda_mechanism_is_left(const fpa_plan *plan, int i, int form); /* it is for that form, and not chosen */
void plan_print_c(FILE *out, const fpa_plan *plan);
void plan_print_cuda(FILE *out, const fpa_plan *plan);

#endif

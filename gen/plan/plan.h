/* plan: simplified head + target -> how kernels compute the head; what the templates print.
 *
 * Words: a *row* is one number per token of which features are products: a coordinate of the input, a projected
 * coordinate, or one of these with a weight on the key side. A *piece* is a run of consecutive features that have
 * all factors but the last in common, and whose last factors are consecutive rows.
 * Given: a simplified head and a target. Gives: all sizes and tables that the templates print, and the facts that
 * callers see. c/ and cuda/ contain the parts that belong to one back end. */
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

/* A row that, on the key side, is another row times gram. */
typedef struct fpa_weighted_row {
    int row, from;
    double gram;
} fpa_weighted_row;

typedef struct fpa_piece {
    int64_t feature;   /* index of its first feature */
    int width;         /* features */
    int prefix_count;  /* number of factors that all features of the piece share */
    const int *prefix; /* [prefix_count] packed rows */
    int base;          /* packed row of the last factor of the first feature */
    double weight;     /* on the key side */
    int degree;        /* degree of the term: a query's feature is multiplied by head->scale^degree */
} fpa_piece;

typedef struct fpa_dot {
    int row_count;
    const int *rows; /* packed rows; weights are in the rows of keys */
} fpa_dot;

typedef struct fpa_plan {
    arena memory;
    const fpa_head *head;    /* as simplified: a polynomial of coordinates; not owned */
    const fpa_head *written; /* as written, which has the lift; not owned */
    const fpa_score *score;
    const fpa_target *target;
    bool backward;        /* the plan is for gradients, not for the forward pass */
    bool packs_in_blocks; /* gradients: blocks of kernels pack rows themselves, no kernel does it before */
    /* the head is a pass of another head's gradients: whole sequences, without the recurrent form */
    bool pass;
    fpa_pass_rows passes; /* gradients: layout of rows if they are forward passes; width 0: they are not */
    /* gradients: rows that are computed before other kernels run, to which `head` then refers; width 0: none */
    fpa_row_head made;
    int forced; /* index of the mechanism that the caller has chosen, in the back end's order; -1: none */
    /* the packed input: x[row][token] */
    int row_count;
    int ones_row; /* a row that is 1 for every token, and 0 after the last token */
    int projection_count;
    fpa_projection *projections;
    int weighted_count;
    fpa_weighted_row *weighted;
    /* the features */
    int64_t features; /* D */
    double minimum;   /* the fewest features known (gen/simplify/simplify.h) */
    int piece_count;
    fpa_piece *pieces;
    bool weighs; /* the text contains weights, of pieces or of rows */
    /* the score */
    fpa_dot *dots; /* [score->dot_count] */
    /* what the back end chooses */
    int chunk; /* tokens between state updates */
    /* queries that a block processes together, so that keys and values are read from memory once, in the parallel
     * form */
    int pair_queries;
    int chunk_states;    /* states that a chunk reads and writes in the chunked form */
    fpa_c_plan c;        /* of C targets: tiles of features and of registers */
    fpa_cuda_plan cuda;  /* of CUDA targets: mechanisms, each with a plan of its own */
    double bytes[FORMS]; /* moved per token and head (parallel: per visible pair), by the plan's count */
    fpa_facts facts;
} fpa_plan;

/* Make a plan. simple and written must outlive it. UNSUPPORTED, with the figures: the state or the code would be
 * too large. The caller frees it (plan_free). */
fpa_status plan_choose(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                       fpa_plan *plan, fpa_error *error);
/* The same with a given mechanism (NULL: the fastest): UNSUPPORTED, with the reason, if it does not suit the head,
 * INVALID, with all names, if there is none of that name. */
fpa_status plan_choose_as(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                          const char *mechanism, fpa_plan *plan, fpa_error *error);
/* The same for a head whose forward passes are gradients of another one. */
fpa_status plan_choose_pass(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                            const char *mechanism, fpa_plan *plan, fpa_error *error);
/* Whether the plan has NAME_chunk_contraction. */
bool plan_contracts(const fpa_plan *plan);
/* The most columns of q and k, and of v, that the target's kernels can have for any head; 0: any number. */
int plan_widest(const fpa_target *target);
int plan_widest_values(const fpa_target *target);
/* FPA_OK, or UNSUPPORTED if gradients of the head are not implemented, with the reason. */
fpa_status plan_check_backward(const fpa_head *written, const fpa_target *target, fpa_error *error);
/* The operands of kernels of gradients: q and k, or rows made of them (made->width > 0) if there are a lift, matrices
 * or weights. *has_passes: whether gradients are forward passes of these operands, or of their features
 * (made->line). Passes read q and k as given where they can. The caller frees `made`. */
fpa_status plan_operands(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                         fpa_row_head *made, bool *has_passes, fpa_error *error);
/* The head to which passes of gradients refer: `simple`, or the one of made rows or features in its place. */
const fpa_simplified *plan_passed(const fpa_simplified *simple, const fpa_row_head *made);
/* Make a plan for gradients, with chunk, facts and templates of their own. UNSUPPORTED, with what is missing: the
 * head has a window, or on a GPU no causal mask; or the target has no kernels of gradients. */
fpa_status plan_choose_backward(const fpa_simplified *simple, const fpa_head *written,
                                const fpa_target *target, fpa_plan *plan, fpa_error *error);
void plan_free(fpa_plan *plan);

/* The plan as text for people (--dump=plan), malloc'ed. */
char *plan_print(const fpa_plan *plan);

/* Each back end's part of plan_choose and of plan_print. plan_c and plan_cuda get head, score, target and
 * features; they fill rows, pieces and dots (plan_features), their own sizes, chunk, pair_queries, chunk_states,
 * facts.arithmetic and facts.crossover. UNSUPPORTED names what is too large. */
fpa_status plan_c(fpa_plan *plan, fpa_error *error);
fpa_status plan_cuda(fpa_plan *plan, fpa_error *error);
/* The same for gradients, of a plan that has been made: their chunk and sizes, and facts.arithmetic. */
fpa_status plan_c_backward(fpa_plan *plan, fpa_error *error);
fpa_status plan_cuda_backward(fpa_plan *plan, fpa_error *error);
/* Table i of the fields that the back end's templates read; false: there are no more. */
bool c_field_set(const fpa_plan *plan, int i, fpa_field_set *set);
bool cuda_field_set(const fpa_plan *plan, int i, fpa_field_set *set);
const char *cuda_mechanism_name(int i); /* name of mechanism i; NULL: there are no more */
/* whether mechanism i serves that form and is not the chosen one */
bool cuda_mechanism_is_left(const fpa_plan *plan, int i, int form);
void plan_print_c(FILE *out, const fpa_plan *plan);
void plan_print_cuda(FILE *out, const fpa_plan *plan);

#endif

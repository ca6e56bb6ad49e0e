/* trial: one shape with its inputs, the formula's outputs for them, and the errors of plain evaluations. */
#ifndef FPAC_RUNTIME_VERIFY_TRIAL_H
#define FPAC_RUNTIME_VERIFY_TRIAL_H

#include "machine/target.h"
#include "runtime/backend.h"
#include "bound.h"
#include "field.h"
#include "plain.h"

typedef enum fpa_inputs {
    INPUTS_DENSE,        /* normally distributed, scores near 1 */
    INPUTS_POSITIVE,     /* absolute values of these: normalisers are far from zero */
    INPUTS_SPARSE,       /* few nonzero coordinates per token, so that each feature matters */
    INPUTS_EXTREME_GATE, /* dense, with log-gates of -1e4 and -40 */
    INPUTS_LARGE,        /* dense, with queries for which a window's exponents reach some hundreds */
    INPUTS_SLOW_GATE,    /* dense, with log-gates near 0: much of a chunk remains in the next but one */
    INPUTS_SLOW_POSITIVE /* positive, with such log-gates */
} fpa_inputs;

enum {                     /* what a trial checks besides the result */
       CHECK_REPEAT = 1,   /* the same call twice gives the same bits */
       CHECK_RESUME = 2,   /* three runs that hand the state over equal one */
       CHECK_FUTURE = 4,   /* later tokens change nothing earlier */
       CHECK_HANDOVER = 8, /* and the first of three runs is by each form in turn */
       CHECK_RECENT =
           16, /* a state that lacks recent tokens, together with these, equals one that has them */
       CHECK_CANDIDATES = 32, /* all checks once more by each of the module's candidates */
       CHECK_RAGGED = 128,    /* packed batches, states in pools */
       CHECK_CHAIN = 64,      /* CHECK_HANDOVER, but only from the form before each in the cycle */
       CHECK_SEGMENTS =
           256,          /* in segments of several chunks; the second of three runs has nearly all tokens */
       CHECK_MANY = 512, /* CHECK_RAGGED, and once with many sequences */
};

typedef struct fpa_shape {
    int64_t batch, length, heads, query_heads;
    fpa_layout layout;
    fpa_inputs inputs;
    int checks;
} fpa_shape;

/* Whether kernels are for a GPU; hand-written ones have no target. */
static inline bool is_of_gpu(const fpa_facts *facts)
{
    const fpa_target *target = target_find(facts->target);
    return target && target->backend == BACKEND_CUDA;
}

/* A key mask as modules read it. */
typedef struct fpa_mask {
    unsigned char *bytes; /* with guards */
    size_t size;
    unsigned char *first; /* token 0 of sequence 0 */
    int64_t stride[2];    /* batch, token */
} fpa_mask;

typedef struct fpa_trial {
    const fpa_head *head;
    const fpa_facts *facts;
    fpa_shape shape;
    fpa_reference_size size;      /* operations to evaluate the head */
    double *q, *k, *v, *gate;     /* C order, for the reference; gate NULL without one */
    double **weights;             /* [matrix_count], NULL for constants */
    const float **launch_weights; /* [matrix_count], the run-time matrices first, in the order of a launch */
    double *positions;            /* [batch, length, numbers]; NULL without; mask: [batch, length] */
    unsigned char *key_mask;      /* not 0: the key takes part */
    fpa_field q_field, k_field, v_field, gate_field;
    fpa_field position_field; /* a position's numbers use the axis of heads */
    fpa_mask mask;
    unsigned char *judged;          /* [batch, length, query_heads]: compared with the formula by the bound */
    unsigned char *compared;        /* the same shape: the formula was evaluated; errors count for the RMS */
    unsigned char *loose;           /* the same shape: any value is accepted, as for a normaliser near zero */
    double *normalizer, *condition; /* [batch, length, query_heads] for normalised heads; else NULL */
    double *reference, *magnitude;  /* [batch, length, query_heads, dv] where compared */
    fpa_plain plain;
    struct fpa_spares *spares; /* device memory for its runs */
    fpa_blocks *blocks;        /* host memory for its runs; NULL: malloc */
    /* Chooses the candidate for a call. NULL, or false: the fastest. */
    bool (*choose)(const void *choice, const fpa_module *module, const fpa_call_size *size,
                   fpa_candidate *candidate);
    const void *choice;
} fpa_trial;

/* Makes a trial from a seed. The caller frees it, also after an error. */
fpa_status trial_make(fpa_trial *trial, const fpa_head *head, const fpa_facts *facts, fpa_shape shape,
                      uint64_t seed, fpa_error *error);
void trial_free(fpa_trial *trial);
/* A copy of the trial with tensors of its own, and with other device memory: questions that are answered in parallel need both. The trial
 * must outlive the copy. Return it also after an error. */
fpa_status trial_borrow(const fpa_trial *trial, fpa_trial *other, struct fpa_spares *spares,
                        fpa_error *error);
void trial_return(fpa_trial *other);
/* A copy of the trial without tensors for modules; the second function frees only such tensors. */
void trial_without_fields(const fpa_trial *trial, fpa_trial *other);
void trial_free_fields(fpa_trial *trial);
/* The reference's problem, for the outputs that are compared, in the module's arithmetic. */
fpa_problem trial_problem(const fpa_trial *trial);

/* Entries of a run-time matrix. */
int64_t trial_matrix_entries(const fpa_trial *trial, const fpa_matrix *matrix);

/* Changes all inputs of tokens from `from` on to NaN and infinities, or other values; trial_restore restores them. The reference's inputs
 * do not change. */
void trial_change_future(fpa_trial *trial, int64_t from);
void trial_restore(fpa_trial *trial);

/* The first token whose key is not in the state after the tokens before `token`: a window's keys are not in it yet. */
static inline int64_t trial_behind_state(const fpa_trial *trial, int64_t token)
{
    const int64_t first = token - trial->head->window + 1;
    return !trial->head->window ? token : first < 0 ? 0 : first;
}

/* Sequences of different lengths, or states in pools. */
typedef struct fpa_sequence_list {
    int64_t count;
    int64_t longest;     /* the longest sequence, as the call says */
    int32_t *cu_seqlens; /* [count + 1]; NULL: the trial's batch */
    int32_t *in, *out;   /* [count]: slots of state_in and state_out */
    /* not 0: the largest number of recent tokens; sequences are those of k and v, while q and o have one token each */
    int64_t recent;
} fpa_sequence_list;

/* A draft: the run's tokens, of sequence b from token `from` + b * apart on. Before it `accepted` tokens that may be accepted, of
 * sequence b from token accepted_from + b * accepted_apart on. */
typedef struct fpa_draft_trial {
    int64_t apart;
    int64_t accepted_from, accepted, accepted_apart;
    const int32_t *counts; /* [batch]; NULL: nothing is accepted, and there is no state_out */
} fpa_draft_trial;

/* One call: tokens [from, to) in one form. o has the trial's tokens. NULL: not wanted, or not given. */
typedef struct fpa_run {
    fpa_form_index form;
    int64_t from, to;
    int64_t unseen; /* number of recent tokens, from `from` on: without queries, and not in the state */
    fpa_field *o, *state_in, *state_out; /* o NULL: no queries either */
    fpa_field *den;                      /* sums of scores */
    /* NULL: sequences of equal lengths, with states in the order of the batch */
    const fpa_sequence_list *list;
    const fpa_draft_trial *draft; /* NULL: no draft */
    /* not NULL: in two halves (fpa_module.piece), state_out as the total of the keys, then o. *piece is set to whether the module keeps
     * copies of states between halves of such a call; if not, nothing is computed */
    bool *piece;
} fpa_run;

/* Runs the module on copies, if it computes on a device. The workspace is poison, has exactly the size that the module asks for, and is
 * guarded. */
fpa_status trial_run(const fpa_trial *trial, const fpa_module *module, const fpa_run *run, fpa_error *error);

/* "chunked form, 2 x 129 tokens, 3 heads, 3 query heads, padded strides, dense inputs" */
enum { TRIAL_TEXT = 192 };
void trial_describe(const fpa_trial *trial, fpa_form_index form, char text[TRIAL_TEXT]);

#endif

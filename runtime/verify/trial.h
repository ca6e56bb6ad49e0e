/* verify_trial: one shape with its inputs, what the formula gives for them, and how far a plain
 * evaluation is from that. */
#ifndef FPAC_RUNTIME_VERIFY_TRIAL_H
#define FPAC_RUNTIME_VERIFY_TRIAL_H

#include "machine/target.h"
#include "runtime/backend.h"
#include "bound.h"
#include "field.h"
#include "plain.h"

typedef enum fpa_inputs {
    INPUTS_DENSE,        /* normally distributed, scores near 1 */
    INPUTS_POSITIVE,     /* their absolute values: a normaliser far from zero */
    INPUTS_SPARSE,       /* a few coordinates a token: every feature counts by itself */
    INPUTS_EXTREME_GATE, /* dense, with log-gates of -1e4 and -40 */
    INPUTS_LARGE,        /* dense, with queries that make exponents of a window of some hundreds */
    INPUTS_SLOW_GATE,    /* dense, with log-gates that leave much of a chunk for the next but one */
    INPUTS_SLOW_POSITIVE /* both */
} fpa_inputs;

enum {                        /* what a trial checks besides the result */
       CHECK_REPEAT = 1,      /* the same call twice gives the same bits */
       CHECK_RESUME = 2,      /* three runs that hand the state over equal one */
       CHECK_FUTURE = 4,      /* later tokens change nothing earlier */
       CHECK_HANDOVER = 8,    /* and the first of the three runs may be of any form */
       CHECK_RECENT = 16,     /* a state without the newest tokens, and those, equal a state with them */
       CHECK_CANDIDATES = 32, /* all of it once more by each of the module's candidates */
       CHECK_RAGGED = 128,    /* sequences of different lengths, states in pools */
       CHECK_CHAIN = 64,      /* CHECK_HANDOVER, but each form takes over from the one before it only */
       CHECK_SEGMENTS = 256, /* in segments of several chunks; of three runs the second is nearly all of it */
       CHECK_MANY = 512,     /* CHECK_RAGGED, once among many sequences, too */
};

typedef struct fpa_shape {
    int64_t batch, length, heads, query_heads;
    fpa_layout layout;
    fpa_inputs inputs;
    int checks;
} fpa_shape;

/* Whether kernels are a GPU's; those by hand have no target. */
static inline bool is_of_gpu(const fpa_facts *facts)
{
    const fpa_target *target = target_find(facts->target);
    return target && target->backend == BACKEND_CUDA;
}

/* Bytes of a mask of keys as a module gets them. */
typedef struct fpa_mask {
    unsigned char *bytes; /* guards included */
    size_t size;
    unsigned char *first; /* of token 0 of sequence 0 */
    int64_t stride[2];    /* batch, token */
} fpa_mask;

typedef struct fpa_trial {
    const fpa_head *head;
    const fpa_facts *facts;
    fpa_shape shape;
    fpa_reference_size size;      /* what evaluating the head takes */
    double *q, *k, *v, *gate;     /* C order, as the reference takes them; gate NULL without one */
    double **weights;             /* [matrix_count], NULL for constants */
    const float **launch_weights; /* [matrix_count], the trainable ones first, as a launch takes them */
    double *positions;            /* [batch, length, numbers], NULL without; the mask [batch, length] too */
    unsigned char *key_mask;      /* not 0: the key takes part */
    fpa_field q_field, k_field, v_field, gate_field;
    fpa_field position_field; /* numbers of a position are its heads */
    fpa_mask mask;
    unsigned char *judged;          /* [batch, length, query_heads]: the bound was evaluated there */
    unsigned char *compared;        /* the same shape: the formula was evaluated, and plain errors count */
    unsigned char *loose;           /* the same shape: a normaliser near zero lets the output be anything */
    double *normalizer, *condition; /* [batch, length, query_heads] of normalised heads; else NULL */
    double *reference, *magnitude;  /* [batch, length, query_heads, dv] where compared */
    fpa_plain plain;
    struct fpa_spares *spares; /* device memory of its runs */
    fpa_blocks *blocks;        /* host memory of its runs; NULL: the system's */
    /* By which of the module's candidates a call is carried out. NULL, or false: the fastest. */
    bool (*choose)(const void *choice, const fpa_module *module, const fpa_call_size *size,
                   fpa_candidate *candidate);
    const void *choice;
} fpa_trial;

/* A seeded trial. The caller frees it, also after an error. */
fpa_status trial_make(fpa_trial *trial, const fpa_head *head, const fpa_facts *facts, fpa_shape shape,
                      uint64_t seed, fpa_error *error);
void trial_free(fpa_trial *trial);
/* The same trial, with inputs as modules get them of its own, and that device memory: what is asked at the same time needs these each. The trial
 * stays until the other one is returned, also after an error. */
fpa_status trial_borrow(const fpa_trial *trial, fpa_trial *other, struct fpa_spares *spares,
                        fpa_error *error);
void trial_return(fpa_trial *other);
/* The same trial, as yet without what modules get; and what they get alone is freed. */
void trial_without_fields(const fpa_trial *trial, fpa_trial *other);
void trial_free_fields(fpa_trial *trial);
/* The trial for the reference, with the outputs that are compared and the module's arithmetic. */
fpa_problem trial_problem(const fpa_trial *trial);

/* Numbers of a matrix that is given at run time. */
int64_t trial_matrix_entries(const fpa_trial *trial, const fpa_matrix *matrix);

/* Other values for all inputs of the tokens from `from` on, or none: NaN and infinities. The reference does not
 * follow. */
void trial_change_future(fpa_trial *trial, int64_t from);
void trial_restore(fpa_trial *trial);

/* The first token whose key the state after the tokens before `token` lacks: a window's are not in it yet. */
static inline int64_t trial_behind_state(const fpa_trial *trial, int64_t token)
{
    const int64_t first = token - trial->head->window + 1;
    return !trial->head->window ? token : first < 0 ? 0 : first;
}

/* Sequences of lengths of their own, or states in pools. */
typedef struct fpa_sequence_list {
    int64_t count;
    int64_t longest;     /* what a call says of them */
    int32_t *cu_seqlens; /* [count + 1]; NULL: the trial's batch */
    int32_t *in, *out;   /* [count]: slots of a state_in and of a state_out */
    /* not 0: sequences are of keys, of which a state lacks at most so many; q and o have one token each */
    int64_t recent;
} fpa_sequence_list;

/* A draft of the run's tokens, of sequence b from token `from` + b * apart on, and before it tokens that may be accepted,
 * `accepted` of them, likewise. */
typedef struct fpa_draft_trial {
    int64_t apart;
    int64_t accepted_from, accepted, accepted_apart;
    const int32_t *counts; /* [batch]; NULL: nothing is accepted, and there is no state_out */
} fpa_draft_trial;

/* One call: tokens [from, to) in one form. Tokens of o are those of the trial. What is NULL is not there. */
typedef struct fpa_run {
    fpa_form_index form;
    int64_t from, to;
    int64_t unseen; /* tokens from `from` on that only keys are given of: the state lacks them */
    fpa_field *o, *state_in, *state_out; /* without o the module is not given queries either */
    fpa_field *den;                      /* sums of the outputs' scores */
    const fpa_sequence_list *list;       /* NULL: sequences of one length, with states of their own */
    const fpa_draft_trial *draft;        /* NULL: a forward */
    bool *
        piece; /* in two halves (fpa_module.piece): state_out <- what the keys add up to, then o. It says whether the module keeps
                  * copies of states between halves of such a call; else nothing is done. NULL: not so */
} fpa_run;

/* The workspace is poison, of just the size that the module asks for, and guarded. On a device: on copies, and what was written comes
 * back. */
fpa_status trial_run(const fpa_trial *trial, const fpa_module *module, const fpa_run *run, fpa_error *error);

/* "chunked form, 2 x 129 tokens, 3 heads, 3 query heads, padded strides, dense inputs" */
enum { TRIAL_TEXT = 192 };
void trial_describe(const fpa_trial *trial, fpa_form_index form, char text[TRIAL_TEXT]);

#endif

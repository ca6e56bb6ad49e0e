/* gradient_trial: operands of one backward pass, what the formula gives for them, and runs of a module on them. */
#ifndef FPAC_RUNTIME_VERIFY_GRADIENT_TRIAL_H
#define FPAC_RUNTIME_VERIFY_GRADIENT_TRIAL_H

#include "runtime/reference/reference.h"
#include "trial.h"

/* What is gradient of what; matrices come behind. */
typedef enum fpa_gradient_kind { OF_Q, OF_K, OF_V, OF_GATE, GRADIENT_KINDS } fpa_gradient_kind;

/* The formula's gradients, their magnitudes, and plain float's. */
typedef enum fpa_evaluation { EXACT, MAGNITUDE, PLAIN, EVALUATIONS } fpa_evaluation;

typedef struct fpa_gradient_trial {
    fpa_trial inputs; /* made by its parts: no outputs are judged */
    int64_t known;    /* tokens of the sequence that the formula was evaluated for; the others repeat them */
    int64_t judged;   /* tokens whose gradients are compared: from the first on */
    /* tokens before it and from it on are also two calls with a state between them; 0: are not */
    int64_t cut;
    double *d_o, *o, *den; /* of the known tokens; o and den as they are stored */
    double **weights[EVALUATIONS];
    fpa_gradients to[EVALUATIONS];
    fpa_field o_field, den_field, d_o_field;
} fpa_gradient_trial;

/* period > 0: log-gates are -0.5 and tokens repeat after so many; the formula is evaluated for two periods, of which the
 * first is judged. 0: as the shape says. Without a mask outputs of tokens before the cut have gradients of 0: their queries
 * see keys that the first of two calls does not have. Freed also after an error. */
fpa_status gradient_trial_make(fpa_gradient_trial *trial, const fpa_head *head, const fpa_facts *facts,
                               fpa_shape shape, int64_t period, int64_t cut, uint64_t seed, fpa_error *error);
void gradient_trial_free(fpa_gradient_trial *trial);

/* What a run writes. */
typedef struct fpa_gradient_outputs {
    fpa_field field[GRADIENT_KINDS];
    float **matrices; /* in the order of a launch */
} fpa_gradient_outputs;

fpa_status gradient_outputs_make(const fpa_gradient_trial *trial, fpa_gradient_outputs *outputs,
                                 fpa_error *error);
void gradient_outputs_free(const fpa_gradient_trial *trial, fpa_gradient_outputs *outputs);

/* Sequences of different lengths, in all tokens of a trial in plain layout: one row behind the other. */
typedef struct fpa_gradient_sequences {
    int64_t count, longest;
    int32_t *cu_seqlens; /* [count + 1] */
    int32_t *in;         /* [count]: slots of state_in; negative: none */
} fpa_gradient_sequences;

/* Which part of the tokens, with which states, and what is wanted. */
typedef struct fpa_gradient_run {
    fpa_form_index form;
    int64_t from, to;
    fpa_field *state_in, *d_state_out, *d_state_in; /* NULL: none */
    int kinds;                                      /* bits of fpa_gradient_kind */
    bool matrices;
    const fpa_gradient_sequences *sequences; /* NULL: those of the trial. Gradients of states are of these */
} fpa_gradient_run;

fpa_status gradient_run(const fpa_gradient_trial *trial, const fpa_module *module,
                        const fpa_gradient_run *run, fpa_gradient_outputs *outputs, fpa_error *error);

/* "chunked form, 2 x 129 tokens ..., gradients": message text of REFUSED. */
fpa_status gradient_trial_refuse(const fpa_gradient_trial *trial, fpa_form_index form, const char *how,
                                 const char *what, fpa_error *error);

const fpa_matrix *gradient_matrix(const fpa_head *head, int index);   /* of these */
const char *gradient_name(int kind);                                  /* "d_q" */
int64_t gradient_entries(const fpa_gradient_trial *trial, int index); /* of a matrix of a launch */

#endif

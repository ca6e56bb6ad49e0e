/* gradient_trial: operands of one backward pass, the formula's gradients for them, and runs of a module. */
#ifndef FPAC_RUNTIME_VERIFY_GRADIENT_TRIAL_H
#define FPAC_RUNTIME_VERIFY_GRADIENT_TRIAL_H

#include "runtime/reference/reference.h"
#include "trial.h"

/* Kinds of gradients; matrices follow after these. */
typedef enum fpa_gradient_kind { OF_Q, OF_K, OF_V, OF_GATE, GRADIENT_KINDS } fpa_gradient_kind;

/* The formula's gradients, their magnitudes, and a plain evaluation in float. */
typedef enum fpa_evaluation { EXACT, MAGNITUDE, PLAIN, EVALUATIONS } fpa_evaluation;

typedef struct fpa_gradient_trial {
    fpa_trial inputs; /* only its inputs are used, not its reference */
    int64_t known;    /* tokens for which the formula was evaluated; later ones repeat them */
    int64_t judged;   /* number of tokens, from the first one on, whose gradients are compared */
    /* tokens before and after it are also run in two calls with a state between them; 0: not */
    int64_t cut;
    double *d_o, *o, *den; /* of the known tokens; o and den rounded as stored */
    double **weights[EVALUATIONS];
    fpa_gradients to[EVALUATIONS];
    fpa_field o_field, den_field, d_o_field;
} fpa_gradient_trial;

/* period > 0: log-gates are -0.5 and tokens repeat with this period; the formula is evaluated for two periods, and gradients of the first
 * are judged. 0: as the shape says. Without a mask, d_o is 0 for tokens before the cut, whose queries would need keys that the first of
 * two calls does not have. To be freed also after an error. */
fpa_status gradient_trial_make(fpa_gradient_trial *trial, const fpa_head *head, const fpa_facts *facts,
                               fpa_shape shape, int64_t period, int64_t cut, uint64_t seed, fpa_error *error);
void gradient_trial_free(fpa_gradient_trial *trial);

/* The results of a run. */
typedef struct fpa_gradient_outputs {
    fpa_field field[GRADIENT_KINDS];
    float **matrices; /* in the order of a launch */
} fpa_gradient_outputs;

fpa_status gradient_outputs_make(const fpa_gradient_trial *trial, fpa_gradient_outputs *outputs,
                                 fpa_error *error);
void gradient_outputs_free(const fpa_gradient_trial *trial, fpa_gradient_outputs *outputs);

/* Sequences of a packed batch: all tokens of a trial in plain layout, one row after the other. */
typedef struct fpa_gradient_sequences {
    int64_t count, longest;
    int32_t *cu_seqlens; /* [count + 1] */
    int32_t *in;         /* [count]: slots of state_in; negative: none */
} fpa_gradient_sequences;

/* One call: its tokens, states, and wanted gradients. */
typedef struct fpa_gradient_run {
    fpa_form_index form;
    int64_t from, to;
    fpa_field *state_in, *d_state_out, *d_state_in; /* NULL: none */
    int kinds;                                      /* bits of fpa_gradient_kind */
    bool matrices;
    /* NULL: the trial's rows. Gradients of states have an entry for each sequence */
    const fpa_gradient_sequences *sequences;
} fpa_gradient_run;

fpa_status gradient_run(const fpa_gradient_trial *trial, const fpa_module *module,
                        const fpa_gradient_run *run, fpa_gradient_outputs *outputs, fpa_error *error);

/* REFUSED, with the trial and form in the message. */
fpa_status gradient_trial_refuse(const fpa_gradient_trial *trial, fpa_form_index form, const char *how,
                                 const char *what, fpa_error *error);

const fpa_matrix *gradient_matrix(const fpa_head *head, int index);   /* the index-th run-time matrix */
const char *gradient_name(int kind);                                  /* "d_q" */
int64_t gradient_entries(const fpa_gradient_trial *trial, int index); /* entries of that matrix */

#endif

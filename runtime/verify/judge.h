/* judge: what one output, the bytes beside it or a state of a trial is held against, and what the message
 * says. how: what is said behind the trial in a message; may be "". */
#ifndef FPAC_RUNTIME_VERIFY_JUDGE_H
#define FPAC_RUNTIME_VERIFY_JUDGE_H

#include "trial.h"

/* What the trials of one form have shown so far. */
typedef struct fpa_measure {
    int trials;
    int64_t longest;               /* tokens of the longest trial */
    int64_t outputs;               /* values written */
    int64_t judged;                /* values compared with the formula */
    double worst, tau;             /* largest |o - ref| / (tau magnitude), and the tau it was measured with */
    double error, largest;         /* max |o - ref|, max |ref| */
    double squares, plain_squares; /* of errors over magnitude, where plain evaluations exist */
    int64_t count;
    double rms_ratio; /* narrow arithmetic: the largest of any trial, each of which was judged by itself */
} fpa_measure;

/* What was found in other trials, to what was found in those before. */
void measure_add(fpa_measure *all, const fpa_measure *m);

fpa_status check_refuse(const fpa_trial *trial, fpa_form_index form, const char *how, const char *what,
                        fpa_error *error);

/* A field for the trial's outputs. */
fpa_status check_make_output(const fpa_trial *trial, fpa_field *o, fpa_error *error);

/* One for a state. */
fpa_status check_make_state(const fpa_trial *trial, fpa_layout layout, fpa_field *state, fpa_error *error);

/* Criterion 1 for tokens [from, end). */
fpa_status check_values(const fpa_trial *trial, fpa_form_index form, const char *how, const fpa_field *o,
                        int64_t from, int64_t end, const fpa_bound *bound, fpa_measure *measure,
                        fpa_error *error);

/* Nothing outside the elements of a field was written; name: of the field. */
fpa_status check_guards(const fpa_trial *trial, fpa_form_index form, const char *how, const char *name,
                        const fpa_field *field, fpa_error *error);

/* Every element of a state is written and finite, and zero when no token was seen. */
fpa_status check_state(const fpa_trial *trial, fpa_form_index form, const char *how, const fpa_field *state,
                       int64_t tokens, fpa_error *error);

#endif

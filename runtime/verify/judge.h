/* judge: checks of outputs, of guards and of states, with messages. */
#ifndef FPAC_RUNTIME_VERIFY_JUDGE_H
#define FPAC_RUNTIME_VERIFY_JUDGE_H

#include "trial.h"

/* Results over the trials of one form. */
typedef struct fpa_measure {
    int trials;
    int64_t longest;               /* tokens of the longest trial */
    int64_t outputs;               /* values written */
    int64_t judged;                /* values compared with the formula */
    double worst, tau;             /* largest |o - ref| / (tau magnitude), and the tau it was measured with */
    double error, largest;         /* max |o - ref|, max |ref| */
    double squares, plain_squares; /* of errors over magnitudes, if there are plain evaluations */
    int64_t count;
    double rms_ratio; /* in narrow arithmetic: the largest ratio of any trial, since each is judged alone */
} fpa_measure;

/* Adds the results of other trials. */
void measure_add(fpa_measure *all, const fpa_measure *m);

/* The check of a module's form on a trial. After the first failure, which is kept, nothing more is run or compared. */
typedef struct fpa_check {
    fpa_trial *trial; /* checks may change its inputs temporarily */
    const fpa_module *module;
    fpa_form_index form; /* the form of runs and messages */
    const char *how;     /* text after the trial's in a message; may be "" */
    fpa_measure *measure;
    fpa_error *error;
    fpa_status status;
} fpa_check;

/* Records that the module is refused, unless there was a failure before. */
void check_refuse(fpa_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Make fields for the trial's outputs, and for `count` states; to be freed also after an error. */
void check_make_output(fpa_check *c, fpa_field *o);
void check_make_states(fpa_check *c, fpa_layout layout, int64_t count, fpa_field *states);

/* Runs the module in the check's form. */
void check_run(fpa_check *c, fpa_run run);

/* Checks criterion 1 for tokens [from, end). */
void check_values(fpa_check *c, const fpa_field *o, int64_t from, int64_t end, const fpa_bound *bound);

/* Checks that nothing outside the elements of a field was written; name: the field's. */
void check_guards(fpa_check *c, const char *name, const fpa_field *field);

/* Checks that every element of a state is written and finite, and is zero if it has no tokens. */
void check_state(fpa_check *c, const fpa_field *state, int64_t tokens);

#endif

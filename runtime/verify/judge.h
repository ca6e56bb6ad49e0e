/* judge: what one output, the bytes beside it or a state of a trial is held against, and what the message
 * says. */
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

/* A form of a module, held against a trial. The first thing that is found wrong is kept: nothing is asked, or looked at, behind it. */
typedef struct fpa_check {
    fpa_trial *trial; /* changed for a while, perhaps */
    const fpa_module *module;
    fpa_form_index form; /* of runs, and in messages */
    const char *how;     /* what is said behind the trial in a message; may be "" */
    fpa_measure *measure;
    fpa_error *error;
    fpa_status status;
} fpa_check;

/* The module is refused, if nothing else was wrong before. */
void check_refuse(fpa_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fields for the trial's outputs, for states, and for so many states of a pool; free also after an error. */
void check_make_output(fpa_check *c, fpa_field *o);
void check_make_states(fpa_check *c, fpa_layout layout, int64_t count, fpa_field *states);

/* run.form: the check's. */
void check_run(fpa_check *c, fpa_run run);

/* Criterion 1 for tokens [from, end). */
void check_values(fpa_check *c, const fpa_field *o, int64_t from, int64_t end, const fpa_bound *bound);

/* Nothing outside the elements of a field was written; name: of the field. */
void check_guards(fpa_check *c, const char *name, const fpa_field *field);

/* Every element of a state is written and finite, and zero when no token was seen. */
void check_state(fpa_check *c, const fpa_field *state, int64_t tokens);

#endif

/* gradient_judge: gradients of a trial beside the formula's: each number within its bound, and all together. */
#ifndef FPAC_RUNTIME_VERIFY_GRADIENT_JUDGE_H
#define FPAC_RUNTIME_VERIFY_GRADIENT_JUDGE_H

#include "gradient_trial.h"

/* What has been found when all problems were put to a module. */
typedef struct fpa_gradient_findings {
    int trials;
    int64_t longest, judged;
    double worst, ratio; /* of the bound; RMS error over the plain evaluation's */
} fpa_gradient_findings;

/* Sums of squares of errors over magnitudes. */
typedef struct fpa_gradient_squares {
    double found, plain;
    /* of log-gates: what roundings of the plain walk's terms leave on average; of other kinds 0 */
    double expected;
    int64_t count;
} fpa_gradient_squares;

/* A form of a module, held against a trial. The first thing that is found wrong is kept: nothing is asked, or looked at, behind it. */
typedef struct fpa_gradient_check {
    const fpa_gradient_trial *trial;
    const fpa_module *backward, *forward; /* forward: makes states */
    fpa_form_index form;
    const char *how; /* said behind the trial in a message; may be "" */
    int resumes;     /* states that were rounded on the way */
    fpa_gradient_findings *found;
    fpa_error *error;
    fpa_status status;
} fpa_gradient_check;

/* The module is refused, if nothing else was wrong before. */
void gradient_refuse(fpa_gradient_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* run.form: the check's. */
void gradient_check_run(fpa_gradient_check *c, fpa_gradient_run run, fpa_gradient_outputs *outputs);

/* Gradients of the run's kinds, and of matrices if it has them; sums, of each kind and last of matrices, are added to. */
void gradient_judge(fpa_gradient_check *c, const fpa_gradient_run *run, const fpa_gradient_outputs *outputs,
                    fpa_gradient_squares *sums);

/* RMS of errors: not above twice the plain evaluation's, or half of a float's last place. Of one trial few errors are
 * independent of each other, so all trials are judged together, and the long one, whose errors are its own, alone. A log-gate's
 * are carried from token to token: where the plain evaluation's happen to cancel, those that it was to expect count. */
fpa_status gradient_check_rms(const fpa_head *head, fpa_form_index form, const fpa_gradient_squares *squares,
                              const char *name, fpa_gradient_findings *found, fpa_error *error);

#endif

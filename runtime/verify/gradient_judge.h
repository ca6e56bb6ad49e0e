/* gradient_judge: compares gradients of a trial with the formula's: each number with its bound, and the RMS of all errors with the plain
 * evaluation's. */
#ifndef FPAC_RUNTIME_VERIFY_GRADIENT_JUDGE_H
#define FPAC_RUNTIME_VERIFY_GRADIENT_JUDGE_H

#include "gradient_trial.h"

/* Results over all trials of a module. */
typedef struct fpa_gradient_findings {
    int trials;
    int64_t longest, judged;
    /* largest error relative to the bound; largest ratio of RMS errors, the module's over the plain evaluation's */
    double worst, ratio;
} fpa_gradient_findings;

/* Sums of squares of errors over magnitudes. */
typedef struct fpa_gradient_squares {
    double found, plain;
    /* of log-gates: the expected error of the plain evaluation's roundings; of other kinds 0 */
    double expected;
    int64_t count;
} fpa_gradient_squares;

/* The check of a module's form on a trial. After the first failure, which is kept, nothing more is run or compared. */
typedef struct fpa_gradient_check {
    const fpa_gradient_trial *trial;
    const fpa_module *backward, *forward; /* forward: makes states */
    fpa_form_index form;
    const char *how; /* text after the trial's in a message; may be "" */
    int resumes;     /* number of states that were rounded between runs */
    fpa_gradient_findings *found;
    fpa_error *error;
    fpa_status status;
} fpa_gradient_check;

/* Records that the module is refused, unless there was a failure before. */
void gradient_refuse(fpa_gradient_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Runs the module in the check's form. */
void gradient_check_run(fpa_gradient_check *c, fpa_gradient_run run, fpa_gradient_outputs *outputs);

/* Compares the gradients that the run has computed; adds errors to sums, one for each kind and the last for matrices. */
void gradient_judge(fpa_gradient_check *c, const fpa_gradient_run *run, const fpa_gradient_outputs *outputs,
                    fpa_gradient_squares *sums);

/* The RMS of errors must be at most twice the plain evaluation's, or half of a float's last place. Few errors of one trial are
 * independent, so all trials are judged together, and the long one, whose errors are independent, alone. Errors of a log-gate are carried
 * from token to token: if the plain evaluation's happen to cancel, its expected ones count. */
fpa_status gradient_check_rms(const fpa_head *head, fpa_form_index form, const fpa_gradient_squares *squares,
                              const char *name, fpa_gradient_findings *found, fpa_error *error);

#endif

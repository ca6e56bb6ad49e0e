/* verify_check: what a module's outputs are held against, one trial and one form at a time. */
#ifndef FPAC_RUNTIME_VERIFY_CHECK_H
#define FPAC_RUNTIME_VERIFY_CHECK_H

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

/* Everything that the trial's shape asks for. */
fpa_status check_trial(fpa_trial *trial, const fpa_module *module, fpa_form_index form, fpa_measure *measure,
                       fpa_error *error);

/* Criterion 2, over all trials: RMS error against the plain evaluation's. *ratio is 0 when none
 * could be afforded. */
fpa_status check_rms(const fpa_head *head, fpa_form_index form, const fpa_measure *measure, double *ratio,
                     fpa_error *error);

#endif

/* check: the checks of a module's form on one trial, and over all trials. */
#ifndef FPAC_RUNTIME_VERIFY_CHECK_H
#define FPAC_RUNTIME_VERIFY_CHECK_H

#include "judge.h"

/* All checks that the trial's shape asks for. */
fpa_status check_trial(fpa_trial *trial, const fpa_module *module, fpa_form_index form, fpa_measure *measure,
                       fpa_error *error);

/* Criterion 2 over all trials: compares the RMS error with the plain evaluation's. *ratio is 0 if no plain evaluation was affordable. */
fpa_status check_rms(const fpa_head *head, fpa_form_index form, const fpa_measure *measure, double *ratio,
                     fpa_error *error);

#endif

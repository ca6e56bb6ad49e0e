/* check: what a module's outputs are held against, one trial and one form at a time. */
#ifndef FPAC_RUNTIME_VERIFY_CHECK_H
#define FPAC_RUNTIME_VERIFY_CHECK_H

#include "judge.h"

/* Everything that the trial's shape asks for. */
fpa_status check_trial(fpa_trial *trial, const fpa_module *module, fpa_form_index form, fpa_measure *measure,
                       fpa_error *error);

/* Criterion 2, over all trials: RMS error against the plain evaluation's. *ratio is 0 when none
 * could be afforded. */
fpa_status check_rms(const fpa_head *head, fpa_form_index form, const fpa_measure *measure, double *ratio,
                     fpa_error *error);

#endif

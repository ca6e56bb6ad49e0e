/* recent: a state that stays as it is, and the tokens that it has not seen. */
#ifndef FPAC_RUNTIME_VERIFY_RECENT_H
#define FPAC_RUNTIME_VERIFY_RECENT_H

#include "judge.h"

/* Queries of a state that has not seen the newest tokens; states by form `producer`, without queries. */
fpa_status check_recent(const fpa_trial *trial, const fpa_module *module, fpa_form_index producer,
                        fpa_measure *measure, fpa_error *error);

#endif

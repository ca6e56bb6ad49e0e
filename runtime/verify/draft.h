/* draft: several tokens a step, of which the state takes some in. */
#ifndef FPAC_RUNTIME_VERIFY_DRAFT_H
#define FPAC_RUNTIME_VERIFY_DRAFT_H

#include "judge.h"

/* Drafts of a state, a draft behind tokens that each sequence accepts another number of, and what the state is then. Heads
 * with a window have none. */
fpa_status check_draft(const fpa_trial *trial, const fpa_module *module, fpa_measure *measure,
                       fpa_error *error);

#endif

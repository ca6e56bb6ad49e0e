/* draft: several tokens a step, of which the state takes some in. */
#ifndef FPAC_RUNTIME_VERIFY_DRAFT_H
#define FPAC_RUNTIME_VERIFY_DRAFT_H

#include "judge.h"

/* Drafts of a state, a draft behind tokens that each sequence accepts another number of, and what the state is then. Heads
 * with a window have none. */
void check_draft(fpa_check *c);

#endif

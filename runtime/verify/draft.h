/* draft: decoding of several tokens in one call, some of which are then accepted into the state. */
#ifndef FPAC_RUNTIME_VERIFY_DRAFT_H
#define FPAC_RUNTIME_VERIFY_DRAFT_H

#include "judge.h"

/* Checks a draft; a draft after each sequence has accepted a different number of tokens; and the state after that. Heads with a window
 * have no drafts. */
void check_draft(fpa_check *c);

#endif

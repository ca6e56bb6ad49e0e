/* draft: drafts on the CPU, which can look at how many of their tokens are accepted: forwards one after the other. */
#ifndef FPAC_RUNTIME_C_DRAFT_H
#define FPAC_RUNTIME_C_DRAFT_H

#include "runtime/backend.h"

/* An fpa_module's, by its workspace and forward. */
size_t draft_workspace(const fpa_module *module, const fpa_draft_launch *draft);
fpa_status draft_forward(const fpa_module *module, const fpa_draft_launch *draft, void *stream,
                         fpa_error *error);

#endif

/* draft: drafts on the CPU, where the counts of accepted tokens can be read: as forwards, one after the other. */
#ifndef FPAC_RUNTIME_C_DRAFT_H
#define FPAC_RUNTIME_C_DRAFT_H

#include "runtime/backend.h"

/* Workspace and launch of a draft, by the module's workspace and forward. */
size_t draft_workspace(const fpa_module *module, const fpa_draft_launch *draft);
fpa_status draft_forward(const fpa_module *module, const fpa_draft_launch *draft, void *stream,
                         fpa_error *error);

#endif

/* launch_draft: drafts on a GPU: one launch of NAME_decode_draft, and one of NAME_split_reduction when several blocks share a
 * head. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_DRAFT_H
#define FPAC_RUNTIME_CUDA_LAUNCH_DRAFT_H

#include "module.h"

/* The functions of fpa_module of these names; module->handle is a struct fpa_cuda_module, whose context is current. */
size_t cuda_draft_workspace(const fpa_module *module, const fpa_draft_launch *draft);
fpa_status cuda_draft(const fpa_module *module, const fpa_draft_launch *draft, void *stream,
                      fpa_error *error);

#endif

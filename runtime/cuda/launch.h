/* launch: a forward as launches of a cubin's kernels, and the workspace that it needs. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_H
#define FPAC_RUNTIME_CUDA_LAUNCH_H

#include "runtime/backend.h"
#include "module.h"

/* An fpa_module's candidates, workspace and forward; module->handle is a struct fpa_cuda_module. forward
 * allocates nothing and waits for nothing; the module's context must be current. */
int cuda_module_candidates(const fpa_module *module, const fpa_call_size *size, fpa_candidate *out, int most);
size_t cuda_workspace(const fpa_module *module, int form, const struct fpa_launch *launch,
                      const fpa_candidate *candidate);
fpa_status cuda_forward(const fpa_module *module, int form, const struct fpa_launch *launch,
                        const fpa_candidate *candidate, void *stream, fpa_error *error);

/* The chunked form from the last token on, which sees itself only: whether NAME_cluster_scan can carry the call out, where
 * no state goes in or out, and that. The workspace: as cuda_workspace says of the call. */
bool cuda_reverses(const fpa_module *module, const struct fpa_launch *launch);
fpa_status cuda_forward_reversed(const fpa_module *module, const struct fpa_launch *launch, void *stream,
                                 fpa_error *error);

#endif

/* launch_step: the recurrent form on a GPU: one launch of NAME_step, and one of NAME_gather when several
 * blocks share a head. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_STEP_H
#define FPAC_RUNTIME_CUDA_LAUNCH_STEP_H

#include "module.h"

/* Bytes of workspace; parts of o when blocks share a head, the running state when there are several tokens.
 */
size_t step_workspace(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch);

/* Shared memory that a block of NAME_token asks for, when so many share a head. */
int64_t step_token_bytes(const struct fpa_cuda_geometry *geometry, int64_t slices);

/* Put the recurrent form into the stream; launch->workspace has step_workspace() bytes. */
fpa_status step_forward(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, CUstream stream,
                        fpa_error *error);

#endif

/* launch_backward: gradients as launches of a cubin's kernels. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_H
#define FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_H

#include "runtime/backend.h"

/* The functions of fpa_module of these names. If the copies of all sequences' states exceed half a gigabyte, some sequences are processed
 * at a time; a single one that exceeds it has longer chunks. */
size_t cuda_backward_workspace(const fpa_module *module, int form, const struct fpa_backward_launch *launch);
fpa_status cuda_backward(const fpa_module *module, int form, const struct fpa_backward_launch *launch,
                         void *stream, fpa_error *error);

#endif

/* launch_backward: gradients as launches of a cubin's kernels. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_H
#define FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_H

#include "runtime/backend.h"

/* fpa_module's functions of that name. Sequences whose copies of states do not fit into half a gigabyte together are
 * taken some at a time; a single one that does not has longer chunks. */
size_t cuda_backward_workspace(const fpa_module *module, int form, const struct fpa_backward_launch *launch);
fpa_status cuda_backward(const fpa_module *module, int form, const struct fpa_backward_launch *launch,
                         void *stream, fpa_error *error);

#endif

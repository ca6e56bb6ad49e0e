/* launch_passes: gradients as forward passes of other heads (gen/plan/passes.h): d_q in forward order of tokens, d_k and d_v in reverse
 * order. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_H

#include "grid.h"

/* Whether this call's gradients are passes: the module has passes of this form, and no state is given or wanted. */
bool cuda_takes_passes(const fpa_module *module, int form, const struct fpa_backward_launch *launch);

size_t cuda_passes_workspace(const fpa_module *module, int form, const struct fpa_backward_launch *launch);

/* call and back: filled with the operands of the launch. */
void cuda_launch_passes(cuda_queue *q, const fpa_module *module, int form,
                        const struct fpa_backward_launch *launch, const struct fpa_cuda_call *call,
                        const struct fpa_cuda_backward *back);

#endif

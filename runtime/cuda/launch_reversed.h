/* launch_reversed: the chunked form in reverse order of tokens, without initial and final state: a token's output is a sum over itself
 * and the tokens after it. For gradients of keys and values, from operands as given or as gathered in forward order. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_REVERSED_H
#define FPAC_RUNTIME_CUDA_LAUNCH_REVERSED_H

#include "launch.h"

/* Whether a kernel can compute this call. */
bool cuda_reverses(const fpa_module *module, const struct fpa_launch *launch);

/* Whether a kernel can compute any call of these sizes, whatever its operands' addresses and strides are. */
bool cuda_reverses_any(const fpa_module *module, const struct fpa_launch *sizes);

enum { CUDA_TURNED = 64 };

/* Whether the kernels of chunks, and a contraction after them, can process such a call in reverse order of tokens
 * (cuda_dots.reversed) without a reversed copy. The copy engine must be able to fetch the operands: in tiles of
 * CUDA_TURNED tokens, of which sizes->length has a whole number; rows after the last token are zero. */
bool cuda_turns(const fpa_module *module, int form, const struct fpa_launch *sizes);

/* Bytes of the workspace of cuda_forward_reversed. */
size_t cuda_reversed_workspace(const fpa_module *module, const struct fpa_launch *launch);
/* Launches the pass after the launches in the queue. dots: as for cuda_forward_dots, or NULL; states are stored in reverse order of
 * chunks. */
void cuda_forward_reversed(cuda_queue *behind, const fpa_module *module, const struct fpa_launch *launch,
                           const cuda_dots *dots);

#endif

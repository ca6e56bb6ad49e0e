/* launch_reversed: the chunked form from the last token on, which sees itself only, by NAME_cluster_scan or NAME_fused_chunk, where no state
 * goes in or out: gradients of keys and values of operands as they are given. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_REVERSED_H
#define FPAC_RUNTIME_CUDA_LAUNCH_REVERSED_H

#include "launch.h"

/* Whether a kernel can carry the call out. */
bool cuda_reverses(const fpa_module *module, const struct fpa_launch *launch);

/* Whether one can whatever the operands' addresses are, of a call of these sizes. */
bool cuda_reverses_any(const fpa_module *module, const struct fpa_launch *sizes);

enum { CUDA_TURNED = 64 };

/* Whether the kernels of chunks, and a contraction after them, can process such a call in reverse order of tokens
 * (cuda_dots.reversed) without a reversed copy. The copy engine must be able to fetch the operands: in tiles of
 * CUDA_TURNED tokens, of which sizes->length has a whole number; rows after the last token are zero. */
bool cuda_turns(const fpa_module *module, int form, const struct fpa_launch *sizes);

size_t cuda_reversed_workspace(const fpa_module *module, const struct fpa_launch *launch);
/* dots: as of cuda_forward_dots, or NULL; the last of the kept places is the first one that is left. */
void cuda_forward_reversed(cuda_queue *behind, const fpa_module *module, const struct fpa_launch *launch,
                           const cuda_dots *dots);

#endif

/* launch_fused: launches of NAME_fused_chunk beside the one along the sequence. Internal to
 * launch_*.c. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_FUSED_H
#define FPAC_RUNTIME_CUDA_LAUNCH_FUSED_H

#include "grid.h"
#include "module.h"

/* Of the launch along the sequence, which has so many parts. maps: NULL where the kernel takes none. */
int64_t fused_blocks(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call,
                     const struct fpa_cuda_maps *maps, int64_t parts);

/* Without queries: the totals of segments. maps: NULL where the kernel takes none. */
fpa_status fused_totals(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const struct fpa_cuda_call *walk, const struct fpa_cuda_maps *maps, CUstream stream,
                        fpa_error *error);
/* The final state from call->partial, where NAME_fused_chunk has an order of its own for totals. */
fpa_status fused_final(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                       const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, CUstream stream,
                       fpa_error *error);

#endif

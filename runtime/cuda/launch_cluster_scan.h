/* launch_cluster_scan: NAME_cluster_scan, the one pass of a sequence by the blocks of a cluster. Internal to
 * launch_*.c. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_CLUSTER_SCAN_H
#define FPAC_RUNTIME_CUDA_LAUNCH_CLUSTER_SCAN_H

#include "grid.h"

/* Blocks of each cluster, when that is faster than NAME_fused_chunk by so many segments; 0: it is not, or
 * there is no NAME_cluster_scan here. walks: query heads of all batch entries, times blocks of columns;
 * length: tokens. */
int cluster_scan_choose(const struct fpa_cuda_module *cuda, int64_t walks, int64_t segments, int64_t length);

/* The pass, with `blocks` a cluster. The final state is left in call->partial where that is not NULL. maps:
 * all of them are there. */
fpa_status cluster_scan_launch(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, int blocks,
                               CUstream stream, fpa_error *error);

#endif

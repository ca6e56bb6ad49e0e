/* launch_cluster_scan: NAME_cluster_scan, the one pass of a sequence by the blocks of a cluster. Internal to
 * launch_*.c. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_CLUSTER_SCAN_H
#define FPAC_RUNTIME_CUDA_LAUNCH_CLUSTER_SCAN_H

#include "grid.h"

/* The pass, with `blocks` a cluster, and so many clusters, which take one line (a query head's block of columns of a sequence) after the other; 0: one each. The final state is left in call->partial where that is not NULL. maps:
 * all of them are there. */
fpa_status cluster_scan_launch(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, int blocks,
                               int64_t clusters, CUstream stream, fpa_error *error);

/* The same of sequences of different lengths, which `clusters` of so many blocks share: call->totals and call->progress, which are
 * zeros, are their workspace; without the latter no sequence is shared. */
fpa_status sequence_scan_launch(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps,
                                int blocks, int64_t clusters, CUstream stream, fpa_error *error);

#endif

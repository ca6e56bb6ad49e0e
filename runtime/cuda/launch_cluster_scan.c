#include "launch_cluster_scan.h"

fpa_status cluster_scan_launch(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, int blocks,
                               int64_t clusters, CUstream stream, fpa_error *error)
{
    const int64_t lines = launch->batch * launch->query_heads * cuda->geometry.column_blocks;
    const fpa_cuda_grid grid = {CUDA_CLUSTER_SCAN, (clusters ? clusters : lines) * blocks, maps, 0};
    return cuda_launch_next(cuda, &grid, blocks, launch, call, stream, error);
}

fpa_status sequence_scan_launch(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps,
                                int blocks, int64_t clusters, CUstream stream, fpa_error *error)
{
    const fpa_cuda_grid grid = {CUDA_SEQUENCE_SCAN, clusters * blocks, maps, 0};
    return call->progress ? cuda_launch_clusters(cuda, &grid, blocks, launch, call, stream, error)
                          : cuda_launch_next(cuda, &grid, blocks, launch, call, stream, error);
}

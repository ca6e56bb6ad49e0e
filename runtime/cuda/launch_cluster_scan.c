#include "launch_cluster_scan.h"

fpa_status cluster_scan_launch(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, int blocks,
                               CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const fpa_cuda_grid grid = {CUDA_CLUSTER_SCAN,
                                launch->batch * launch->query_heads * g->column_blocks * blocks, maps, 0};
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

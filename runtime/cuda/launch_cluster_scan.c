#include "launch_cluster_scan.h"

#include "base/round.h"

/* Clusters for so many lines: one for each, or where there is no room for that as few as take no more rounds, each of which then has
 * another line behind its first. So all have as many, and where heads of a sequence divide them those of a token are read together. */
static int64_t count_clusters(const struct fpa_cuda_module *cuda, int64_t lines, int blocks)
{
    const int64_t places = blocks <= MOST_CLUSTER ? cuda->room.cluster_counts[blocks] : 0;
    if (!cuda->geometry.cluster_stays || places < 1 || lines <= places)
        return lines;
    return divide_up(lines, divide_up(lines, places));
}

fpa_status cluster_scan_launch(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, int blocks,
                               CUstream stream, fpa_error *error)
{
    const int64_t lines = launch->batch * launch->query_heads * cuda->geometry.column_blocks;
    const fpa_cuda_grid grid = {CUDA_CLUSTER_SCAN, count_clusters(cuda, lines, blocks) * blocks, maps, 0};
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

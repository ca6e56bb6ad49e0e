/* gpu_room: occupancy and clusters of kernels, computed without a GPU. */
#include "gpu_room.h"

#include "cuda_slices.h"

/* Blocks on a multiprocessor at a time: limited by threads, by shared memory, and by registers as the plan says (block->resident). */
static int count_blocks(const fpa_gpu *gpu, const struct fpa_cuda_block *block, int64_t bytes)
{
    const int64_t by_memory = gpu->shared_memory / (bytes + GPU_BLOCK_OWN);
    int64_t blocks = gpu->threads / block->threads;
    blocks = blocks < by_memory ? blocks : by_memory;
    blocks = block->resident && block->resident < blocks ? block->resident : blocks;
    return (int)(blocks < 1 ? 1 : blocks < GPU_MOST_BLOCKS ? blocks : GPU_MOST_BLOCKS);
}

/* Clusters that fit: those with a multiprocessor for each block, times the blocks that one multiprocessor runs. If they were not counted
 * on a device, clusters are placed in groups of 16 multiprocessors, the smallest of any GPU with clusters. */
static int count_clusters(const fpa_gpu *gpu, int blocks, int resident)
{
    enum { PART = 16 };
    const int counted = gpu->clusters[blocks];
    return (counted ? counted : gpu->multiprocessors / PART * (PART / blocks)) * resident;
}

fpa_gpu_room gpu_room_of(const struct fpa_cuda_geometry *g, const fpa_target *target, const fpa_gpu *gpu)
{
    const struct fpa_cuda_block *resident = &g->kernel[CUDA_DECODE_RESIDENT];
    const struct fpa_cuda_block *scan = &g->kernel[CUDA_CLUSTER_SCAN];
    fpa_gpu_room room = {.gpu = gpu,
                         .multiprocessors = gpu->multiprocessors,
                         .shared_memory = target->shared_memory,
                         .overlaps =
                             target->clusters && (g->decode_cluster > 1 || scan->threads || g->persistent),
                         .decode_cluster = 1};
    for (int i = 0; i < FPA_CUDA_KERNELS; i++)
        if (g->kernel[i].threads)
            room.occupancy[i] = count_blocks(gpu, &g->kernel[i], g->kernel[i].bytes);
    if (room.overlaps && g->decode_cluster > 1)
        room.decode_cluster = g->decode_cluster < MOST_CLUSTER ? g->decode_cluster : MOST_CLUSTER;
    for (int blocks = 1; blocks <= MOST_CLUSTER && room.overlaps; blocks++) {
        const int64_t bytes = resident->threads ? cuda_resident_bytes(g, blocks) : 0;
        if (resident->threads && blocks <= room.decode_cluster && bytes <= g->decode_resident_most)
            room.decode_resident_clusters[blocks] =
                count_clusters(gpu, blocks, count_blocks(gpu, resident, bytes));
        if (scan->threads && blocks > 1)
            room.cluster_counts[blocks] = count_clusters(gpu, blocks, 1);
    }
    return room;
}

fpa_gpu_room gpu_room_of_target(const struct fpa_cuda_geometry *g, const fpa_target *target)
{
    return gpu_room_of(g, target, gpu_of_target(target));
}

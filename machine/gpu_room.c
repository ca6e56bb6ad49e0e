#include "gpu_room.h"

#include <stddef.h>

#include "cuda_slices.h"

/* What a target's code is usually run on. */
typedef struct usual_gpu {
    int capability;
    int multiprocessors, shared_memory; /* bytes of one, of which each block that is there takes BLOCK_OWN */
    int threads;                        /* of one, at a time */
    int clusters[MOST_CLUSTER + 1]; /* by their blocks: that there is room for, a block a multiprocessor; 0:
                                       not counted */
    const char *source;
} usual_gpu;

enum { BLOCK_OWN = 1024, MOST_BLOCKS = 32, OVERLAPPING = 90 };

static const usual_gpu gpus[] = {
    {80, 108, 164 << 10, 2048, {0}, "A100: NVIDIA's architecture whitepaper"},
    {86, 84, 100 << 10, 1536, {0}, "A40: NVIDIA's datasheet"},
    {89, 142, 100 << 10, 1536, {0}, "L40S: NVIDIA's datasheet"},
    {90,
     132,
     228 << 10,
     2048,
     {0, 132, 66, 39, 30, 22, 17, 15, 15},
     "H200: NVIDIA's datasheet; clusters as its driver counted them (docs/decisions/0015-cluster-scan.md), "
     "whose 8 GPCs have 16 to 18 multiprocessors"},
    {100, 148, 228 << 10, 2048, {0}, "B200: NVIDIA's datasheet"},
    {103, 148, 228 << 10, 2048, {0}, "B300: NVIDIA's datasheet"},
    {120, 170, 100 << 10, 1536, {0}, "RTX 5090: NVIDIA's datasheet"},
};

static const usual_gpu *find_gpu(const fpa_target *target)
{
    const usual_gpu *gpu = NULL;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (gpus[i].capability <= target->capability)
            gpu = &gpus[i];
    return gpu;
}

/* By threads and shared memory: registers are the compiler's to count. */
static int count_blocks(const usual_gpu *gpu, int threads, int64_t bytes)
{
    const int64_t by_memory = gpu->shared_memory / (bytes + BLOCK_OWN);
    int64_t blocks = gpu->threads / threads;
    blocks = blocks < by_memory ? blocks : by_memory;
    return (int)(blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

/* Clusters whose blocks have a multiprocessor each, times blocks that one holds. Where nobody has counted:
 * from parts of 16 multiprocessors, as all GPUs that have clusters are built of at least. */
static int count_clusters(const usual_gpu *gpu, int blocks, int resident)
{
    enum { PART = 16 };
    const int counted = gpu->clusters[blocks];
    return (counted ? counted : gpu->multiprocessors / PART * (PART / blocks)) * resident;
}

fpa_gpu_room gpu_room_of_target(const struct fpa_cuda_geometry *g, const fpa_target *target,
                                const char **source)
{
    const usual_gpu *gpu = find_gpu(target);
    const struct fpa_cuda_block *resident = &g->kernel[CUDA_DECODE_RESIDENT];
    const struct fpa_cuda_block *scan = &g->kernel[CUDA_CLUSTER_SCAN];
    fpa_gpu_room room = {.multiprocessors = gpu->multiprocessors,
                         .shared_memory = target->shared_memory,
                         .overlaps =
                             target->capability >= OVERLAPPING && (g->decode_cluster > 1 || g->persistent),
                         .decode_cluster = 1};
    *source = gpu->source;
    for (int i = 0; i < FPA_CUDA_KERNELS; i++)
        if (g->kernel[i].threads)
            room.occupancy[i] = count_blocks(gpu, g->kernel[i].threads, g->kernel[i].bytes);
    if (room.overlaps && g->decode_cluster > 1)
        room.decode_cluster = g->decode_cluster < MOST_CLUSTER ? g->decode_cluster : MOST_CLUSTER;
    for (int blocks = 1; blocks <= room.decode_cluster; blocks++) {
        const int64_t bytes = resident->threads ? cuda_resident_bytes(g, blocks) : 0;
        if (resident->threads && bytes <= g->decode_resident_most)
            room.decode_resident_clusters[blocks] =
                count_clusters(gpu, blocks, count_blocks(gpu, resident->threads, bytes));
        if (scan->threads && blocks > 1)
            room.cluster_counts[blocks] = count_clusters(gpu, blocks, 1);
    }
    return room;
}

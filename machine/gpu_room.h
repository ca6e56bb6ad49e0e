/* gpu_room: properties of a GPU for the kernels of one module: occupancy, clusters, overlapping launches. A loaded module asks the driver
 * (runtime/cuda/module.c). Without a GPU, gpu_room_of() computes them from the kernels' threads and shared memory and from a row of the
 * table of GPUs; the default is the row of the GPU on which the target's code usually runs. */
#ifndef FPAC_MACHINE_GPU_ROOM_H
#define FPAC_MACHINE_GPU_ROOM_H

#include "abi/cuda_kernels.h"
#include "gpu.h"
#include "target.h"

enum { MOST_CLUSTER = 8 }; /* largest cluster that every GPU with clusters supports */

typedef struct fpa_gpu_room {
    const fpa_gpu *gpu; /* its row of the table */
    int multiprocessors;
    int shared_memory;               /* most bytes of one block */
    int occupancy[FPA_CUDA_KERNELS]; /* blocks on one multiprocessor, at least 1; 0: no such kernel */
    /* kernels may start before the one before them has ended: NAME_decode and its companions, NAME_chunk_output */
    bool overlaps;
    int decode_cluster; /* most blocks of a head in one cluster; 1: no clusters */
    /* clusters of NAME_decode_resident and NAME_cluster_scan that the GPU runs at a time, by blocks of a cluster */
    int decode_resident_clusters[MOST_CLUSTER + 1], cluster_counts[MOST_CLUSTER + 1];
} fpa_gpu_room;

/* Room on a GPU of the given row. */
fpa_gpu_room gpu_room_of(const struct fpa_cuda_geometry *geometry, const fpa_target *target,
                         const fpa_gpu *gpu);
/* The same by the default row of the target. */
fpa_gpu_room gpu_room_of_target(const struct fpa_cuda_geometry *geometry, const fpa_target *target);

#endif

/* gpu_room: what a launch knows of its GPU for the kernels of one module.
 *
 * A loaded module asks the driver. Without a GPU, gpu_room_of() counts from the kernels' threads and shared memory and
 * from a row of the table of GPUs: by default the one that the target's code is usually run on. */
#ifndef FPAC_MACHINE_GPU_ROOM_H
#define FPAC_MACHINE_GPU_ROOM_H

#include "abi/cuda_kernels.h"
#include "gpu.h"
#include "target.h"

enum { MOST_CLUSTER = 8 }; /* blocks that a cluster may have on every GPU that has clusters */

typedef struct fpa_gpu_room {
    const fpa_gpu *gpu; /* its row of the table */
    int multiprocessors;
    int shared_memory;               /* bytes that one block may have at most */
    int occupancy[FPA_CUDA_KERNELS]; /* blocks on one multiprocessor at a time, at least 1; 0: no such kernel
                                      */
    bool overlaps;      /* NAME_decode and its companions, and NAME_chunk_output, may start before the kernel
                           before them is through */
    int decode_cluster; /* blocks of a head that one cluster may have; 1: no clusters here */
    /* of NAME_decode_resident and NAME_cluster_scan, by their blocks: clusters that the GPU has room for at a
     * time */
    int decode_resident_clusters[MOST_CLUSTER + 1], cluster_counts[MOST_CLUSTER + 1];
} fpa_gpu_room;

/* Room on a GPU of that row. */
fpa_gpu_room gpu_room_of(const struct fpa_cuda_geometry *geometry, const fpa_target *target,
                         const fpa_gpu *gpu);
/* The same by the default row of the target. */
fpa_gpu_room gpu_room_of_target(const struct fpa_cuda_geometry *geometry, const fpa_target *target);

#endif

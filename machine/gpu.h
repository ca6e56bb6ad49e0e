/* gpu: the table of GPUs, with rates of each. From a device's name, or a target, it gives a row; machine/cuda_cost.h computes seconds
 * from it. Code is emitted for a target, which does not depend on a device, so that a target has a default row; a launch uses the row of
 * its device. */
#ifndef FPAC_MACHINE_GPU_H
#define FPAC_MACHINE_GPU_H

#include "target.h"

/* Common to all: four schedulers in a multiprocessor, each of which issues an instruction of a warp each clock; an instruction that needs
 * the last one's result waits four clocks; 32 banks of shared memory, 128 bytes a clock. */
enum { GPU_ISSUE = 4, GPU_LATENCY = 4, GPU_BLOCK_OWN = 1024, GPU_MOST_BLOCKS = 32 };

/* GPU_TRIP: seconds from a load from memory to its use. GPU_LAUNCH: from a kernel's end to the start of one that waits for it.
 * GPU_HANDOVER: until a block of a cluster sees another one's write. GPU_HANDED: bytes a clock of sums that a block adds to and passes
 * on. GPU_STATES: bytes a clock of states that lanes of one multiprocessor load into their sums, and store. Measured on an H200, the last
 * one on an H100 (docs/decisions/0017-decode.md, 0015-cluster-scan.md, 0059-what-blocks-wait-for.md, 0060-what-pieces-cost.md). */
#define GPU_TRIP 0.65e-6
#define GPU_LAUNCH 2.1e-6
#define GPU_HANDOVER 0.12e-6
#define GPU_HANDED 96.0
#define GPU_STATES 12.0

/* Share of the second-level cache that keeps prefetched rows of states while the call before streams its own
 * (docs/decisions/0017-decode.md). */
#define GPU_KEPT 0.1

/* By this fraction updating states takes longer if their rows are not multiples of 16 bytes and the rows of the blocks
 * that run at a time are far larger than the second-level cache; of smaller ones this times the share that exceeds it
 * (docs/decisions/0213-idle-threads-of-a-ring.md). */
#define GPU_APART 0.1

typedef struct fpa_gpu {
    const char *name;    /* "h200": the name in `fpac explain --length` */
    const char *device;  /* part of the driver's name of the device: "H200" */
    int capability;      /* 90 for 9.0 */
    int multiprocessors; /* of the whole part; a launch uses its device's number */
    double clock;        /* Hz, under load */
    double products; /* m16n8k16 products of 16-bit numbers by mma.sync, for each clock and multiprocessor */
    double warpgroup_products; /* the same by wgmma; 0: no wgmma */
    double sustained;          /* products a second of the whole GPU at its power limit */
    int shared_memory; /* bytes of a multiprocessor; each block on it occupies GPU_BLOCK_OWN more than it requests */
    int threads;       /* most threads on a multiprocessor */
    double memory;     /* bytes a second of a large copy: read plus written */
    double cache;      /* bytes a second of the second-level cache */
    double cache_size; /* bytes of the second-level cache */
    int clusters
        [9]; /* by blocks of a cluster, each of which fills a multiprocessor: clusters at a time; 0: unknown */
} fpa_gpu;

int gpu_count(void);
const fpa_gpu *gpu_at(int index);
/* The row of this fpa_gpu.name, or NULL. */
const fpa_gpu *gpu_find(const char *name);
/* The row of a device by the driver's name of it; otherwise the default row of its compute capability, or of the nearest one below. Never
 * NULL. */
const fpa_gpu *gpu_of_device(const char *device, int capability);
/* The default row of a CUDA target. */
const fpa_gpu *gpu_of_target(const fpa_target *target);

#endif

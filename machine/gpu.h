/* gpu: the table of GPUs: what each of them does in a clock or a second.
 *
 * Given: a device's name, or a target. Gives: a row. Code is emitted for a target, which depends on no device, so
 * that a target has a default row; a launch takes the row of its device. machine/cuda_cost.h makes seconds of it. */
#ifndef FPAC_MACHINE_GPU_H
#define FPAC_MACHINE_GPU_H

#include "target.h"

/* What all of them have in common: four schedulers a multiprocessor that begin an instruction of a warp a clock each,
 * of which one that needs the last one's result waits four clocks; 32 banks of shared memory, 128 bytes a clock. */
enum { GPU_ISSUE = 4, GPU_LATENCY = 4, GPU_BLOCK_OWN = 1024, GPU_MOST_BLOCKS = 32 };

/* Seconds from a load from memory to its use; from a kernel's end to the begin of one that waits for it; until a block
 * of a cluster hears of another one's write. Bytes a clock of sums that one block adds to and hands on; of states that lanes of one multiprocessor load
 * into their sums, and store. Measured on an H200, the last one on an H100
 * (docs/decisions/0017-decode.md, 0015-cluster-scan.md, 0059-what-blocks-wait-for.md, 0060-what-pieces-cost.md). */
#define GPU_TRIP 0.65e-6
#define GPU_LAUNCH 2.1e-6
#define GPU_HANDOVER 0.12e-6
#define GPU_HANDED 96.0
#define GPU_STATES 12.0

/* Of the second-level cache, what keeps rows of states that a call asks for while the one before it streams its own
 * (docs/decisions/0017-decode.md). */
#define GPU_KEPT 0.1

typedef struct fpa_gpu {
    const char *name;          /* "h200": as `fpac explain --length` says it */
    const char *device;        /* what the driver's name of the device has in it: "H200" */
    int capability;            /* 90 for 9.0 */
    int multiprocessors;       /* of the whole part; a launch takes its device's */
    double clock;              /* Hz, under load */
    double products;           /* m16n8k16 products of 16-bit numbers, a clock and multiprocessor: mma.sync */
    double warpgroup_products; /* the same by wgmma; 0: it has none */
    double sustained;          /* products a second of the whole GPU, as long as its power limit allows */
    int shared_memory; /* bytes of a multiprocessor; of each block that is there GPU_BLOCK_OWN are not its own */
    int threads;       /* of a multiprocessor, at a time */
    double memory;     /* bytes a second, of a large copy: read plus written */
    double cache;      /* bytes a second of the second-level cache */
    double cache_size; /* its bytes */
    int clusters[9];   /* of so many blocks that have a multiprocessor each: at a time; 0: unknown */
} fpa_gpu;

int gpu_count(void);
const fpa_gpu *gpu_at(int index);
/* By fpa_gpu.name; NULL: there is no such row. */
const fpa_gpu *gpu_find(const char *name);
/* The row of a device, by the driver's name of it, else the default row of its compute capability, else of the
 * nearest one below. Never NULL. */
const fpa_gpu *gpu_of_device(const char *device, int capability);
/* The default row of a CUDA target. */
const fpa_gpu *gpu_of_target(const fpa_target *target);

#endif

/* cuda_cost: seconds of CUDA kernels. From counts by the generator (abi/cuda_call.h: struct fpa_cuda_work) and a row of the table of
 * GPUs: clocks of a multiprocessor, seconds of a launch, and what takes most of them.
 *
 * A block uses the tensor cores, shared memory, the schedulers and its warps' dependent chains of instructions, which overlap in part:
 * the time is at least the greatest of these, and at most their sum. The root of the sum of their squares is between both, and within a
 * tenth of measurements for all mechanisms (docs/performance.md, "Model against measurement"). Device memory is accessed ahead and
 * overlaps more: the cube root of the sum of cubes. */
#ifndef FPAC_MACHINE_CUDA_COST_H
#define FPAC_MACHINE_CUDA_COST_H

#include <stdbool.h>

#include "abi/cuda_call.h"
#include "candidate.h"
#include "gpu.h"

/* Sums of counts over steps, copies and pairs of tiles. */
typedef struct fpa_cuda_sum {
    double products, shared, instructions;
    double bytes;   /* of device memory, accessed ahead */
    double copies;  /* bytes of copies of the state; kernels without the copy engine wait for these */
    double cached;  /* bytes, accessed ahead, that are read from the second-level cache again */
    double awaited; /* clocks in which a warp waits and has nothing else to do */
} fpa_cuda_sum;

/* sum += times * work. The second function is for copies of the state. */
void cuda_sum_add(fpa_cuda_sum *sum, const struct fpa_cuda_work *work, double times);
void cuda_sum_add_copy(fpa_cuda_sum *sum, const struct fpa_cuda_work *work, double times);

/* The time of a kernel from that of its own work and that of device memory, which overlap: the cube root of the sum of their cubes, a
 * quarter more than either if both are equal. */
double cuda_overlapped(double own, double memory);

/* Seconds of device memory that overlap with other work, and that do not. */
double cuda_memory_ahead(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups);
double cuda_memory_alone(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups);

/* Clocks of one multiprocessor for a sum, with `warps` warps on it; without device memory. */
double cuda_clocks(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups, double warps);

/* Clocks of a multiprocessor for queries of NAME_chunk_output by portable kernels, for any GPU: from clocks of shared memory, 16 x 8 x 16
 * products, and bytes that are read from the second-level cache. The time is the longest of these and half of the others. */
double cuda_query_clocks(double shared, double products, double bytes);

/* The work of a launch. */
typedef struct fpa_cuda_launch_load {
    fpa_cuda_sum all; /* work of the whole launch */
    double share;     /* of `all`: that of the busiest multiprocessor */
    double warps;     /* on a multiprocessor */
    bool warpgroups;  /* products use wgmma */
    double trips;     /* round trips to memory that do not overlap with anything */
} fpa_cuda_launch_load;

/* Seconds of a launch, and what takes most of them. */
fpa_cost cuda_seconds(const fpa_gpu *gpu, const fpa_cuda_launch_load *load);

/* The cost of launches one after the other: seconds are added, the limit is that of the longer one. */
fpa_cost cost_then(fpa_cost first, fpa_cost second);

/* Share of all work for the busiest multiprocessor, if blocks are equal and `resident` of them fit on a multiprocessor. If there are more
 * blocks than fit, they run in waves. */
double cuda_share(double blocks, double multiprocessors, double resident);

#endif

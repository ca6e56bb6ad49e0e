/* cuda_cost: seconds of CUDA kernels, from counts of what they do.
 *
 * Given: counts that the generator made (abi/cuda_call.h: struct fpa_cuda_work) and a row of the table of GPUs.
 * Gives: clocks of a multiprocessor, seconds of a launch, and what takes most of them.
 *
 * A block uses the tensor cores, shared memory, the schedulers and its warps' own chains of instructions in turn,
 * and they overlap in part: none of the time is less than the greatest of them, nor more than their sum. The root of
 * the sum of their squares lies between, and is what kernels of all mechanisms take within a tenth
 * (docs/performance.md, "Model against measurement"). What comes from device memory is asked for ahead and overlaps
 * more: it joins them by third powers. */
#ifndef FPAC_MACHINE_CUDA_COST_H
#define FPAC_MACHINE_CUDA_COST_H

#include <stdbool.h>

#include "abi/cuda_call.h"
#include "candidate.h"
#include "gpu.h"

/* Counts of several steps, copies and pairs of tiles. */
typedef struct fpa_cuda_sum {
    double products, shared, instructions;
    double bytes;   /* that are asked for ahead */
    double copies;  /* of the state; threads of kernels without a copy engine's do nothing else meanwhile */
    double cached;  /* bytes, asked for ahead, that come from the second-level cache once more */
    double awaited; /* clocks in which a warp has nothing else to do */
} fpa_cuda_sum;

/* sum += times work; of a copy of the state. */
void cuda_sum_add(fpa_cuda_sum *sum, const struct fpa_cuda_work *work, double times);
void cuda_sum_add_copy(fpa_cuda_sum *sum, const struct fpa_cuda_work *work, double times);

/* What a kernel takes whose own work and device memory hide each other: the cube root of the sum of their cubes, which is a quarter more
 * than either where both take as long. */
double cuda_overlapped(double own, double memory);

/* Seconds of device memory: what overlaps with the rest, and what does not. */
double cuda_memory_ahead(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups);
double cuda_memory_alone(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups);

/* Clocks that one multiprocessor needs for a sum, with so many warps on it; device memory is left out. */
double cuda_clocks(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups, double warps);

/* Clocks of a multiprocessor for queries of NAME_chunk_output by portable kernels, whatever the GPU: clocks of shared
 * memory, 16 x 8 x 16 products, bytes that come from the second-level cache. What takes longest hides half of the
 * others. */
double cuda_query_clocks(double shared, double products, double bytes);

/* A launch: multiprocessors that work, what all of them do together, and what the one that ends last does of it. */
typedef struct fpa_cuda_launch_load {
    fpa_cuda_sum all; /* what the launch does */
    double share;     /* of `all` that the busiest multiprocessor does */
    double warps;     /* on a multiprocessor */
    bool warpgroups;  /* products are by wgmma */
    double trips;     /* to memory and back, that nothing hides */
} fpa_cuda_launch_load;

/* Seconds of a launch, and what takes most of them. */
fpa_cost cuda_seconds(const fpa_gpu *gpu, const fpa_cuda_launch_load *load);

/* Of launches one after the other: seconds add up, the limit is that of the longest. */
fpa_cost cost_then(fpa_cost first, fpa_cost second);

/* Share of all blocks' work that the busiest multiprocessor has, where blocks are alike and `resident` of them fit
 * waves of them. */
double cuda_share(double blocks, double multiprocessors, double resident);

#endif

/* random_work: a module whose kernels do anything, for tests of what holds whatever they do. */
#ifndef FPAC_TESTS_RANDOM_WORK_H
#define FPAC_TESTS_RANDOM_WORK_H

#include <stdint.h>

#include "abi/cuda_kernels.h"

static inline uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* 1 to about 100,000, small ones as often as large ones. */
static inline int random_count(uint64_t *seed)
{
    const int most = 1 << next_random(seed) % 17;
    return 1 + (int)(next_random(seed) % (unsigned)most);
}

static inline struct fpa_cuda_work random_counts(uint64_t *seed)
{
    struct fpa_cuda_work work;
    work.products = random_count(seed);
    work.shared = random_count(seed);
    work.instructions = random_count(seed);
    work.bytes = random_count(seed);
    work.cached = random_count(seed);
    work.awaited = random_count(seed);
    return work;
}

static inline struct fpa_cuda_kernel_work random_kernel_work(uint64_t *seed, int warpgroups)
{
    struct fpa_cuda_kernel_work work = {.warpgroups = warpgroups, .trips = (int)(next_random(seed) % 25)};
    work.step = random_counts(seed);
    work.copy = random_counts(seed);
    work.keys = random_counts(seed);
    return work;
}

/* Counts of all kernels; products by wgmma where warpgroups is 1. */
static inline void random_work(uint64_t *seed, int warpgroups, struct fpa_cuda_geometry *g)
{
    for (int kernel = 0; kernel < FPA_CUDA_KERNELS; kernel++)
        g->work[kernel] = random_kernel_work(seed, warpgroups);
    g->totals = random_kernel_work(seed, warpgroups);
}

#endif

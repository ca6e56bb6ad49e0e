/* gpu: the table of GPUs. Rates per clock are those of the instruction sets; clocks, memory and power those of the parts. */
#include "gpu.h"

#include <string.h>

/* Sources, by column.
 *
 * multiprocessors, clock, memory of rows that are not measured: the vendor's datasheet or whitepaper of the part
 *   (A100, A10, L40S, H100, B200, RTX PRO 6000); memory as 0.89 of the datasheet's bandwidth, the share that a
 *   large copy reaches on an H200 (4,257 of 4,800 GB/s, bench/results/current/gpu.tsv).
 * products: the datasheet's dense bf16 rate over clock and multiprocessors (2 x 16 x 8 x 16 = 4,096 FLOP a product);
 *   on Hopper that is the rate of wgmma, and mma.sync reaches two thirds (docs/decisions/0024-sweep-of-shapes.md).
 * sustained: a bf16 product of 8192 rows, which the power limit holds back: measured on an H200
 *   (bench/results/current/gpu.tsv); others by the datasheet's rate.
 * clock of the H200: of kernels that are not held back by power, by ncu (bench/results/current/counts.txt).
 * cache: measured on Hopper (docs/decisions/0004-segments-and-longer-chunks.md), else scaled by clock and
 *   multiprocessors.
 * cache_size: the datasheet's.
 * shared_memory, threads: NVIDIA's CUDA programming guide, compute capabilities.
 * clusters: as an H200's driver counts them for blocks that fill a multiprocessor
 *   (docs/decisions/0015-cluster-scan.md); its 8 parts have 16 to 18 multiprocessors. */
/* Parts with the same chip differ in their memory, or in no figure of the table. */
#define HOPPER                                                                                               \
    .capability = 90, .multiprocessors = 132, .clock = 1.755e9, .products = 2.0 / 3,                         \
    .warpgroup_products = 1, .sustained = 731e12 / 4096, .shared_memory = 228 << 10, .threads = 2048,        \
    .cache = 5.3e12, .cache_size = 50 << 20, .clusters = {0, 132, 66, 39, 30, 22, 17, 15, 15}

#define BLACKWELL                                                                                            \
    .multiprocessors = 148, .clock = 1.85e9, .products = 0.5, .sustained = 560e12 / 4096,                    \
    .shared_memory = 228 << 10, .threads = 2048, .memory = 0.89 * 8000e9, .cache = 6.2e12,                   \
    .cache_size = 126 << 20

static const fpa_gpu gpus[] = {
    {.name = "a100",
     .device = "A100",
     .capability = 80,
     .multiprocessors = 108,
     .clock = 1.41e9,
     .products = 0.5,
     .sustained = 312e12 / 4096,
     .shared_memory = 164 << 10,
     .threads = 2048,
     .memory = 0.89 * 2039e9,
     .cache = 3.7e12,
     .cache_size = 40 << 20},
    {.name = "a10",
     .device = "A10",
     .capability = 86,
     .multiprocessors = 72,
     .clock = 1.695e9,
     .products = 0.25,
     .sustained = 125e12 / 4096,
     .shared_memory = 100 << 10,
     .threads = 1536,
     .memory = 0.89 * 600e9,
     .cache = 2.9e12,
     .cache_size = 6 << 20},
    {.name = "l40s",
     .device = "L40S",
     .capability = 89,
     .multiprocessors = 142,
     .clock = 2.52e9,
     .products = 0.25,
     .sustained = 362e12 / 4096,
     .shared_memory = 100 << 10,
     .threads = 1536,
     .memory = 0.89 * 864e9,
     .cache = 8.2e12,
     .cache_size = 96 << 20},
    {.name = "h200", .device = "H200", HOPPER, .memory = 4257e9},
    {.name = "h100", .device = "H100", HOPPER, .memory = 0.89 * 3352e9},
    {.name = "b200", .device = "B200", .capability = 100, BLACKWELL},
    {.name = "b300", .device = "B300", .capability = 103, BLACKWELL},
    {.name = "rtx-pro-6000",
     .device = "RTX PRO 6000",
     .capability = 120,
     .multiprocessors = 188,
     .clock = 2.4e9,
     .products = 0.25,
     .sustained = 460e12 / 4096,
     .shared_memory = 100 << 10,
     .threads = 1536,
     .memory = 0.89 * 1792e9,
     .cache = 10e12,
     .cache_size = 128 << 20},
};

enum { GPUS = sizeof gpus / sizeof *gpus };

int gpu_count(void)
{
    return GPUS;
}

const fpa_gpu *gpu_at(int index)
{
    return index >= 0 && index < GPUS ? &gpus[index] : NULL;
}

const fpa_gpu *gpu_find(const char *name)
{
    for (int i = 0; i < GPUS; i++)
        if (strcmp(gpus[i].name, name) == 0)
            return &gpus[i];
    return NULL;
}

/* The first row of the greatest capability that is not above the given one; the table begins with the smallest. */
static const fpa_gpu *gpu_of_capability(int capability)
{
    const fpa_gpu *best = &gpus[0];
    for (int i = 0; i < GPUS; i++)
        if (gpus[i].capability <= capability && gpus[i].capability > best->capability)
            best = &gpus[i];
    return best;
}

const fpa_gpu *gpu_of_device(const char *device, int capability)
{
    for (int i = 0; device && i < GPUS; i++)
        if (gpus[i].capability == capability && strstr(device, gpus[i].device))
            return &gpus[i];
    return gpu_of_capability(capability);
}

const fpa_gpu *gpu_of_target(const fpa_target *target)
{
    return gpu_of_capability(target->capability);
}

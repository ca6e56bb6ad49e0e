/* cuda_carry: the number of blocks of a segment scan that runs at the same time as queries, and the seconds of both. */
#include "cuda_carry.h"

#include <math.h>

#include "base/round.h"
#include "cuda_launches.h"

/* Copies, or totals, that are loaded before the first of them is added (templates/cuda/segment_scan.cu.in). */
static int copies_at_once(const struct fpa_cuda_geometry *g)
{
    return g->copy_bytes == 2 ? 8 : 4;
}

/* Seconds of a single multiprocessor for all copies: for each group of copies one round trip to memory, and another until queries are
 * notified (2.2 us for the four copies of a block of 1,024 threads at the same time as queries, docs/decisions/0074-copies-ahead.md); and
 * the same for the totals of earlier segments. */
static double lone_carry(const cuda_task *task, int64_t parts, int64_t segments)
{
    const int64_t totals = segments * (segments - 1) / 2;
    const int at_once = copies_at_once(task->geometry);
    return (double)(task->sequences * divide_up(task->chunks + totals, at_once) * parts) * 2 * GPU_TRIP;
}

static double lone_output(const cuda_task *task, const fpa_cuda_sum *sum)
{
    const fpa_gpu *gpu = task->room->gpu;
    return cuda_clocks(gpu, sum, task->geometry->work[CUDA_CHUNK_OUTPUT].warpgroups,
                       launch_warps(task, CUDA_CHUNK_OUTPUT, 1)) /
           gpu->clock;
}

/* The cost of both: the time of all multiprocessors for all work, overlapped with memory, or the power limit. */
static fpa_cost beside_cost(const cuda_task *task, double carry)
{
    const fpa_gpu *gpu = task->room->gpu;
    const fpa_cuda_sum queries = output_sum(task);
    fpa_cuda_sum copies = {0};
    cuda_sum_add(&copies, &task->geometry->work[CUDA_SEGMENT_SCAN].copy,
                 (double)(task->sequences * task->chunks));
    const double own = (carry + lone_output(task, &queries)) / task->room->multiprocessors;
    const double memory = cuda_memory_ahead(gpu, &queries, true) + cuda_memory_ahead(gpu, &copies, true);
    const double power = queries.products / gpu->sustained, both = cuda_overlapped(own, memory);
    return (fpa_cost){fmax(both, power), power > both   ? "power of the GPU"
                                         : memory > own ? "device memory"
                                                        : "tensor cores"};
}

cuda_carry cuda_carry_beside(const cuda_task *task, int64_t segments)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const int64_t copy = (int64_t)g->features * g->columns, lines = task->sequences * segments;
    cuda_carry carry = {.parts = divide_up(copy, g->segment_scan_elements)};
    if (!g->persistent || !task->room->overlaps || !task->queries || !lines || !task->chunks)
        return carry;
    const double lone = lone_carry(task, carry.parts, segments);
    carry.cost = beside_cost(task, lone);
    /* blocks that each take one part of all copies need lone / parts seconds; so many of them keep up with the queries */
    const int64_t beside = (int64_t)ceil(lone / (double)carry.parts / carry.cost.seconds);
    carry.blocks = carry.parts * (beside < lines ? beside : lines);
    if (2 * carry.blocks > task->room->multiprocessors)
        carry.blocks = 0;
    return carry;
}

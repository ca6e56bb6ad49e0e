/* cuda_estimate_split: seconds of chunk_state and chunk_output, one after the other or at the same time. */
#include <math.h>

#include "base/round.h"
#include "cuda_estimate.h"
#include "cuda_launches.h"

static cuda_kernel kernel_of(bool small)
{
    return small ? CUDA_CHUNK_STATE_SMALL : CUDA_CHUNK_STATE;
}

static int64_t blocks_of_head(const cuda_task *task, bool small)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    return (int64_t)(small ? g->small_state_slices : g->chunk_state_slices) * g->column_blocks;
}

/* Seconds of a single multiprocessor for all keys, or for all queries, without memory. */
static double lone_walk(const cuda_task *task, bool small)
{
    const cuda_kernel kernel = kernel_of(small);
    const fpa_cuda_sum sum = walk_sum(task, kernel);
    return cuda_clocks(task->room->gpu, &sum, task->geometry->work[kernel].warpgroups,
                       launch_warps(task, kernel, 1)) /
               task->room->gpu->clock +
           walk_handovers(task, task->sequences * blocks_of_head(task, small));
}

static double lone_output(const cuda_task *task)
{
    const fpa_cuda_sum sum = output_sum(task);
    return cuda_clocks(task->room->gpu, &sum, task->geometry->work[CUDA_CHUNK_OUTPUT].warpgroups,
                       launch_warps(task, CUDA_CHUNK_OUTPUT, 1)) /
           task->room->gpu->clock;
}

/* The fewest blocks that keep up with the queries, which then read copies from the second-level cache: as many rounds of walks as fit
 * into the time of all multiprocessors for all work. */
int64_t cuda_overlapped_blocks(const cuda_task *task, bool small)
{
    const int64_t head = blocks_of_head(task, small), walks = task->sequences * head;
    const double walk = lone_walk(task, small), block = walks ? walk / (double)walks : 0;
    const double all = (walk + lone_output(task)) / task->room->multiprocessors;
    const int64_t most = task->room->multiprocessors / head * head;
    const int64_t rounds = all < block || block <= 0 ? 1 : (int64_t)(all / block);
    const int64_t blocks = round_up(divide_up(walks, rounds), head);
    return blocks < most ? blocks : most;
}

int64_t cuda_even_blocks(const cuda_task *task, bool small, int64_t blocks)
{
    const int64_t head = blocks_of_head(task, small);
    int64_t heads = blocks / head;
    while (heads > 1 && task->size->heads % heads)
        heads--;
    return heads * head;
}

/* Walks of the block with the most of them. If lengths differ, walks are counted as sequences of the longest length; unless all blocks
 * have the same heads, one may have the longest sequence in addition to its share. */
static double walks_of_block(const cuda_task *task, bool small, int64_t walks, int64_t blocks)
{
    if (!cuda_lengths_differ(task->size))
        return (double)divide_up(walks, blocks);
    const double share = (double)walks / (double)blocks;
    return cuda_even_blocks(task, small, blocks) == blocks ? share : share + 1;
}

/* The cost of walk and queries at the same time: the larger of the walking blocks' time and that of all multiprocessors for all work. */
static fpa_cost overlapped_cost(const cuda_task *task, const cuda_split_common *common, bool small,
                                int64_t blocks)
{
    const fpa_gpu *gpu = task->room->gpu;
    const int64_t walks = task->sequences * blocks_of_head(task, small);
    const fpa_cuda_sum keys = walk_sum(task, kernel_of(small)), queries = output_sum(task);
    const double walk = lone_walk(task, small);
    const double all = (walk + lone_output(task)) / task->room->multiprocessors;
    const double memory = cuda_memory_ahead(gpu, &keys, true) + cuda_memory_ahead(gpu, &queries, true);
    const double power = (keys.products + queries.products) / gpu->sustained;
    const double shared = fmax(cuda_overlapped(all, memory), power);
    const double walked = walks ? walks_of_block(task, small, walks, blocks) * walk / (double)walks : 0;
    const double trips = task->geometry->work[CUDA_CHUNK_STATE].trips * GPU_TRIP;
    if (walked > shared)
        return (fpa_cost){walked + trips, "blocks that update states"};
    return (fpa_cost){shared + trips, shared == power ? "power of the GPU"
                                      : memory > all  ? "device memory"
                                                      : common->output.limit};
}

static fpa_cost apart_cost(const cuda_task *task, const cuda_split_common *common, bool small,
                           int64_t segments)
{
    const fpa_cost cost = cost_then(walk_cost(task, kernel_of(small), segments), common->output);
    return segments > 1 ? cost_then(cost, scan_cost(task, common->copies, segments)) : cost;
}

cuda_split_common cuda_split_common_of(const cuda_task *task)
{
    return (cuda_split_common){.before = before_cost(task, MECHANISM_SPLIT),
                               .output = output_cost(task),
                               .copies = copies_cost(task)};
}

fpa_cost cuda_estimate_split(const cuda_task *task, const cuda_split_common *common,
                             const fpa_candidate *candidate)
{
    const bool small = candidate->variant & SPLIT_SMALL;
    if (!task->walked)
        return cost_then(common->before, common->output);
    if (candidate->variant & SPLIT_OVERLAPPED)
        return cost_then(common->before, overlapped_cost(task, common, small, candidate->blocks));
    return cost_then(common->before, apart_cost(task, common, small, candidate->segments));
}

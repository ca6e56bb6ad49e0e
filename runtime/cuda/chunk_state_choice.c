#include "chunk_state_choice.h"

#include <math.h>

#include "launch_fused.h"

/* A state kernel of warpgroups: blocks of a head and block of columns, and on a multiprocessor; the estimate
 * for 16 tokens. */
typedef struct chunk_state_kernel {
    int slices, resident, clocks;
} chunk_state_kernel;

/* Clocks of a block for one segment of a sequence. At a chunk's end a block's copy goes into shared memory
 * and out of it, 128 bytes a clock; a block's start is an estimate. */
static double block_clocks(const struct fpa_cuda_geometry *g, const chunk_state_kernel *kernel,
                           int64_t chunks)
{
    enum { BLOCK_START = 4000 };
    const int64_t steps = g->chunk / 16;
    const double columns = (double)g->columns / g->column_blocks;
    const double copy = (double)g->features / kernel->slices * columns * g->copy_bytes / 64;
    return (double)chunks * ((double)steps * (double)kernel->clocks + copy) + BLOCK_START;
}

/* Of a multiprocessor for all queries, were it the only one. */
static double query_clocks(const struct fpa_cuda_geometry *g, const chunk_state_task *task)
{
    const int64_t steps = g->chunk / 16;
    return (double)task->query_sequences * (double)task->chunks * g->column_blocks * (double)steps *
           (double)g->chunk_output_clocks;
}

/* Walks, then queries. What later segments' copies lack is added to them in device memory, of which about
 * 2000 bytes move in a clock; for that each segment reads the totals of all before it, about 3000 bytes a
 * clock from the second-level cache. */
static double clocks_apart(const struct fpa_cuda_module *cuda, const chunk_state_kernel *kernel,
                           const chunk_state_task *task, int64_t segments)
{
    enum { BYTES = 2000, CACHED_BYTES = 3000 };
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t blocks = task->sequences * kernel->slices * g->column_blocks * segments;
    const int64_t waves = divide_up(blocks, (int64_t)cuda->multiprocessors * kernel->resident);
    const double block = block_clocks(g, kernel, divide_up(task->chunks, segments));
    const double copies =
        (double)task->sequences * (double)task->chunks * g->features * g->columns * g->copy_bytes;
    const double totals = (double)task->sequences * g->features * g->columns * (double)sizeof(float);
    return (double)(waves * kernel->resident) * block + query_clocks(g, task) / cuda->multiprocessors +
           (1 - 1 / (double)segments) * 2 * copies / BYTES +
           0.5 * (double)segments * (double)(segments - 1) * totals / CACHED_BYTES;
}

/* Walks and queries side by side, each sequence walked in one piece: no less than its walk takes, nor than
 * all multiprocessors take for all. As few blocks walk as keep up with the queries, which then find copies in
 * the second-level cache. *blocks: of the launch. */
static double clocks_beside(const struct fpa_cuda_module *cuda, const chunk_state_kernel *kernel,
                            const chunk_state_task *task, int64_t *blocks)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t head = (int64_t)kernel->slices * g->column_blocks, walks = task->sequences * head;
    const double block = block_clocks(g, kernel, task->chunks);
    const double all = ((double)walks * block + query_clocks(g, task)) / cuda->multiprocessors;
    const int64_t most = cuda->multiprocessors / head * head;
    const int64_t rounds = all < block ? 1 : (int64_t)(all / block);
    *blocks = divide_up(divide_up(walks, rounds), head) * head;
    if (*blocks > most)
        *blocks = most;
    if (*blocks == 0)
        return INFINITY;
    const double walked = (double)divide_up(walks, *blocks) * block;
    return walked > all ? walked : all;
}

/* One block a slice, which has all walks: as many as there are, one after the other. */
static chunk_state_choice choose_crowded(const struct fpa_cuda_module *cuda)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    return (chunk_state_choice){.slices = g->chunk_state_slices,
                                .segments = 1,
                                .blocks = (int64_t)g->chunk_state_slices * g->column_blocks,
                                .overlapped = cuda->overlaps};
}

chunk_state_choice chunk_state_choose(const struct fpa_cuda_module *cuda, const chunk_state_task *task)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const chunk_state_kernel kernels[2] = {
        {g->chunk_state_slices, cuda->occupancy[CUDA_CHUNK_STATE], g->chunk_state_clocks},
        {g->small_state_slices, cuda->occupancy[CUDA_CHUNK_STATE_SMALL], g->small_state_clocks}};
    chunk_state_choice best = {0};
    double least = INFINITY;
    if (cuda->schedule != SCHEDULE_BY_SIZE)
        return choose_crowded(cuda);
    for (int i = 0; i < 2 && kernels[i].slices; i++) {
        const int64_t head = (int64_t)kernels[i].slices * g->column_blocks;
        int64_t blocks;
        double clocks = clocks_beside(cuda, &kernels[i], task, &blocks);
        if (cuda->overlaps && task->query_sequences > 0 && clocks < least) {
            least = clocks;
            best = (chunk_state_choice){i > 0, kernels[i].slices, 1, blocks, true};
        }
        for (int64_t segments = 1; segments == 1 || (segments <= task->most && segments <= MOST_SEGMENTS);
             segments++) {
            clocks = clocks_apart(cuda, &kernels[i], task, segments);
            if (clocks >= least)
                continue;
            least = clocks;
            best = (chunk_state_choice){i > 0, kernels[i].slices, segments, task->sequences * head * segments,
                                        false};
        }
    }
    return best;
}

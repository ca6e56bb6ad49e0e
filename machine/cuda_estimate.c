#include "cuda_estimate.h"

#include <math.h>

#include "base/round.h"
#include "cuda_slices.h"

/* Of an H200 under load, where the constants here were fitted; shares and clocks become seconds by it. */
static const double CLOCKS = 1.7e9;

static const char tensor_cores[] = "tensor cores", waits[] = "waits", device_memory[] = "device memory";

/* ---- split, on warpgroups: clocks ---- */

/* A state kernel of warpgroups: blocks of a head and block of columns, and on a multiprocessor; the estimate
 * for 16 tokens. */
typedef struct state_kernel {
    int slices, resident, clocks;
} state_kernel;

static state_kernel kernel_of(const cuda_task *task, bool small)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const int *occupancy = task->room->occupancy;
    if (small)
        return (state_kernel){g->small_state_slices, occupancy[CUDA_CHUNK_STATE_SMALL],
                              g->small_state_clocks};
    return (state_kernel){g->chunk_state_slices, occupancy[CUDA_CHUNK_STATE], g->chunk_state_clocks};
}

/* Clocks of a block for one segment of a sequence. At a chunk's end a block's copy goes into shared memory
 * and out of it, 128 bytes a clock; a block's start is an estimate. */
static double block_clocks(const struct fpa_cuda_geometry *g, const state_kernel *kernel, int64_t chunks)
{
    enum { BLOCK_START = 4000 };
    const int64_t steps = g->chunk / 16;
    const double columns = (double)g->columns / g->column_blocks;
    const double copy = (double)g->features / kernel->slices * columns * g->copy_bytes / 64;
    return (double)chunks * ((double)steps * (double)kernel->clocks + copy) + BLOCK_START;
}

/* Of a multiprocessor for all queries, were it the only one. */
static double query_clocks(const cuda_task *task)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const int64_t steps = g->chunk / 16;
    return (double)task->queries * (double)task->chunks * g->column_blocks * (double)steps *
           (double)g->chunk_output_clocks;
}

/* Walks, then queries. What later segments' copies lack is added to them in device memory, of which about
 * 2000 bytes move in a clock; for that each segment reads the totals of all before it, about 3000 bytes a
 * clock from the second-level cache. */
static double clocks_apart(const cuda_task *task, const state_kernel *kernel, int64_t segments)
{
    enum { BYTES = 2000, CACHED_BYTES = 3000 };
    const struct fpa_cuda_geometry *g = task->geometry;
    const int multiprocessors = task->room->multiprocessors;
    const int64_t blocks = task->sequences * kernel->slices * g->column_blocks * segments;
    const int64_t waves = divide_up(blocks, (int64_t)multiprocessors * kernel->resident);
    const double block = block_clocks(g, kernel, divide_up(task->chunks, segments));
    const double copies =
        (double)task->sequences * (double)task->chunks * g->features * g->columns * g->copy_bytes;
    const double totals = (double)task->sequences * g->features * g->columns * (double)sizeof(float);
    return (double)(waves * kernel->resident) * block + query_clocks(task) / multiprocessors +
           (1 - 1 / (double)segments) * 2 * copies / BYTES +
           0.5 * (double)segments * (double)(segments - 1) * totals / CACHED_BYTES;
}

/* Walks and queries of all, shared by all multiprocessors. */
static double clocks_of_all(const cuda_task *task, const state_kernel *kernel)
{
    const int64_t walks = task->sequences * kernel->slices * task->geometry->column_blocks;
    const double block = block_clocks(task->geometry, kernel, task->chunks);
    return ((double)walks * block + query_clocks(task)) / task->room->multiprocessors;
}

/* Walks and queries side by side, each sequence walked in one piece: no less than its walk takes, nor than
 * all multiprocessors take for all. */
static double clocks_beside(const cuda_task *task, const state_kernel *kernel, int64_t blocks,
                            const char **limit)
{
    const int64_t walks = task->sequences * kernel->slices * task->geometry->column_blocks;
    const double all = clocks_of_all(task, kernel);
    const double walked =
        (double)divide_up(walks, blocks) * block_clocks(task->geometry, kernel, task->chunks);
    *limit = walked > all ? waits : tensor_cores;
    return walked > all ? walked : all;
}

int64_t cuda_overlapped_blocks(const cuda_task *task, bool small)
{
    const state_kernel kernel = kernel_of(task, small);
    const int64_t head = (int64_t)kernel.slices * task->geometry->column_blocks,
                  walks = task->sequences * head;
    const double block = block_clocks(task->geometry, &kernel, task->chunks),
                 all = clocks_of_all(task, &kernel);
    const int64_t most = task->room->multiprocessors / head * head;
    const int64_t rounds = all < block ? 1 : (int64_t)(all / block);
    const int64_t blocks = round_up(divide_up(walks, rounds), head);
    return blocks < most ? blocks : most;
}

/* ---- portable kernels: shares of a GPU that is full ---- */

/* Seconds of one multiprocessor for `tokens` of one sequence, by the products: D dv twice where there is a
 * state, and pairs of half a chunk's tokens, as wide as values on both sides. 2048 operations a clock by
 * mma.sync, 256 by multiply-adds: half and all of the peak. */
static double product_seconds(const cuda_task *task, double tokens)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const double rate = g->copy_bytes == 2 ? 2048 : 256, columns = g->columns;
    const double state = task->walked ? 4.0 * g->features * columns : 0;
    const double pairs = task->queries > 0 ? 2.0 * (double)task->chunk * columns : 0;
    return tokens * (state + pairs) / (rate * CLOCKS);
}

/* Share of its speed that the GPU reaches with so many blocks: the last wave is not full; a
 * multiprocessor with half of the blocks that it has room for is not twice as slow. */
static double utilisation(const fpa_gpu_room *room, int resident, int64_t blocks)
{
    const int64_t places = (int64_t)room->multiprocessors * resident;
    const double waves = (double)blocks / (double)places;
    return waves < 1 ? sqrt(waves) : waves / (double)divide_up(blocks, places);
}

/* More than one segment fill the GPU, and cost `extra` of the work of one: another pass over the keys, or
 * over the copies of the state. */
static const double TOTAL = 0.4, COPIES = 0.1;

static double share_of_full(const fpa_gpu_room *room, int resident, int64_t blocks, int64_t segments,
                            double extra)
{
    const double cost = segments > 1 ? 1 + extra + 0.002 * (double)segments : 1;
    return cost / utilisation(room, resident, blocks * segments);
}

static fpa_cost portable_cost(const cuda_task *task, double share)
{
    const double tokens = (double)(task->queries > 0 ? task->queries : task->sequences) *
                          (double)task->chunk * (double)task->chunks;
    return (fpa_cost){share * product_seconds(task, tokens) / task->room->multiprocessors, tensor_cores};
}

/* On warpgroups chunk_output_clocks has the pairs of a chunk of the chunked form; those of the parallel form
 * are all that there are. 4096 operations a clock by wgmma, the peak. */
static double far_seconds(const cuda_task *task)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    if (task->chunk <= g->chunk)
        return 0;
    const double tokens = (double)task->queries * (double)task->size->length;
    return tokens * 2 * (double)(task->chunk - g->chunk) * g->columns /
           (4096 * CLOCKS * task->room->multiprocessors);
}

fpa_cost cuda_estimate_split(const cuda_task *task, const fpa_candidate *candidate)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const state_kernel kernel = kernel_of(task, candidate->variant & SPLIT_SMALL);
    fpa_cost cost = {0, tensor_cores};
    if (!g->persistent && !task->walked)
        return portable_cost(task, 1);
    if (!g->persistent)
        return portable_cost(task, share_of_full(task->room, kernel.resident,
                                                 task->sequences * kernel.slices * g->column_blocks,
                                                 candidate->segments, COPIES));
    if (!task->walked)
        cost.seconds = query_clocks(task) / task->room->multiprocessors / CLOCKS;
    else if (candidate->variant & SPLIT_OVERLAPPED)
        cost.seconds = clocks_beside(task, &kernel, candidate->blocks, &cost.limit) / CLOCKS;
    else
        cost.seconds = clocks_apart(task, &kernel, candidate->segments) / CLOCKS;
    cost.seconds += far_seconds(task);
    return cost;
}

/* ---- fused_chunk: shares of a walk of a sequence ---- */

/* Of adding up a segment's totals, beside TOTAL of a walk without queries: an estimate. */
static const double ADD = 0.002;

static int64_t fused_places(const cuda_task *task)
{
    return (int64_t)task->room->multiprocessors * task->room->occupancy[CUDA_FUSED_CHUNK];
}

/* Of two that run at once the first has no totals to wait for, and may take as long as its totals and the
 * other's walk do: first = TOTAL first + 1 - first. Of more, all others wait for its totals: three gained
 * nothing. */
double cuda_first_share(const cuda_task *task, int64_t segments)
{
    if (segments == 2 && cuda_fused_blocks(task) * segments <= fused_places(task))
        return 1 / (2 - TOTAL);
    return 1 / (double)segments;
}

/* A longer first segment, or whole waves of equal ones behind waves that walk all but the last for totals.
 * Adding up the totals of the segments before takes each segment its time. */
static double fused_walks(const cuda_task *task, int64_t segments)
{
    const int64_t places = fused_places(task), blocks = cuda_fused_blocks(task);
    const int64_t walks = task->sequences * task->geometry->column_blocks;
    const double equal = 1 / (double)segments, first = cuda_first_share(task, segments);
    const double waves = (double)divide_up(blocks * segments, places) +
                         TOTAL * (double)divide_up(walks * (segments - 1), places);
    return (first > equal ? first : waves * equal) + ADD * (double)(segments - 1);
}

fpa_cost cuda_estimate_fused(const cuda_task *task, const fpa_candidate *candidate)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const int resident = task->room->occupancy[CUDA_FUSED_CHUNK];
    if (!g->fused_total || task->chunks == 0)
        return portable_cost(
            task, share_of_full(task->room, resident, cuda_fused_blocks(task), candidate->segments, TOTAL));
    const double walk =
        product_seconds(task, (double)task->chunk * (double)task->chunks) / g->column_blocks * resident;
    return (fpa_cost){fused_walks(task, candidate->segments) * walk, tensor_cores};
}

/* ---- cluster_scan: shares of fused_chunk ---- */

/* Times are shares of what blocks of NAME_fused_chunk take for their sequences while they fill the GPU.
 * Estimates, from an H200: a lone block, and the pass for totals; gates, of which NAME_cluster_scan makes
 * less; before a block's first span. Of a multiprocessor: a block's own work in NAME_cluster_scan, handing
 * on, and what all of them wait for memory. */
static const double LONE = 0.8, TOTALS = 0.5, GATED = 1.33, START = 0.6;
static const double TURN = 0.57, HAND = 0.06, MEMORY = 0.86;

static double waves_of(int64_t blocks, int64_t places)
{
    const double waves = (double)blocks / (double)places;
    return waves > 1 ? (waves + ceil(waves)) / 2 : fmax(waves, LONE); /* blocks of a wave begin one by one */
}

static double fused_time(const cuda_task *task, int64_t segments, int64_t spans)
{
    const int64_t places = fused_places(task), walks = cuda_fused_blocks(task);
    const double pass = waves_of(walks * segments, places) / (double)segments;
    const double totals = waves_of(walks * (segments - 1), places) / (double)segments;
    const double start = START / (double)spans * (double)divide_up(walks * segments, places);
    return (pass + start + (segments > 1 ? TOTALS * totals + start : 0)) * (task->geometry->gate ? GATED : 1);
}

/* As many sequences at a time as there is room for clusters. In the last round not all blocks have a turn. */
static double cluster_scan_time(const cuda_task *task, int64_t blocks, int64_t spans, const char **limit)
{
    const int64_t walks = cuda_fused_blocks(task), places = task->room->cluster_counts[blocks],
                  active = walks < places ? walks : places;
    const double rounds = (double)(divide_up(spans, blocks) * blocks) / (double)spans;
    const double work = HAND + TURN / (double)blocks,
                 memory = MEMORY * (double)active / task->room->multiprocessors;
    *limit = work < memory ? device_memory : waits;
    return (double)divide_up(walks, places) *
           (rounds * fmax(work, memory) / task->room->occupancy[CUDA_FUSED_CHUNK] + START / (double)spans);
}

fpa_cost cuda_estimate_cluster_scan(const cuda_task *task, const fpa_candidate *candidate,
                                    const fpa_candidate *fused)
{
    const int64_t spans = divide_up(task->size->length, FPA_CUDA_SPAN);
    fpa_cost cost;
    const double share = cluster_scan_time(task, candidate->segments, spans, &cost.limit) /
                         fused_time(task, fused->segments, spans);
    cost.seconds = fused->cost.seconds * share;
    return cost;
}

/* ---- decode: rounds of a block ---- */

/* What a block takes, in the time in which a multiprocessor's share of the memory's bandwidth moves one round
 * of a block: 16 bytes a thread, read and written. Measured on an H200, where that is 0.26 us. */
typedef struct block_cost {
    double start; /* from its beginning to its end, when it has no rows */
    double own;   /* a round, when it has the multiprocessor for itself and waits for memory */
    double turn;  /* what is left unused from one block to the next, when another one is there */
} block_cost;

static const block_cost decode_cost = {10, 1, 1.5};
static const block_cost decode_recent_cost = {60, 0.25, 24}; /* rounds are only read; recent tokens */
static const double ROUND = 0.26e-6;

static const double joined_parts = 2, /* parts of o, added up by a cluster */
    gathered_parts = 8;               /* or by a launch of their own */

/* Blocks on a multiprocessor share its bandwidth; one by itself waits for memory. Where they come in
 * several waves, the last one is half full. */
fpa_cost cuda_estimate_decode(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                              const fpa_call_size *size, const fpa_candidate *candidate)
{
    const block_cost *cost = size->recent ? &decode_recent_cost : &decode_cost;
    const int resident = room->occupancy[size->recent ? CUDA_DECODE_RECENT : CUDA_DECODE];
    const int64_t slices = candidate->segments;
    const double rounds =
        (double)g->state_elements * g->state_element / (16.0 * g->kernel[CUDA_DECODE].threads);
    const double blocks = (double)(size->batch * size->heads * slices) / room->multiprocessors;
    const double busy = blocks < resident ? ceil(blocks) : resident;
    const double mine = rounds / (double)slices;
    const double alone = cost->start + cost->own * mine, shared = busy > 1 ? busy * mine + cost->turn : 0;
    const double parts = slices == 1 ? 0 : cuda_joins(room, size, slices) ? joined_parts : gathered_parts;
    const double all = (blocks > busy ? blocks / busy + 0.5 : 1) * fmax(alone, shared) + parts;
    return (fpa_cost){all * ROUND * (double)(size->length > 1 ? size->length : 1),
                      shared > alone ? device_memory : waits};
}

/* The copy engine has brought a block's rows when its threads have begun: a block's beginning and end, and no
 * rounds to wait for. It was faster than decode wherever it suited. */
fpa_cost cuda_estimate_decode_resident(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                                       const fpa_call_size *size, const fpa_candidate *candidate)
{
    (void)g, (void)room, (void)size, (void)candidate;
    return (fpa_cost){decode_cost.start * ROUND, waits};
}

/* cuda_estimate_fused: seconds of fused_chunk, in segments, and of cluster_scan. */
#include <math.h>

#include "base/round.h"
#include "cuda_estimate.h"
#include "cuda_launches.h"
#include "cuda_shares.h"

/* ---- fused_chunk ---- */

static int64_t total_blocks(const cuda_task *task)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    return task->sequences * g->column_blocks * (g->fused_totals ? 1 : g->chunk_state_slices);
}

/* Seconds for reading totals: a block reads those of all segments before its own, on average half of them. */
static double read_seconds(const cuda_task *task, int64_t segments)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const double total = (double)g->features * g->columns * (double)sizeof(float);
    return 0.5 * (double)(task->queries * segments * (segments - 1)) * total / task->room->gpu->cache;
}

/* How much longer the longest segment is than the average, since segments are whole chunks. */
static double rounded(const cuda_task *task, int64_t segments)
{
    const int64_t run = cuda_divide_fused(task, segments).segment_chunks;
    return segments > 2 && task->chunks ? (double)(run * segments) / (double)task->chunks : 1;
}

/* The cost of totals, which are computed for all segments but the last one, and read by later ones before they begin. */
static fpa_cost totals_cost(const cuda_task *task, int64_t segments)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const double first = cuda_first_share(task, segments), later = (double)(segments - 1);
    const double walked = segments == 2 ? first : later / (double)segments;
    const fpa_pass pass = {.kernel = g->fused_totals ? CUDA_FUSED_CHUNK : CUDA_CHUNK_STATE,
                           .work = &g->totals,
                           .sequences = (double)task->sequences,
                           .blocks = (double)total_blocks(task) * later,
                           .tokens = walked,
                           .longest = rounded(task, segments)};
    fpa_cost cost = pass_cost(task, &pass);
    cost.seconds += read_seconds(task, segments);
    return cost;
}

/* The cost of two launches: first segments with their outputs, at the same time as the totals of the segments between; then the outputs
 * of all later segments, which take equally long. */
static fpa_cost ahead_cost(const cuda_task *task, int64_t segments)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const cuda_division division = cuda_divide_ahead(task, segments);
    const double chunks = (double)task->chunks, run = (double)division.segment_chunks / chunks;
    const double blocks = (double)cuda_fused_blocks(task), later = (double)(segments - 1);
    const fpa_pass totals = {.kernel = CUDA_FUSED_CHUNK,
                             .work = &g->totals,
                             .sequences = (double)task->sequences,
                             .blocks = (double)total_blocks(task) * (later - 1),
                             .tokens = run * (later - 1),
                             .longest = 1};
    const fpa_pass first = {.kernel = CUDA_FUSED_CHUNK,
                            .work = &g->work[CUDA_FUSED_CHUNK],
                            .sequences = (double)task->queries,
                            .blocks = blocks,
                            .tokens = (double)division.first_chunks / chunks,
                            .longest = 1};
    fpa_pass others = first;
    others.blocks = blocks * later;
    others.tokens = run * later;
    const fpa_cost between = pass_cost(task, &totals), beside = pass_cost(task, &first);
    fpa_cost cost = cost_then(beside.seconds > between.seconds ? beside : between, pass_cost(task, &others));
    cost.seconds += read_seconds(task, segments);
    return cost;
}

/* The cost without a mask: all keys, then all queries, each block of which first adds up the totals of all segments. */
static fpa_cost open_cost(const cuda_task *task, int64_t segments)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const fpa_pass keys = {.kernel = CUDA_FUSED_CHUNK,
                           .work = &g->totals,
                           .sequences = (double)task->sequences,
                           .blocks = (double)(total_blocks(task) * segments),
                           .tokens = 1,
                           .longest = 1};
    const fpa_pass queries = {.kernel = CUDA_FUSED_CHUNK,
                              .work = &g->work[CUDA_FUSED_CHUNK],
                              .sequences = (double)task->queries,
                              .blocks = (double)(cuda_fused_blocks(task) * segments),
                              .tokens = 1,
                              .longest = 1};
    const double total = (double)g->features * g->columns * (double)sizeof(float);
    fpa_cost cost = cost_then(pass_cost(task, &keys), pass_cost(task, &queries));
    cost.seconds += (double)(task->queries * segments * segments) * total / task->room->gpu->cache;
    return cost;
}

/* The first of two segments runs at the same time as its total is computed for the second one: the longer of both counts. */
fpa_cost cuda_estimate_fused(const cuda_task *task, const fpa_candidate *candidate)
{
    const int64_t segments = candidate->segments;
    const double first = cuda_first_share(task, segments);
    const fpa_pass pass = {.kernel = CUDA_FUSED_CHUNK,
                           .work = &task->geometry->work[CUDA_FUSED_CHUNK],
                           .sequences = (double)task->queries,
                           .blocks = (double)(cuda_fused_blocks(task) * segments),
                           .tokens = 1,
                           .longest = segments == 2 ? 2 * (1 - first) : rounded(task, segments)};
    const fpa_cost before = before_cost(task, MECHANISM_FUSED_CHUNK);
    if (task->summed)
        return cost_then(before, open_cost(task, segments));
    if (candidate->variant & FUSED_AHEAD)
        return cost_then(before, ahead_cost(task, segments));
    fpa_cost cost = pass_cost(task, &pass);
    if (segments > 1)
        cost = cost_then(totals_cost(task, segments), cost);
    return cost_then(before, cost);
}

/* ---- cluster_scan ---- */

/* Spans for each cluster if `clusters` clusters share the spans of all lines, `all` for each line: at least those of the longest
 * sequence. */
static int64_t shared_spans(const cuda_task *task, int64_t all, int64_t clusters)
{
    const int64_t lines = task->size->query_heads * task->geometry->column_blocks;
    const int64_t share = divide_up(lines * all, clusters),
                  longest = divide_up(task->size->length, FPA_CUDA_SPAN) + 1;
    return share > longest ? share : longest;
}

/* Spans that a cluster processes, one after the other. In ordinary calls each sequence has a cluster, in rounds of as many as fit; not
 * all blocks have a span at the end. If lengths differ, or SCAN_SHARED, clusters share all spans evenly, but none has fewer than the
 * longest sequence; a sequence's last span is half full on average. With SCAN_WHOLE each cluster has whole sequences in turn. */
static int64_t walked_spans(const cuda_task *task, const fpa_candidate *candidate, int64_t *rounds)
{
    const fpa_call_size *size = task->size;
    const int64_t blocks = candidate->segments, lines = size->query_heads * task->geometry->column_blocks;
    const int64_t spans = divide_up(size->length, FPA_CUDA_SPAN), places = task->room->cluster_counts[blocks];
    const bool shared = candidate->variant & SCAN_SHARED, whole = candidate->variant & SCAN_WHOLE;
    *rounds = size->sequences || shared || whole ? 1 : divide_up(cuda_fused_blocks(task), places);
    if (whole)
        return round_up(spans * divide_up(cuda_scanned_items(task), candidate->blocks / blocks), blocks);
    if (shared)
        return round_up(shared_spans(task, cuda_span_places(size->batch * size->length, size->batch),
                                     candidate->blocks / blocks),
                        blocks);
    if (!size->sequences)
        return round_up(spans, blocks);
    const int64_t even = cuda_span_places(size->batch * size->length, size->sequences / 2);
    const int64_t all = even > size->sequences ? even : size->sequences;
    return round_up(shared_spans(task, all, cuda_scan_clusters(places, lines)), blocks);
}

/* Seconds from receiving the state to having passed it on, for a block of a cluster: the part of a span's time that does not overlap
 * among the cluster's blocks. */
static double handover(const cuda_task *task)
{
    const double state = (double)task->geometry->sequence_state * (double)sizeof(float);
    return GPU_HANDOVER + state / GPU_HANDED / task->room->gpu->clock;
}

/* Seconds for fetching operands: from device memory once, and queries and keys again from the second-level cache for each further block
 * of columns. */
static double fetching(const cuda_task *task)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const double tokens = (double)(task->queries * round_up(task->size->length, FPA_CUDA_SPAN));
    const double bytes = tokens / 16 * g->work[CUDA_CLUSTER_SCAN].step.bytes;
    /* two numbers of 16 bits */
    const double again = tokens * (g->column_blocks - 1) * 2 * 2 * g->fused_vector;
    return fmax(bytes / task->room->gpu->memory, (bytes + again) / task->room->gpu->cache);
}

/* Whether flags must be cleared by which clusters that share sequences pass states to each other; not if each line has the same number of
 * clusters. */
static bool clears_flags(const cuda_task *task, const fpa_candidate *candidate)
{
    const int64_t lines = task->size->query_heads * task->geometry->column_blocks;
    const int64_t clusters = cuda_scan_clusters(task->room->cluster_counts[candidate->segments], lines);
    return candidate->variant & SCAN_SHARED ||
           (task->size->sequences && !(candidate->variant & SCAN_WHOLE) && lines % clusters);
}

/* A sequence's spans are distributed over the cluster's blocks in turn. A block's own work overlaps with passing the state round the
 * cluster, one handover for each span. Before the first state a cluster waits for memory, and for its first block's own work on a span. */
fpa_cost cuda_estimate_cluster_scan(const cuda_task *task, const fpa_candidate *candidate)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const struct fpa_cuda_kernel_work *work = &g->work[CUDA_CLUSTER_SCAN];
    const fpa_gpu *gpu = task->room->gpu;
    int64_t rounds;
    const int64_t blocks = candidate->segments, walk = walked_spans(task, candidate, &rounds);
    fpa_cuda_sum span = {0};
    cuda_sum_add(&span, &work->step, FPA_CUDA_SPAN / 16.0 / g->column_blocks);
    const double own =
        cuda_clocks(gpu, &span, work->warpgroups, g->kernel[CUDA_CLUSTER_SCAN].threads / 32.0) / gpu->clock;
    const double handed = handover(task), share = own / (double)blocks, turn = cuda_overlapped(share, handed);
    const double start = work->trips * GPU_TRIP + own - turn;
    const double walked = (double)rounds * (start + (double)walk * turn), memory = fetching(task);
    const fpa_cost pass = {cuda_overlapped(walked, memory), memory > walked  ? "device memory"
                                                            : share > handed ? "blocks' own work"
                                                                             : "passing on the state"};
    fpa_cost cost = cost_then(before_cost(task, MECHANISM_CLUSTER_SCAN), pass);
    if (clears_flags(task, candidate))
        cost.seconds += 2 * GPU_LAUNCH; /* the clearing, and the wait for its end */
    return cost;
}

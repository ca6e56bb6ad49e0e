/* sizes: from a call and a candidate: chunks, segments, blocks of each kernel, and the parts of the workspace. */
#include "sizes.h"

#include <string.h>

#include "base/round.h"
#include "head/form.h"
#include "grid.h"
#include "machine/cuda_candidates.h"
#include "machine/cuda_carry.h"
#include "machine/cuda_division.h"
#include "machine/cuda_estimate.h"
#include "machine/cuda_padding.h"
#include "launch_packs.h"
#include "launch_pads.h"
#include "runtime/backend.h"

enum { ALIGNMENT = 256 };

static void set_division(cuda_division division, struct fpa_cuda_call *call)
{
    call->segments = division.segments;
    call->segment_chunks = division.segment_chunks;
    call->first_chunks = division.first_chunks;
}

/* NAME_cluster_scan processes a sequence without segments. If the copy engine cannot fetch its operands, NAME_fused_chunk is launched
 * instead, with the segments that are fastest for it. */
static void size_fused(const cuda_task *task, const fpa_candidate *candidate, cuda_sizes *s)
{
    struct fpa_cuda_call *call = &s->call;
    int64_t segments = candidate->segments;
    s->is_fused = true;
    if (cuda_mechanism_of(candidate) == MECHANISM_CLUSTER_SCAN) {
        s->cluster_scan = (int)candidate->segments;
        segments = candidate->fused_segments ? candidate->fused_segments : cuda_fused_segments(task);
    }
    call->ahead = !s->cluster_scan && candidate->variant & FUSED_AHEAD && segments <= task->chunks;
    set_division(call->ahead ? cuda_divide_ahead(task, segments) : cuda_divide_fused(task, segments), call);
    call->walk_end = call->segments == 1
                         ? 0
                         : (call->first_chunks + (call->segments - 2) * call->segment_chunks) * call->chunk;
}

/* Without a mask: segments of one chunk each, then a chunk without tokens, before which all queries read the state. */
static void divide_summed(const cuda_task *task, int64_t segments, struct fpa_cuda_call *call)
{
    const cuda_division runs = cuda_divide(task->chunks, segments);
    if (!task->chunks)
        return;
    call->chunk = runs.segment_chunks * task->chunk;
    call->chunks = runs.segments + 1;
    call->segments = runs.segments;
    /* chunk_state writes its copy */
    call->segment_chunks = call->first_chunks = runs.segments > 1 ? 1 : call->chunks;
}

/* With queries that run at the same time as the walk: they wait for the blocks of `slices` slices of a state, and process query heads in
 * the order in which these are walked. */
static void size_overlapped(const cuda_task *task, int64_t slices, cuda_sizes *s)
{
    const int64_t head = slices * task->geometry->column_blocks;
    s->call.awaited = slices;
    s->call.beside = s->walk_blocks / head * (task->size->query_heads / task->size->heads);
}

static void size_split(const cuda_task *task, const fpa_candidate *candidate, cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const fpa_call_size *size = task->size;
    struct fpa_cuda_call *call = &s->call;
    s->walks = task->walked;
    s->small = s->walks && candidate->variant & SPLIT_SMALL;
    call->beside = cuda_heads_beside(task);
    call->walk_end = size->state_out || task->summed ? size->length : (call->chunks - 1) * call->chunk;
    set_division(cuda_divide(call->chunks, s->walks ? candidate->segments : 1), call);
    if (task->summed)
        divide_summed(task, candidate->segments, call);
    const int64_t slices = s->small ? g->small_state_slices : g->chunk_state_slices;
    s->walk_blocks = s->walks && candidate->blocks
                         ? candidate->blocks
                         : task->sequences * call->segments * slices * g->column_blocks;
    if (s->walks && candidate->variant & SPLIT_OVERLAPPED)
        size_overlapped(task, slices, s);
}

void *cuda_take(char *base, size_t *used, int64_t count, size_t size)
{
    void *at = base && count ? base + *used : NULL;
    *used += ((size_t)count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

/* Whether the final state needs a launch of its own: it may have the initial state's address, and several blocks may read that while one
 * of them would write. In a pass without a mask the launch for keys reads, and that for queries writes. Independent of addresses, which
 * are not known when the workspace is measured. */
static bool is_late(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, const cuda_sizes *s)
{
    if (!launch->state_in || !launch->state_out || (s->is_fused && cuda->geometry.unmasked))
        return false;
    return cuda->geometry.column_blocks > 1 || s->in_segments ||
           (s->is_fused && launch->query_heads > launch->heads);
}

cuda_kernel queries_kernel(const cuda_sizes *s)
{
    return s->parallel ? CUDA_PARALLEL_OUTPUT : CUDA_CHUNK_OUTPUT;
}

int64_t count_items(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch, const cuda_sizes *s)
{
    if (s->parallel)
        return launch->query_heads * launch->batch * divide_up(launch->length, g->parallel_tokens);
    const int64_t blocks = launch->cu_seqlens ? launch->total / g->query_tokens + launch->batch
                                              : launch->batch * divide_up(launch->length, g->query_tokens);
    return launch->query_heads * blocks * g->column_blocks;
}

/* Counters: of NAME_chunk_output, whose blocks take items from one, and wait for copies of states by others; of NAME_parallel_output, for
 * items. None if each block has one item. */
static int64_t count_progress(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              const cuda_sizes *s)
{
    enum { SCAN_WARPS = 4 }; /* warps of a block that store a state */
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t room = cuda_room_for(cuda, queries_kernel(s));
    if (s->clusters)
        return s->whole ? 0 : s->clusters * SCAN_WARPS;
    if (!g->persistent || s->is_fused || (!s->call.awaited && count_items(g, launch, s) <= room))
        return 0;
    return 1 + (s->call.awaited ? cuda_batch(launch) * launch->heads * s->call.chunks * g->column_blocks : 0);
}

/* Chunks and segments of a packed batch, of which the host knows only the number of sequences, the longest one and the total of tokens.
 * Each sequence's first place is begin / tokens + its number (templates/cuda/work.cu.in), so that some places stay unused. If no sequence
 * is longer than a segment, each is one. */
static void size_sequences(const cuda_task *task, int64_t total, cuda_sizes *s)
{
    const fpa_call_size *size = task->size;
    struct fpa_cuda_call *call = &s->call;
    const bool summed = task->summed && !s->is_fused;
    const int64_t run = summed ? 1 : call->segment_chunks, tokens = run * call->chunk;
    s->in_segments = size->length > tokens && call->segments > 1;
    call->chunks = total / call->chunk + size->sequences * (summed ? 2 : 1);
    call->empty_chunks = summed;
    call->segment_tokens = s->in_segments ? tokens : INT32_MAX;
    if (s->in_segments) /* segments end by tokens: there is no longer last chunk */
        call->tail = call->whole = 0;
    call->segments = total / call->segment_tokens + size->sequences;
    call->segment_chunks = call->first_chunks = s->in_segments ? run : call->chunks;
    call->walk_end = size->state_out || task->summed;
    call->beside = 1;
}

/* Clusters that the GPU runs at a time; at least one, since a candidate that the model did not choose may have too large clusters. */
static int64_t count_scan_clusters(const struct fpa_cuda_module *cuda, int blocks)
{
    const int counted = blocks <= MOST_CLUSTER ? cuda->room.cluster_counts[blocks] : 0;
    return counted > 0 ? counted : 1;
}

/* Sets the number of clusters among which sequences are divided, if they are. If all lines (heads and blocks of columns) have the same
 * number of clusters, each sequence is processed by one cluster, whatever the lengths. */
static void size_scan(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                      const fpa_candidate *candidate, cuda_sizes *s)
{
    const int64_t lines = launch->query_heads * cuda->geometry.column_blocks;
    if (candidate->variant & (SCAN_SHARED | SCAN_WHOLE))
        s->clusters = candidate->blocks / candidate->segments;
    else if (launch->cu_seqlens)
        s->clusters = cuda_scan_clusters(count_scan_clusters(cuda, s->cluster_scan), lines);
    s->whole = candidate->variant & SCAN_WHOLE || (s->clusters && lines % s->clusters == 0);
}

/* Divides the call into chunks, segments and blocks. */
static void divide_call(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const cuda_task *task, const fpa_candidate *candidate, cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call *call = &s->call;
    call->chunk = task->chunk;
    call->chunks = task->chunks;
    call->tail = task->tail;
    call->whole = task->whole;
    if (cuda_mechanism_of(candidate) == MECHANISM_SPLIT)
        size_split(task, candidate, s);
    else
        size_fused(task, candidate, s);
    s->in_segments = call->segments > 1;
    if (s->cluster_scan)
        size_scan(cuda, launch, candidate, s);
    if (!launch->cu_seqlens)
        return;
    size_sequences(task, launch->total, s);
    if (s->walks && !call->awaited)
        s->walk_blocks = launch->heads * call->segments *
                         (s->small ? g->small_state_slices : g->chunk_state_slices) * g->column_blocks;
}

/* Segments for which totals are stored. */
static int64_t count_totals(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch,
                            const cuda_sizes *s, bool late)
{
    const bool open = s->is_fused && g->unmasked;
    const int64_t spared = s->is_fused && !launch->cu_seqlens && !open ? 1 : 0; /* the last segment's */
    return s->in_segments || open ? s->call.segments - spared : late && !s->is_fused ? s->call.segments : 0;
}

/* Numbers of a head's packed vectors, or of its tiles of `rows` rows. */
static int64_t numbers_of_head(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch, int rows)
{
    return g->panel_keys ? cuda_panel_tiles(g, launch) * g->pack_tokens * rows
                         : cuda_tokens(launch) * g->vector_rows;
}

/* Sets the parts of the workspace. copies: the state before each chunk is stored. */
static void place_parts(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const cuda_task *task, cuda_mechanism mechanism, bool copies, char *base,
                        cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call *call = &s->call;
    const int64_t sequences = launch->cu_seqlens ? launch->heads : task->sequences,
                  copy = (int64_t)g->features * g->columns;
    /* with a part for each block of columns */
    const int64_t total = s->is_fused && g->fused_total ? g->fused_total : copy;
    const int64_t vector = cuda_packs_rows(g, mechanism) ? numbers_of_head(g, launch, g->panel_keys) : 0;
    const int64_t query_vector =
        cuda_packs_rows(g, mechanism) ? numbers_of_head(g, launch, g->panel_queries) : 0;
    const int64_t matrices = vector ? (int64_t)g->pack_operand * (g->pack_per_head ? launch->heads : 1) : 0;
    const bool late = is_late(cuda, launch, s);
    const cuda_pads pads = count_pads(g, launch, mechanism);
    call->gate_row =
        (launch->cu_seqlens ? launch->total / 64 + launch->batch : divide_up(launch->length, 64)) * 64;
    call->gates = cuda_take(base, &s->bytes, g->gate ? sequences * call->gate_row + g->query_tokens : 0,
                            2 * sizeof(float));
    call->states =
        cuda_take(base, &s->bytes, copies ? sequences * call->chunks * copy : 0, (size_t)g->copy_bytes);
    call->totals =
        cuda_take(base, &s->bytes, sequences * count_totals(g, launch, s, late) * total, sizeof(float));
    call->partial = cuda_take(base, &s->bytes,
                              late && s->is_fused ? launch->batch * launch->heads * total : 0, sizeof(float));
    const bool walked = !s->is_fused || !g->fused_totals; /* NAME_chunk_state reads decays */
    call->decays = cuda_take(base, &s->bytes, g->decays && walked ? sequences * (call->gate_row / 64) : 0,
                             FPA_CUDA_DECAYS);
    call->padded_queries = cuda_take(base, &s->bytes, pads.queries, (size_t)g->element);
    call->padded_keys = cuda_take(base, &s->bytes, pads.keys, (size_t)g->element);
    call->padded_values = cuda_take(base, &s->bytes, pads.values, (size_t)g->element);
    s->progress = count_progress(cuda, launch, s) * (int64_t)sizeof *call->progress;
    call->progress = cuda_take(base, &s->bytes, s->progress, 1);
    s->left = cuda_take(base, &s->bytes, s->whole ? 0 : s->clusters * g->sequence_state, sizeof(float));
    s->keys = cuda_take(base, &s->bytes, sequences * vector, 2);
    s->queries = cuda_take(base, &s->bytes, cuda_batch(launch) * launch->query_heads * query_vector, 2);
    call->pack_matrices = cuda_take(base, &s->bytes, matrices, 1);
}

/* Lets queries whose copies of states were kept run at the same time as the segment scan that updates these. */
static void size_carry(const cuda_task *task, cuda_sizes *s)
{
    const cuda_carry carry = cuda_carry_beside(task, s->call.segments);
    if (!carry.blocks)
        return;
    s->carry_blocks = carry.blocks;
    s->call.awaited = carry.parts;
    s->call.beside = 1; /* in the scan's order of heads */
}

/* For packed batches in which no sequence has more than one chunk. */
static void leave_walk_out(cuda_sizes *s)
{
    s->walks = false;
    s->call.awaited = s->walk_blocks = 0;
}

/* kept: 0; or tokens per chunk, if copies of the state before all chunks are kept for a later call. */
static void find(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, int form,
                 const fpa_candidate *candidate, char *base, int64_t kept, cuda_sizes *s)
{
    const cuda_mechanism mechanism = cuda_mechanism_of(candidate);
    const fpa_call_size size = call_size(form, launch);
    cuda_task task = cuda_task_of(&cuda->geometry, &cuda->room, &size);
    if (kept)
        cuda_take_chunk(&task, kept);
    else if (mechanism == MECHANISM_SPLIT)
        cuda_take_tail(&task);
    memset(s, 0, sizeof *s);
    divide_call(cuda, launch, &task, candidate, s);
    if (kept && task.queries)
        size_carry(&task, s);
    if (launch->cu_seqlens && launch->length <= s->call.whole)
        leave_walk_out(s);
    const int64_t one = s->call.whole > s->call.chunk ? s->call.whole : s->call.chunk;
    const bool several = launch->cu_seqlens ? task.summed || launch->length > one : s->call.chunks > 1;
    const bool read = launch->query_heads > 0 || s->in_segments; /* by queries, or by NAME_segment_scan */
    const bool copies = kept || (!s->is_fused && read && (several || launch->state_in));
    s->parallel =
        cuda->geometry.parallel_tokens && !s->is_fused && !s->cluster_scan && !copies && !launch->cu_seqlens;
    place_parts(cuda, launch, &task, mechanism, copies, base, s);
}

void find_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, int form,
                const fpa_candidate *candidate, char *base, cuda_sizes *s)
{
    find(cuda, launch, form, candidate, base, 0, s);
}

void walk_alone(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    if (!s->call.awaited)
        return;
    s->call.awaited = 0;
    s->walk_blocks = cuda_batch(launch) * launch->heads * s->call.segments *
                     (s->small ? g->small_state_slices : g->chunk_state_slices) * g->column_blocks;
}

void find_piece_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                      const fpa_candidate *candidate, int64_t chunk, char *base, cuda_sizes *s)
{
    find(cuda, launch, FORM_CHUNKED, candidate, base, chunk, s);
}

/* launch: a forward pass as launches of a module's kernels. */
#include "launch.h"
#include "base/round.h"
#include "grid.h"
#include "launch_decode.h"
#include "launch_maps.h"
#include "launch_packs.h"
#include "launch_pads.h"
#include "machine/cuda_candidates.h"
#include "module.h"
#include "sizes.h"

#include <limits.h>

int cuda_module_candidates(const fpa_module *module, const fpa_call_size *size, fpa_candidate *out, int most)
{
    const struct fpa_cuda_module *cuda = module->handle;
    return cuda_candidates(&cuda->geometry, &cuda->room, size, out, most);
}

/* The candidate that the caller asks for, or *fastest. NULL: no candidate can be used, or not this one. */
static const fpa_candidate *choose(const struct fpa_cuda_module *cuda, const fpa_call_size *size,
                                   const fpa_candidate *candidate, fpa_candidate *fastest)
{
    if (candidate)
        return cuda_refusal(&cuda->geometry, size, candidate) ? NULL : candidate;
    return cuda_fastest(&cuda->geometry, &cuda->room, size, fastest) ? fastest : NULL;
}

bool cuda_choose(const fpa_module *module, int form, const struct fpa_launch *launch, fpa_candidate *fastest)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const fpa_call_size size = call_size(form, launch);
    return cuda_fastest(&cuda->geometry, &cuda->room, &size, fastest);
}

/* The candidate that the caller asks for, or *fastest. NULL: there is none, and the queue fails. */
static const fpa_candidate *find_candidate(cuda_queue *q, int form, const fpa_candidate *candidate,
                                           fpa_candidate *fastest)
{
    const fpa_call_size size = call_size(form, q->launch);
    const fpa_candidate *chosen = q->status ? NULL : choose(q->cuda, &size, candidate, fastest);
    const char *name = form_name((fpa_form_index)form);
    if (q->status || chosen)
        return chosen;
    q->status = candidate ? fail(q->error, FPA_INVALID, q->cuda->name,
                                 "%s cannot compute this call in the %s form: %s", candidate->mechanism, name,
                                 cuda_refusal(&q->cuda->geometry, &size, candidate))
                          : fail(q->error, FPA_UNSUPPORTED, q->cuda->name,
                                 "the module has no kernels of the %s form", name);
    return NULL;
}

size_t cuda_workspace(const fpa_module *module, int form, const struct fpa_launch *launch,
                      const fpa_candidate *candidate)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const fpa_call_size size = call_size(form, launch);
    fpa_candidate fastest;
    cuda_sizes s;
    candidate = choose(cuda, &size, candidate, &fastest);
    if (!candidate) /* cuda_forward gives the reason */
        return 0;
    if (form == FORM_RECURRENT)
        return decode_workspace(cuda, launch, candidate);
    find_sizes(cuda, launch, form, candidate, NULL, &s);
    return s.bytes;
}

static void launch_gates(cuda_queue *q, const struct fpa_cuda_call *call)
{
    if (q->cuda->geometry.gate)
        cuda_launch(q, CUDA_GATE_SCAN, call->batch * call->heads * call->chunks, NULL, call);
}

static int64_t count_walks(const cuda_queue *q, const struct fpa_cuda_call *call, int slices)
{
    return call->batch * call->heads * call->segments * slices * q->cuda->geometry.column_blocks;
}

/* chunk_state; maps: NULL if the kernel takes none. */
static void launch_walk(cuda_queue *q, const cuda_sizes *s, const struct fpa_cuda_maps *maps)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const cuda_kernel kernel = s->small ? CUDA_CHUNK_STATE_SMALL : CUDA_CHUNK_STATE;
    const int slices = s->small ? g->small_state_slices : g->chunk_state_slices;
    cuda_check_blocks(q, kernel, count_walks(q, &s->call, slices)); /* kernels count walks as blocks */
    cuda_launch(q, kernel, s->walk_blocks, maps, &s->call);
}

static void launch_segment_scan(cuda_queue *q, const struct fpa_cuda_call *call)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const int64_t parts = divide_up((int64_t)g->features * g->columns, g->segment_scan_elements);
    const int64_t sequences = call->cu_seqlens ? call->heads : q->launch->batch * call->heads;
    cuda_launch(q, CUDA_SEGMENT_SCAN, sequences * call->segments * parts, NULL, call);
}

/* The final state from the totals that the last blocks of NAME_fused_chunk have stored: a segment scan of one segment without chunks. */
static void launch_final(cuda_queue *q, const struct fpa_cuda_call *call)
{
    struct fpa_cuda_call last = *call;
    last.cu_seqlens = NULL;
    last.segments = 1;
    last.segment_chunks = last.first_chunks = 0;
    last.totals = call->partial;
    launch_segment_scan(q, &last);
}

static void clear_progress(cuda_queue *q, const cuda_sizes *s)
{
    cuda_clear(q, s->call.progress, s->progress, "the counters of a launch");
}

/* ---- in one pass ---- */

/* A launch of fused_chunk without queries, for the totals of segments. */
static void launch_fused_totals(cuda_queue *q, const struct fpa_cuda_call *walk,
                                const struct fpa_cuda_maps *maps)
{
    const int64_t first = walk->ahead ? walk->query_heads : walk->heads;
    struct fpa_cuda_call call = *walk;
    call.totals_only = 1;
    if (!call.ahead)
        call.query_heads = call.heads;
    cuda_launch(q, CUDA_FUSED_CHUNK,
                call.batch * (first + call.heads * (call.segments - 1)) * q->cuda->geometry.column_blocks,
                maps, &call);
}

/* The final state, if NAME_fused_chunk has its own order of totals: a launch for the second of two segments without tokens. */
static void launch_fused_final(cuda_queue *q, const struct fpa_cuda_call *call,
                               const struct fpa_cuda_maps *maps)
{
    struct fpa_cuda_call last = *call;
    last.cu_seqlens = NULL; /* without tokens, lengths are equal */
    last.batch = q->launch->batch;
    last.segments = 2;
    last.segment_chunks = last.first_chunks = last.length = last.ahead = 0;
    last.query_heads = last.heads;
    last.totals = call->partial;
    last.partial = NULL;
    last.state_in = NULL;
    cuda_launch(q, CUDA_FUSED_CHUNK, last.batch * last.heads * 2 * q->cuda->geometry.column_blocks, maps,
                &last);
}

/* First a launch for the totals of all segments but the last, then one with queries for all segments, except first ones that went ahead.
 * Without a mask, totals of all segments are needed: queries read the state of all keys. */
static void launch_fused(cuda_queue *q, const cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const struct fpa_cuda_call *call = &s->call;
    const struct fpa_cuda_maps *maps = g->fused_total ? &s->maps : NULL;
    const bool totals = g->unmasked || (call->cu_seqlens ? s->in_segments : call->segments > 1);
    struct fpa_cuda_call walk = *call;
    if (!g->unmasked &&
        !call->cu_seqlens) /* the last segment's total is not needed; in packed batches the host does not know which blocks these are */
        walk.segments--;
    if (totals && g->fused_totals)
        launch_fused_totals(q, &walk, maps);
    else if (totals) /* by NAME_chunk_state, a block for each walk */
        cuda_launch(q, CUDA_CHUNK_STATE, count_walks(q, &walk, g->chunk_state_slices), NULL, &walk);
    const cuda_grid fused = {.kernel = CUDA_FUSED_CHUNK,
                             .blocks = call->batch * call->query_heads * (call->segments - call->ahead) *
                                       g->column_blocks,
                             .maps = maps,
                             .next = totals && g->fused_totals};
    cuda_launch_grid(q, &fused, call);
    if (call->partial && g->fused_total)
        launch_fused_final(q, call, maps);
    else if (call->partial)
        launch_final(q, call);
}

/* ---- by clusters ---- */

/* sequence_scan: clusters that share all sequences of a packed batch. Their workspace is walked->totals and walked->progress, which is
 * cleared here; without progress no sequence is divided. */
static void launch_sequence_scan(cuda_queue *q, const cuda_sizes *s, struct fpa_cuda_call *walked)
{
    const cuda_grid grid = {.kernel = CUDA_SEQUENCE_SCAN,
                            .blocks = s->clusters * s->cluster_scan,
                            .maps = &s->maps,
                            .cluster = s->cluster_scan,
                            .next = !walked->progress};
    clear_progress(q, s);
    walked->totals = s->left;
    cuda_launch_grid(q, &grid, walked);
}

/* cluster_scan: clusters that process lines (a query head's block of columns of a sequence) one after the other, or one each. */
static void launch_line_scan(cuda_queue *q, const cuda_sizes *s, const struct fpa_cuda_call *walked)
{
    const int64_t lines = q->launch->batch * walked->query_heads * q->cuda->geometry.column_blocks;
    const cuda_grid grid = {.kernel = CUDA_CLUSTER_SCAN,
                            .blocks = (s->clusters ? s->clusters : lines) * s->cluster_scan,
                            .maps = &s->maps,
                            .cluster = s->cluster_scan,
                            .next = true};
    cuda_launch_grid(q, &grid, walked);
}

/* One launch, and possibly one for final states. If one cluster reads an initial state, it may store the final state at the same address;
 * with several blocks of columns or query heads other clusters read it too, so that final states are stored later. */
static void launch_cluster_scan(cuda_queue *q, const cuda_sizes *s, struct fpa_cuda_call *walked, bool shared)
{
    const bool late = q->cuda->geometry.column_blocks > 1 || walked->query_heads > walked->heads;
    if (!late)
        walked->partial = NULL;
    if (shared)
        launch_sequence_scan(q, s, walked);
    else
        launch_line_scan(q, s, walked);
    if (walked->partial)
        launch_final(q, &s->call);
}

/* Launches clusters if the copy engine can fetch and store the operands. Sequences that are not contiguous have a cluster each. */
static bool try_cluster_scan(cuda_queue *q, cuda_sizes *s)
{
    struct fpa_cuda_call walked = s->call;
    const bool shared = s->clusters && (walked.cu_seqlens || (!s->whole && cuda_join_batch(&walked)));
    if (shared)
        cuda_fill_sequence_maps(q, &walked, &s->maps);
    else
        cuda_fill_fused_maps(q, &walked, true, &s->maps);
    if (q->status || !(s->maps.queries && s->maps.keys && s->maps.outputs))
        return false;
    launch_cluster_scan(q, s, &walked, shared);
    return true;
}

/* ---- by copies of the state ---- */

static const struct fpa_cuda_maps *maps_of(const cuda_queue *q, const cuda_sizes *s)
{
    return q->cuda->geometry.value_width ? &s->maps : NULL;
}

static void launch_queries(cuda_queue *q, const cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const struct fpa_cuda_call *call = &s->call;
    const cuda_kernel kernel = queries_kernel(s);
    const int64_t room = cuda_room_for(q->cuda, kernel);
    cuda_grid grid = {.kernel = kernel,
                      .blocks = count_items(g, q->launch, s),
                      .maps = maps_of(q, s),
                      .next = call->awaited && (s->carry_blocks || !call->totals)};
    if (g->persistent && grid.blocks > room &&
        grid.blocks <= INT_MAX) /* larger counts are refused, since kernels count blocks in 32 bits */
        grid.blocks = room;
    cuda_launch_grid(q, &grid, call);
}

/* Copies of the state, if queries read any. */
static void launch_states(cuda_queue *q, const cuda_sizes *s, const struct fpa_cuda_maps *maps)
{
    clear_progress(q, s);
    if (s->walks)
        launch_walk(q, s, maps);
    if (s->walks && s->call.totals)
        launch_segment_scan(q, &s->call);
}

/* Launches before kernels of the split schedule, other than padding; and their maps. */
static void prepare_chunks(cuda_queue *q, cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    launch_gates(q, &s->call);
    if (g->kernel[CUDA_PACK_ROWS].threads)
        cuda_launch_packs(q, s);
    if (g->value_width)
        cuda_fill_maps(q, &s->call, &s->maps);
}

/* ---- all of a call ---- */

/* Prepares q, k and v: coordinates and padded rows for kernels that do not make these themselves. True: the call is complete, by
 * clusters. */
static bool bring_operands(cuda_queue *q, cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const struct fpa_cuda_call given = s->call;
    const bool brought = s->cluster_scan && !cuda_maps_in_place(g, MECHANISM_CLUSTER_SCAN);
    if (brought)
        launch_pads(q, &s->call, false);
    if (s->cluster_scan && try_cluster_scan(q, s))
        return true;
    if (s->is_fused && cuda_maps_in_place(g, MECHANISM_FUSED_CHUNK))
        s->call = given; /* this kernel takes the operands as given, unlike clusters */
    else if (!brought)
        launch_pads(q, &s->call, !s->is_fused && cuda_values_lean(q->cuda, &s->call));
    return false;
}

/* Maps for fused_chunk. With a window, packed batches have none: boxes cannot begin before a sequence's first query, so threads fetch and
 * store. */
static void fill_maps_of_pass(cuda_queue *q, cuda_sizes *s)
{
    if (!s->call.cu_seqlens)
        cuda_fill_fused_maps(q, &s->call, !s->apart, &s->maps);
    else if (!q->cuda->geometry.window)
        cuda_fill_ended_maps(q, &s->call, &s->maps);
}

void cuda_launch_all(cuda_queue *q, cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    cuda_fill_call(q->launch, &s->call);
    if (bring_operands(q, s))
        return;
    if (!s->is_fused) {
        prepare_chunks(q, s);
        launch_states(q, s, maps_of(q, s));
        launch_queries(q, s);
        return;
    }
    if (g->fused_packs)
        cuda_launch_packs(q, s);
    if (g->fused_total)
        fill_maps_of_pass(q, s);
    launch_gates(q, &s->call);
    launch_fused(q, s);
}

void cuda_set_dots(const cuda_dots *dots, cuda_sizes *s)
{
    s->call.dot_rows = dots->rows;
    s->call.dots = dots->dots;
    s->call.column_weights = dots->column_weights;
    s->call.numbers = dots->numbers;
    s->call.numbers_of = dots->numbers_of;
    s->call.narrows = dots->narrows;
    s->call.reversed = dots->reversed;
    s->call.adds = dots->adds;
    s->apart = dots->apart;
    s->call.states = dots->kept ? dots->kept : s->call.states;
    for (int i = 0; i < 3; i++)
        s->call.dot_stride[i] = dots->stride[i];
}

/* The same as cuda_forward_dots; dots, states: NULL: not wanted. */
static void forward(cuda_queue *q, int form, const fpa_candidate *candidate, const cuda_dots *dots,
                    const void **states)
{
    fpa_candidate fastest;
    cuda_sizes s;
    const fpa_candidate *chosen = find_candidate(q, form, candidate, &fastest);
    if (!chosen)
        return;
    if (form == FORM_RECURRENT) {
        decode_forward(q, chosen);
        return;
    }
    find_sizes(q->cuda, q->launch, form, chosen, q->launch->workspace, &s);
    cuda_check_workspace(q, s.bytes);
    if (dots)
        cuda_set_dots(dots, &s);
    if (states)
        *states = s.call.states;
    if (!q->status)
        cuda_launch_all(q, &s);
}

fpa_status cuda_forward(const fpa_module *module, int form, const struct fpa_launch *launch,
                        const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    cuda_queue q = cuda_begin(module, launch, stream, error);
    forward(&q, form, candidate, NULL, NULL);
    return q.status;
}

void cuda_forward_dots(cuda_queue *behind, const fpa_module *module, int form,
                       const struct fpa_launch *launch, const fpa_candidate *candidate, const cuda_dots *dots,
                       const void **states)
{
    cuda_queue q = cuda_behind(behind, module, launch);
    forward(&q, form, candidate, dots, states);
    behind->status = q.status;
}

void cuda_walk_states(cuda_queue *q, int form, bool walked, int64_t reversed, cuda_sizes *s)
{
    fpa_candidate fastest;
    const fpa_candidate *chosen = find_candidate(q, form, NULL, &fastest);
    if (!chosen)
        return;
    find_sizes(q->cuda, q->launch, form, chosen, q->launch->workspace, s);
    cuda_check_workspace(q, s->bytes);
    cuda_fill_call(q->launch, &s->call);
    s->call.reversed = reversed;
    walk_alone(q->cuda, q->launch, s);
    if (!walked) {
        prepare_chunks(q, s);
        launch_states(q, s, &s->maps);
    } else if (q->cuda->geometry.kernel[CUDA_PACK_ROWS]
                   .threads) { /* the pass that left the states has packed them */
        cuda_take_packed(q, &s->call, s->keys, false);
        cuda_take_packed(q, &s->call, s->queries, true);
    }
}

/* ---- a piece of a sequence, in two halves ---- */

/* The candidate by which a piece's keys are processed, independent of queries. False: the head's queries read no copies, or not in this
 * call. */
static bool find_walk(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                      fpa_candidate *walk, int64_t *chunk)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const fpa_call_size size = {.form = FORM_CHUNKED,
                                .batch = launch->batch,
                                .length = launch->length,
                                .heads = launch->heads,
                                .state_out = true};
    return !g->unmasked && !g->window && !g->kernel[CUDA_FUSED_CHUNK].threads && !launch->cu_seqlens &&
           !launch->recent && g->kernel[CUDA_CHUNK_OUTPUT].threads &&
           cuda_fastest_walk(g, &cuda->room, &size, walk, chunk);
}

size_t cuda_piece_workspace(const fpa_module *module, const struct fpa_launch *launch)
{
    const struct fpa_cuda_module *cuda = module->handle;
    fpa_candidate walk;
    int64_t chunk;
    cuda_sizes s;
    if (!find_walk(cuda, launch, &walk, &chunk))
        return 0;
    find_piece_sizes(cuda, launch, &walk, chunk, NULL, &s);
    return s.bytes;
}

/* Copies of the states of the piece's own keys, and its total as the final state. */
static void walk_piece(cuda_queue *q, const cuda_sizes *s)
{
    struct fpa_cuda_call last = s->call;
    launch_walk(q, s, maps_of(q, s));
    last.states = NULL; /* copies are completed when the state before the piece is known */
    if (last.totals)
        launch_segment_scan(q, &last);
}

static void answer_piece(cuda_queue *q, const cuda_sizes *s)
{
    struct fpa_cuda_call scan = s->call;
    clear_progress(q, s);
    scan.kept = 1;
    if (s->carry_blocks)
        cuda_launch(q, CUDA_SEGMENT_SCAN, s->carry_blocks, NULL, &scan);
    else
        launch_segment_scan(q, &scan);
    launch_queries(q, s);
}

fpa_status cuda_piece(const fpa_module *module, const struct fpa_launch *launch, void *stream,
                      fpa_error *error)
{
    cuda_queue q = cuda_begin(module, launch, stream, error);
    fpa_candidate walk;
    int64_t chunk;
    cuda_sizes s;
    if (q.status)
        return q.status;
    if (!find_walk(q.cuda, launch, &walk, &chunk))
        return fail(error, FPA_UNSUPPORTED, q.cuda->name,
                    "has no kernel that keeps copies of states between fpa_piece_total and fpa_piece_outputs "
                    "in such a call");
    find_piece_sizes(q.cuda, launch, &walk, chunk, launch->workspace, &s);
    cuda_check_workspace(&q, s.bytes);
    cuda_fill_call(launch, &s.call);
    launch_pads(&q, &s.call, false);
    prepare_chunks(&q, &s);
    if (launch->query_heads)
        answer_piece(&q, &s);
    else
        walk_piece(&q, &s);
    return q.status;
}

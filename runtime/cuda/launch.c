/* launch: a forward as launches of a cubin's kernels. */
#include "launch.h"
#include "base/round.h"
#include "grid.h"
#include "launch_cluster_scan.h"
#include "launch_decode.h"
#include "launch_fused.h"
#include "launch_maps.h"
#include "launch_packs.h"
#include "launch_pads.h"
#include "machine/cuda_candidates.h"
#include "module.h"
#include "sizes.h"

#include <limits.h>

enum { MOST_TOKENS = 1 << 17 }; /* by which kernels may go beyond the last one: a chunk and a block */

int cuda_module_candidates(const fpa_module *module, const fpa_call_size *size, fpa_candidate *out, int most)
{
    const struct fpa_cuda_module *cuda = module->handle;
    return cuda_candidates(&cuda->geometry, &cuda->room, size, out, most);
}

/* The candidate that is asked for, or *fastest. NULL: none suits, or not this one. */
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

static fpa_status refuse(const struct fpa_cuda_module *cuda, const fpa_call_size *size,
                         const fpa_candidate *candidate, fpa_error *error)
{
    const char *form = form_name((fpa_form_index)size->form);
    if (!candidate)
        return fail(error, FPA_UNSUPPORTED, cuda->name, "the module has no kernels of the %s form", form);
    return fail(error, FPA_INVALID, cuda->name, "%s cannot carry out this call of the %s form: it %s",
                candidate->mechanism, form, cuda_refusal(&cuda->geometry, size, candidate));
}

size_t cuda_workspace(const fpa_module *module, int form, const struct fpa_launch *launch,
                      const fpa_candidate *candidate)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const fpa_call_size size = call_size(form, launch);
    fpa_candidate fastest;
    cuda_sizes s;
    candidate = choose(cuda, &size, candidate, &fastest);
    if (!candidate) /* cuda_forward says why */
        return 0;
    if (form == FORM_RECURRENT)
        return decode_workspace(cuda, launch, candidate);
    find_sizes(cuda, launch, form, candidate, NULL, &s);
    return s.bytes;
}

static fpa_status launch_gates(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    const fpa_cuda_grid gates = {CUDA_GATE_SCAN, cuda_batch(launch) * launch->heads * call->chunks, NULL, 0};
    return gates.blocks ? cuda_launch(cuda, &gates, launch, call, stream, error) : FPA_OK;
}

/* maps: NULL where the kernels take none. */
static fpa_status launch_walk(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              const cuda_sizes *s, const struct fpa_cuda_maps *maps, CUstream stream,
                              fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    fpa_cuda_grid walk = {s->small ? CUDA_CHUNK_STATE_SMALL : CUDA_CHUNK_STATE,
                          cuda_batch(launch) * launch->heads * s->call.segments *
                              (s->small ? g->small_state_slices : g->chunk_state_slices) * g->column_blocks,
                          maps, 0};
    fpa_status status = cuda_check_grid(cuda, &walk, error); /* kernels count walks as blocks */
    if (status)
        return status;
    walk.blocks = s->walk_blocks;
    return cuda_launch(cuda, &walk, launch, &s->call, stream, error);
}

static fpa_status launch_segment_scan(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                      const struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t parts = divide_up((int64_t)g->features * g->columns, g->segment_scan_elements);
    const fpa_cuda_grid segment_scan = {CUDA_SEGMENT_SCAN,
                                        cuda_batch(launch) * launch->heads * call->segments * parts, NULL, 0};
    return cuda_launch(cuda, &segment_scan, launch, call, stream, error);
}

/* The final state from what the last blocks of NAME_fused_chunk left: one segment without chunks, whatever the lengths. */
static fpa_status launch_final(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    struct fpa_launch equal = *launch;
    struct fpa_cuda_call last = *call;
    equal.cu_seqlens = last.cu_seqlens = NULL;
    last.segments = 1;
    last.segment_chunks = last.first_chunks = 0;
    last.totals = call->partial;
    return launch_segment_scan(cuda, &equal, &last, stream, error);
}

/* Totals by NAME_chunk_state, a block a walk. */
static fpa_status launch_fused_walk(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                    const struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const fpa_cuda_grid walk = {CUDA_CHUNK_STATE,
                                cuda_batch(launch) * launch->heads * call->segments * g->chunk_state_slices *
                                    g->column_blocks,
                                NULL, 0};
    return cuda_launch(cuda, &walk, launch, call, stream, error);
}

/* All segments but the last are walked for their totals; then all are walked with queries, but first ones that went ahead. Without a
 * mask all are: queries read the state of all keys. */
static fpa_status launch_fused(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const cuda_sizes *s, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call walk = s->call;
    const struct fpa_cuda_maps *maps = g->fused_total ? &s->maps : NULL;
    const int64_t parts =
        cuda_batch(launch) * launch->query_heads * (s->call.segments - s->call.ahead) * g->column_blocks;
    const fpa_cuda_grid fused = {CUDA_FUSED_CHUNK, fused_blocks(cuda, &s->call, maps, parts), maps, 0};
    const bool totals = g->unmasked || (launch->cu_seqlens ? s->in_segments : s->call.segments > 1);
    fpa_status status = FPA_OK;
    if (!g->unmasked &&
        !launch->cu_seqlens) /* where lengths differ nobody can tell here which ones are the last */
        walk.segments--;
    if (totals && g->fused_totals)
        status = fused_totals(cuda, launch, &walk, maps, stream, error);
    else if (totals)
        status = launch_fused_walk(cuda, launch, &walk, stream, error);
    if (!status)
        status = totals && g->fused_totals
                     ? cuda_launch_next(cuda, &fused, 1, launch, &s->call, stream, error)
                     : cuda_launch(cuda, &fused, launch, &s->call, stream, error);
    if (status || !s->call.partial)
        return status;
    return g->fused_total ? fused_final(cuda, launch, &s->call, maps, stream, error)
                          : launch_final(cuda, launch, &s->call, stream, error);
}

static fpa_status clear_progress(const struct fpa_cuda_module *cuda, const cuda_sizes *s, CUstream stream,
                                 fpa_error *error)
{
    CUresult result =
        cuda->driver->cuMemsetD8Async((uintptr_t)s->call.progress, 0, (size_t)s->progress, stream);
    return result ? driver_fail(cuda->driver, result, cuda->name, "the counters of a launch", error) : FPA_OK;
}

/* Clusters that share all sequences: `walked` has them in one batch entry. */
static fpa_status launch_sequence_scan(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                       const cuda_sizes *s, struct fpa_cuda_call *walked, CUstream stream,
                                       fpa_error *error)
{
    const fpa_status status = s->progress ? clear_progress(cuda, s, stream, error) : FPA_OK;
    walked->totals = s->left;
    return status ? status
                  : sequence_scan_launch(cuda, launch, walked, &s->maps, s->cluster_scan, s->clusters, stream,
                                         error);
}

/* In one piece. Who writes the state has heard from who read it, but of other columns and query heads. */
static fpa_status launch_cluster_scan(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                      const cuda_sizes *s, struct fpa_cuda_call *walked, bool shared,
                                      CUstream stream, fpa_error *error)
{
    const bool late = cuda->geometry.column_blocks > 1 || launch->query_heads > launch->heads;
    if (!late)
        walked->partial = NULL;
    fpa_status status = shared ? launch_sequence_scan(cuda, launch, s, walked, stream, error)
                               : cluster_scan_launch(cuda, launch, walked, &s->maps, s->cluster_scan,
                                                     s->clusters, stream, error);
    return status || !walked->partial ? status : launch_final(cuda, launch, &s->call, stream, error);
}

/* If the copy engine can fetch and write the operands. Where they do not lie as one batch entry's, each sequence has a cluster. */
static fpa_status try_cluster_scan(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                   cuda_sizes *s, bool *done, CUstream stream, fpa_error *error)
{
    struct fpa_cuda_call walked = s->call;
    const bool shared = s->clusters && (launch->cu_seqlens || (!s->whole && cuda_join_batch(&walked)));
    fpa_status status = shared ? cuda_fill_sequence_maps(cuda, &walked, &s->maps, error)
                               : cuda_fill_fused_maps(cuda, &walked, true, &s->maps, error);
    *done = !status && s->maps.queries && s->maps.keys && s->maps.outputs;
    return *done ? launch_cluster_scan(cuda, launch, s, &walked, shared, stream, error) : status;
}

static fpa_status launch_queries(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                 const cuda_sizes *s, const struct fpa_cuda_maps *maps, CUstream stream,
                                 fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const struct fpa_cuda_call *call = &s->call;
    fpa_cuda_grid chunk_output = {CUDA_CHUNK_OUTPUT, count_items(g, launch), maps, 0};
    const int64_t room = (int64_t)cuda->room.multiprocessors * cuda->room.occupancy[CUDA_CHUNK_OUTPUT];
    if (g->persistent && chunk_output.blocks > room &&
        chunk_output.blocks <= INT_MAX) /* else refused: they are counted in 32 bits */
        chunk_output.blocks = room;
    if (chunk_output.blocks <= 0)
        return FPA_OK;
    return call->awaited && (s->carry_blocks || !call->totals)
               ? cuda_launch_next(cuda, &chunk_output, 1, launch, call, stream, error)
               : cuda_launch(cuda, &chunk_output, launch, call, stream, error);
}

/* Copies of the state, where queries read some. */
static fpa_status launch_states(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                const cuda_sizes *s, const struct fpa_cuda_maps *maps, CUstream stream,
                                fpa_error *error)
{
    fpa_status status = s->progress ? clear_progress(cuda, s, stream, error) : FPA_OK;
    if (!status && s->walks)
        status = launch_walk(cuda, launch, s, maps, stream, error);
    if (!status && s->walks && s->call.totals)
        status = launch_segment_scan(cuda, launch, &s->call, stream, error);
    return status;
}

static fpa_status launch_chunks(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                const cuda_sizes *s, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_maps *maps = cuda->geometry.value_width ? &s->maps : NULL;
    const fpa_status status = launch_states(cuda, launch, s, maps, stream, error);
    return status ? status : launch_queries(cuda, launch, s, maps, stream, error);
}

/* What comes before kernels of the split schedule, but padding. */
static fpa_status prepare_chunks(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                 cuda_sizes *s, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    fpa_status status = g->gate ? launch_gates(cuda, launch, &s->call, stream, error) : FPA_OK;
    if (!status && g->kernel[CUDA_PACK_ROWS].threads)
        status = cuda_launch_packs(cuda, launch, s, stream, error);
    if (!status && g->value_width)
        status = cuda_fill_maps(cuda, &s->call, &s->maps, error);
    return status;
}

/* q, k and v as the kernels to come have them, made or padded where they do not do that themselves; or *done: by clusters. */
static fpa_status bring_operands(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                 cuda_sizes *s, bool *done, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const struct fpa_cuda_call given = s->call;
    const bool brought = s->cluster_scan && !cuda_maps_in_place(g, MECHANISM_CLUSTER_SCAN);
    fpa_status status = brought ? launch_pads(cuda, launch, &s->call, false, stream, error) : FPA_OK;
    if (!status && s->cluster_scan)
        status = try_cluster_scan(cuda, launch, s, done, stream, error);
    if (status || *done)
        return status;
    if (s->is_fused && cuda_maps_in_place(g, MECHANISM_FUSED_CHUNK))
        s->call = given; /* whatever clusters would have had */
    else if (!brought)
        status = launch_pads(cuda, launch, &s->call, !s->is_fused && cuda_values_lean(cuda, &s->call), stream,
                             error);
    return status;
}

/* Where lengths differ and keys begin before the first query, which boxes of a sequence do not, threads fetch and store. */
static fpa_status fill_maps_of_pass(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                    cuda_sizes *s, fpa_error *error)
{
    if (!launch->cu_seqlens)
        return cuda_fill_fused_maps(cuda, &s->call, !s->apart, &s->maps, error);
    return cuda->geometry.window ? FPA_OK : cuda_fill_ended_maps(cuda, &s->call, &s->maps, error);
}

fpa_status cuda_launch_all(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, cuda_sizes *s,
                           CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    bool done = false;
    cuda_fill_call(launch, &s->call);
    fpa_status status = bring_operands(cuda, launch, s, &done, stream, error);
    if (status || done)
        return status;
    if (s->is_fused && g->fused_packs)
        status = cuda_launch_packs(cuda, launch, s, stream, error);
    if (!status && s->is_fused && g->fused_total)
        status = fill_maps_of_pass(cuda, launch, s, error);
    if (!status && !s->is_fused)
        status = prepare_chunks(cuda, launch, s, stream, error);
    else if (!status && g->gate)
        status = launch_gates(cuda, launch, &s->call, stream, error);
    if (status)
        return status;
    return s->is_fused ? launch_fused(cuda, launch, s, stream, error)
                       : launch_chunks(cuda, launch, s, stream, error);
}

static fpa_status check_workspace(const struct fpa_launch *launch, size_t bytes, fpa_error *error)
{
    if (launch->workspace_size >= bytes)
        return FPA_OK;
    return fail(error, FPA_INVALID, "workspace", "has %zu bytes, but this call needs %zu",
                launch->workspace_size, bytes);
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

static fpa_status check_device_and_tokens(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                          fpa_error *error)
{
    fpa_status status = cuda_check_context(cuda, error);
    if (!status && cuda_tokens(launch) > INT_MAX - MOST_TOKENS)
        return fail(error, FPA_UNSUPPORTED, cuda->name, "takes at most %d tokens a sequence, here are %lld",
                    INT_MAX - MOST_TOKENS, (long long)cuda_tokens(launch));
    return status;
}

/* dots, states: NULL: not wanted. */
static fpa_status forward(const fpa_module *module, int form, const struct fpa_launch *launch,
                          const fpa_candidate *candidate, const cuda_dots *dots, const void **states,
                          CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const fpa_call_size size = call_size(form, launch);
    fpa_candidate fastest;
    cuda_sizes s;
    fpa_status status = check_device_and_tokens(cuda, launch, error);
    if (status)
        return status;
    const fpa_candidate *chosen = choose(cuda, &size, candidate, &fastest);
    if (!chosen)
        return refuse(cuda, &size, candidate, error);
    if (form == FORM_RECURRENT)
        s.bytes = decode_workspace(cuda, launch, chosen);
    else
        find_sizes(cuda, launch, form, chosen, launch->workspace, &s);
    status = check_workspace(launch, s.bytes, error);
    if (status)
        return status;
    if (form == FORM_RECURRENT)
        return decode_forward(cuda, launch, chosen, stream, error);
    if (dots)
        cuda_set_dots(dots, &s);
    if (states)
        *states = s.call.states;
    return cuda_launch_all(cuda, launch, &s, stream, error);
}

fpa_status cuda_forward(const fpa_module *module, int form, const struct fpa_launch *launch,
                        const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    return forward(module, form, launch, candidate, NULL, NULL, stream, error);
}

fpa_status cuda_forward_dots(const fpa_module *module, int form, const struct fpa_launch *launch,
                             const fpa_candidate *candidate, const cuda_dots *dots, const void **states,
                             void *stream, fpa_error *error)
{
    return forward(module, form, launch, candidate, dots, states, stream, error);
}

fpa_status cuda_walk_states(const fpa_module *module, int form, const struct fpa_launch *launch, bool walked,
                            int64_t reversed, cuda_sizes *s, void *stream, fpa_error *error)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const fpa_call_size size = call_size(form, launch);
    fpa_candidate fastest;
    fpa_status status = check_device_and_tokens(cuda, launch, error);
    if (status)
        return status;
    const fpa_candidate *chosen = choose(cuda, &size, NULL, &fastest);
    if (!chosen)
        return refuse(cuda, &size, NULL, error);
    find_sizes(cuda, launch, form, chosen, launch->workspace, s);
    status = check_workspace(launch, s->bytes, error);
    cuda_fill_call(launch, &s->call);
    s->call.reversed = reversed;
    walk_alone(cuda, launch, s);
    if (walked && cuda->geometry.kernel[CUDA_PACK_ROWS].threads) { /* the same walk has packed them */
        cuda_take_packed(cuda, launch, &s->call, s->keys, false);
        cuda_take_packed(cuda, launch, &s->call, s->queries, true);
    }
    if (!status && !walked)
        status = prepare_chunks(cuda, launch, s, stream, error);
    return status || walked ? status : launch_states(cuda, launch, s, &s->maps, stream, error);
}

/* ---- a piece of a sequence, in two halves ---- */

/* How keys are walked, whatever queries there will be. False: the head's queries read no copies, or not in this call. */
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

/* Copies of what the piece's keys add up to, and all of it as the final state. */
static fpa_status walk_piece(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                             const cuda_sizes *s, CUstream stream, fpa_error *error)
{
    struct fpa_cuda_call last = s->call;
    fpa_status status =
        launch_walk(cuda, launch, s, cuda->geometry.value_width ? &s->maps : NULL, stream, error);
    last.states = NULL; /* they are brought up to date when it is known what comes before */
    return status || !last.totals ? status : launch_segment_scan(cuda, launch, &last, stream, error);
}

static fpa_status answer_piece(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const cuda_sizes *s, CUstream stream, fpa_error *error)
{
    const fpa_cuda_grid beside = {CUDA_SEGMENT_SCAN, s->carry_blocks, NULL, 0};
    struct fpa_cuda_call scan = s->call;
    fpa_status status = s->progress ? clear_progress(cuda, s, stream, error) : FPA_OK;
    scan.kept = 1;
    if (!status)
        status = s->carry_blocks ? cuda_launch(cuda, &beside, launch, &scan, stream, error)
                                 : launch_segment_scan(cuda, launch, &scan, stream, error);
    return status
               ? status
               : launch_queries(cuda, launch, s, cuda->geometry.value_width ? &s->maps : NULL, stream, error);
}

fpa_status cuda_piece(const fpa_module *module, const struct fpa_launch *launch, void *stream,
                      fpa_error *error)
{
    const struct fpa_cuda_module *cuda = module->handle;
    fpa_candidate walk;
    int64_t chunk;
    cuda_sizes s;
    fpa_status status = check_device_and_tokens(cuda, launch, error);
    if (status)
        return status;
    if (!find_walk(cuda, launch, &walk, &chunk))
        return fail(error, FPA_UNSUPPORTED, cuda->name, "keeps no copies of states in such a call");
    find_piece_sizes(cuda, launch, &walk, chunk, launch->workspace, &s);
    status = check_workspace(launch, s.bytes, error);
    if (status)
        return status;
    cuda_fill_call(launch, &s.call);
    status = launch_pads(cuda, launch, &s.call, false, stream, error);
    if (!status)
        status = prepare_chunks(cuda, launch, &s, stream, error);
    if (status)
        return status;
    return launch->query_heads ? answer_piece(cuda, launch, &s, stream, error)
                               : walk_piece(cuda, launch, &s, stream, error);
}

/* launch_cuda: a forward as launches of a cubin's kernels: sizes, workspace, grids. */
#include "launch.h"
#include "launch_fused.h"
#include "launch_maps.h"
#include "launch_cluster_scan.h"
#include "launch_decode.h"
#include "chunk_state_choice.h"
#include "module.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
    ALIGNMENT = 256,
    MOST_TOKENS = 1 << 17, /* by which kernels may go beyond the last one: a chunk and a block */
};

/* ---- sizes ---- */

/* What one call of the parallel or chunked form needs. */
typedef struct sizes {
    struct fpa_cuda_call call; /* sizes and parts of the workspace; operands come later */
    bool is_fused;             /* NAME_fused_chunk: one pass, behind a walk of all segments but the last */
    int cluster_scan;          /* or NAME_cluster_scan, by clusters of so many blocks; 0: not */
    bool walks;                /* else the keys are walked for copies of the state */
    chunk_state_choice walk;   /* of warpgroups */
    void *keys, *queries;      /* packed vectors */
    int64_t progress;          /* bytes of call.progress */
    struct fpa_cuda_maps maps; /* of the operands, where kernels take them */
    size_t bytes;              /* of the workspace */
} sizes;

/* Share of its speed that the GPU reaches with so many blocks: the last wave is not full; a
 * multiprocessor with half of the blocks that it has room for is not twice as slow. */
static double utilisation(const struct fpa_cuda_module *cuda, int resident, int64_t blocks)
{
    const int64_t room = (int64_t)cuda->multiprocessors * resident;
    const double waves = (double)blocks / (double)room;
    return waves < 1 ? sqrt(waves) : waves / (double)divide_up(blocks, room);
}

/* More than one segment fill the GPU, and cost `extra` of the work of one: another pass over the keys, or
 * over the copies of the state. */
static int64_t choose_segments(const struct fpa_cuda_module *cuda, int resident, int64_t blocks, int64_t most,
                               double extra)
{
    double least = 0;
    int64_t best = 1;
    if (cuda->schedule != SCHEDULE_BY_SIZE)
        return 1;
    for (int64_t segments = 1; segments <= most && segments <= MOST_SEGMENTS; segments++) {
        double cost = segments > 1 ? 1 + extra + 0.002 * (double)segments : 1;
        cost /= utilisation(cuda, resident, blocks * segments);
        if (segments == 1 || cost < least) {
            least = cost;
            best = segments;
        }
    }
    return best;
}

/* Runs of whole chunks of equal length. */
static void divide_segments(struct fpa_cuda_call *call, int64_t segments)
{
    call->segment_chunks = call->chunks ? divide_up(call->chunks, segments) : 1;
    call->first_chunks = call->segment_chunks;
    call->segments = call->chunks ? divide_up(call->chunks, call->segment_chunks) : 1;
}

/* Which state kernel of warpgroups, by how many blocks, and whether queries follow it. */
static void choose_warpgroups(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              int64_t most, sizes *s)
{
    struct fpa_cuda_call *call = &s->call;
    const chunk_state_task task = {launch->batch * launch->heads, launch->batch * launch->query_heads,
                                   call->chunks, most};
    s->walk = chunk_state_choose(cuda, &task);
    divide_segments(call, s->walk.segments);
    if (!s->walk.overlapped)
        return;
    call->awaited = s->walk.slices;
    call->beside = s->walk.blocks / (s->walk.slices * cuda->geometry.column_blocks) *
                   (launch->query_heads / launch->heads);
}

static void choose_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, int form,
                         sizes *s)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call *call = &s->call;
    const int64_t sequences = launch->batch * launch->heads;
    s->is_fused = form == FORM_CHUNKED && g->kernel[CUDA_FUSED_CHUNK].threads && launch->query_heads > 0;
    call->chunk =
        form == FORM_CHUNKED ? g->chunk : divide_up(launch->length, g->query_tokens) * g->query_tokens;
    call->chunks = call->chunk ? divide_up(launch->length, call->chunk) : 0;
    if (s->is_fused) {
        int64_t blocks = launch->batch * launch->query_heads * g->column_blocks;
        if (g->fused_total && call->chunks)
            fused_divide(cuda, blocks, sequences * g->column_blocks, call);
        else
            divide_segments(
                call, choose_segments(cuda, cuda->occupancy[CUDA_FUSED_CHUNK], blocks, call->chunks, 0.4));
        s->cluster_scan = cluster_scan_choose(cuda, blocks, call->segments, launch->length);
        call->walk_end =
            call->segments == 1
                ? 0
                : (call->first_chunks + (call->segments - 2) * call->segment_chunks) * call->chunk;
        return;
    }
    s->walks = call->chunks > 1 || launch->state_in || launch->state_out;
    int64_t blocks = sequences * g->chunk_state_slices * g->column_blocks;
    int64_t most = launch->state_out ? call->chunks : call->chunks - 1;
    call->beside = call->chunks > 1 ? 1 : launch->batch * launch->query_heads;
    if (s->walks && g->persistent)
        choose_warpgroups(cuda, launch, most, s);
    else
        divide_segments(
            call, s->walks ? choose_segments(cuda, cuda->occupancy[CUDA_CHUNK_STATE], blocks, most, 0.1) : 1);
    call->walk_end = launch->state_out ? launch->length : (call->chunks - 1) * call->chunk;
}

/* Room for count elements of the workspace; NULL when there are none, or no workspace yet. */
static void *take(char *base, size_t *used, int64_t count, size_t size)
{
    void *at = base && count ? base + *used : NULL;
    *used += ((size_t)count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

/* The final state may lie where the initial one does. When several blocks read what one of them writes,
 * it is written by a launch of its own. (Addresses are not known yet when the workspace is measured.) */
static bool is_late(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, const sizes *s)
{
    if (!launch->state_in || !launch->state_out)
        return false;
    return cuda->geometry.column_blocks > 1 || s->call.segments > 1 ||
           (s->is_fused && launch->query_heads > launch->heads);
}

/* Blocks of NAME_chunk_output that calls of any size would have. */
static int64_t count_items(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return launch->batch * launch->query_heads * divide_up(launch->length, g->query_tokens) *
           g->column_blocks;
}

/* Counters by which blocks of NAME_chunk_output share items and hear of copies. None where each block has one
 * item.
 */
static int64_t count_progress(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              const sizes *s)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t room = (int64_t)cuda->multiprocessors * cuda->occupancy[CUDA_CHUNK_OUTPUT];
    if (!g->persistent || s->is_fused || (!s->call.awaited && count_items(g, launch) <= room))
        return 0;
    return 1 + (s->call.awaited ? launch->batch * launch->heads * s->call.chunks * g->column_blocks : 0);
}

static void find_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, int form,
                       char *base, sizes *s)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call *call = &s->call;
    const int64_t sequences = launch->batch * launch->heads, copy = (int64_t)g->features * g->columns;
    memset(s, 0, sizeof *s);
    choose_sizes(cuda, launch, form, s);
    const bool read = launch->query_heads > 0 || call->segments > 1; /* by queries, or by NAME_segment_scan */
    const bool copies = !s->is_fused && read && (call->chunks > 1 || launch->state_in);
    const bool late = is_late(cuda, launch, s);
    const int64_t total = s->is_fused && g->fused_total
                              ? g->fused_total
                              : copy; /* of a sequence; a block of columns has a part */
    const int64_t totals = call->segments > 1 ? call->segments - s->is_fused : late && !s->is_fused;
    call->gate_row = divide_up(launch->length, 64) * 64;
    call->gates =
        take(base, &s->bytes, g->gate ? sequences * call->gate_row + g->query_tokens : 0, 2 * sizeof(float));
    call->states = take(base, &s->bytes, copies ? sequences * call->chunks * copy : 0, (size_t)g->copy_bytes);
    call->totals = take(base, &s->bytes, sequences * totals * total, sizeof(float));
    call->partial = take(base, &s->bytes, late && s->is_fused ? sequences * total : 0, sizeof(float));
    call->decays = take(base, &s->bytes, g->decays ? sequences * (call->gate_row / 64) : 0, FPA_CUDA_DECAYS);
    const int64_t vector =
        g->kernel[CUDA_PACK_ROWS].threads && !s->is_fused ? launch->length * g->vector_rows : 0;
    s->progress = count_progress(cuda, launch, s) * (int64_t)sizeof *call->progress;
    call->progress = take(base, &s->bytes, s->progress, 1);
    s->keys = take(base, &s->bytes, sequences * vector, 2);
    s->queries = take(base, &s->bytes, launch->batch * launch->query_heads * vector, 2);
}

size_t cuda_workspace(const fpa_module *module, int form, const struct fpa_launch *launch)
{
    const struct fpa_cuda_module *cuda = module->handle;
    sizes s;
    if (form == FORM_RECURRENT)
        return decode_workspace(cuda, launch);
    find_sizes(cuda, launch, form, NULL, &s);
    return s.bytes;
}

/* ---- launches ---- */

void cuda_fill_call(const struct fpa_launch *launch, struct fpa_cuda_call *call)
{
    call->batch = launch->batch;
    call->length = launch->length;
    call->query_heads = launch->query_heads;
    call->heads = launch->heads;
    call->recent = launch->recent;
    call->q = launch->q;
    call->k = launch->k;
    call->v = launch->v;
    call->o = launch->o;
    call->log_gate = launch->log_gate;
    call->state_in = launch->state_in;
    call->state_out = launch->state_out;
    for (int i = 0; i < 3; i++) {
        call->q_stride[i] = launch->q_stride[i];
        call->k_stride[i] = launch->k_stride[i];
        call->v_stride[i] = launch->v_stride[i];
        call->o_stride[i] = launch->o_stride[i];
        call->gate_stride[i] = launch->gate_stride[i];
    }
    for (int i = 0; i < 2; i++) {
        call->state_in_stride[i] = launch->state_in_stride[i];
        call->state_out_stride[i] = launch->state_out_stride[i];
    }
}

static fpa_status check_grid(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, fpa_error *error)
{
    if (grid->blocks <= INT_MAX)
        return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, cuda->name,
                "%s would need %lld blocks, a launch has at most %d: split the batch",
                cuda_kernel_names[grid->kernel], (long long)grid->blocks, INT_MAX);
}

static void list_weights(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                         const float *matrix[CUDA_WEIGHTS])
{
    for (int i = 0; i < cuda->geometry.weights; i++)
        matrix[i] = launch->weights[i];
}

static struct fpa_cuda_block block_of(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid)
{
    struct fpa_cuda_block block = cuda->geometry.kernel[grid->kernel];
    if (grid->bytes)
        block.bytes = (int)grid->bytes;
    return block;
}

fpa_status cuda_launch(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid,
                       const struct fpa_launch *launch, const struct fpa_cuda_call *call, CUstream stream,
                       fpa_error *error)
{
    const struct fpa_cuda_block block = block_of(cuda, grid);
    const float *matrix[CUDA_WEIGHTS];
    void *parameters[3] = {(void *)call, grid->maps ? (void *)grid->maps : matrix, matrix};
    fpa_status status = check_grid(cuda, grid, error);
    if (status)
        return status;
    list_weights(cuda, launch, matrix);
    CUresult result = cuda->driver->cuLaunchKernel(cuda->kernel[grid->kernel], (unsigned)grid->blocks, 1, 1,
                                                   (unsigned)block.threads, 1, 1, (unsigned)block.bytes,
                                                   stream, parameters, NULL);
    return result ? driver_fail(cuda->driver, result, cuda->name, cuda_kernel_names[grid->kernel], error)
                  : FPA_OK;
}

fpa_status cuda_launch_next(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, int cluster,
                            const struct fpa_launch *launch, const struct fpa_cuda_call *call,
                            CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_block block = block_of(cuda, grid);
    const float *matrix[CUDA_WEIGHTS];
    void *parameters[3] = {(void *)call, grid->maps ? (void *)grid->maps : matrix, matrix};
    CUlaunchAttribute attributes[2] = {
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.overlap = 1},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = {(unsigned)cluster, 1, 1}}};
    const CUlaunchConfig config = {
        .grid_x = cluster > 1 ? (unsigned)cluster : (unsigned)grid->blocks,
        .grid_y = cluster > 1 ? (unsigned)(grid->blocks / cluster) : 1,
        .grid_z = 1,
        .block_x = (unsigned)block.threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = (unsigned)block.bytes,
        .stream = stream,
        .attributes = attributes,
        .attribute_count = cluster > 1 ? 2 : 1,
    };
    if (!cuda->overlaps)
        return cuda_launch(cuda, grid, launch, call, stream, error);
    fpa_status status = check_grid(cuda, grid, error);
    if (status)
        return status;
    list_weights(cuda, launch, matrix);
    CUresult result = cuda->driver->cuLaunchKernelEx(&config, cuda->kernel[grid->kernel], parameters, NULL);
    return result ? driver_fail(cuda->driver, result, cuda->name, cuda_kernel_names[grid->kernel], error)
                  : FPA_OK;
}

/* Another device's context, or none: the kernels do not exist there. */
static fpa_status check_context(const struct fpa_cuda_module *cuda, fpa_error *error)
{
    CUcontext current = NULL;
    CUresult result = cuda->driver->cuCtxGetCurrent(&current);
    if (result)
        return driver_fail(cuda->driver, result, cuda->name, "the current context", error);
    if (current == cuda->context)
        return FPA_OK;
    return fail(error, FPA_INVALID, cuda->name,
                "was opened for GPU %d, whose primary context is not the calling thread's current one; "
                "make that device current (cudaSetDevice(%d)) before the call",
                cuda->device, cuda->device);
}

static fpa_status launch_gates(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    const fpa_cuda_grid gates = {CUDA_GATE_SCAN, launch->batch * launch->heads * call->chunks, NULL, 0};
    return gates.blocks ? cuda_launch(cuda, &gates, launch, call, stream, error) : FPA_OK;
}

/* vectors <- packed keys or queries, which the call then has in their place. */
static fpa_status launch_pack(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              struct fpa_cuda_call *call, void *vectors, bool queries, CUstream stream,
                              fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t heads = queries ? launch->query_heads : launch->heads;
    const fpa_cuda_grid pack = {CUDA_PACK_ROWS,
                                launch->batch * heads * divide_up(launch->length, g->pack_tokens), NULL, 0};
    long long *stride = queries ? call->q_stride : call->k_stride;
    call->vectors = vectors;
    call->packs_queries = queries;
    fpa_status status = pack.blocks ? cuda_launch(cuda, &pack, launch, call, stream, error) : FPA_OK;
    *(queries ? &call->q : &call->k) = vectors;
    stride[1] = g->vector_rows;
    stride[2] = launch->length * stride[1];
    stride[0] = heads * stride[2];
    return status;
}

static fpa_status launch_packs(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, sizes *s,
                               CUstream stream, fpa_error *error)
{
    fpa_status status = launch_pack(cuda, launch, &s->call, s->keys, false, stream, error);
    return status ? status : launch_pack(cuda, launch, &s->call, s->queries, true, stream, error);
}

/* maps: NULL where the kernels take none; choice: NULL where a block has one walk. */
static fpa_status launch_walk(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps,
                              const chunk_state_choice *choice, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const bool second = choice && choice->second;
    fpa_cuda_grid walk = {second ? CUDA_CHUNK_STATE_SMALL : CUDA_CHUNK_STATE,
                          launch->batch * launch->heads * call->segments *
                              (second ? g->small_state_slices : g->chunk_state_slices) * g->column_blocks,
                          maps, 0};
    fpa_status status = check_grid(cuda, &walk, error); /* kernels count walks as blocks */
    if (status)
        return status;
    if (choice)
        walk.blocks = choice->blocks;
    return cuda_launch(cuda, &walk, launch, call, stream, error);
}

static fpa_status launch_segment_scan(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                      const struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t parts = divide_up((int64_t)g->features * g->columns, g->segment_scan_elements);
    const fpa_cuda_grid segment_scan = {CUDA_SEGMENT_SCAN,
                                        launch->batch * launch->heads * call->segments * parts, NULL, 0};
    return cuda_launch(cuda, &segment_scan, launch, call, stream, error);
}

/* The final state from what the last blocks of NAME_fused_chunk left: one segment without chunks. */
static fpa_status launch_final(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    struct fpa_cuda_call last = *call;
    last.segments = 1;
    last.segment_chunks = last.first_chunks = 0;
    last.totals = call->partial;
    return launch_segment_scan(cuda, launch, &last, stream, error);
}

/* All segments but the last are walked for their totals; then all are walked with queries. */
static fpa_status launch_fused(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const sizes *s, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call walk = s->call;
    const struct fpa_cuda_maps *maps = g->fused_total ? &s->maps : NULL;
    const fpa_cuda_grid fused = {
        CUDA_FUSED_CHUNK, launch->batch * launch->query_heads * s->call.segments * g->column_blocks, maps, 0};
    fpa_status status = FPA_OK;
    walk.segments--;
    if (walk.segments > 0 && g->fused_totals)
        status = fused_totals(cuda, launch, &walk, maps, stream, error);
    else if (walk.segments > 0)
        status = launch_walk(cuda, launch, &walk, NULL, NULL, stream, error);
    if (!status)
        status = walk.segments > 0 && g->fused_totals
                     ? cuda_launch_next(cuda, &fused, 1, launch, &s->call, stream, error)
                     : cuda_launch(cuda, &fused, launch, &s->call, stream, error);
    if (status || !s->call.partial)
        return status;
    return g->fused_total ? fused_final(cuda, launch, &s->call, maps, stream, error)
                          : launch_final(cuda, launch, &s->call, stream, error);
}

/* In one piece. Who writes the state has heard from who read it, but of other columns and query heads. */
static fpa_status launch_cluster_scan(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                      const sizes *s, CUstream stream, fpa_error *error)
{
    struct fpa_cuda_call call = s->call;
    if (cuda->geometry.column_blocks == 1 && launch->query_heads == launch->heads)
        call.partial = NULL;
    fpa_status status = cluster_scan_launch(cuda, launch, &call, &s->maps, s->cluster_scan, stream, error);
    return status || !call.partial ? status : launch_final(cuda, launch, &call, stream, error);
}

static fpa_status clear_progress(const struct fpa_cuda_module *cuda, const sizes *s, CUstream stream,
                                 fpa_error *error)
{
    CUresult result =
        cuda->driver->cuMemsetD8Async((uintptr_t)s->call.progress, 0, (size_t)s->progress, stream);
    return result ? driver_fail(cuda->driver, result, cuda->name, "the counters of a launch", error) : FPA_OK;
}

static fpa_status launch_chunks(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                                const sizes *s, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const struct fpa_cuda_call *call = &s->call;
    const struct fpa_cuda_maps *maps = g->value_width ? &s->maps : NULL;
    fpa_status status = FPA_OK;
    fpa_cuda_grid chunk_output = {CUDA_CHUNK_OUTPUT, count_items(g, launch), maps, 0};
    const int64_t room = (int64_t)cuda->multiprocessors * cuda->occupancy[CUDA_CHUNK_OUTPUT];
    if (g->persistent && chunk_output.blocks > room &&
        chunk_output.blocks <= INT_MAX) /* else refused: they are counted in 32 bits */
        chunk_output.blocks = room;
    if (s->progress)
        status = clear_progress(cuda, s, stream, error);
    if (!status && s->walks)
        status = launch_walk(cuda, launch, call, maps, g->persistent ? &s->walk : NULL, stream, error);
    if (!status && s->walks && call->totals)
        status = launch_segment_scan(cuda, launch, call, stream, error);
    if (!status && chunk_output.blocks > 0)
        status = call->awaited && !call->totals
                     ? cuda_launch_next(cuda, &chunk_output, 1, launch, call, stream, error)
                     : cuda_launch(cuda, &chunk_output, launch, call, stream, error);
    return status;
}

fpa_status cuda_forward(const fpa_module *module, int form, const struct fpa_launch *launch, void *stream,
                        fpa_error *error)
{
    const struct fpa_cuda_module *cuda = module->handle;
    sizes s;
    fpa_status status = check_context(cuda, error);
    if (status)
        return status;
    if (launch->length > INT_MAX - MOST_TOKENS)
        return fail(error, FPA_UNSUPPORTED, cuda->name, "takes at most %d tokens a sequence, here are %lld",
                    INT_MAX - MOST_TOKENS, (long long)launch->length);
    if (launch->workspace_size < cuda_workspace(module, form, launch))
        return fail(error, FPA_INVALID, "workspace", "has %zu bytes, but this call needs %zu",
                    launch->workspace_size, cuda_workspace(module, form, launch));
    if (form == FORM_RECURRENT)
        return decode_forward(cuda, launch, stream, error);
    find_sizes(cuda, launch, form, launch->workspace, &s);
    cuda_fill_call(launch, &s.call);
    if (s.is_fused && (cuda->geometry.fused_total || s.cluster_scan))
        status = cuda_fill_fused_maps(cuda, &s.call, &s.maps, error);
    if (!status && s.cluster_scan && s.maps.queries && s.maps.keys && s.maps.outputs)
        return launch_cluster_scan(cuda, launch, &s, stream, error);
    if (!status && cuda->geometry.gate)
        status = launch_gates(cuda, launch, &s.call, stream, error);
    if (!status && cuda->geometry.kernel[CUDA_PACK_ROWS].threads && !s.is_fused)
        status = launch_packs(cuda, launch, &s, stream, error);
    if (!status && cuda->geometry.value_width && !s.is_fused)
        status = cuda_fill_maps(cuda, &s.call, &s.maps, error);
    if (status)
        return status;
    return s.is_fused ? launch_fused(cuda, launch, &s, stream, error)
                      : launch_chunks(cuda, launch, &s, stream, error);
}

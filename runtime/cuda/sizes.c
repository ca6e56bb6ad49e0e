#include "sizes.h"

#include <math.h>
#include <string.h>

#include "launch_cluster_scan.h"
#include "launch_fused.h"

enum { ALIGNMENT = 256 };

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
                              int64_t most, cuda_sizes *s)
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
                         cuda_sizes *s)
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
static bool is_late(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, const cuda_sizes *s)
{
    if (!launch->state_in || !launch->state_out)
        return false;
    return cuda->geometry.column_blocks > 1 || s->call.segments > 1 ||
           (s->is_fused && launch->query_heads > launch->heads);
}

int64_t count_items(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return launch->batch * launch->query_heads * divide_up(launch->length, g->query_tokens) *
           g->column_blocks;
}

/* Counters by which blocks of NAME_chunk_output share items and hear of copies. None where each block has one
 * item.
 */
static int64_t count_progress(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              const cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t room = (int64_t)cuda->multiprocessors * cuda->occupancy[CUDA_CHUNK_OUTPUT];
    if (!g->persistent || s->is_fused || (!s->call.awaited && count_items(g, launch) <= room))
        return 0;
    return 1 + (s->call.awaited ? launch->batch * launch->heads * s->call.chunks * g->column_blocks : 0);
}

void find_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, int form, char *base,
                cuda_sizes *s)
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

/* cuda_launches: seconds of each kernel's launch, from its counts and the size of a call. */
#include "cuda_launches.h"

#include <math.h>

#include "base/round.h"
#include "cuda_padding.h"

static const fpa_gpu *gpu_of(const cuda_task *task)
{
    return task->room->gpu;
}

static bool has(const cuda_task *task, cuda_kernel kernel)
{
    return task->geometry->kernel[kernel].threads > 0;
}

double launch_warps(const cuda_task *task, cuda_kernel kernel, double blocks)
{
    const double most = fmax(task->room->occupancy[kernel], 1);
    const double here = fmin(ceil(blocks / task->room->multiprocessors), most);
    return fmax(here, 1) * task->geometry->kernel[kernel].threads / 32;
}

/* ---- chunk_state ---- */

/* Round trips to memory of a walk for initial and final states, which do not overlap with anything: loading the indices of a block's
 * elements, then the elements; and the indices again for the final state. */
static double state_trips(const cuda_task *task)
{
    return (task->size->state_in ? 2 : 0) + (task->size->state_out ? 1 : 0);
}

/* Bytes of initial and final states. */
static double state_bytes(const cuda_task *task)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const int64_t sequences =
        task->size->sequences ? task->size->sequences * task->size->heads : task->sequences;
    return (double)(sequences * (task->size->state_in + task->size->state_out)) * (double)g->features *
           g->columns * (double)sizeof(float);
}

/* Seconds of a single multiprocessor's lanes to load and store these. */
static double state_seconds(const cuda_task *task)
{
    return state_bytes(task) / (GPU_STATES * gpu_of(task)->clock);
}

double walk_handovers(const cuda_task *task, int64_t walks)
{
    return (double)walks * state_trips(task) * GPU_TRIP + state_seconds(task);
}

/* Tokens of the last chunk's tail (cuda_take_tail). */
static int64_t tail_tokens(const cuda_task *task)
{
    const int64_t whole = task->chunks * task->chunk;
    return task->tail && task->size->length > whole ? task->size->length - whole : 0;
}

static double walked_tail(const cuda_task *task)
{
    return task->size->state_out ? (double)(task->sequences * tail_tokens(task)) : 0;
}

fpa_cuda_sum walk_sum(const cuda_task *task, cuda_kernel kernel)
{
    const struct fpa_cuda_kernel_work *work = &task->geometry->work[kernel];
    const double chunks = (double)(task->sequences * cuda_walked_chunks(task));
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &work->step, (chunks * (double)task->chunk + walked_tail(task)) / 16);
    cuda_sum_add_copy(&sum, &work->copy, task->summed ? (double)task->sequences : chunks);
    sum.bytes += state_bytes(task);
    return sum;
}

/* Round trips to memory that a walk's block waits for: its own, and those for states; with several segments a walk stores a total instead
 * of a state. */
static double handover_trips(const cuda_task *task, cuda_kernel kernel, double blocks, int64_t segments)
{
    const fpa_gpu_room *room = task->room;
    const double rounds = ceil(blocks / room->multiprocessors / fmax(room->occupancy[kernel], 1));
    const double share = cuda_share(blocks, room->multiprocessors, room->occupancy[kernel]);
    const double moved = segments > 1 ? 0 : state_seconds(task) * share;
    return task->geometry->work[kernel].trips + state_trips(task) * rounds + moved / GPU_TRIP;
}

fpa_cost walk_cost(const cuda_task *task, cuda_kernel kernel, int64_t segments)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const int slices = kernel == CUDA_CHUNK_STATE ? g->chunk_state_slices : g->small_state_slices;
    const double blocks = (double)(task->sequences * slices * g->column_blocks * segments);
    /* segments are whole chunks */
    const double longest =
        task->chunks ? (double)(divide_up(task->chunks, segments) * segments) / (double)task->chunks : 1;
    const fpa_cuda_launch_load load = {
        .all = walk_sum(task, kernel),
        .share = longest * cuda_share(blocks, task->room->multiprocessors, task->room->occupancy[kernel]),
        .warps = launch_warps(task, kernel, blocks),
        .warpgroups = g->work[kernel].warpgroups,
        .trips = handover_trips(task, kernel, blocks, segments)};
    return cuda_seconds(gpu_of(task), &load);
}

/* ---- chunk_output ---- */

/* Tiles of 64 keys with which a query has scores: those of its own chunk, half of them if the head is causal; and those in a window
 * before the chunk. None if queries read only the state. */
static double own_keys(const cuda_task *task)
{
    if (task->summed)
        return 0;
    const double chunk = fmin((double)task->chunk, (double)(round_up(task->size->length, 64)));
    return !task->geometry->unmasked ? ((chunk + 64) / 2 + task->geometry->window) / 64 : chunk / 64;
}

/* NAME_parallel_output if it exists and no query reads a state. */
static cuda_kernel output_kernel(const cuda_task *task)
{
    const bool reads = task->chunks > 1 || task->size->state_in || task->size->sequences;
    return has(task, CUDA_PARALLEL_OUTPUT) && !reads ? CUDA_PARALLEL_OUTPUT : CUDA_CHUNK_OUTPUT;
}

fpa_cuda_sum output_sum(const cuda_task *task)
{
    const struct fpa_cuda_kernel_work *work = &task->geometry->work[output_kernel(task)];
    const double tokens = (double)task->queries * (double)task->size->length,
                 length = (double)task->size->length;
    const double first =
        task->size->state_in || task->summed ? 0 : fmin((double)task->chunk / fmax(length, 1), 1);
    const double read = task->summed ? 1 : (double)task->chunks * (1 - first);
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &work->step, tokens / 16);
    cuda_sum_add(&sum, &work->copy, tokens * (1 - first) / 16);
    cuda_sum_add(&sum, &work->keys, tokens * own_keys(task) / 16);
    if (task->chunks > 1 || task->size->state_in)
        sum.awaited += tokens * own_keys(task) / 16 * task->geometry->awaited_keys;
    cuda_sum_add(&sum, &work->keys,
                 (double)(task->queries * tail_tokens(task)) * (double)task->chunk / 64 / 16);
    /* each copy is read once for its chunk */
    sum.copies += (double)task->queries * read * task->geometry->work[CUDA_CHUNK_STATE].copy.bytes;
    return sum;
}

fpa_cost output_cost(const cuda_task *task)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const cuda_kernel kernel = output_kernel(task);
    const int64_t items = kernel == CUDA_PARALLEL_OUTPUT
                              ? divide_up(task->size->length, g->parallel_tokens)
                              : divide_up(task->size->length, g->query_tokens) * g->column_blocks;
    const double blocks = (double)(task->queries * items);
    const fpa_cuda_launch_load load = {
        .all = output_sum(task),
        .share = cuda_share(blocks, task->room->multiprocessors, task->room->occupancy[kernel]),
        .warps = launch_warps(task, kernel, blocks),
        .warpgroups = g->work[kernel].warpgroups,
        .trips = g->work[kernel].trips};
    return blocks > 0 ? cuda_seconds(gpu_of(task), &load) : (fpa_cost){0, "nothing to do"};
}

/* ---- before and after ---- */

/* The cost of a kernel with so many blocks that they fill the GPU evenly. */
static fpa_cost even_cost(const cuda_task *task, cuda_kernel kernel, const fpa_cuda_sum *sum)
{
    const fpa_cuda_launch_load load = {.all = *sum,
                                       .share = 1.0 / task->room->multiprocessors,
                                       .warps = launch_warps(task, kernel, INFINITY),
                                       .trips = task->geometry->work[kernel].trips};
    return cuda_seconds(gpu_of(task), &load);
}

static fpa_cost gates_cost(const cuda_task *task)
{
    const struct fpa_cuda_kernel_work *work = &task->geometry->work[CUDA_GATE_SCAN];
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &work->step, (double)task->sequences * (double)task->size->length / 16);
    cuda_sum_add(&sum, &work->copy, (double)(task->sequences * task->chunks));
    return even_cost(task, CUDA_GATE_SCAN, &sum);
}

static fpa_cost pack_cost(const cuda_task *task)
{
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &task->geometry->work[CUDA_PACK_ROWS].step,
                 (double)(task->sequences + task->queries) * (double)task->size->length / 16);
    return even_cost(task, CUDA_PACK_ROWS, &sum);
}

static fpa_cost pad_cost(const cuda_task *task, cuda_padding padding)
{
    const struct fpa_cuda_kernel_work *work = &task->geometry->work[CUDA_PAD_ROWS];
    const double length = (double)task->size->length / 16;
    fpa_cuda_sum sum = {0};
    if (padding.value)
        cuda_sum_add(&sum, &work->step, (double)(cuda_key_tokens(task->size) * task->size->heads) / 16);
    if (padding.vector)
        cuda_sum_add(&sum, &work->copy, (double)(task->sequences + task->queries) * length);
    return even_cost(task, CUDA_PAD_ROWS, &sum);
}

/* The cost of coordinates. A block's warpgroups each have tiles of their own, and blocks share a tile's rows if there are few. */
static fpa_cost lift_cost(const cuda_task *task)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const struct fpa_cuda_kernel_work *work = &g->work[CUDA_LIFT_ROWS];
    const int64_t tiles = cuda_lift_tiles(g, task->size);
    const double blocks = (double)(tiles * cuda_lift_slices(g, task->room, task->size));
    const int together = work->warpgroups ? g->kernel[CUDA_LIFT_ROWS].threads / 128 : 1;
    fpa_cuda_launch_load load = {.share =
                                     cuda_share(blocks, task->room->multiprocessors,
                                                (double)together * task->room->occupancy[CUDA_LIFT_ROWS]),
                                 .warps = launch_warps(task, CUDA_LIFT_ROWS, blocks),
                                 .warpgroups = work->warpgroups,
                                 .trips = work->trips};
    cuda_sum_add(&load.all, &work->step, (double)(tiles * g->lift_tokens) / 16);
    return blocks > 0 ? cuda_seconds(gpu_of(task), &load) : (fpa_cost){0, "nothing to do"};
}

/* Whether the mechanism is of the recurrent form, which has no other launches before it. */
static bool decodes(cuda_mechanism mechanism)
{
    return mechanism >= MECHANISM_DECODE;
}

fpa_cost before_cost(const cuda_task *task, cuda_mechanism mechanism)
{
    cuda_padding padding = cuda_padding_of(task->geometry, mechanism);
    fpa_cost cost = {0, "nothing to do"};
    if (has(task, CUDA_LIFT_ROWS) && !cuda_maps_in_place(task->geometry, mechanism))
        cost = cost_then(cost, lift_cost(task));
    if (cuda_leans_values(task->geometry, task->size, mechanism))
        padding.value = 0;
    if (padding.vector || padding.value)
        cost = cost_then(cost, pad_cost(task, padding));
    if (has(task, CUDA_GATE_SCAN) && mechanism != MECHANISM_CLUSTER_SCAN && !decodes(mechanism))
        cost = cost_then(cost, gates_cost(task));
    if (cuda_packs_rows(task->geometry, mechanism))
        cost = cost_then(cost, pack_cost(task));
    return cost;
}

fpa_cost copies_cost(const cuda_task *task)
{
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &task->geometry->work[CUDA_SEGMENT_SCAN].copy,
                 (double)(task->sequences * (task->summed ? 1 : task->chunks)));
    return even_cost(task, CUDA_SEGMENT_SCAN, &sum);
}

/* The cost of a segment scan: copies of all segments but the first are updated with the totals of all segments before their own, which
 * are read from the second-level cache. */
fpa_cost scan_cost(const cuda_task *task, fpa_cost copies, int64_t segments)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const double later = task->summed ? 1 : (double)(segments - 1) / (double)segments; /* copies */
    const double total = (double)g->features * g->columns * (double)sizeof(float);
    const double totals = 0.5 * (double)(task->sequences * segments * (segments - 1)) * total;
    return (fpa_cost){later * copies.seconds + GPU_LAUNCH + totals / gpu_of(task)->cache, copies.limit};
}

fpa_cost pass_cost(const cuda_task *task, const fpa_pass *pass)
{
    const int multiprocessors = task->room->multiprocessors, resident = task->room->occupancy[pass->kernel];
    fpa_cuda_launch_load load = {.share = pass->longest * cuda_share(pass->blocks, multiprocessors, resident),
                                 .warps = launch_warps(task, pass->kernel, pass->blocks),
                                 .warpgroups = pass->work->warpgroups,
                                 .trips = pass->work->trips};
    cuda_sum_add(&load.all, &pass->work->step,
                 pass->sequences * (double)task->size->length * pass->tokens / 16);
    return cuda_seconds(gpu_of(task), &load);
}

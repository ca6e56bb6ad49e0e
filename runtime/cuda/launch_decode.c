/* launch_decode: how many blocks share a head in the recurrent form, its workspace, its launches. */
#include "launch_decode.h"
#include "base/round.h"
#include "grid.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { ALIGNMENT = 256 };

/* ---- slices ---- */

/* What a block takes, in the time in which a multiprocessor's share of the memory's bandwidth moves one round
 * of a block: 16 bytes a thread, read and written. Measured on an H200, where that is 0.26 us. */
typedef struct block_cost {
    double start; /* from its beginning to its end, when it has no rows */
    double own;   /* a round, when it has the multiprocessor for itself and waits for memory */
    double turn;  /* what is left unused from one block to the next, when another one is there */
} block_cost;

static const block_cost step_cost = {10, 1, 1.5};
static const block_cost decode_recent_cost = {60, 0.25, 24}; /* rounds are only read; recent tokens */

static const double joined_parts = 2, /* parts of o, added up by a cluster */
    gathered_parts = 8;               /* or by a launch of their own */

/* Blocks of a head add their parts up themselves: only where each has a multiprocessor for itself, because
 * clusters wait for room for all of their blocks. */
static bool joins(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, int64_t slices)
{
    return slices > 1 && slices <= cuda->decode_cluster && launch->length <= 1 &&
           launch->batch * launch->heads * slices <= cuda->multiprocessors;
}

/* Blocks on a multiprocessor share its bandwidth; one by itself waits for memory. Where they come in
 * several waves, the last one is half full. */
static double cost_of(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, double rounds,
                      int64_t slices)
{
    const double blocks = (double)(launch->batch * launch->heads * slices) / cuda->multiprocessors;
    const int resident = launch->recent ? cuda->occupancy[CUDA_DECODE_RECENT] : cuda->occupancy[CUDA_DECODE];
    const double busy = blocks < resident ? ceil(blocks) : resident;
    const double mine = rounds / (double)slices;
    const block_cost *cost = launch->recent ? &decode_recent_cost : &step_cost;
    const double life = fmax(cost->start + cost->own * mine, busy > 1 ? busy * mine + cost->turn : 0);
    const double parts = slices == 1 ? 0 : joins(cuda, launch, slices) ? joined_parts : gathered_parts;
    return (blocks > busy ? blocks / busy + 0.5 : 1) * life + parts;
}

/* Units of features, decode_features each, that blocks can have of a head. */
static int64_t count_units(const struct fpa_cuda_geometry *g)
{
    return divide_up(g->features, g->decode_features);
}

/* The next number of blocks that gives each fewer units. */
static int64_t more_slices(int64_t units, int64_t slices)
{
    return divide_up(units, divide_up(units, slices) - 1);
}

int64_t decode_resident_shared(const struct fpa_cuda_geometry *g, int64_t slices)
{
    const int64_t share = divide_up(count_units(g), slices) * g->decode_features;
    const int64_t bytes = g->kernel[CUDA_DECODE_RESIDENT].bytes + share * g->decode_resident_row;
    return bytes > g->decode_resident_least ? bytes : g->decode_resident_least;
}

/* The most blocks of a head that can be a cluster, with a multiprocessor each, where each can hold its rows
 * of the state and none waits for another; 0: they cannot. Two such blocks have to fit on a multiprocessor:
 * else the next launch's would wait for the end of this one's. */
static int64_t holding_slices(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t units = count_units(g), heads = launch->batch * launch->heads;
    int64_t best = 0, slices = 1;
    if (!g->kernel[CUDA_DECODE_RESIDENT].bytes || launch->length > 1 || launch->recent ||
        cuda->schedule != SCHEDULE_BY_SIZE)
        return 0;
    while (slices <= cuda->decode_cluster && heads * slices <= cuda->multiprocessors) {
        if (heads <= cuda->decode_resident_clusters[slices] &&
            2 * decode_resident_shared(g, slices) <= cuda->shared_memory)
            best = slices;
        if (slices >= units)
            break;
        slices = more_slices(units, slices);
    }
    return best;
}

/* Whether the copy engine can fetch all heads' states. */
static bool is_aligned(const void *state, const int64_t stride[2], int element)
{
    return ((uintptr_t)state | (uintptr_t)(stride[0] * element) | (uintptr_t)(stride[1] * element)) % 16 == 0;
}

/* NAME_decode_resident instead of NAME_decode. */
static bool holds(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch)
{
    const int element = cuda->geometry.state_element;
    return launch->length == 1 && holding_slices(cuda, launch) > 0 &&
           is_aligned(launch->state_in, launch->state_in_stride, element) &&
           is_aligned(launch->state_out, launch->state_out_stride, element);
}

/* Blocks that share a head's features. */
static int64_t choose_slices(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t units = count_units(g), holding = holding_slices(cuda, launch);
    const double rounds =
        (double)g->state_elements * g->state_element / (16.0 * g->kernel[CUDA_DECODE].threads);
    int64_t best = 1, slices = 1;
    if (holding)
        return holding;
    while (slices < units && cuda->schedule == SCHEDULE_BY_SIZE) {
        slices = more_slices(units, slices);
        if (cost_of(cuda, launch, rounds, slices) < cost_of(cuda, launch, rounds, best))
            best = slices;
    }
    return best;
}

/* ---- workspace ---- */

/* Sizes and parts of the workspace in call; returns its bytes. */
static size_t find_parts(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, char *base,
                         struct fpa_cuda_call *call)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t outputs = launch->batch * launch->query_heads * launch->length;
    const int64_t state = divide_up(g->state_elements, 4) * 4; /* rows stay aligned from head to head */
    size_t partial = 0, running = 0;
    call->slices = choose_slices(cuda, launch);
    call->share = divide_up(count_units(g), call->slices) * g->decode_features;
    call->group = launch->heads ? launch->query_heads / launch->heads : 0;
    call->joined = joins(cuda, launch, call->slices);
    if (call->slices > 1 && !call->joined) /* a part of o is no wider than a row of the copies of the state */
        partial = sizeof(float) * (size_t)(outputs * call->slices) * (size_t)g->columns;
    if (launch->length > 1)
        running = sizeof(float) * (size_t)(launch->batch * launch->heads) * (size_t)state;
    partial = (partial + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (base) {
        call->partial = (float *)(void *)base;
        call->running = (float *)(void *)(base + partial);
    }
    return partial + running;
}

size_t decode_workspace(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch)
{
    struct fpa_cuda_call call;
    return find_parts(cuda, launch, NULL, &call);
}

/* ---- launches ---- */

/* The kernels count heads and rows of o with 32 bits; said before the first of them runs. */
static fpa_status check_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              int64_t outputs, fpa_error *error)
{
    if (launch->batch <= INT_MAX && launch->query_heads <= INT_MAX && launch->heads <= INT_MAX &&
        outputs <= INT_MAX)
        return FPA_OK;
    return fail(
        error, FPA_UNSUPPORTED, cuda->name,
        "the recurrent form computes at most %d rows of o in a call on a GPU: split the batch, or use "
        "the chunked form",
        INT_MAX);
}

fpa_status decode_forward(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                          CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t heads = launch->batch * launch->heads;
    const int64_t outputs = launch->batch * launch->query_heads * launch->length;
    struct fpa_cuda_call call;
    memset(&call, 0, sizeof call);
    fpa_status status = check_sizes(cuda, launch, outputs, error);
    if (status || heads == 0 || (launch->length == 0 && !launch->state_out))
        return status;
    cuda_fill_call(launch, &call);
    find_parts(cuda, launch, launch->workspace, &call);
    const bool held = holds(cuda, launch);
    const fpa_cuda_grid decode = {launch->recent ? CUDA_DECODE_RECENT
                                  : held         ? CUDA_DECODE_RESIDENT
                                                 : CUDA_DECODE,
                                  heads * call.slices, NULL,
                                  held ? decode_resident_shared(g, call.slices) : 0};
    const fpa_cuda_grid reduction = {CUDA_SPLIT_REDUCTION, outputs, NULL, 0};
    status =
        cuda_launch_next(cuda, &decode, call.joined ? (int)call.slices : 1, launch, &call, stream, error);
    if (!status && call.slices > 1 && !call.joined && outputs > 0)
        status = cuda_launch_next(cuda, &reduction, 1, launch, &call, stream, error);
    return status;
}

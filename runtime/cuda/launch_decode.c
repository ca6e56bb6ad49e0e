/* launch_decode: the recurrent form's workspace and launches. */
#include "launch_decode.h"
#include "base/round.h"
#include "grid.h"
#include "launch_pads.h"
#include "machine/cuda_candidates.h"
#include "machine/cuda_slices.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { ALIGNMENT = 256 };

/* Whether the copy engine can fetch all heads' states. */
static bool is_aligned(const void *state, const int64_t stride[2], int element)
{
    return ((uintptr_t)state | (uintptr_t)(stride[0] * element) | (uintptr_t)(stride[1] * element)) % 16 == 0;
}

/* NAME_decode_resident, or NAME_decode in its place where threads have to fetch the states. */
static bool holds(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                  const fpa_candidate *candidate)
{
    const int element = cuda->geometry.state_element;
    return launch->length == 1 && cuda_mechanism_of(candidate) == MECHANISM_DECODE_RESIDENT &&
           is_aligned(launch->state_in, launch->state_in_stride, element) &&
           is_aligned(launch->state_out, launch->state_out_stride, element);
}

/* ---- workspace ---- */

static size_t aligned_bytes(int64_t count, size_t size)
{
    return ((size_t)count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Coordinates, and values of masked keys, from base on; returns their bytes. */
static size_t find_pads(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const fpa_candidate *candidate, char *base, struct fpa_cuda_call *call)
{
    const cuda_pads pads = count_pads(&cuda->geometry, launch, cuda_mechanism_of(candidate));
    const size_t element = (size_t)cuda->geometry.element, queries = aligned_bytes(pads.queries, element),
                 keys = aligned_bytes(pads.keys, element), values = aligned_bytes(pads.values, element);
    if (base) {
        call->padded_queries = queries ? base : NULL;
        call->padded_keys = keys ? base + queries : NULL;
        call->padded_values = values ? base + queries + keys : NULL;
    }
    return queries + keys + values;
}

/* Sizes and parts of the workspace in call; returns its bytes. */
static size_t find_parts(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                         const fpa_candidate *candidate, char *base, struct fpa_cuda_call *call)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t outputs = cuda_batch(launch) * launch->query_heads * cuda_tokens(launch);
    const int64_t state = divide_up(g->state_elements, 4) * 4; /* rows stay aligned from head to head */
    const fpa_call_size size = call_size(FORM_RECURRENT, launch);
    size_t partial = 0, running = 0;
    call->slices = candidate->segments;
    call->share = cuda_slice_features(g, call->slices);
    call->group = launch->heads ? launch->query_heads / launch->heads : 0;
    call->joined = !g->window && cuda_joins(&cuda->room, &size, call->slices);
    if ((call->slices > 1 || g->window) &&
        !call->joined) /* a part of o is no wider than a row of the copies of the state */
        partial = sizeof(float) * (size_t)(outputs * call->slices) * (size_t)g->columns;
    if (launch->length > 1 || (g->window && launch->recent >= g->window))
        running = sizeof(float) * (size_t)(launch->batch * launch->heads) * (size_t)state;
    partial = aligned_bytes(1, partial);
    running = aligned_bytes(1, running);
    if (base) {
        call->partial = (float *)(void *)base;
        call->running = (float *)(void *)(base + partial);
    }
    return partial + running +
           find_pads(cuda, launch, candidate, base ? base + partial + running : NULL, call);
}

size_t decode_workspace(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const fpa_candidate *candidate)
{
    struct fpa_cuda_call call;
    return find_parts(cuda, launch, candidate, NULL, &call);
}

/* ---- launches ---- */

/* The kernels count heads and rows of o with 32 bits; said before the first of them runs. */
static fpa_status check_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              int64_t outputs, fpa_error *error)
{
    const int64_t keys =
        cuda_tokens(launch) + cuda_recent(launch); /* where packed, their offsets are 32 bits, too */
    if (launch->batch <= INT_MAX && launch->query_heads <= INT_MAX && launch->heads <= INT_MAX &&
        outputs <= INT_MAX && keys <= INT_MAX)
        return FPA_OK;
    return fail(
        error, FPA_UNSUPPORTED, cuda->name,
        "the recurrent form computes at most %d rows of o in a call on a GPU: split the batch, or use "
        "the chunked form",
        INT_MAX);
}

fpa_status decode_forward(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                          const fpa_candidate *candidate, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t heads = launch->batch * launch->heads;
    const int64_t outputs = cuda_batch(launch) * launch->query_heads * cuda_tokens(launch);
    struct fpa_cuda_call call;
    memset(&call, 0, sizeof call);
    fpa_status status = check_sizes(cuda, launch, outputs, error);
    if (status || heads == 0 || (launch->length == 0 && !launch->state_out))
        return status;
    cuda_fill_call(launch, &call);
    find_parts(cuda, launch, candidate, launch->workspace, &call);
    status = launch_pads(cuda, launch, &call, false, stream, error);
    if (status)
        return status;
    const bool held = holds(cuda, launch, candidate);
    const fpa_cuda_grid decode = {launch->recent && !g->window ? CUDA_DECODE_RECENT
                                  : held                       ? CUDA_DECODE_RESIDENT
                                                               : CUDA_DECODE,
                                  heads * call.slices, NULL, held ? cuda_resident_bytes(g, call.slices) : 0};
    const fpa_cuda_grid reduction = {g->window ? CUDA_DECODE_WINDOW : CUDA_SPLIT_REDUCTION, outputs, NULL, 0};
    status =
        cuda_launch_next(cuda, &decode, call.joined ? (int)call.slices : 1, launch, &call, stream, error);
    if (!status && (call.slices > 1 || g->window) && !call.joined && outputs > 0)
        status = cuda_launch_next(cuda, &reduction, 1, launch, &call, stream, error);
    return status;
}

/* launch_decode: the recurrent form's workspace and launches. */
#include "launch_decode.h"
#include "base/round.h"
#include "launch_pads.h"
#include "machine/cuda_candidates.h"
#include "machine/cuda_slices.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Whether the copy engine can fetch all heads' states. */
static bool is_aligned(const void *state, const int64_t stride[2], int element)
{
    return ((uintptr_t)state | (uintptr_t)(stride[0] * element) | (uintptr_t)(stride[1] * element)) % 16 == 0;
}

/* Whether NAME_decode_resident can be launched; NAME_decode replaces it if states are not aligned, so that threads must fetch them. */
static bool holds(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                  const fpa_candidate *candidate)
{
    const int element = cuda->geometry.state_element;
    return launch->length == 1 && cuda_mechanism_of(candidate) == MECHANISM_DECODE_RESIDENT &&
           is_aligned(launch->state_in, launch->state_in_stride, element) &&
           is_aligned(launch->state_out, launch->state_out_stride, element);
}

/* ---- workspace ---- */

/* Sets sizes and parts of the workspace in call; returns its bytes. */
static size_t find_parts(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                         const fpa_candidate *candidate, char *base, struct fpa_cuda_call *call)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t outputs = cuda_batch(launch) * launch->query_heads * cuda_tokens(launch);
    const int64_t state = divide_up(g->state_elements, 4) * 4; /* rows stay aligned from head to head */
    const fpa_call_size size = call_size(FORM_RECURRENT, launch);
    const cuda_pads pads = count_pads(g, launch, cuda_mechanism_of(candidate));
    size_t bytes = 0;
    call->slices = candidate->segments;
    call->share = cuda_slice_features(g, call->slices);
    call->group = launch->heads ? launch->query_heads / launch->heads : 0;
    call->joined = !g->window && cuda_joins(&cuda->room, &size, call->slices);
    const bool parted = (call->slices > 1 || g->window) && !call->joined;
    const bool runs = launch->length > 1 || (g->window && launch->recent >= g->window);
    /* a part of o is no wider than a row of the copies of the state */
    call->partial = cuda_take(base, &bytes, parted ? outputs * call->slices * g->columns : 0, sizeof(float));
    call->running = cuda_take(base, &bytes, runs ? launch->batch * launch->heads * state : 0, sizeof(float));
    call->padded_queries = cuda_take(base, &bytes, pads.queries, (size_t)g->element);
    call->padded_keys = cuda_take(base, &bytes, pads.keys, (size_t)g->element);
    call->padded_values = cuda_take(base, &bytes, pads.values, (size_t)g->element);
    return bytes;
}

size_t decode_workspace(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const fpa_candidate *candidate)
{
    struct fpa_cuda_call call;
    return find_parts(cuda, launch, candidate, NULL, &call);
}

/* ---- launches ---- */

/* Kernels count heads and rows of o in 32 bits; checked before the first of them runs. */
static void check_sizes(cuda_queue *q, const struct fpa_cuda_call *call, int64_t outputs)
{
    const struct fpa_launch *launch = q->launch;
    const int64_t keys = call->length + call->recent; /* in packed batches their offsets have 32 bits, too */
    if (!q->status && (launch->batch > INT_MAX || launch->query_heads > INT_MAX || launch->heads > INT_MAX ||
                       outputs > INT_MAX || keys > INT_MAX))
        q->status = fail(
            q->error, FPA_UNSUPPORTED, q->cuda->name,
            "the recurrent form computes at most %d rows of o in a call on a GPU: split the batch, or use "
            "the chunked form",
            INT_MAX);
}

void decode_forward(cuda_queue *q, const fpa_candidate *candidate)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const struct fpa_launch *launch = q->launch;
    const int64_t heads = launch->batch * launch->heads;
    struct fpa_cuda_call call;
    memset(&call, 0, sizeof call);
    cuda_fill_call(launch, &call);
    const int64_t outputs = call.batch * call.query_heads * call.length;
    cuda_check_workspace(q, find_parts(q->cuda, launch, candidate, launch->workspace, &call));
    check_sizes(q, &call, outputs);
    if (q->status || heads == 0 || (launch->length == 0 && !launch->state_out))
        return;
    launch_pads(q, &call, false);
    const bool held = holds(q->cuda, launch, candidate), joined = call.joined;
    const cuda_grid decode = {.kernel = launch->recent && !g->window ? CUDA_DECODE_RECENT
                                        : held                       ? CUDA_DECODE_RESIDENT
                                                                     : CUDA_DECODE,
                              .blocks = heads * call.slices,
                              .cluster = joined ? (int)call.slices : 1,
                              .next = true,
                              .bytes = held ? cuda_resident_bytes(g, call.slices) : 0};
    const cuda_grid reduction = {
        .kernel = g->window ? CUDA_DECODE_WINDOW : CUDA_SPLIT_REDUCTION, .blocks = outputs, .next = true};
    cuda_launch_grid(q, &decode, &call);
    if ((call.slices > 1 || g->window) && !joined)
        cuda_launch_grid(q, &reduction, &call);
}

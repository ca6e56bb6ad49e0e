/* Seconds of the recurrent form: one pass over the state. */
#include <math.h>

#include "cuda_cost.h"
#include "cuda_estimate.h"
#include "cuda_launches.h"
#include "cuda_slices.h"

/* What is left unused of a multiprocessor's bandwidth from one block to the next, when another one is there: loads of
 * the next one wait for its features, a part of its round trips (docs/decisions/0017-decode.md: 0.4 of 2.6 us). */
static const double BETWEEN = 0.15;

/* Keys in windows are read from memory, or their rows wait for each other. */
static double window_seconds(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                             const fpa_call_size *size)
{
    const struct fpa_cuda_kernel_work *work = &g->work[CUDA_DECODE_WINDOW];
    return work->trips * GPU_TRIP +
           (double)(size->batch * size->query_heads) * work->copy.bytes / room->gpu->memory;
}

/* Parts of o are added up by the cluster's blocks, or by a launch of their own, which beside a window there is always. */
static double parts_seconds(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                            const fpa_call_size *size, int64_t slices)
{
    if (g->window)
        return GPU_LAUNCH + window_seconds(g, room, size);
    return slices == 1 ? 0 : cuda_joins(room, size, slices) ? 4 * GPU_HANDOVER : GPU_LAUNCH;
}

/* Blocks that are one cluster ask for their rows while the call before streams its own (templates/cuda/decode.cu.in:
 * step_bring_near). What the second-level cache does not keep so long is read twice. */
static double again_seconds(const fpa_gpu_room *room, const fpa_call_size *size,
                            const struct fpa_cuda_kernel_work *work)
{
    const double rows = (double)(size->batch * size->heads) * work->copy.bytes / 2;
    return fmax(0, rows - GPU_KEPT * room->gpu->cache_size) / room->gpu->memory;
}

/* Coordinates, and values of masked keys, are made first. */
static fpa_cost behind_others(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                              const fpa_call_size *size, const fpa_candidate *candidate, fpa_cost cost)
{
    const cuda_task task = cuda_task_of(g, room, size);
    const fpa_cost before = before_cost(&task, cuda_mechanism_of(candidate));
    return before.seconds > 0 ? cost_then(before, cost) : cost;
}

/* Blocks on a multiprocessor share its part of the memory's bandwidth: for their rows of the state, and for matrices, which
 * each of them reads from the second-level cache. Those that are there at a time begin together, and wait for the first
 * bytes together. Where they come in several waves, later ones wait while others stream; the last wave is half full. */
fpa_cost cuda_estimate_decode(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                              const fpa_call_size *size, const fpa_candidate *candidate)
{
    const cuda_kernel kernel = size->recent && !g->window ? CUDA_DECODE_RECENT : CUDA_DECODE;
    const struct fpa_cuda_kernel_work *work = &g->work[kernel];
    const double blocks = (double)(size->batch * size->heads * candidate->segments) / room->multiprocessors;
    const double resident = room->occupancy[kernel], busy = blocks < resident ? ceil(blocks) : resident;
    const double bandwidth = room->gpu->memory / room->multiprocessors;
    const double mine =
        ((double)work->copy.bytes / (double)candidate->segments + work->step.bytes) / bandwidth;
    const double start = work->trips * GPU_TRIP;
    const double alone = start + mine, shared = busy > 1 ? busy * mine + BETWEEN * start : 0;
    const double wave = fmax(alone, shared);
    const double pass = blocks <= busy ? start + busy * mine : blocks / busy * wave + fmax(wave / 2, start);
    const double again =
        !g->window && cuda_joins(room, size, candidate->segments) ? again_seconds(room, size, work) : 0;
    const double step = pass + again + parts_seconds(g, room, size, candidate->segments);
    const fpa_cost cost = {step * (double)(size->length > 1 ? size->length : 1),
                           shared > alone || mine > start ? "device memory" : "round trips to memory"};
    return behind_others(g, room, size, candidate, cost);
}

/* The copy engine asks for all of a block's rows at once, so that few blocks have the whole memory's rate, while threads
 * form the features: the longer of the two is waited for. Then the rows are only written back. */
fpa_cost cuda_estimate_decode_resident(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                                       const fpa_call_size *size, const fpa_candidate *candidate)
{
    const struct fpa_cuda_kernel_work *work = &g->work[CUDA_DECODE_RESIDENT];
    const double bytes = (double)(size->batch * size->heads) * work->copy.bytes;
    const double one_way = bytes / 2 / room->gpu->memory, start = work->trips * GPU_TRIP;
    const double again = again_seconds(room, size, work);
    const fpa_cost cost = {start + 2 * one_way + again + parts_seconds(g, room, size, candidate->segments),
                           2 * one_way > start ? "device memory" : "round trips to memory"};
    return behind_others(g, room, size, candidate, cost);
}

/* cuda_estimate_decode: seconds of the recurrent form, which is one pass over the state. */
#include <math.h>

#include "cuda_cost.h"
#include "cuda_estimate.h"
#include "cuda_launches.h"
#include "cuda_slices.h"

/* Share of a block's round trips in which a multiprocessor's bandwidth is unused although another block is there: its loads wait for its
 * features (docs/decisions/0017-decode.md: 0.4 of 2.6 us). */
static const double BETWEEN = 0.15;

/* Seconds for keys in windows: reading them from memory, and waiting for their rows. */
static double window_seconds(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                             const fpa_call_size *size)
{
    const struct fpa_cuda_kernel_work *work = &g->work[CUDA_DECODE_WINDOW];
    return work->trips * GPU_TRIP +
           (double)(size->batch * size->query_heads) * work->copy.bytes / room->gpu->memory;
}

/* Seconds for adding up parts of o: by the blocks of a cluster, or by another launch, which windows always need. */
static double parts_seconds(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                            const fpa_call_size *size, int64_t slices)
{
    if (g->window)
        return GPU_LAUNCH + window_seconds(g, room, size);
    return slices == 1 ? 0 : cuda_joins(room, size, slices) ? 4 * GPU_HANDOVER : GPU_LAUNCH;
}

/* Seconds for reading rows again: blocks of a cluster prefetch their rows while the call before streams its own
 * (templates/cuda/decode.cu.in: step_bring_near), and the second-level cache keeps only a part of them so long. */
static double again_seconds(const fpa_gpu_room *room, const fpa_call_size *size,
                            const struct fpa_cuda_kernel_work *work)
{
    const double rows = (double)(size->batch * size->heads) * work->copy.bytes / 2;
    return fmax(0, rows - GPU_KEPT * room->gpu->cache_size) / room->gpu->memory;
}

/* The share by which rows take longer that are not multiples of 16 bytes: warps request parts of lines, which is slower the further the
 * blocks' rows lie apart. Measured for states that are updated, by several waves of blocks. */
static double apart_share(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room, cuda_kernel kernel,
                          int64_t slices)
{
    const double blocks = (double)room->occupancy[kernel] * room->multiprocessors;
    const double rows = blocks * g->work[kernel].copy.bytes / 2 / (double)slices;
    const bool leans = g->decode_resident_row % 16 != 0;
    return leans && kernel == CUDA_DECODE && rows > room->gpu->cache_size
               ? GPU_APART * (1 - room->gpu->cache_size / rows)
               : 0;
}

/* Adds the launches for coordinates, and for values of masked keys, which come before. */
static fpa_cost behind_others(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                              const fpa_call_size *size, const fpa_candidate *candidate, fpa_cost cost)
{
    const cuda_task task = cuda_task_of(g, room, size);
    const fpa_cost before = before_cost(&task, cuda_mechanism_of(candidate));
    return before.seconds > 0 ? cost_then(before, cost) : cost;
}

/* Blocks on a multiprocessor share its part of the memory's bandwidth: for their rows of the state, and for matrices, which each reads
 * from the second-level cache. Blocks that run at a time begin together and wait together for the first bytes. If there are several
 * waves, blocks of later ones wait while others stream; the last wave is half full on average. */
fpa_cost cuda_estimate_decode(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                              const fpa_call_size *size, const fpa_candidate *candidate)
{
    const cuda_kernel kernel = size->recent && !g->window ? CUDA_DECODE_RECENT : CUDA_DECODE;
    const struct fpa_cuda_kernel_work *work = &g->work[kernel];
    const double blocks = (double)(size->batch * size->heads * candidate->segments) / room->multiprocessors;
    const double resident = room->occupancy[kernel], busy = blocks < resident ? ceil(blocks) : resident;
    const double bandwidth = room->gpu->memory / room->multiprocessors;
    const double apart = blocks > busy ? apart_share(g, room, kernel, candidate->segments) : 0;
    const double rows = (1 + apart) * (double)work->copy.bytes / (double)candidate->segments;
    const double mine = (rows + work->step.bytes) / bandwidth;
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

/* The copy engine requests all of a block's rows at once, so that few blocks reach the whole memory bandwidth, while threads compute the
 * features: the longer of the two counts. After that rows only have to be written back. */
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

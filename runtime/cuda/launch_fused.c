#include "launch_fused.h"

/* Shares of a walk with queries, of what a walk without them takes and of adding up a segment's totals:
 * estimates. */
static const double TOTAL = 0.4, ADD = 0.002;

/* A first segment's share of the sequence. Of two that run at once the first has no totals to wait for, and
 * may take as long as its totals and the other's walk do: first = TOTAL first + 1 - first. Of more, all
 * others wait for its totals: three gained nothing. */
static double first_share(int64_t segments, bool at_once)
{
    return at_once && segments == 2 ? 1 / (2 - TOTAL) : 1 / (double)segments;
}

/* A longer first segment, or whole waves of equal ones behind waves that walk all but the last for totals.
 * Adding up the totals of the segments before takes each segment its time. */
static double fused_cost(int64_t room, int64_t blocks, int64_t walks, int64_t segments)
{
    const double equal = 1 / (double)segments, first = first_share(segments, blocks * segments <= room);
    const double waves =
        (double)divide_up(blocks * segments, room) + TOTAL * (double)divide_up(walks * (segments - 1), room);
    return (first > equal ? first : waves * equal) + ADD * (double)(segments - 1);
}

void fused_divide(const struct fpa_cuda_module *cuda, int64_t blocks, int64_t walks,
                  struct fpa_cuda_call *call)
{
    const int64_t room = (int64_t)cuda->multiprocessors * cuda->occupancy[CUDA_FUSED_CHUNK],
                  chunks = call->chunks;
    int64_t segments = 1;
    for (int64_t i = 2; i <= chunks && i <= MOST_SEGMENTS && cuda->schedule == SCHEDULE_BY_SIZE; i++)
        if (fused_cost(room, blocks, walks, i) < fused_cost(room, blocks, walks, segments))
            segments = i;
    const int64_t longer = (int64_t)(first_share(segments, blocks * segments <= room) * (double)chunks + 0.5);
    const int64_t equal = divide_up(chunks, segments);
    call->first_chunks = longer > equal ? longer : equal;
    const int64_t rest = chunks - call->first_chunks;
    call->segment_chunks = segments > 1 && rest ? divide_up(rest, segments - 1) : 1;
    call->segments = 1 + divide_up(rest, call->segment_chunks);
}

fpa_status fused_totals(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const struct fpa_cuda_call *walk, const struct fpa_cuda_maps *maps, CUstream stream,
                        fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call call = *walk;
    const fpa_cuda_grid totals = {CUDA_FUSED_CHUNK,
                                  launch->batch * launch->heads * call.segments * g->column_blocks, maps, 0};
    call.totals_only = 1;
    call.query_heads = call.heads;
    return cuda_launch(cuda, &totals, launch, &call, stream, error);
}

/* The second of two segments without tokens. */
fpa_status fused_final(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                       const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, CUstream stream,
                       fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call last = *call;
    const fpa_cuda_grid grid = {CUDA_FUSED_CHUNK, launch->batch * launch->heads * 2 * g->column_blocks, maps,
                                0};
    last.segments = 2;
    last.segment_chunks = last.first_chunks = last.length = 0;
    last.query_heads = last.heads;
    last.totals = call->partial;
    last.partial = NULL;
    last.state_in = NULL;
    return cuda_launch(cuda, &grid, launch, &last, stream, error);
}

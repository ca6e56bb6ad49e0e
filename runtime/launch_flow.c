#include "launch_flow.h"

/* One block a multiprocessor: whole waves of segments, behind waves that walk all but the last for totals.
 * Adding up the totals of the segments before costs each segment `add` of the whole walk. Shares of a
 * walk with queries: estimates. */
int64_t flow_segments(const struct fpa_cuda_module *cuda, int64_t blocks, int64_t walks, int64_t most)
{
    static const double totals = 0.45, add = 0.002;
    const int64_t room = (int64_t)cuda->multiprocessors * cuda->flow_resident;
    double least = 0;
    int64_t best = 1;
    if (cuda->crowded)
        return 1;
    for (int64_t segments = 1; segments <= most && segments <= MOST_SEGMENTS; segments++) {
        const double waves = (double)divide_up(blocks * segments, room) +
                             totals * (double)divide_up(walks * (segments - 1), room);
        const double cost = waves / (double)segments + add * (double)(segments - 1);
        if (segments == 1 || cost < least) {
            least = cost;
            best = segments;
        }
    }
    return best;
}

fpa_status flow_totals(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                       const struct fpa_cuda_call *walk, const struct fpa_cuda_maps *maps, CUstream stream,
                       fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call call = *walk;
    const fpa_cuda_grid totals = {cuda->flow,
                                  "the walk over the keys",
                                  launch->batch * launch->heads * call.segments * g->column_blocks,
                                  g->flow_threads,
                                  g->flow_bytes,
                                  maps};
    call.totals_only = 1;
    call.query_heads = call.heads;
    return cuda_launch(cuda, &totals, launch, &call, stream, error);
}

/* The second of two segments without tokens. */
fpa_status flow_final(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                      const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, CUstream stream,
                      fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call last = *call;
    const fpa_cuda_grid grid = {
        cuda->flow,      "the final state", launch->batch * launch->heads * 2 * g->column_blocks,
        g->flow_threads, g->flow_bytes,     maps};
    last.segments = 2;
    last.segment_chunks = last.length = 0;
    last.query_heads = last.heads;
    last.totals = call->partial;
    last.partial = NULL;
    last.state_in = NULL;
    return cuda_launch(cuda, &grid, launch, &last, stream, error);
}

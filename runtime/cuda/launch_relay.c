#include "launch_relay.h"

#include <math.h>

#include "launch_flow.h"

/* Times are shares of what blocks of NAME_flow take for their sequences while they fill the GPU. Estimates,
 * from an H200: a lone block, and the pass for totals; gates, of which NAME_relay makes less; before a
 * block's first stretch. Of a multiprocessor: a block's own work in NAME_relay, handing on, and what all of
 * them wait for memory. */
static const double LONE = 0.8, TOTALS = 0.5, GATED = 1.33, START = 0.6;
static const double TURN = 0.57, HAND = 0.06, MEMORY = 0.86;

static double waves_of(int64_t blocks, int64_t room)
{
    const double waves = (double)blocks / (double)room;
    return waves > 1 ? (waves + ceil(waves)) / 2 : fmax(waves, LONE); /* blocks of a wave begin one by one */
}

static double flow_time(const struct fpa_cuda_module *cuda, int64_t walks, int64_t segments,
                        int64_t stretches)
{
    const int64_t room = (int64_t)cuda->multiprocessors * cuda->flow_resident;
    const double pass = waves_of(walks * segments, room) / (double)segments;
    const double totals = waves_of(walks * (segments - 1), room) / (double)segments;
    const double start = START / (double)stretches * (double)divide_up(walks * segments, room);
    return (pass + start + (segments > 1 ? TOTALS * totals + start : 0)) * (cuda->geometry.gate ? GATED : 1);
}

/* As many sequences at a time as there is room for clusters. In the last round not all blocks have a turn. */
static double relay_time(const struct fpa_cuda_module *cuda, int64_t walks, int blocks, int64_t stretches)
{
    const int64_t room = cuda->relay_clusters[blocks], active = walks < room ? walks : room;
    const double rounds = (double)(divide_up(stretches, blocks) * blocks) / (double)stretches;
    const double work = fmax(HAND + TURN / blocks, MEMORY * (double)active / cuda->multiprocessors);
    return (double)divide_up(walks, room) * (rounds * work / cuda->flow_resident + START / (double)stretches);
}

/* For verification and the emulation, whose calls are small: blocks go round a few times. */
static int any_cluster(const struct fpa_cuda_module *cuda)
{
    for (int blocks = 3; blocks <= MOST_CLUSTER; blocks++)
        if (cuda->relay_clusters[blocks])
            return blocks;
    return cuda->relay_clusters[2] ? 2 : 0;
}

int relay_choose(const struct fpa_cuda_module *cuda, int64_t walks, int64_t segments, int64_t length)
{
    enum { MOST_WALKS = 65535 }; /* rows of a grid */
    const int64_t stretches = divide_up(length, FPA_CUDA_STRETCH);
    int best = 0;
    if (!cuda->relay || walks > MOST_WALKS || cuda->way == WAY_CROWDED || stretches == 0)
        return 0;
    if (cuda->way == WAY_RELAY)
        return any_cluster(cuda);
    double least = flow_time(cuda, walks, segments, stretches);
    for (int blocks = 2; blocks <= MOST_CLUSTER && blocks <= stretches; blocks++) {
        const double time = cuda->relay_clusters[blocks] ? relay_time(cuda, walks, blocks, stretches) : least;
        if (time < least) {
            least = time;
            best = blocks;
        }
    }
    return best;
}

fpa_status relay_launch(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, int blocks,
                        CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const fpa_cuda_grid relay = {cuda->relay,
                                 "the flow along the sequence",
                                 launch->batch * launch->query_heads * g->column_blocks * blocks,
                                 g->relay_threads,
                                 g->relay_bytes,
                                 maps};
    return cuda_launch_next(cuda, &relay, blocks, launch, call, stream, error);
}

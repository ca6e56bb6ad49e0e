#include "launch_cluster_scan.h"

#include <math.h>

#include "launch_fused.h"

/* Times are shares of what blocks of NAME_fused_chunk take for their sequences while they fill the GPU.
 * Estimates, from an H200: a lone block, and the pass for totals; gates, of which NAME_cluster_scan makes
 * less; before a block's first span. Of a multiprocessor: a block's own work in NAME_cluster_scan, handing
 * on, and what all of them wait for memory. */
static const double LONE = 0.8, TOTALS = 0.5, GATED = 1.33, START = 0.6;
static const double TURN = 0.57, HAND = 0.06, MEMORY = 0.86;

static double waves_of(int64_t blocks, int64_t room)
{
    const double waves = (double)blocks / (double)room;
    return waves > 1 ? (waves + ceil(waves)) / 2 : fmax(waves, LONE); /* blocks of a wave begin one by one */
}

static double fused_time(const struct fpa_cuda_module *cuda, int64_t walks, int64_t segments, int64_t spans)
{
    const int64_t room = (int64_t)cuda->multiprocessors * cuda->occupancy[CUDA_FUSED_CHUNK];
    const double pass = waves_of(walks * segments, room) / (double)segments;
    const double totals = waves_of(walks * (segments - 1), room) / (double)segments;
    const double start = START / (double)spans * (double)divide_up(walks * segments, room);
    return (pass + start + (segments > 1 ? TOTALS * totals + start : 0)) * (cuda->geometry.gate ? GATED : 1);
}

/* As many sequences at a time as there is room for clusters. In the last round not all blocks have a turn. */
static double cluster_scan_time(const struct fpa_cuda_module *cuda, int64_t walks, int blocks, int64_t spans)
{
    const int64_t room = cuda->cluster_counts[blocks], active = walks < room ? walks : room;
    const double rounds = (double)(divide_up(spans, blocks) * blocks) / (double)spans;
    const double work = fmax(HAND + TURN / blocks, MEMORY * (double)active / cuda->multiprocessors);
    return (double)divide_up(walks, room) *
           (rounds * work / cuda->occupancy[CUDA_FUSED_CHUNK] + START / (double)spans);
}

/* For verification and the emulation, whose calls are small: blocks go round a few times. */
static int any_cluster(const struct fpa_cuda_module *cuda)
{
    for (int blocks = 3; blocks <= MOST_CLUSTER; blocks++)
        if (cuda->cluster_counts[blocks])
            return blocks;
    return cuda->cluster_counts[2] ? 2 : 0;
}

int cluster_scan_choose(const struct fpa_cuda_module *cuda, int64_t walks, int64_t segments, int64_t length)
{
    enum { MOST_WALKS = 65535 }; /* rows of a grid */
    const int64_t spans = divide_up(length, FPA_CUDA_SPAN);
    int best = 0;
    if (!cuda->kernel[CUDA_CLUSTER_SCAN] || walks > MOST_WALKS || cuda->schedule == SCHEDULE_CROWDED ||
        spans == 0)
        return 0;
    if (cuda->schedule == SCHEDULE_CLUSTER)
        return any_cluster(cuda);
    double least = fused_time(cuda, walks, segments, spans);
    for (int blocks = 2; blocks <= MOST_CLUSTER && blocks <= spans; blocks++) {
        const double time =
            cuda->cluster_counts[blocks] ? cluster_scan_time(cuda, walks, blocks, spans) : least;
        if (time < least) {
            least = time;
            best = blocks;
        }
    }
    return best;
}

fpa_status cluster_scan_launch(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, int blocks,
                               CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const fpa_cuda_grid grid = {CUDA_CLUSTER_SCAN,
                                launch->batch * launch->query_heads * g->column_blocks * blocks, maps, 0};
    return cuda_launch_next(cuda, &grid, blocks, launch, call, stream, error);
}

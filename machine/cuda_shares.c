/* cuda_shares: relative lengths of segments of fused_chunk, from the counts of its kernels. */
#include "cuda_shares.h"

#include "cuda_cost.h"
#include "cuda_estimate.h"
#include "cuda_launches.h"

double cuda_total_ratio(const cuda_task *task)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const double warps = launch_warps(task, CUDA_FUSED_CHUNK, 1);
    fpa_cuda_sum walk = {0}, totals = {0};
    cuda_sum_add(&walk, &g->work[CUDA_FUSED_CHUNK].step, 1);
    cuda_sum_add(&totals, &g->totals.step, 1);
    const double alone = cuda_clocks(task->room->gpu, &totals, g->totals.warpgroups, warps);
    const double all = cuda_clocks(task->room->gpu, &walk, g->work[CUDA_FUSED_CHUNK].warpgroups, warps);
    return alone < all ? alone / all : 1;
}

/* The first segment's share. It waits for no total of a segment before it, so that with two segments it may take as long as its own total
 * and the other segment: first = ratio first + 1 - first. With more segments all others wait for its total, and a longer first one was no
 * faster with three. Kernels without specialised warpgroups have equal segments. */
double cuda_first_share(const cuda_task *task, int64_t segments)
{
    const int64_t places = (int64_t)task->room->multiprocessors * task->room->occupancy[CUDA_FUSED_CHUNK];
    if (task->geometry->fused_total && segments == 2 && cuda_fused_blocks(task) * segments <= places)
        return 1 / (2 - cuda_total_ratio(task));
    return 1 / (double)segments;
}

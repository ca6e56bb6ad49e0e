#include "cuda_shares.h"

#include "cuda_cost.h"
#include "cuda_estimate.h"
#include "cuda_launches.h"

static double walk_clocks(const cuda_task *task, const struct fpa_cuda_kernel_work *work)
{
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &work->step, 1);
    return cuda_clocks(task->room->gpu, &sum, work->warpgroups, launch_warps(task, CUDA_FUSED_CHUNK, 1));
}

double cuda_total_clocks(const cuda_task *task)
{
    return walk_clocks(task, &task->geometry->totals);
}

double cuda_total_ratio(const cuda_task *task)
{
    const double alone = cuda_total_clocks(task),
                 all = walk_clocks(task, &task->geometry->work[CUDA_FUSED_CHUNK]);
    return alone < all ? alone / all : 1;
}

/* Of two that run at once the first has no totals to wait for, and may take as long as its totals and the other's walk
 * do: first = ratio first + 1 - first. Of more, all others wait for its totals: three gained nothing. Kernels that do not
 * walk by roles have segments that are alike. */
double cuda_first_share(const cuda_task *task, int64_t segments)
{
    const int64_t places = (int64_t)task->room->multiprocessors * task->room->occupancy[CUDA_FUSED_CHUNK];
    if (task->geometry->fused_total && segments == 2 && cuda_fused_blocks(task) * segments <= places)
        return 1 / (2 - cuda_total_ratio(task));
    return 1 / (double)segments;
}

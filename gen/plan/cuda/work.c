/* What all mechanisms count alike, and the kernels that are the same beside each of them. */
#include "work.h"

#include "abi/cuda_kernels.h"
#include "base/dtype.h"

int work_projected_rows(const fpa_plan *plan)
{
    int rows = 0;
    for (int i = 0; i < plan->projection_count; i++)
        rows += plan->head->matrices[plan->projections[i].matrix].rows;
    return rows;
}

int work_projection_products(const fpa_plan *plan)
{
    return 2 * ((work_projected_rows(plan) + 7) / 8) * ((plan->head->d + 15) / 16);
}

int work_score_products(const fpa_plan *plan, int dot_steps)
{
    return 8 * dot_steps + 4 * plan->cuda.all_tiles;
}

int work_operand_bytes(const fpa_plan *plan, int numbers)
{
    return 16 * numbers * (int)dtype_size(plan->head->dtype);
}

int work_more_scores(const fpa_plan *plan)
{
    const fpa_score *score = plan->score;
    return (score->dot_count > 1 ? score->dot_count - 1 : 0) + score->monomial_count - 1;
}

/* Sums of gates: a chunk's blocks begin and end (1,300 instructions), then two or three passes over its tokens. */
static void count_gates(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    work->step.instructions = plan->outer.used ? 90 : 50;
    work->step.shared = 10;
    work->step.bytes = 16 * 4; /* sums stay in the second-level cache */
    work->copy.instructions = 1300;
}

/* Copies of later segments are read, added to and written: 16 bytes a thread. */
static void count_segment_scan(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const int rows = plan->outer.used ? plan->outer.copy_rows : cuda->features;
    const int numbers = rows * cuda->column_blocks * 8 * cuda->all_tiles;
    work->copy.bytes = 2 * cuda->element * numbers;
    work->copy.instructions = numbers / (32 * 8) * 20;
}

/* A state is read and written, fp32 or 16 bits; a round of a block is 256 threads' 16 bytes. q, k and v, then rows, then
 * parts of o, and their sums: four trips. Recent tokens are six groups more, of k, v, scores and sums. */
static void count_decode(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const int state =
        (int)(plan->features * (plan->head->dv + (plan->head->normalize != FPA_NORMALIZE_NONE))) *
        (int)dtype_size(plan->head->state_dtype);
    for (int kernel = CUDA_DECODE; kernel <= CUDA_DECODE_RECENT; kernel++)
        g->work[kernel] =
            (struct fpa_cuda_kernel_work){.copy = {.bytes = kernel == CUDA_DECODE_RECENT ? state : 2 * state,
                                                   .instructions = state / (16 * 32) * 24},
                                          .trips = kernel == CUDA_DECODE_RECENT ? 24 : 4};
}

void plan_cuda_work(const fpa_plan *plan, struct fpa_cuda_geometry *geometry)
{
    if (plan->head->gate)
        count_gates(plan, &geometry->work[CUDA_GATE_SCAN]);
    count_segment_scan(plan, &geometry->work[CUDA_SEGMENT_SCAN]);
    if (plan->outer.used)
        work_outer(plan, geometry);
    else
        work_panel(plan, geometry);
    if (plan->cuda.is_fused)
        work_fused(plan, geometry);
    if (plan->head->causal)
        count_decode(plan, geometry);
}

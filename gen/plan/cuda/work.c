/* What all mechanisms count alike, and the kernels that are the same beside each of them. */
#include "work.h"

#include "abi/cuda_kernels.h"
#include "base/dtype.h"
#include "base/round.h"
#include "decode.h"
#include "machine/cuda_chunk.h"
#include "split_outer.h"

int work_projected_rows(const fpa_plan *plan)
{
    int rows = 0;
    for (int i = 0; i < plan->projection_count; i++)
        rows += plan->head->matrices[plan->projections[i].matrix].rows;
    return rows;
}

int work_matrix_rows(const fpa_plan *plan)
{
    int rows = 0;
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_matrix *matrix = &plan->head->matrices[plan->projections[i].matrix];
        rows += matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? 0 : matrix->rows;
    }
    return rows;
}

int work_projection_products(const fpa_plan *plan)
{
    return 2 * ((work_projected_rows(plan) + 7) / 8) * ((plan->head->d + 15) / 16);
}

int work_score_products(int dot_steps, int columns)
{
    return 8 * dot_steps + 4 * columns;
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
    work->step.instructions = plan->cuda.split_outer ? 90 : 50;
    work->step.shared = 10;
    work->step.bytes = 16 * 4; /* sums stay in the second-level cache */
    work->copy.instructions = 1300;
}

/* Copies of later segments are read, added to and written: 16 bytes a thread. */
static void count_segment_scan(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    const int numbers = plan->cuda.copy_rows * plan->cuda.columns.blocks * 8 * plan->cuda.columns.all;
    work->copy.bytes = 2 * plan->cuda.rows->element * numbers;
    work->copy.instructions = numbers / (32 * 8) * 20;
}

/* A token's: an exponent a key by lanes that share it, and a column a thread; exponents, the largest one, weights, sums. */
static void count_decode_window(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    const int keys = plan->written->window, numbers = head_width(plan->written) + plan->head->dv;
    work->copy.bytes = keys * numbers * (int)dtype_size(plan->head->dtype);
    work->copy.instructions = keys * (4 * numbers + 40) / 32;
    work->copy.shared = keys * plan->head->dv / 32;
    work->trips = 4;
}

/* Rounds of loads in which a decoding block multiplies matrices, one after the other: a warp has some rows of all matrices
 * and as many columns as are on their way at a time, each thread a number of a diagonal (templates/cuda/decode_features.cu.in:
 * step_project). */
static int count_projecting(const fpa_plan *plan)
{
    const int together = plan->cuda.decode->together;
    int diagonals = 0;
    for (int i = 0; i < plan->projection_count; i++)
        diagonals += plan->head->matrices[plan->projections[i].matrix].kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
    return diagonals + divide_up(work_matrix_rows(plan), together * CUDA_DECODE_THREADS / 32) *
                           divide_up(plan->head->d, 32 * (CUDA_DECODE_NUMBERS / together));
}

/* A state is read and written, fp32 or 16 bits, and each block reads all matrices; a round of a block is 256 threads' 16
 * bytes. The kernel before ends; q, k and v; rows, which a resident block asks for beside them; o: four trips or three, and
 * rounds of matrices between. Recent tokens are six groups more, of k, v, scores and sums. */
void work_decode(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const int state =
        (int)(plan->features * (plan->head->dv + (plan->head->normalize != FPA_NORMALIZE_NONE))) *
        (int)dtype_size(plan->head->state_dtype);
    const int projecting = count_projecting(plan);
    for (int kernel = CUDA_DECODE; kernel <= CUDA_DECODE_RECENT; kernel++)
        g->work[kernel] =
            (struct fpa_cuda_kernel_work){.step = {.bytes = 4 * work_matrix_rows(plan) * plan->head->d},
                                          .copy = {.bytes = kernel == CUDA_DECODE_RECENT ? state : 2 * state,
                                                   .instructions = state / (16 * 32) * 24},
                                          .trips = projecting + (kernel == CUDA_DECODE_RECENT     ? 24
                                                                 : kernel == CUDA_DECODE_RESIDENT ? 3
                                                                                                  : 4)};
    if (g->kernel[CUDA_DECODE_DRAFT].threads) /* and products of 8 queries with each number */
        g->work[CUDA_DECODE_DRAFT] = (struct fpa_cuda_kernel_work){
            .copy = {.bytes = state, .instructions = state / (16 * 32) * 48}, .trips = projecting + 24};
    if (plan->written->window)
        count_decode_window(plan, &g->work[CUDA_DECODE_WINDOW]);
}

/* Copying 16 tokens' rows to padded ones. padded: numbers of a row after that; 0: these rows are not copied. */
static struct fpa_cuda_work count_padding(const fpa_plan *plan, int width, int padded)
{
    const int pieces = padded * (int)dtype_size(plan->head->dtype) / 16;
    return padded ? (struct fpa_cuda_work){.instructions = 16 * 50 * pieces / 32,
                                           .bytes = work_operand_bytes(plan, width + padded)}
                  : (struct fpa_cuda_work){0};
}

void work_scans(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    if (plan->cuda.pads)
        g->work[CUDA_PAD_ROWS] =
            (struct fpa_cuda_kernel_work){.step = count_padding(plan, plan->head->dv, g->padded_value),
                                          .copy = count_padding(plan, plan->head->d, g->padded_vector),
                                          .trips = 1};
    if (plan->head->gate)
        count_gates(plan, &g->work[CUDA_GATE_SCAN]);
    count_segment_scan(plan, &g->work[CUDA_SEGMENT_SCAN]);
}

/* ---- what planners choose by them ---- */

/* A longer chunk has to gain so much: sequences are walked in whole ones, of which short sequences then have few. */
static const double ENOUGH = 0.99;

int work_best_chunk(const fpa_plan *plan, const struct fpa_cuda_geometry *geometry, int step, int most)
{
    const fpa_gpu *gpu = gpu_of_target(plan->target);
    int best = step;
    for (int chunk = 2 * step; chunk <= most; chunk *= 2)
        if (cuda_chunk_seconds(gpu, geometry, chunk) < ENOUGH * cuda_chunk_seconds(gpu, geometry, best))
            best = chunk;
    return best;
}

/* Kernels of warps on panels of packed rows: units of 16 features, a product for each 8 columns. In plain fp32 a product
 * is 64 multiply-adds of a warp; as three of tf32, which are half as deep, six. */
#include "abi/cuda_kernels.h"
#include "work.h"

enum { MULTIPLY_ADDS = 16 * 8 * 16 / 32 };

static void add_products(const fpa_plan *plan, struct fpa_cuda_work *work, int products)
{
    if (plan->cuda.element == 2)
        work->products += products;
    else if (plan->head->products == FPA_PRODUCTS_TF32X3)
        work->products += 6 * products;
    else
        work->instructions += MULTIPLY_ADDS * products;
}

/* Packing of 16 tokens: a panel's rows, and their matrices, by all columns of products that a panel of fewer than 64
 * tokens leaves empty. */
static struct fpa_cuda_work count_packing(const fpa_plan *plan)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const int rows = work_projected_rows(plan);
    struct fpa_cuda_work work = {.shared = cuda->row_count / 2,
                                 .instructions =
                                     cuda->row_count + 6 * plan->weighted_count + rows * plan->head->d / 2};
    if (rows && cuda->element == 2)
        work.products = work_projection_products(plan) * 64 / cuda->panel;
    return work;
}

static void add_work(struct fpa_cuda_work *sum, const struct fpa_cuda_work *work, double times)
{
    sum->products += (int)(times * work->products);
    sum->shared += (int)(times * work->shared);
    sum->instructions += (int)(times * work->instructions);
}

/* A fragment of each of a unit's factors is fetched and multiplied, for each 8 columns values are, for two units. */
static void count_state(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const struct fpa_cuda_work packing = count_packing(plan);
    const int blocks = cuda->slices * cuda->column_blocks, units = blocks * CUDA_WARPS * cuda->warp_units;
    const int products = units * cuda->all_tiles,
              numbers = cuda->features * 8 * cuda->all_tiles * cuda->column_blocks;
    work->step.shared = products + 4 * units * cuda->factors;
    work->step.instructions =
        9 * products / 2 + 5 * units * cuda->factors + (plan->head->gate ? 200 : 12) * blocks;
    work->step.bytes = work_operand_bytes(plan, plan->head->d + plan->head->dv);
    add_products(plan, &work->step, products);
    add_work(&work->step, &packing, blocks);
    work->copy = (struct fpa_cuda_work){.instructions = numbers / 32 * 2, .bytes = numbers * cuda->element};
    work->trips = 3;
}

static void count_output(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const struct fpa_cuda_work packing = count_packing(plan);
    const int blocks = cuda->column_blocks, units = cuda->units, tiles = cuda->query_tiles;
    const int scores = work_score_products(plan, cuda->dot_first[plan->score->dot_count]);
    const int numbers = cuda->features * 8 * cuda->all_tiles, vector = plan->head->d + plan->head->dv;
    work->step = (struct fpa_cuda_work){
        .shared = 60 * blocks, .instructions = 900 * blocks, .bytes = work_operand_bytes(plan, 2 * vector)};
    add_work(&work->step, &packing, blocks);
    work->copy = (struct fpa_cuda_work){
        .shared = blocks * units * (2 * cuda->all_tiles / 3 + cuda->factors * (3 + 5 / tiles)),
        .instructions = blocks * units * (5 * cuda->all_tiles / 2 + 22 * cuda->factors / tiles),
        .bytes = (int)((int64_t)blocks * numbers * cuda->element * 16 / plan->chunk)};
    add_products(plan, &work->copy, blocks * units * cuda->all_tiles);
    work->keys = (struct fpa_cuda_work){.shared = blocks * 2 * scores,
                                        .instructions = blocks * (6 * scores + (plan->head->gate ? 180 : 0))};
    add_products(plan, &work->keys, blocks * scores);
    add_work(&work->keys, &packing,
             (double)blocks * 4 / (CUDA_WARPS * tiles)); /* a block's queries share them */
    work->trips = 3;
}

void work_panel(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    count_state(plan, &g->work[CUDA_CHUNK_STATE]);
    count_output(plan, &g->work[CUDA_CHUNK_OUTPUT]);
}

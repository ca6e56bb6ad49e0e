/* Kernels of warps on panels of packed rows: units of 16 features, a product for each 8 columns. In plain fp32 a product
 * is 64 multiply-adds of a warp; as three of tf32, which are half as deep, six. */
#include "abi/cuda_kernels.h"
#include "split_panel.h"
#include "work.h"

enum { MULTIPLY_ADDS = 16 * 8 * 16 / 32 };

static void add_products(const fpa_plan *plan, struct fpa_cuda_work *work, int products)
{
    if (plan->cuda.rows->element == 2)
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
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const int projected = work_projected_rows(plan);
    struct fpa_cuda_work work = {.shared = rows->row_count / 2,
                                 .instructions = rows->row_count + 6 * plan->weighted_count +
                                                 projected * plan->head->d / 2};
    if (projected && rows->element == 2)
        work.products = work_projection_products(plan) * 64 / plan->cuda.split_panel->panel;
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
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const struct fpa_cuda_work packing = count_packing(plan);
    const int blocks = rows->slices * plan->cuda.columns.blocks,
              units = blocks * CUDA_WARPS * rows->warp_units;
    const int products = units * plan->cuda.columns.all,
              numbers = rows->features * 8 * plan->cuda.columns.all * plan->cuda.columns.blocks;
    work->step.shared = products + 4 * units * rows->factors;
    work->step.instructions =
        9 * products / 2 + 5 * units * rows->factors + (plan->head->gate ? 200 : 12) * blocks;
    work->step.bytes = work_operand_bytes(plan, plan->head->d + plan->head->dv);
    add_products(plan, &work->step, products);
    add_work(&work->step, &packing, blocks);
    work->copy = (struct fpa_cuda_work){.instructions = numbers / 32 * 2, .bytes = numbers * rows->element};
    work->trips = 3;
}

static void count_output(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const struct fpa_cuda_work packing = count_packing(plan);
    const int blocks = plan->cuda.columns.blocks, units = rows->units,
              tiles = plan->cuda.split_panel->query_tiles;
    const int scores = work_score_products(plan, rows->dot_steps);
    const int numbers = rows->features * 8 * plan->cuda.columns.all, vector = plan->head->d + plan->head->dv;
    work->step = (struct fpa_cuda_work){
        .shared = 60 * blocks, .instructions = 900 * blocks, .bytes = work_operand_bytes(plan, 2 * vector)};
    add_work(&work->step, &packing, blocks);
    work->copy = (struct fpa_cuda_work){
        .shared = blocks * units * (2 * plan->cuda.columns.all / 3 + rows->factors * (3 + 5 / tiles)),
        .instructions = blocks * units * (5 * plan->cuda.columns.all / 2 + 22 * rows->factors / tiles),
        .bytes = (int)((int64_t)blocks * numbers * rows->element * 16 / plan->chunk)};
    add_products(plan, &work->copy, blocks * units * plan->cuda.columns.all);
    work->keys = (struct fpa_cuda_work){.shared = blocks * 2 * scores,
                                        .instructions = blocks * (6 * scores + (plan->head->gate ? 180 : 0))};
    add_products(plan, &work->keys, blocks * scores);
    add_work(&work->keys, &packing,
             (double)blocks * 4 / (CUDA_WARPS * tiles)); /* a block's queries share them */
    work->trips = 3;
}

void work_split_panel(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    count_state(plan, &g->work[CUDA_CHUNK_STATE]);
    count_output(plan, &g->work[CUDA_CHUNK_OUTPUT]);
}

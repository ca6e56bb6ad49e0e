/* Kernels of warps on panels of packed rows: units of 16 features, a product for each 8 columns. In plain fp32 a product
 * is 64 multiply-adds of a warp; as three of tf32, which are half as deep, six. */
#include "abi/cuda_kernels.h"
#include "base/round.h"
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
static struct fpa_cuda_work count_packing(const fpa_plan *plan, const fpa_split_panel *split)
{
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const int projected = work_projected_rows(plan);
    struct fpa_cuda_work work = {.shared = rows->row_count / 2,
                                 .instructions = rows->row_count + 6 * plan->weighted_count +
                                                 projected * plan->head->d / 2};
    if (projected && rows->element == 2)
        work.products = work_projection_products(plan) * 64 / split->panel;
    return work;
}

/* The same where rows come as they are packed: 16 bytes are eight tokens of a row. */
static struct fpa_cuda_work count_fetching(int rows)
{
    return (struct fpa_cuda_work){.shared = rows / 4, .instructions = rows / 2, .cached = 32 * rows};
}

static struct fpa_cuda_kernel_work count_packs(const fpa_plan *plan, const fpa_panel_rows *rows)
{
    const int d = plan->head->d, stored = (rows->keys + rows->queries) / 2, steps = divide_up(d, 16);
    const int products = rows->dense_tiles * steps * 4;
    return (struct fpa_cuda_kernel_work){.step = {.products = products,
                                                  .shared = d / 2 + products,
                                                  .instructions = 2 * products + 3 * stored + d,
                                                  .bytes = 16 * 2 * (d + stored),
                                                  .cached = rows->pack_bytes / 8},
                                         .trips = 3};
}

static void add_work(struct fpa_cuda_work *sum, const struct fpa_cuda_work *work, double times)
{
    sum->products += (int)(times * work->products);
    sum->shared += (int)(times * work->shared);
    sum->instructions += (int)(times * work->instructions);
    sum->cached += (int)(times * work->cached);
}

/* A fragment of each of a unit's factors is fetched and multiplied; for each 8 columns values are. */
static struct fpa_cuda_kernel_work count_state(const fpa_plan *plan, const fpa_split_panel *split)
{
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const fpa_columns *columns = state_columns(split);
    const struct fpa_cuda_work packing =
        split->packs.used ? count_fetching(rows->panels.state_count) : count_packing(plan, split);
    const int blocks = rows->slices * columns->blocks, units = blocks * CUDA_WARPS * rows->warp_units;
    const int products = units * columns->all;
    const int numbers = rows->features * 8 * columns->all * columns->blocks;
    struct fpa_cuda_kernel_work work = {
        .step = {.shared = products + 4 * units * rows->factors,
                 .instructions =
                     9 * products / 2 + 5 * units * rows->factors + (plan->head->gate ? 200 : 12) * blocks,
                 .bytes = work_operand_bytes(plan, plan->head->d + plan->head->dv)},
        .copy = {.instructions = numbers / 32 * 2, .bytes = numbers * rows->element},
        .trips = 3};
    add_products(plan, &work.step, products);
    add_work(&work.step, &packing, blocks);
    return work;
}

/* 16 queries: o leaves by tiles of 8 columns. Against a copy each factor of a unit is fetched once for all tiles of queries
 * that a warp has, and the copy's values for each product. Keys are packed by every block of queries, for all of which
 * they are. */
static struct fpa_cuda_kernel_work count_output(const fpa_plan *plan, const fpa_split_panel *split)
{
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const struct fpa_cuda_work packing =
        split->packs.used ? count_fetching(rows->panels.key_count) : count_packing(plan, split);
    const int blocks = split->columns.blocks, products = blocks * rows->units * split->columns.all;
    const int tiles = split->query_tiles, factors = blocks * rows->units * rows->factors / tiles;
    const int scores = blocks * work_score_products(rows->dot_steps, split->columns.all);
    struct fpa_cuda_kernel_work work = {
        .step = {.shared = 60 * blocks,
                 .instructions = 75 * split->columns.tiles * blocks,
                 .bytes = work_operand_bytes(plan, 2 * (plan->head->d + plan->head->dv))},
        .copy = {.shared = products + 12 * factors, .instructions = 4 * products / 3 + 28 * factors},
        .keys = {.shared = 3 * scores,
                 .instructions = 10 * scores / 3 + (150 + (plan->head->gate ? 175 : 0)) * blocks},
        .trips = 3};
    add_products(plan, &work.copy, products);
    add_products(plan, &work.keys, scores);
    add_work(&work.step, &packing, blocks);
    add_work(&work.keys, &packing, (double)blocks * 4 / (CUDA_WARPS * tiles));
    return work;
}

void work_split_panel(const fpa_plan *plan, const fpa_split_panel *split, struct fpa_cuda_geometry *g)
{
    g->work[CUDA_CHUNK_STATE] = count_state(plan, split);
    g->work[CUDA_CHUNK_OUTPUT] = count_output(plan, split);
    if (split->packs.used)
        g->work[CUDA_PACK_ROWS] = count_packs(plan, &plan->cuda.rows->panels);
}

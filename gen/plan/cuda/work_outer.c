/* Kernels of warpgroups on tiles of 64 features: 4 products of 16 features for each 8 columns. */
#include "abi/cuda_kernels.h"
#include "split_outer.h"
#include "work.h"

/* What a warp fetches for 16 tokens of its strips: rows of suffixes, rows of prefixes, and words of prefixes that lanes
 * exchange, 128 bytes each. */
static int words_of_round(const fpa_outer_plan *outer, const fpa_chunk_state_kernel *kernel)
{
    int words = 2 * (outer->strip_length + outer->prefix_factors * kernel->prefix_blocks);
    for (int l = 0; l < outer->prefix_factors; l++)
        words += (outer_prefix_kind(outer, l) == PREFIX_ROW ? 2 : 4) * kernel->shares;
    return words;
}

/* Sums of all tiles leave through shared memory: written by threads, read by the copy engine. */
static struct fpa_cuda_work count_copy(const fpa_plan *plan)
{
    const int columns = 8 * plan->cuda.columns.all * plan->cuda.columns.blocks,
              numbers = 64 * plan->cuda.split_outer->outer.tiles * columns;
    return (struct fpa_cuda_work){.shared = numbers / 32,
                                  .instructions = numbers / 32 * 2,
                                  .bytes = 2 * plan->cuda.split_outer->outer.copy_rows * columns};
}

/* A warp's instructions: 6 for a tile (four multiplications, the product, its wait), 7 for each of a prefix's factors, 19
 * for a step of the loop, 12 for gates. */
static void count_state(const fpa_plan *plan, const fpa_chunk_state_kernel *kernel,
                        struct fpa_cuda_kernel_work *work)
{
    const fpa_outer_plan *outer = &plan->cuda.split_outer->outer;
    const int blocks = kernel->slices * plan->cuda.columns.blocks,
              strips = blocks * kernel->groups * kernel->strips;
    const int tiles = strips * outer->strip_length, rounds = 4 * strips / kernel->shares;
    const int warps = 4 * blocks * kernel->groups, columns = plan->cuda.columns.all;
    work->warpgroups = 1;
    work->step.products = 4 * columns * tiles;
    work->step.shared = 2 * columns * tiles + words_of_round(outer, kernel) * rounds;
    work->step.instructions = 6 * 4 * tiles + 7 * outer->prefix_factors * kernel->shares * rounds +
                              (19 + (plan->head->gate ? 12 : 0)) * warps;
    work->step.bytes = work_operand_bytes(plan, 8 * outer->row_blocks + plan->head->dv);
    work->copy = count_copy(plan);
    work->trips = 3;
}

/* Factors of prefixes that are whole blocks of rows, and others, which are fetched one number at a time. */
static int count_factors(const fpa_outer_plan *outer, bool blocks)
{
    int count = 0;
    for (int l = 0; l < outer->prefix_factors; l++)
        count += (outer_prefix_kind(outer, l) == PREFIX_BLOCK) == blocks;
    return count;
}

/* 16 queries, a warp's share of 64, against a copy: for each tile four products of 16 features (of a folded one three),
 * whose features are 8 instructions each (four words are exchanged, four multiplied); waits and counters serve all tiles
 * of queries that a warp has. */
static struct fpa_cuda_work count_reading(const fpa_plan *plan)
{
    const fpa_outer_plan *outer = &plan->cuda.split_outer->outer;
    const int whole = outer->tiles - outer->folded, units = 4 * outer->tiles - outer->folded;
    const int blocks = outer->groups * count_factors(outer, true),
              others = outer->groups * count_factors(outer, false);
    const int columns = plan->cuda.columns.all, query_tiles = plan->cuda.split_outer->query_tiles;
    const int copy = 2 * outer->copy_rows * 8 * columns;
    return (struct fpa_cuda_work){
        .products = plan->cuda.columns.blocks * units * columns,
        .shared = plan->cuda.columns.blocks *
                  (units * columns / 2 + 3 * whole / 2 + 8 * blocks + 17 * others + 10 * outer->folded),
        .instructions =
            plan->cuda.columns.blocks *
            (whole * (24 + 67 / query_tiles) + 73 * outer->folded / query_tiles + 23 * blocks + 76 * others),
        .bytes = (int)((int64_t)plan->cuda.columns.blocks * copy * 16 / plan->chunk)};
}

static void count_output(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    const fpa_outer_plan *outer = &plan->cuda.split_outer->outer;
    const int blocks = plan->cuda.columns.blocks, tiles = plan->cuda.columns.tiles;
    const int steps = outer->dot_first[plan->score->dot_count], columns = plan->cuda.columns.all;
    const int gate = plan->head->gate ? 1 : 0, vector = 8 * outer->row_blocks + plan->head->dv;
    work->warpgroups = 1;
    work->step = (struct fpa_cuda_work){.shared = blocks * (4 * tiles + 11 * steps),
                                        .instructions = blocks * (455 + 25 * tiles),
                                        .bytes = work_operand_bytes(plan, vector)};
    work->copy = count_reading(plan);
    work->keys = (struct fpa_cuda_work){
        .products = blocks * work_score_products(plan, steps),
        .shared = blocks * (7 * steps + 2 * columns + 21 * gate),
        .instructions = blocks * (105 + 14 * steps + 79 * gate + 47 * work_more_scores(plan)),
        .bytes = 4 * work_operand_bytes(plan, vector) * 16 / plan->cuda.split_outer->query_tokens};
    work->trips = 3;
}

/* Rows of a token: its numbers come in, by 8; a row is written and its weight multiplied; vectors leave by 8. */
static void count_pack(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    const int d = plan->head->d, blocks = plan->cuda.split_outer->outer.row_blocks,
              projected = work_projected_rows(plan) * d / 256;
    work->step = (struct fpa_cuda_work){
        .products = work_projection_products(plan),
        .shared = 3 * d / 2 + 12 * blocks + 9 * projected / 2 + 7 * plan->weighted_count / 2,
        .instructions = 40 + 3 * d + 17 * blocks + 21 * projected + 7 * plan->weighted_count / 2,
        .bytes = work_operand_bytes(plan, d + 8 * blocks)};
    work->trips = 2;
}

void work_split_outer(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_split_outer *split = plan->cuda.split_outer;
    count_state(plan, &split->state[0], &g->work[CUDA_CHUNK_STATE]);
    if (split->kernels > 1)
        count_state(plan, &split->state[1], &g->work[CUDA_CHUNK_STATE_SMALL]);
    count_output(plan, &g->work[CUDA_CHUNK_OUTPUT]);
    if (!split->outer.coordinates)
        count_pack(plan, &g->work[CUDA_PACK_ROWS]);
}

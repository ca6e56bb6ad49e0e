/* plan_backward_chunk: counts of what the kernels of gradients do, by which machine/cuda_backward chooses chunks and the
 * crossover. */
#include "backward.h"

#include <math.h>

#include "machine/cuda_backward.h"
#include "parts.h"

/* Instructions for 16 own tokens and 16 others: dots, gradients of scores, the kernel and its slopes; sums of
 * rows are read, added to and written once for a span of others. Counted in the emitted loops. */
static double count_pair(const fpa_plan *plan, const fpa_cuda_backward_plan *back, bool keys)
{
    enum { A_NUMBER = 8 /* pairs of a lane */ };
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const double pairs = back->pairs / 16.0, span = back->span / 16.0;
    double sum = back->value_tiles / 2.0 * (3 + 2 / pairs), factors = 2;
    for (int i = 0; i < rows->dot_count; i++) {
        const fpa_cuda_dot *dot = &rows->dots[i];
        sum += dot->steps * (3 + (dot->base < 0 ? 5 : 3) / pairs);
        sum += divide_up(dot->rows, 8) * (2 + 6 / span);
    }
    for (int i = 0; i < plan->score->monomial_count; i++)
        for (int j = 0; j < rows->dot_count; j++)
            factors += plan->score->monomials[i].power[j];
    sum += A_NUMBER * (3 * factors + 2 * rows->dot_count + (plan->head->gate ? 6 : 0));
    return sum + (keys ? 4 + 1.5 * back->sides.tiles : 0);
}

/* Instructions for a unit and 16 own tokens: gradients of its features, contraction, gradients of values. */
static double count_unit(const fpa_plan *plan, const fpa_cuda_backward_plan *back, bool keys)
{
    enum { CELLS = 40, A_PREFIX = 4, ANY = 60 /* a factor */ };
    const int factors = plan->cuda.rows->factors;
    const double read = back->value_tiles / 2.0 * (2 + 1.0 / back->query_tiles);
    const double contracted = back->cells.used ? CELLS + A_PREFIX * (factors - 1) : ANY * factors;
    return read + contracted + (keys ? 12 + back->sides.tiles * (1 + 0.5 / back->query_tiles) : 0);
}

/* Instructions of a warp of backward_state for 16 tokens, without features and their products, if a block
 * packs its cells' rows. */
static double count_slice(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum { A_PANEL = 25, A_PIECE = 4, A_SUFFIX = 6, A_FACTOR = 7, A_PREFIX = 8, LANES = 128 / 16 };
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const double prefix = A_PREFIX + A_FACTOR * (rows->factors - 1);
    return A_PANEL + A_PIECE * (back->walk_pieces + back->columns.tiles) / (double)LANES +
           A_SUFFIX * back->walk_suffixes + prefix * rows->warp_units / 2;
}

/* Instructions of backward_state for a unit and 16 tokens; a block packs its cells' rows, or all rows. */
static double count_walk(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum { FEATURES = 6 };
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const bool few = backward_packs_slices(plan, back);
    const double packed = few ? count_slice(plan, back) : rows->row_count; /* instructions of a warp */
    const double formed = few ? FEATURES : 5 * rows->factors;
    return (back->columns.tiles + formed + packed / rows->warp_units) * back->columns.blocks;
}

static cuda_backward_counts count_work(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum { COPIES = 4 /* written and read, in both passes */ };
    const fpa_cuda_rows *rows = plan->cuda.rows;
    cuda_backward_counts counts = {.warps = back->own_blocks * back->warps * back->shares};
    for (int keys = 0; keys < 2; keys++) {
        const int times = keys ? back->sides.blocks : 1;
        counts.pair += times * count_pair(plan, back, keys);
        counts.state +=
            times * rows->units * count_unit(plan, back, keys) + rows->units * count_walk(plan, back);
    }
    /* warps that share tokens add slopes one after the other, and a panel may have fewer runs of others than shares */
    counts.pair *= back->shares;
    counts.copies =
        COPIES * 8.0 * rows->features * back->columns.blocks * back->columns.tiles * rows->element;
    return counts;
}

/* Multiply-adds of a pair: two products with rows for each of q and k, three with values. */
static double pair_products(const fpa_plan *plan)
{
    double sum = 3.0 * plan->head->dv;
    for (int i = 0; i < plan->score->dot_count; i++)
        sum += 4.0 * plan->dots[i].row_count;
    return sum;
}

/* The length from which the chunked form is faster; pairs of the parallel form are those of passes if only
 * that form has passes. */
static int64_t find_crossover(const fpa_plan *plan, const cuda_backward_counts *counts)
{
    const double chunked = cuda_backward_crossover(counts, plan->chunk);
    const bool alone = plan->passes.width && plan->passes.parallel;
    const double pair = cuda_backward_pair_clocks(counts);
    return (int64_t)ceil(alone ? chunked * pair / passes_pair_clocks(plan->head, plan->score) : chunked);
}

void plan_backward_chunk(fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    const cuda_backward_counts counts = count_work(plan, back);
    const bool by_work = !back->coordinates && plan->cuda.rows->element == 2;
    plan->chunk = plan->head->chunk ? round_up(plan->head->chunk, back->query_tokens)
                  : by_work         ? cuda_backward_chunk(&counts)
                                    : cuda_backward_product_chunk(counts.copies, pair_products(plan));
    if (by_work)
        plan->facts.crossover = find_crossover(plan, &counts);
    if (plan->passes.width && plan->passes.both)
        plan->facts.crossover = passes_crossover(plan->head, &plan->passes, (double)plan->features);
}

/* plan_backward_work: instructions of the kernels of gradients, by which chunks and the crossover are chosen. */
#include "backward.h"

#include <math.h>

#include "parts.h"

/* Dots, scores' gradients, the kernel and its slopes, of 16 own tokens and 16 others; what rows get is read, added to and written once
 * for a span of others. Counted in the emitted loops. */
static double count_pair(const fpa_plan *plan, const fpa_cuda_backward_plan *back, bool keys)
{
    enum { A_NUMBER = 8 /* of a lane */ };
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

/* Of a unit and 16 own tokens: gradients of its features, contracted; what values get. */
static double count_unit(const fpa_plan *plan, const fpa_cuda_backward_plan *back, bool keys)
{
    enum { CELLS = 40, A_PREFIX = 4, ANY = 60 /* a factor */ };
    const int factors = plan->cuda.rows->factors;
    const double read = back->value_tiles / 2.0 * (2 + 1.0 / back->query_tiles);
    const double contracted = back->cells.used ? CELLS + A_PREFIX * (factors - 1) : ANY * factors;
    return read + contracted + (keys ? 12 + back->sides.tiles * (1 + 0.5 / back->query_tiles) : 0);
}

/* Of a unit and 16 tokens that a state gets; its warps' blocks pack their cells' rows, or all. */
static double count_walk(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum { CELLS_ROWS = 24 };
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const bool few = back->cells.used && !plan->projection_count;
    const double packed = few ? 2 * CELLS_ROWS : rows->row_count; /* instructions of a warp */
    return (back->columns.tiles + 5 * rows->factors + packed / rows->warp_units) * back->columns.blocks;
}

fpa_backward_work plan_backward_work(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum { COPIES = 4 /* written and read, forth and back */ };
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const int blocks = back->columns.blocks;
    fpa_backward_work work = {0};
    for (int keys = 0; keys < 2; keys++) {
        const int times = keys ? back->sides.blocks : 1;
        work.pair += times * count_pair(plan, back, keys);
        work.state +=
            times * rows->units * count_unit(plan, back, keys) + rows->units * count_walk(plan, back);
    }
    work.copies = COPIES * 8.0 * rows->features * blocks * back->columns.tiles * rows->element;
    /* an H200's 132 multiprocessors at 1.7 GHz, whose warps have an instruction every 5.5 cycles (by ncu), beside 2 of its 4.8 TB/s */
    work.bytes = 2000 / (132 * 1.7 * back->own_blocks * back->warps / 5.5) / 16;
    return work;
}

/* plan_backward_chunk: instructions of the kernels of gradients, by which chunks and the crossover are chosen. */
#include "backward.h"

#include <math.h>

#include "parts.h"

/* Instructions of a warp for 16 tokens of a head, of all kernels together. */
typedef struct fpa_backward_work {
    double pair;   /* with 16 others that see them, or are seen */
    double state;  /* what they read of states and give them, whatever the chunk */
    double copies; /* bytes of a boundary's copies of states */
    double clocks; /* of a multiprocessor an instruction for 16 tokens, a token; */
    double bytes;  /* that memory takes as long for */
} fpa_backward_work;

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

/* Of a warp and 16 tokens that a state gets, whose block packs its cells' rows: all but features and their products. */
static double count_slice(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum { A_PANEL = 25, A_PIECE = 4, A_SUFFIX = 6, A_FACTOR = 7, A_PREFIX = 8, LANES = 128 / 16 };
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const double prefix = A_PREFIX + A_FACTOR * (rows->factors - 1);
    return A_PANEL + A_PIECE * (back->walk_pieces + back->columns.tiles) / (double)LANES +
           A_SUFFIX * back->walk_suffixes + prefix * rows->warp_units / 2;
}

/* Of a unit and 16 tokens that a state gets; its warps' blocks pack their cells' rows, or all. */
static double count_walk(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum { FEATURES = 6 };
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const bool few = backward_packs_slices(plan, back);
    const double packed = few ? count_slice(plan, back) : rows->row_count; /* instructions of a warp */
    const double formed = few ? FEATURES : 5 * rows->factors;
    return (back->columns.tiles + formed + packed / rows->warp_units) * back->columns.blocks;
}

static fpa_backward_work count_work(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
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
    work.pair *=
        back->shares; /* slopes are added in turn, and a panel may have fewer runs of others than there are shares */
    work.copies = COPIES * 8.0 * rows->features * blocks * back->columns.tiles * rows->element;
    /* an H200's 132 multiprocessors at 1.7 GHz, whose warps have an instruction every 5.5 cycles (by ncu), beside 2 of its 4.8 TB/s */
    work.clocks = 5.5 / (back->own_blocks * back->warps * back->shares) / 16;
    work.bytes = 2000 / (132 * 1.7) * work.clocks;
    return work;
}

/* ---- chunks, and the crossover ---- */

enum { LEAST_CHUNK = 128, MOST_CHUNK = 512 /* longer ones gain little, and are dear to verify */ };

/* Of products as fast as a GPU's tensor cores. Tokens between copies of states: these are written and read once each, forth and back; pairs of a chunk grow with it. */
static int chunk_of_products(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    const double flop_a_byte = 160; /* of a GPU's products by mma.sync, to those of its memory */
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const double copies =
        4.0 * rows->features * back->columns.blocks * back->columns.tiles * 8 * rows->element * flop_a_byte;
    double pair = 3.0 * plan->head->dv;
    for (int i = 0; i < plan->score->dot_count; i++)
        pair += 4.0 * plan->dots[i].row_count;
    int chunk = LEAST_CHUNK;
    while (chunk < MOST_CHUNK && copies / chunk - copies / (2 * chunk) > chunk / 2.0 * pair)
        chunk *= 2;
    return chunk;
}

/* Where warps make features of packed rows, their instructions are what takes time: with a chunk twice as long twice as many pairs. */
static int chunk_of_work(const fpa_backward_work *work)
{
    int chunk = LEAST_CHUNK;
    while (chunk < MOST_CHUNK && work->copies / (2 * chunk) > chunk / 32.0 * work->pair * work->bytes)
        chunk *= 2;
    return chunk;
}

/* Half a sequence's pairs a token, or half a chunk's and a state's; a sequence's by passes where chunks have none. */
static int64_t find_crossover(const fpa_plan *plan, const fpa_backward_work *work)
{
    const double state = work->state + work->copies / plan->chunk / work->bytes;
    const double chunked = plan->chunk + 32 * state / work->pair, pair = work->pair * work->clocks / 16;
    const bool alone = plan->passes.width && plan->passes.parallel;
    return (int64_t)ceil(alone ? chunked * pair / passes_pair_clocks(plan->head, plan->score) : chunked);
}

void plan_backward_chunk(fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    const fpa_backward_work work = count_work(plan, back);
    const bool by_work = !back->coordinates && plan->cuda.rows->element == 2;
    plan->chunk = plan->head->chunk ? round_up(plan->head->chunk, back->query_tokens)
                  : by_work         ? chunk_of_work(&work)
                                    : chunk_of_products(plan, back);
    if (by_work)
        plan->facts.crossover = find_crossover(plan, &work);
    if (plan->passes.width && plan->passes.both)
        plan->facts.crossover = passes_crossover(plan->head, &plan->passes, (double)plan->features);
}

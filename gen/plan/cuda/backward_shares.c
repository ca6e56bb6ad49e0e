/* Shares: several warps of backward_queries and backward_keys have the same 16 own tokens, each with some of the units of a state. What limits
 * these kernels is that a multiprocessor has few warps, since sums of all rows' gradients lie in shared memory; those of warps with the same
 * tokens are there once. Rows that features of several shares have are added up apart, and joined. */
#include "backward.h"
#include "parts.h"

enum { MOST_SHARES = 4, GROUP_UNITS = GROUP_CELLS * CELL / CUDA_UNIT };

static int count_row_blocks(const fpa_plan *plan)
{
    return divide_up(plan->cuda.rows->row_count, CELL);
}

bool allocate_backward_shares(const fpa_plan *plan, arena *memory, fpa_cuda_backward_plan *back)
{
    const int places = MOST_SHARES * count_row_blocks(plan);
    back->share_places = arena_array(memory, places, sizeof *back->share_places);
    back->copy_blocks = arena_array(memory, places, sizeof *back->copy_blocks);
    return back->share_places && back->copy_blocks;
}

/* Blocks of rows that features of a share have: of units' suffixes, and of factors of groups' prefixes. */
static void note_blocks(const fpa_plan *plan, const fpa_cuda_backward_plan *back, int share, bool *noted)
{
    const fpa_cuda_cells *cells = &back->cells;
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const int factors = rows->factors - 1, each = cells->prefixes / factors;
    const int first = share * back->share_units, last = first + back->share_units;
    for (int b = 0; b < count_row_blocks(plan); b++)
        noted[b] = false;
    for (int u = first; u < last && u < cells->units; u++)
        noted[cells->suffix[u]] = true;
    for (int l = 0; l < factors; l++)
        for (int c = 2 * first; c < 2 * last && c < each; c++) {
            const int row = cells->prefix_row[l * each + c];
            if (row != rows->ones_row && row != rows->zero_row)
                noted[row / CELL] = true;
        }
}

/* A block of rows that a share before has, too, has a copy of its sums. */
static void place_shares(const fpa_plan *plan, fpa_cuda_backward_plan *back, bool *noted, bool *before)
{
    const int blocks = count_row_blocks(plan);
    back->place_count = back->shares * blocks;
    back->copies = 0;
    for (int share = 0; share < back->shares; share++) {
        note_blocks(plan, back, share, noted);
        for (int b = 0; b < blocks; b++) {
            const bool copied = noted[b] && before[b];
            before[b] |= noted[b];
            back->share_places[share * blocks + b] = copied ? back->sum_blocks + back->copies : b;
            if (copied)
                back->copy_blocks[back->copies++] = b;
        }
    }
}

/* Registers of what lives longest: what values get, dots of 16 own tokens and others, and their gradients. What else there is takes turns with
 * dots; of 12 registers more some are kept in local memory (docs/decisions/0092). */
static int most_shares(const fpa_plan *plan, const fpa_cuda_backward_plan *back, int blocks)
{
    enum { REGISTERS = 65536, A_THREAD = 255, REST = 12, A_TILE = 4 };
    const int others = back->pairs / CELL, dots = plan->score->dot_count;
    const int needed = A_TILE * (back->sides.tiles + dots * others) + A_TILE / 2 * dots * others + REST;
    int shares = MOST_SHARES;
    while (shares > 1) {
        const int registers = REGISTERS / (blocks * CUDA_THREADS * shares) / 8 * 8;
        if ((registers < A_THREAD ? registers : A_THREAD) >= needed)
            break;
        shares--;
    }
    return shares;
}

static bool shares_fit(const fpa_plan *plan, fpa_cuda_backward_plan *back, int shares, int bytes)
{
    enum { BLOCKS = 512 };
    bool noted[BLOCKS], before[BLOCKS] = {false};
    back->shares = shares;
    back->share_units = round_up(divide_up(plan->cuda.rows->units, shares), GROUP_UNITS);
    if (back->share_units * (shares - 1) >= plan->cuda.rows->units)
        return false;
    place_shares(plan, back, noted, before);
    place_backward_own(plan, back);
    return back->own.size <= bytes;
}

void choose_backward_shares(const fpa_plan *plan, fpa_cuda_backward_plan *back, int blocks, int bytes)
{
    enum { FEWEST = 2 /* units in a tile: of a suffix, which is read once */ };
    const fpa_cuda_backward_plan before = *back;
    if (!backward_packs_slices(plan, back) || back->warps != CUDA_WARPS || back->query_tiles > 1)
        return;
    for (int shares = most_shares(plan, back, blocks); shares > 1; shares--)
        for (int group = before.group; group >= FEWEST; group /= 2) {
            back->group = group;
            back->stages = 2;
            if (!shares_fit(plan, back, shares, bytes))
                continue;
            add_backward_stages(plan, back);
            return;
        }
    *back = before;
}

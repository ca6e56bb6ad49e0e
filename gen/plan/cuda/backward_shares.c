/* Shares: several warps of backward_queries and backward_keys have the same 16 own tokens, and process some
 * of the units of a state each. Without them a multiprocessor runs few warps, since the sums of all rows'
 * gradients fill its shared memory; warps with the same tokens share these sums. If features of several
 * shares have the same row, the later share adds to a copy of its sums, and copies are added at the end. */
#include "backward.h"
#include "parts.h"

enum { MOST_SHARES = 3, GROUP_UNITS = GROUP_CELLS * CELL / CUDA_UNIT };

static int count_row_blocks(const fpa_plan *plan)
{
    return divide_up(plan->cuda.rows->row_count, CELL);
}

void allocate_backward_shares(const fpa_plan *plan, arena *memory, fpa_cuda_backward_plan *back)
{
    const int places = MOST_SHARES * count_row_blocks(plan);
    back->share_places = arena_array(memory, places, sizeof *back->share_places);
    back->copy_blocks = arena_array(memory, places, sizeof *back->copy_blocks);
}

/* Marks the blocks of rows that features of a share use: units' suffixes, and factors of groups' prefixes. */
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

/* A share has a copy of the sums of each block of rows that an earlier share uses, too. */
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

/* Registers of a thread: sums of gradients of values throughout; beside them either dots of 16 own tokens and
 * others with their gradients, or gradients of units' features, what units have in common, and the own
 * values. ptxas keeps up to 30 words of some heads in local memory. */
static int registers_needed(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum {
        A_TILE = 4,
        A_UNIT = 8,
        OF_PAIRS = 12,
        OF_UNITS = 60,
        MOST_KEPT = 20 /* backward_features.cu.in */
    };
    const int others = back->pairs / CELL, dots = plan->score->dot_count;
    const int pairs = A_TILE * dots * others + A_TILE / 2 * dots * others + OF_PAIRS;
    const int kept = back->value_tiles <= MOST_KEPT ? 2 * back->value_tiles : 0;
    const int units = A_UNIT * back->group + kept + OF_UNITS;
    return A_TILE * back->sides.tiles + largest(pairs, units);
}

static int registers_of(int blocks, int shares)
{
    enum { ALL = 65536, A_THREAD = 255 };
    const int registers = ALL / (blocks * CUDA_THREADS * shares) / 8 * 8;
    return registers < A_THREAD ? registers : A_THREAD;
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

/* If shares leave a thread at most 128 registers, dots of 32 others and slopes of 64 do not fit beside sums
 * of values: ptxas keeps up to 43 words in local memory for sm_80 (decision 0200). On GPUs with warpgroups
 * most such heads have passes. */
static void shorten_pairs(const fpa_plan *plan, fpa_cuda_backward_plan *back, int blocks)
{
    enum { HALF = 128, FEWEST_OTHERS = 16 };
    if (plan->target->warpgroups || registers_of(blocks, back->shares) > HALF)
        return;
    back->pairs = back->span = FEWEST_OTHERS;
}

void choose_backward_shares(const fpa_plan *plan, fpa_cuda_backward_plan *back, int blocks, int bytes)
{
    enum { FEWEST = 2 /* units of a tile: those of a suffix, which is read once */ };
    const fpa_cuda_backward_plan before = *back;
    if (!backward_packs_slices(plan, back) || back->warps != CUDA_WARPS || back->query_tiles > 1)
        return;
    for (int shares = MOST_SHARES; shares > 1; shares--)
        for (int group = before.group; group >= FEWEST; group /= 2) {
            back->group = group;
            back->stages = 2;
            if (registers_of(blocks, shares) < registers_needed(plan, back) ||
                !shares_fit(plan, back, shares, bytes))
                continue;
            shorten_pairs(plan, back, blocks);
            add_backward_stages(plan, back);
            return;
        }
    *back = before;
}

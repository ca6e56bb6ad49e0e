/* Panels of backward_state if features are in cells: a block packs only the rows that its own cells use, from
 * pieces of 16 bytes. */
#include "backward.h"
#include "parts.h"

enum { BLOCKS = 512 /* of 8 rows, more than shared memory has room for */ };

bool backward_packs_slices(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    return back->cells.used && !plan->projection_count && plan->cuda.rows->row_count <= BLOCKS * CELL;
}

/* The coordinate of a row, weighted or not; -1: the row of ones or zeros, or none. */
static int coordinate_of(const fpa_plan *plan, int row)
{
    const fpa_cuda_rows *rows = plan->cuda.rows;
    for (int i = 0; i < plan->weighted_count; i++)
        if (rows->row[plan->weighted[i].row] == row)
            return rows->row[plan->weighted[i].from];
    return row < plan->head->d ? row : -1;
}

/* Counts what cells first .. end - 1 use: blocks of 8 rows that are suffixes, and pieces of a token's
 * numbers. */
static void count_rows(const fpa_plan *plan, const fpa_cuda_cells *cells, int first, int end, int *suffixes,
                       int *pieces)
{
    const int factors = plan->cuda.rows->factors, each = cells->prefixes / (factors - 1);
    bool suffix[BLOCKS] = {false}, piece[BLOCKS] = {false};
    for (int c = first; c < end && c < 2 * cells->units; c++) {
        const int block = cells->suffix[c / 2];
        suffix[block] = true;
        for (int i = 0; i < CELL + factors - 1; i++) {
            const int row = i < CELL ? block * CELL + i : cells->prefix_row[(i - CELL) * each + c];
            const int coordinate = coordinate_of(plan, row);
            if (coordinate >= 0)
                piece[coordinate / CELL] = true;
        }
    }
    *suffixes = *pieces = 0;
    for (int i = 0; i < BLOCKS; i++)
        *suffixes += suffix[i], *pieces += piece[i];
}

/* The largest counts of all blocks. */
static void count_slices(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    const int prefixes = 2 * back->warps * plan->cuda.rows->warp_units;
    back->walk_prefixes = prefixes;
    back->walk_suffixes = back->walk_pieces = 0;
    for (int first = 0; first < 2 * back->cells.units; first += prefixes) {
        int suffixes, pieces;
        count_rows(plan, &back->cells, first, first + prefixes, &suffixes, &pieces);
        back->walk_suffixes = largest(back->walk_suffixes, suffixes);
        back->walk_pieces = largest(back->walk_pieces, pieces);
    }
}

/* Addresses: rows of suffixes and prefixes; pieces of tokens, the first one of ones; a block's columns of
 * values, of two panels. */
static void place_slices(const fpa_plan *plan, fpa_cuda_backward_plan *back, int panel)
{
    const int element = plan->cuda.rows->element;
    const int rows = CELL * back->walk_suffixes + round_up(back->walk_prefixes, 4);
    fpa_cuda_memory *state = &back->state;
    back->walk_panel = panel;
    back->walk_pitch = cuda_odd_pitch(panel * element);
    back->walk_raw_pitch = cuda_odd_pitch(16 * (1 + back->walk_pieces));
    back->walk_value_pitch = cuda_odd_pitch(8 * back->columns.tiles * element);
    state->raw = rows * back->walk_pitch;
    state->values = state->raw + panel * back->walk_raw_pitch;
    state->gates = state->values + 2 * panel * back->walk_value_pitch;
    state->size = round_up(state->gates + panel * 4, 16);
}

/* Long panels, unless short ones leave room for more blocks and registers allow these. */
void place_backward_slices(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    enum { LONG = 64, SHORT = 32 };
    count_slices(plan, back);
    place_slices(plan, back, LONG);
    if (backward_walks_room(plan, back) < backward_most_walks(plan, back))
        place_slices(plan, back, SHORT);
}

#include "fused_packed.h"

#include <stdio.h>

#include "parts.h"

enum {
    SLAB = 128 * FUSED_PANEL,      /* bytes of 64 numbers of a panel's tokens */
    ONES = 16 * 128,               /* by which values become z, where they fill their slab */
    GATES = 14 * FUSED_PANEL + 16, /* sums, what keys keep, what is left of the state */
    PART = 96,                     /* what a block knows of its part of the work */
    FACTORS = 256,                 /* of gates of segments */
    FEW_SUMS = 108,         /* registers of a thread for sums: there is room for more in other warpgroups */
    MOST_SUMS_OF_ONE = 144, /* of one warpgroup of keys */
    MOST_SUMS_OF_TWO = 128, /* and of two */
    MOST_COLUMNS = 9,       /* tiles of 8 */
    MOST_FACTORS = 4,
    OTHERS_OF_KEYS = 12, /* registers of a thread that adds up keys: addresses, counters */
};

static fpa_status refuse(fpa_fused_packed_plan *fused, const char *why)
{
    fused->used = false;
    snprintf(fused->why, sizeof fused->why, "%s", why);
    return FPA_OK;
}

/* ---- rows ---- */

static bool names_coordinate(const fpa_plan *plan, const int *rows, int count)
{
    for (int i = 0; i < count; i++)
        if (rows[i] < plan->head->d)
            return true;
    return false;
}

static bool keeps_coordinates(const fpa_plan *plan)
{
    for (int i = 0; i < plan->piece_count; i++)
        if (names_coordinate(plan, plan->pieces[i].prefix, plan->pieces[i].prefix_count) ||
            names_coordinate(plan, &plan->pieces[i].base, 1))
            return true;
    for (int i = 0; i < plan->score->dot_count; i++)
        if (names_coordinate(plan, plan->dots[i].rows, plan->dots[i].row_count))
            return true;
    for (int i = 0; i < plan->weighted_count; i++)
        if (names_coordinate(plan, &plan->weighted[i].from, 1))
            return true;
    return false;
}

/* Rows of all matrices follow each other: together they are one matrix. */
static void place_rows(fpa_plan *plan)
{
    fpa_fused_packed_plan *fused = &plan->fused_packed;
    const fpa_cuda_plan *cuda = &plan->cuda;
    fused->coordinates = keeps_coordinates(plan);
    fused->row_base = fused->coordinates ? 0 : round_up(plan->head->d, 16);
    fused->rows = cuda->row_count - fused->row_base;
    for (int i = 0; i < plan->projection_count; i++)
        fused->projected += plan->head->matrices[plan->projections[i].matrix].rows;
    if (!fused->projected)
        return;
    fused->projected_first = cuda->row[plan->projections[0].first_row];
    const int rows = round_up(fused->projected, 8);
    fused->matrix_parts = (rows + FUSED_MATRIX_ROWS - 1) / FUSED_MATRIX_ROWS;
    fused->matrix_rows = round_up((rows + fused->matrix_parts - 1) / fused->matrix_parts, 8);
    fused->rows += rows - fused->projected; /* rows are stored by 8 */
}

/* ---- warpgroups ---- */

static bool choose_groups(fpa_plan *plan)
{
    fpa_fused_packed_plan *fused = &plan->fused_packed;
    const int tiles = (plan->cuda.units + 3) / 4, columns = plan->cuda.all_tiles;
    const bool one = 4 * columns * tiles <= MOST_SUMS_OF_ONE;
    fused->key_groups = one ? 1 : 2;
    fused->query_groups = 3 - fused->key_groups;
    fused->key_tiles = (tiles + fused->key_groups - 1) / fused->key_groups;
    fused->total_parts = one && !plan->head->gate ? 2 : 1;
    return one || 4 * columns * fused->key_tiles <= MOST_SUMS_OF_TWO;
}

/* Products of two tiles at a time, or of one: beside the sums each tile takes two places for features and one
 * for every factor, of 4 registers. */
static int two_if_room(const fpa_plan *plan, int registers)
{
    const int sums = 4 * plan->cuda.all_tiles * plan->fused_packed.key_tiles, places = 2 + plan->cuda.factors;
    return sums + 2 * 4 * places <= registers - OTHERS_OF_KEYS ? 2 : 1;
}

/* A multiprocessor's 65,536 registers are 512 for a thread of each warpgroup. What packers and queries have
 * of them decides how many loads they have on their way. */
static void share_registers(fpa_plan *plan)
{
    fpa_fused_packed_plan *fused = &plan->fused_packed;
    const bool gate = plan->head->gate;
    const bool few = 4 * plan->cuda.all_tiles * fused->key_tiles <= FEW_SUMS;
    if (fused->key_groups == 2) {
        fused->walk = (fpa_fused_share){64, 168, 112, 1, 2};
        fused->totals = (fpa_fused_share){80, 176, 80, gate ? 1 : two_if_room(plan, 176), 0};
        return;
    }
    const int pack = few ? 72 : plan->projection_count ? 64 : 56, key = 256 - pack;
    const int together = few && fused->key_tiles == 3 ? 3 : fused->key_tiles < 2 ? 1 : 2;
    fused->walk = (fpa_fused_share){pack, key, 128, together, gate ? 2 : 3};
    fused->totals = (fpa_fused_share){pack, key, pack, together, 0};
}

/* ---- shared memory ---- */

static bool place(fpa_plan *plan, int panels, int values, int raw_stages)
{
    fpa_fused_packed_plan *fused = &plan->fused_packed;
    const fpa_cuda_plan *cuda = &plan->cuda;
    const int slabs = (plan->head->d + 63) / 64, rows = fused->matrix_rows * fused->matrix_parts;
    const bool apart = plan->head->normalize != FPA_NORMALIZE_NONE && cuda->column_tiles == 8;
    const bool boxes = cuda->column_blocks == 1 || cuda->column_tiles == 8;
    fused->panels = panels, fused->values = values, fused->raw_stages = raw_stages;
    fused->outputs = boxes ? fused->query_groups : 0;
    fused->raw_bytes = slabs * SLAB;
    fused->matrix_bytes = 2 * slabs * rows * 128;
    fused->copy_bytes = fused->key_groups * fused->key_tiles * 64 * 16 * cuda->all_tiles;
    fused->panel_bytes = 2 * fused->rows * FUSED_ROW_PITCH + (plan->head->gate ? GATES : 0);
    fused->at_ones = values * SLAB;
    fused->at_outputs = fused->at_ones + (apart ? ONES : 0);
    fused->at_raw_stages = fused->at_outputs + fused->outputs * SLAB;
    fused->at_matrix = fused->at_raw_stages + raw_stages * fused->raw_bytes;
    fused->at_copies = fused->at_matrix + fused->matrix_bytes;
    fused->at_panels = fused->at_copies + FUSED_COPIES * fused->copy_bytes;
    fused->at_barriers = fused->at_panels + panels * fused->panel_bytes;
    fused->at_part =
        round_up(fused->at_barriers + 8 * (2 * (panels + values + FUSED_COPIES) + raw_stages), 16);
    fused->bytes = fused->at_part + PART + (plan->head->gate ? FACTORS : 0);
    return fused->bytes <= plan->target->shared_memory;
}

/* More values than raw vectors: of totals, keys of the next panel are not fetched before a panel's values are
 * free, and meanwhile the panel between shall be packed. */
static bool choose_places(fpa_plan *plan)
{
    static const int sizes[][3] = {{4, 6, 4}, {4, 5, 4}, {3, 5, 4}, {3, 4, 3},
                                   {2, 4, 3}, {2, 4, 2}, {2, 3, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (place(plan, sizes[i][0], sizes[i][1], sizes[i][2]))
            return true;
    return false;
}

/* Kernels of tiles stay for the other forms, if they have the same columns. */
static bool columns_fit(const fpa_plan *plan)
{
    return plan->cuda.all_tiles <= MOST_COLUMNS && plan->cuda.column_tiles <= 8;
}

fpa_status plan_fused_packed(fpa_plan *plan, fpa_error *error)
{
    fpa_fused_packed_plan *fused = &plan->fused_packed;
    fpa_cuda_plan *cuda = &plan->cuda;
    *fused = (fpa_fused_packed_plan){.used = true};
    if (!plan->target->warpgroups || cuda->element != 2 || !plan->head->causal || cuda->coordinates)
        return refuse(fused, "its operands are no rows of 16-bit numbers");
    if (cuda->units > FUSED_MOST_UNITS || !columns_fit(plan) || cuda->factors > MOST_FACTORS ||
        !choose_groups(plan))
        return refuse(fused, "its state does not fit into the registers of a block");
    share_registers(plan);
    place_rows(plan);
    if (!choose_places(plan))
        return refuse(fused, "copies of its state and packed rows do not fit into shared memory");
    /* places for vectors and packed rows belong to them by turns */
    fused->total_packers = fused->raw_stages % 2 == 0 && fused->panels % 2 == 0 ? 2 : 1;
    cuda->is_fused = true;
    cuda->fused_coordinates = false;
    cuda->fused_blocks = 1;
    cuda->fused.size = fused->bytes;
    return plan_fused_packed_slots(plan, error);
}

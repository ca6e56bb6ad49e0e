#include "flow.h"

#include <stdio.h>

#include "parts.h"

enum {
    SLAB = 128 * FLOW_PANEL,      /* bytes of 64 numbers of a panel's tokens */
    ONES = 16 * 128,              /* by which values become z, where they fill their slab */
    GATES = 14 * FLOW_PANEL + 16, /* sums, what keys keep, what is left of the state */
    PART = 96,                    /* what a block knows of its part of the work */
    FACTORS = 256,                /* of gates of segments */
    FEW_SUMS = 108,         /* registers of a thread for sums: there is room for more in other warpgroups */
    MOST_SUMS_OF_ONE = 144, /* of one warpgroup of keys */
    MOST_SUMS_OF_TWO = 128, /* and of two */
    MOST_COLUMNS = 9,       /* tiles of 8 */
    MOST_FACTORS = 4,
    OTHERS_OF_KEYS = 12, /* registers of a thread that adds up keys: addresses, counters */
};

static fpa_status refuse(fpa_flow_plan *flow, const char *why)
{
    flow->used = false;
    snprintf(flow->why, sizeof flow->why, "%s", why);
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
    fpa_flow_plan *flow = &plan->flow;
    const fpa_cuda_plan *cuda = &plan->cuda;
    flow->coordinates = keeps_coordinates(plan);
    flow->row_base = flow->coordinates ? 0 : round_up(plan->head->d, 16);
    flow->rows = cuda->row_count - flow->row_base;
    for (int i = 0; i < plan->projection_count; i++)
        flow->projected += plan->head->matrices[plan->projections[i].matrix].rows;
    if (!flow->projected)
        return;
    flow->projected_first = cuda->row[plan->projections[0].first_row];
    const int rows = round_up(flow->projected, 8);
    flow->matrix_parts = (rows + FLOW_MATRIX_ROWS - 1) / FLOW_MATRIX_ROWS;
    flow->matrix_rows = round_up((rows + flow->matrix_parts - 1) / flow->matrix_parts, 8);
    flow->rows += rows - flow->projected; /* rows are stored by 8 */
}

/* ---- warpgroups ---- */

static bool choose_groups(fpa_plan *plan)
{
    fpa_flow_plan *flow = &plan->flow;
    const int tiles = (plan->cuda.units + 3) / 4, columns = plan->cuda.all_tiles;
    const bool one = 4 * columns * tiles <= MOST_SUMS_OF_ONE;
    flow->key_groups = one ? 1 : 2;
    flow->query_groups = 3 - flow->key_groups;
    flow->key_tiles = (tiles + flow->key_groups - 1) / flow->key_groups;
    flow->total_parts = one && !plan->head->gate ? 2 : 1;
    return one || 4 * columns * flow->key_tiles <= MOST_SUMS_OF_TWO;
}

/* Products of two tiles at a time, or of one: beside the sums each tile takes two places for features and one
 * for every factor, of 4 registers. */
static int two_if_room(const fpa_plan *plan, int registers)
{
    const int sums = 4 * plan->cuda.all_tiles * plan->flow.key_tiles, places = 2 + plan->cuda.factors;
    return sums + 2 * 4 * places <= registers - OTHERS_OF_KEYS ? 2 : 1;
}

/* A multiprocessor's 65,536 registers are 512 for a thread of each warpgroup. What packers and queries have
 * of them decides how many loads they have on their way. */
static void share_registers(fpa_plan *plan)
{
    fpa_flow_plan *flow = &plan->flow;
    const bool gate = plan->head->gate;
    const bool few = 4 * plan->cuda.all_tiles * flow->key_tiles <= FEW_SUMS;
    if (flow->key_groups == 2) {
        flow->walk = (fpa_flow_share){64, 168, 112, 1, 2};
        flow->totals = (fpa_flow_share){80, 176, 80, gate ? 1 : two_if_room(plan, 176), 0};
        return;
    }
    const int pack = few ? 72 : plan->projection_count ? 64 : 56, key = 256 - pack;
    const int together = few && flow->key_tiles == 3 ? 3 : flow->key_tiles < 2 ? 1 : 2;
    flow->walk = (fpa_flow_share){pack, key, 128, together, gate ? 2 : 3};
    flow->totals = (fpa_flow_share){pack, key, pack, together, 0};
}

/* ---- shared memory ---- */

static bool place(fpa_plan *plan, int panels, int values, int raws)
{
    fpa_flow_plan *flow = &plan->flow;
    const fpa_cuda_plan *cuda = &plan->cuda;
    const int slabs = (plan->head->d + 63) / 64, rows = flow->matrix_rows * flow->matrix_parts;
    const bool apart = plan->head->normalize != FPA_NORMALIZE_NONE && cuda->column_tiles == 8;
    const bool boxes = cuda->column_blocks == 1 || cuda->column_tiles == 8;
    flow->panels = panels, flow->values = values, flow->raws = raws;
    flow->outputs = boxes ? flow->query_groups : 0;
    flow->raw_bytes = slabs * SLAB;
    flow->matrix_bytes = 2 * slabs * rows * 128;
    flow->copy_bytes = flow->key_groups * flow->key_tiles * 64 * 16 * cuda->all_tiles;
    flow->panel_bytes = 2 * flow->rows * FLOW_ROW_PITCH + (plan->head->gate ? GATES : 0);
    flow->at_ones = values * SLAB;
    flow->at_outputs = flow->at_ones + (apart ? ONES : 0);
    flow->at_raws = flow->at_outputs + flow->outputs * SLAB;
    flow->at_matrix = flow->at_raws + raws * flow->raw_bytes;
    flow->at_copies = flow->at_matrix + flow->matrix_bytes;
    flow->at_panels = flow->at_copies + FLOW_COPIES * flow->copy_bytes;
    flow->at_barriers = flow->at_panels + panels * flow->panel_bytes;
    flow->at_part = round_up(flow->at_barriers + 8 * (2 * (panels + values + FLOW_COPIES) + raws), 16);
    flow->bytes = flow->at_part + PART + (plan->head->gate ? FACTORS : 0);
    return flow->bytes <= plan->target->shared_memory;
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

fpa_status plan_flow(fpa_plan *plan, fpa_error *error)
{
    fpa_flow_plan *flow = &plan->flow;
    fpa_cuda_plan *cuda = &plan->cuda;
    *flow = (fpa_flow_plan){.used = true};
    if (!plan->target->warpgroups || cuda->element != 2 || !plan->head->causal || cuda->natural)
        return refuse(flow, "its operands are no rows of 16-bit numbers");
    if (cuda->units > FLOW_MOST_UNITS || !columns_fit(plan) || cuda->factors > MOST_FACTORS ||
        !choose_groups(plan))
        return refuse(flow, "its state does not fit into the registers of a block");
    share_registers(plan);
    place_rows(plan);
    if (!choose_places(plan))
        return refuse(flow, "copies of its state and packed rows do not fit into shared memory");
    /* places for vectors and packed rows belong to them by turns */
    flow->total_packers = flow->raws % 2 == 0 && flow->panels % 2 == 0 ? 2 : 1;
    cuda->flows = true;
    cuda->flow_hopper = false;
    cuda->flow_blocks = 1;
    cuda->flow.size = flow->bytes;
    return plan_flow_slots(plan, error);
}

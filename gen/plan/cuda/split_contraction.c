/* plan_contraction: NAME_chunk_contraction, the gradient of queries whose kernel is of degree 2 in one dot, beside the kernels of
 * split_outer whose copies of states it reads. */
#include "split_outer.h"

#include "contraction.h"
#include "parts.h"

enum {
    GROUPS_WIDTH = 64, /* sums of gradients, and rows g, beside which three warpgroups have registers */
    GROUPS_VALUES = 80,
    MOST_STAGES = 4, /* of keys */
    LEAST_STAGES = 2,
    MOST_TILES = 8,
    LEAST_TILES = 2,
    BARRIERS = 16, /* bytes, of a stage */
    GATE = 8,      /* bytes, of a token */
    SLAB = 128,    /* bytes of 64 numbers of a token */
};

/* Rows are coordinates as they lie, and perhaps one more, of ones, first in a block behind them. */
static bool has_rows(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    for (int r = 0; r < OUTER_BLOCK * outer->row_blocks; r++)
        if (outer->source[r] != (r < plan->head->d ? r : r == outer->ones_row ? plan->ones_row : -1))
            return false;
    return OUTER_BLOCK * outer->row_blocks >= plan->head->d;
}

/* Tiles are blocks of these rows times blocks of them. */
static bool has_blocks(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    return has_rows(plan, outer) && outer->vector_box == OUTER_TILE && !outer->rows && !outer->products &&
           outer->prefix_factors == 1 && outer_prefix_kind(outer, 0) == PREFIX_BLOCK;
}

/* Rows of queries and g in `stages` places, then keys and tiles as many as there is room for. */
static bool place_contraction(const fpa_plan *plan, const fpa_split_outer *split, int stages,
                              fpa_contraction *c)
{
    const int slabs =
        (split->outer.row_blocks + 7) / 8 + (split->columns.blocks * split->columns.tiles + 7) / 8;
    const int gate = plan->head->gate ? GATE : 0, tokens = 64 * c->groups;
    const int own = tokens * (slabs * SLAB + gate) + BARRIERS, key = 64 * (slabs * SLAB + gate) + BARRIERS;
    const int tile = 1024 * split->columns.all * split->columns.blocks + BARRIERS;
    const int room = plan->target->shared_memory - stages * own;
    c->own_stages = stages;
    c->key_stages = (room - LEAST_TILES * tile) / key;
    if (room < 0 || c->key_stages < LEAST_STAGES)
        return false;
    if (c->key_stages > MOST_STAGES)
        c->key_stages = MOST_STAGES;
    c->tile_stages = (room - c->key_stages * key) / tile;
    if (c->tile_stages > MOST_TILES)
        c->tile_stages = MOST_TILES;
    c->bytes = stages * own + c->key_stages * key + c->tile_stages * tile;
    return true;
}

/* Whole blocks of queries divide a chunk; sums of gates behind the last one are for query_tokens more. */
static bool choose_groups(const fpa_plan *plan, const fpa_split_outer *split, fpa_contraction *c)
{
    const fpa_head *head = plan->head;
    const bool narrow = head->d <= GROUPS_WIDTH && head->dv <= GROUPS_VALUES;
    for (int groups = narrow ? 3 : 2; groups > 0; groups--) {
        const int tokens = 64 * groups;
        c->groups = groups;
        if (split->chunk % tokens == 0 && tokens - 64 <= split->query_tokens &&
            (place_contraction(plan, split, 2, c) || place_contraction(plan, split, 1, c)))
            return true;
    }
    return false;
}

void plan_contraction(const fpa_plan *plan, fpa_split_outer *split)
{
    fpa_contraction c = {0};
    if (!contraction_is_wanted(plan) || !has_blocks(plan, &split->outer) || !choose_groups(plan, split, &c))
        return;
    c.ones = split->outer.ones_row >= 0;
    c.registers = split_registers(c.groups);
    c.producer_registers = split_producer_registers(c.groups);
    split->contraction = c;
}

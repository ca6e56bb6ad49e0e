/* plan_tiles: features gathered as groups of 8 centres, each with the tiles of all its leaf blocks.
 *
 * Sorted by centre and row, features fall into *cells*: one centre and one block of rows. All cells of a
 * centre stay together; centres with the same blocks make up groups. */
#include "tiles.h"

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    const int *centre; /* [factors] rows */
    int factors;
    int copy; /* the how-many-th feature of that centre and row: they must not share a tile */
    int row;
    int feature;
} slot;

typedef struct cell {
    int leaf;
    int feature[HOPPER_BLOCK];
} cell;

/* A centre with all of its cells, by ascending leaf. */
typedef struct spoke {
    const int *centre;
    int factors, copy;
    int cell_count;
    cell *cells;
} spoke;

typedef struct group {
    int member_count; /* 1..8; 0: merged into another */
    const spoke *member[HOPPER_BLOCK];
    int leaf_count;
    int *leaf; /* ascending */
} group;

static int compare_rows(const int *a, const int *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* ---- slots ---- */

static int compare_slots(const void *left, const void *right)
{
    const slot *a = left, *b = right;
    if (a->copy != b->copy)
        return a->copy < b->copy ? -1 : 1;
    const int order = compare_rows(a->centre, b->centre, a->factors);
    if (order)
        return order;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

/* Rows of ones come first: the last factor of a centre may be a block's row in shorter features too. */
static const int *piece_centre(const fpa_hopper_plan *hopper, const fpa_piece *piece, arena *memory)
{
    const int factors = hopper->centre_factors, ones = factors - piece->prefix_count;
    int *centre = arena_array(memory, factors, sizeof *centre);
    for (int l = 0; centre && l < factors; l++)
        centre[l] = l < ones ? hopper->ones_row : hopper->row[piece->prefix[l - ones]];
    return centre;
}

static slot *form_slots(const fpa_plan *plan, const fpa_hopper_plan *hopper, arena *memory)
{
    slot *slots = arena_array(memory, (size_t)plan->features, sizeof *slots);
    for (int p = 0, n = 0; slots && p < plan->piece_count; p++) {
        const fpa_piece *piece = &plan->pieces[p];
        const int *centre = piece_centre(hopper, piece, memory);
        if (!centre)
            return NULL;
        for (int i = 0; i < piece->width; i++)
            slots[n++] = (slot){.centre = centre,
                                .factors = hopper->centre_factors,
                                .row = hopper->row[piece->base + i],
                                .feature = (int)piece->feature + i};
    }
    return slots;
}

/* By copy, then centre, then row. */
static void sort_slots(slot *slots, int count)
{
    qsort(slots, count, sizeof *slots, compare_slots);
    for (int i = 1; i < count; i++)
        if (slots[i].row == slots[i - 1].row &&
            compare_rows(slots[i].centre, slots[i - 1].centre, slots[i].factors) == 0)
            slots[i].copy = slots[i - 1].copy + 1;
    qsort(slots, count, sizeof *slots, compare_slots);
}

/* ---- spokes ---- */

static bool same_centre(const spoke *s, const slot *next)
{
    return s->copy == next->copy && compare_rows(s->centre, next->centre, s->factors) == 0;
}

static int form_spokes(const slot *slots, int count, spoke *spokes, cell *cells, int *cell_count)
{
    int spoke_count = 0, used = 0;
    for (int i = 0; i < count; i++) {
        const slot *next = &slots[i];
        const int leaf = next->row / HOPPER_BLOCK;
        spoke *last = spoke_count ? &spokes[spoke_count - 1] : NULL;
        if (!last || !same_centre(last, next)) {
            last = &spokes[spoke_count++];
            *last = (spoke){next->centre, next->factors, next->copy, 0, cells + used};
        }
        if (!last->cell_count || cells[used - 1].leaf != leaf) {
            cells[used].leaf = leaf;
            memset(cells[used].feature, -1, sizeof cells->feature);
            used++;
            last->cell_count++;
        }
        cells[used - 1].feature[next->row % HOPPER_BLOCK] = next->feature;
    }
    *cell_count = used;
    return spoke_count;
}

static int compare_spans(const spoke *a, const spoke *b)
{
    for (int i = 0; i < a->cell_count && i < b->cell_count; i++)
        if (a->cells[i].leaf != b->cells[i].leaf)
            return a->cells[i].leaf < b->cells[i].leaf ? -1 : 1;
    return (a->cell_count > b->cell_count) - (a->cell_count < b->cell_count);
}

/* By blocks of rows, so that those of a group follow each other; then as slots. */
static int compare_spokes(const void *left, const void *right)
{
    const spoke *a = left, *b = right;
    const int order = compare_spans(a, b);
    if (order)
        return order;
    if (a->copy != b->copy)
        return a->copy < b->copy ? -1 : 1;
    return compare_rows(a->centre, b->centre, a->factors);
}

/* ---- groups ---- */

/* Runs of at most 8 spokes of one span; -1: no memory. */
static int form_groups(const spoke *spokes, int count, group *groups, arena *memory)
{
    int group_count = 0;
    for (int i = 0; i < count; i++) {
        const spoke *next = &spokes[i];
        group *last = group_count ? &groups[group_count - 1] : NULL;
        if (!last || last->member_count == HOPPER_BLOCK || compare_spans(last->member[0], next)) {
            last = &groups[group_count++];
            last->leaf_count = next->cell_count;
            last->leaf = arena_array(memory, next->cell_count, sizeof *last->leaf);
            if (!last->leaf)
                return -1;
            for (int j = 0; j < next->cell_count; j++)
                last->leaf[j] = next->cells[j].leaf;
        }
        last->member[last->member_count++] = next;
    }
    return group_count;
}

/* Ascending union of the leaves of two groups into leaf (NULL: only count it). */
static int unite_leaves(const group *a, const group *b, int *leaf)
{
    int i = 0, j = 0, count = 0;
    while (i < a->leaf_count || j < b->leaf_count) {
        const bool first = j == b->leaf_count || (i < a->leaf_count && a->leaf[i] <= b->leaf[j]);
        const int next = first ? a->leaf[i] : b->leaf[j];
        if (leaf)
            leaf[count] = next;
        count++;
        i += i < a->leaf_count && a->leaf[i] == next;
        j += j < b->leaf_count && b->leaf[j] == next;
    }
    return count;
}

/* The group before g that g's centres fit into and that saves most tiles, or NULL. */
static group *merge_partner(group *groups, const group *g)
{
    group *best = NULL;
    int most = 0;
    for (group *h = groups; h < g; h++) {
        if (!h->member_count || h->member_count + g->member_count > HOPPER_BLOCK)
            continue;
        const int saved = h->leaf_count + g->leaf_count - unite_leaves(h, g, NULL);
        if (saved > most) {
            most = saved;
            best = h;
        }
    }
    return best;
}

/* Groups of fewer than 8 centres join others when that saves tiles; false: no memory. */
static bool merge_groups(group *groups, int count, arena *memory)
{
    for (group *g = groups; g < groups + count; g++) {
        group *into = g->member_count < HOPPER_BLOCK ? merge_partner(groups, g) : NULL;
        if (!into)
            continue;
        int *leaf = arena_array(memory, into->leaf_count + g->leaf_count, sizeof *leaf);
        if (!leaf)
            return false;
        into->leaf_count = unite_leaves(into, g, leaf);
        into->leaf = leaf;
        for (int i = 0; i < g->member_count; i++)
            into->member[into->member_count++] = g->member[i];
        *g = (group){0};
    }
    return true;
}

/* ---- tiles ---- */

/* The rows of centre c of a group. Centres that are missing go on with the block of rows that the last
 * factor of those before them begins, or else repeat the first; no feature is at them. */
static void fill_centre(const group *g, int c, int factors, int *centre)
{
    const int last = factors - 1, begin = g->member[0]->centre[last];
    bool block = begin % HOPPER_BLOCK == 0;
    for (int i = 1; i < g->member_count; i++)
        block &= g->member[i]->centre[last] == begin + i &&
                 compare_rows(g->member[i]->centre, g->member[0]->centre, last) == 0;
    memcpy(centre, g->member[c < g->member_count ? c : 0]->centre, factors * sizeof *centre);
    if (c >= g->member_count && block)
        centre[last] = begin + c;
}

static void fill_tile(const group *g, int leaf, hopper_tile *tile)
{
    tile->leaf = leaf;
    memset(tile->feature, -1, sizeof tile->feature);
    for (int c = 0; c < g->member_count; c++)
        for (int i = 0; i < g->member[c]->cell_count; i++)
            if (g->member[c]->cells[i].leaf == leaf)
                memcpy(tile->feature + HOPPER_BLOCK * c, g->member[c]->cells[i].feature,
                       sizeof g->member[c]->cells[i].feature);
}

static fpa_status form_tiles(const group *groups, int count, arena *memory, hopper_tiling *tiling,
                             fpa_error *error)
{
    const int factors = tiling->factors;
    tiling->tile_count = 0;
    for (int g = 0; g < count; g++)
        tiling->tile_count += groups[g].leaf_count;
    tiling->tiles = arena_array(memory, tiling->tile_count, sizeof *tiling->tiles);
    tiling->centre = arena_array(memory, (size_t)count * HOPPER_BLOCK * factors, sizeof *tiling->centre);
    if (!tiling->tiles || !tiling->centre)
        return fail_memory(error);
    hopper_tile *tile = tiling->tiles;
    for (int g = 0; g < count; g++) {
        if (!groups[g].member_count)
            continue;
        int *centre = tiling->centre + tiling->group_count * HOPPER_BLOCK * factors;
        for (int c = 0; c < HOPPER_BLOCK; c++)
            fill_centre(&groups[g], c, factors, centre + c * factors);
        for (int i = 0; i < groups[g].leaf_count; i++, tile++) {
            tile->group = tiling->group_count;
            fill_tile(&groups[g], groups[g].leaf[i], tile);
        }
        tiling->group_count++;
    }
    return FPA_OK;
}

bool tiles_are_sparse(const fpa_plan *plan, double slots)
{
    const bool few = plan->cuda.units <= FLOW_MOST_UNITS;
    return slots > (few ? 1.5 : 2) * (double)plan->features;
}

fpa_status tiles_form(const fpa_plan *plan, const fpa_hopper_plan *hopper, arena *memory,
                      hopper_tiling *tiling, double *slots, fpa_error *error)
{
    const int features = (int)plan->features;
    *tiling = (hopper_tiling){.factors = hopper->centre_factors};
    slot *slot_list = form_slots(plan, hopper, memory);
    spoke *spokes = arena_array(memory, features, sizeof *spokes);
    cell *cells = arena_array(memory, features, sizeof *cells);
    if (!slot_list || !spokes || !cells)
        return fail_memory(error);
    sort_slots(slot_list, features);
    int cell_count = 0;
    const int spoke_count = form_spokes(slot_list, features, spokes, cells, &cell_count);
    /* groups cannot be fewer than full ones: what is sparse now is not worth gathering */
    *slots = (double)cell_count * HOPPER_BLOCK;
    if (tiles_are_sparse(plan, *slots))
        return FPA_OK;
    qsort(spokes, spoke_count, sizeof *spokes, compare_spokes);
    group *groups = arena_array(memory, spoke_count, sizeof *groups);
    if (!groups)
        return fail_memory(error);
    const int group_count = form_groups(spokes, spoke_count, groups, memory);
    if (group_count < 0 || !merge_groups(groups, group_count, memory))
        return fail_memory(error);
    fpa_status status = form_tiles(groups, group_count, memory, tiling, error);
    *slots = (double)tiling->tile_count * HOPPER_TILE;
    return status;
}

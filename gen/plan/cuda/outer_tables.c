/* tiles_to_tables: fills the tables of fpa_outer_plan from tiles: sorts these into the order of copies, finds folded
 * ones, and lists groups, strips and weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "outer_tiles.h"

/* ---- folded tiles ---- */

/* The tile of a block's rows times themselves has most products twice, at (c, r) and (r, c). A copy has 40 rows of
 * it, in five groups of 8. With n = c ^ r: row 8 n + r for n < 2 (squares, then neighbours, which so remain twice);
 * for n >= 2 only c < r, in group n / 2 + 1, at row r for odd n and at row c for even n, which are all different. So
 * row i of a group is row i of the block times row i ^ n, where n depends on the group and i alone. */
int outer_fold(int slot)
{
    const int c = slot / OUTER_BLOCK, r = slot % OUTER_BLOCK, apart = c ^ r;
    if (apart < 2)
        return OUTER_BLOCK * apart + r;
    return c > r ? -1 : OUTER_BLOCK * (apart / 2 + 1) + (apart % 2 ? r : c);
}

/* Moves features to the slots that copies have; false, and nothing has moved: two features need the same slot. */
static bool fold_tile(outer_tile *tile)
{
    int folded[OUTER_TILE];
    memset(folded, -1, sizeof folded);
    for (int slot = 0; slot < OUTER_TILE; slot++) {
        if (tile->feature[slot] < 0)
            continue;
        const int across = slot % OUTER_BLOCK * OUTER_BLOCK + slot / OUTER_BLOCK;
        const int to = outer_fold(slot) < 0 ? across : slot;
        if (folded[to] >= 0)
            return false;
        folded[to] = tile->feature[slot];
    }
    memcpy(tile->feature, folded, sizeof folded);
    return true;
}

/* The block whose rows are the last factors of 8 prefixes, in order; -1: none. */
static int last_block(const int *prefix, int factors)
{
    const int *row = prefix + factors - 1;
    for (int c = 0; c < OUTER_BLOCK; c++)
        if (row[0] % OUTER_BLOCK || row[c * factors] != row[0] + c)
            return -1;
    return row[0] / OUTER_BLOCK;
}

/* Finds the folded tiles, of groups whose prefixes have one factor, and counts them. */
static int fold_tiles(const outer_tiling *tiling, outer_tile *tiles)
{
    int count = 0;
    for (int t = 0; t < tiling->tile_count && tiling->factors == 1; t++) {
        const int *prefix = tiling->prefix + tiles[t].group * OUTER_BLOCK;
        tiles[t].folded = last_block(prefix, 1) == tiles[t].suffix && fold_tile(&tiles[t]);
        count += tiles[t].folded;
    }
    return count;
}

/* ---- tiles ---- */

/* Folded ones last; in the order of groups and suffixes. */
static int compare_tiles(const void *left, const void *right)
{
    const outer_tile *a = left, *b = right;
    const int x[] = {a->folded, a->group, a->suffix}, y[] = {b->folded, b->group, b->suffix};
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static void allocate(arena *memory, int groups, int tiles, int strips, fpa_outer_plan *outer)
{
    const size_t slots = (size_t)tiles * OUTER_TILE;
    outer->prefix =
        arena_array(memory, (size_t)groups * OUTER_BLOCK * outer->prefix_factors, sizeof *outer->prefix);
    outer->group_first = arena_array(memory, groups + 1, sizeof *outer->group_first);
    outer->tile_suffix = arena_array(memory, tiles, sizeof *outer->tile_suffix);
    outer->tile_quarter = arena_array(memory, (size_t)tiles * OUTER_QUARTERS, sizeof *outer->tile_quarter);
    outer->group_parts = arena_array(memory, groups, sizeof *outer->group_parts);
    outer->feature = arena_array(memory, slots, sizeof *outer->feature);
    outer->weight = arena_array(memory, slots, sizeof *outer->weight);
    outer->copied = arena_array(memory, slots, sizeof *outer->copied);
    outer->degree = arena_array(memory, slots, sizeof *outer->degree);
    outer->strip_group = arena_array(memory, strips + 1, sizeof *outer->strip_group);
    outer->strip_tile =
        arena_array(memory, (size_t)(strips + 1) * outer->strip_length, sizeof *outer->strip_tile);
}

/* The new number of a group: groups are numbered in the order in which tiles refer to them. */
static int number_group(const outer_tiling *tiling, int group, int first_tile, int *number,
                        fpa_outer_plan *outer)
{
    const size_t size = OUTER_BLOCK * tiling->factors;
    if (number[group] < 0) {
        number[group] = outer->groups++;
        outer->group_first[number[group]] = first_tile;
        outer->group_parts[number[group]] = tiling->parts ? tiling->parts[group] : 1;
        outer->parted |= outer->group_parts[number[group]] > 1;
        memcpy(outer->prefix + number[group] * size, tiling->prefix + group * size,
               size * sizeof *outer->prefix);
    }
    return number[group];
}

/* Fills the tables of tiles and groups; groups without tiles are left out. tiles[].group becomes the new number. */
static void fill_tiles(const outer_tiling *tiling, outer_tile *tiles, arena *memory, fpa_outer_plan *outer)
{
    const int whole = outer->tiles - outer->folded;
    int *number = arena_array(memory, tiling->group_count, sizeof *number);
    memset(number, -1, tiling->group_count * sizeof *number);
    for (int t = 0; t < outer->tiles; t++) {
        tiles[t].group = number_group(tiling, tiles[t].group, t < whole ? t : whole, number, outer);
        outer->tile_suffix[t] = tiles[t].suffix;
        const bool parted = outer->group_parts[tiles[t].group] > 1;
        for (int q = 0; q < OUTER_QUARTERS; q++)
            outer->tile_quarter[t * OUTER_QUARTERS + q] = parted ? tiles[t].quarter[q] : tiles[t].suffix;
        memcpy(outer->feature + t * OUTER_TILE, tiles[t].feature, sizeof tiles[t].feature);
    }
    outer->group_first[outer->groups] = whole;
}

/* ---- strips ---- */

/* The next tile of group g from t on; outer->tiles: there is none. */
static int next_tile(const fpa_outer_plan *outer, const outer_tile *tiles, int g, int t)
{
    while (t < outer->tiles && tiles[t].group != g)
        t++;
    return t;
}

/* Fills a strip with tiles of group g from *t on, which becomes the first tile behind it; a tile with suffix block
 * `first` is put first. Whether there is one. */
static bool fill_strip(const fpa_outer_plan *outer, const outer_tile *tiles, int g, int *t, int first,
                       int *strip)
{
    bool own = false;
    for (int i = 0; i < outer->strip_length; i++) {
        strip[i] = *t < outer->tiles ? *t : -1;
        if (strip[i] >= 0 && outer->tile_suffix[strip[i]] == first) {
            memmove(strip + 1, strip, i * sizeof *strip);
            strip[0] = *t;
            own = true;
        }
        *t = next_tile(outer, tiles, g, *t + 1);
    }
    return own;
}

/* Adds the own strips of all groups, or the others. */
static void add_strips(const outer_tile *tiles, fpa_outer_plan *outer, bool own)
{
    const int suffixes = outer->strip_length, factors = outer->prefix_factors;
    for (int g = 0; g < outer->groups; g++) {
        const int block = last_block(outer->prefix + g * OUTER_BLOCK * factors, factors);
        for (int t = next_tile(outer, tiles, g, 0); t < outer->tiles;)
            if (fill_strip(outer, tiles, g, &t, block, outer->strip_tile + outer->strips * suffixes) == own)
                outer->strip_group[outer->strips++] = g;
    }
}

/* The table has room for one strip more, since add_strips fills a strip before it knows whether to keep it. */
static void fill_strips(const outer_tile *tiles, fpa_outer_plan *outer)
{
    add_strips(tiles, outer, true);
    outer->own_strips = outer->strips;
    add_strips(tiles, outer, false);
}

/* ---- weights ---- */

/* Whether multiplying a bf16 number by a weight is exact: 0, or a power of two of ordinary size. */
static bool is_exact(double weight)
{
    int exponent;
    return weight == 0 || (fabs(frexp(weight, &exponent)) == 0.5 && abs(exponent) < 64);
}

/* Whether copies have a slot; they leave out some of folded tiles. */
static bool is_copied(const fpa_outer_plan *outer, int slot)
{
    return slot / OUTER_TILE < outer->tiles - outer->folded || outer_fold(slot % OUTER_TILE) >= 0;
}

static void describe_weights(const fpa_plan *plan, fpa_outer_plan *outer)
{
    outer->powers = true;
    for (int i = 0; i < outer->tiles * OUTER_TILE; i++) {
        const double copied = outer->weight[i] * pow(plan->head->scale, outer->degree[i]);
        outer->copied[i] = copied;
        outer->weighted |= copied != 1 || outer->weight[i] != 1;
        outer->powers &= is_exact(copied);
        outer->padded |= outer->feature[i] < 0 && is_copied(outer, i);
    }
}

static void fill_weights(const fpa_plan *plan, arena *memory, fpa_outer_plan *outer)
{
    int *slot_of = arena_array(memory, (size_t)plan->features, sizeof *slot_of);
    for (int i = 0; i < outer->tiles * OUTER_TILE; i++)
        if (outer->feature[i] >= 0)
            slot_of[outer->feature[i]] = i;
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++) {
            const int slot = slot_of[plan->pieces[p].feature + i];
            outer->weight[slot] = plan->pieces[p].weight;
            outer->degree[slot] = plan->pieces[p].degree;
        }
    describe_weights(plan, outer);
}

void tiles_to_tables(const fpa_plan *plan, const outer_tiling *tiling, outer_tile *tiles, int strips,
                     arena *memory, arena *lasting, fpa_outer_plan *outer)
{
    outer->tiles = tiling->tile_count;
    outer->folded = fold_tiles(tiling, tiles);
    outer->copy_rows = OUTER_TILE * (outer->tiles - outer->folded) + OUTER_FOLDED * outer->folded;
    qsort(tiles, outer->tiles, sizeof *tiles, compare_tiles);
    allocate(lasting, tiling->group_count, outer->tiles, strips, outer);
    fill_tiles(tiling, tiles, memory, outer);
    fill_strips(tiles, outer);
    fill_weights(plan, memory, outer);
}

/* plan_tables: tiles in the order that copies have them in, and their stars, as the tables of plan_hopper. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tiles.h"

/* ---- folded tiles ---- */

/* The tile of a block's rows times themselves has most products twice, at (c, r) and (r, c). Row 8 m + r of
 * m < 2 holds (r ^ m, r); of the others, n = c ^ r >= 2, only c < r is kept, in one of the 8 rows of n / 2 +
 * 1, which is r's for odd n and c's for even n: no two of these have the same. So a row of a copy is a row of
 * the block times its neighbour at a distance that the lane alone decides. */
int hopper_fold(int slot)
{
    const int c = slot / HOPPER_BLOCK, r = slot % HOPPER_BLOCK, apart = c ^ r;
    if (apart < 2)
        return HOPPER_BLOCK * apart + r;
    return c > r ? -1 : HOPPER_BLOCK * (apart / 2 + 1) + (apart % 2 ? r : c);
}

/* Features go where they are kept; false, and nothing has moved: two want one place. */
static bool fold_tile(hopper_tile *tile)
{
    int folded[HOPPER_TILE];
    memset(folded, -1, sizeof folded);
    for (int slot = 0; slot < HOPPER_TILE; slot++) {
        if (tile->feature[slot] < 0)
            continue;
        const int across = slot % HOPPER_BLOCK * HOPPER_BLOCK + slot / HOPPER_BLOCK;
        const int to = hopper_fold(slot) < 0 ? across : slot;
        if (folded[to] >= 0)
            return false;
        folded[to] = tile->feature[slot];
    }
    memcpy(tile->feature, folded, sizeof folded);
    return true;
}

/* Block that the last factors of 8 centres are, in order, or -1. */
static int last_block(const int *centre, int factors)
{
    const int *row = centre + factors - 1;
    for (int c = 0; c < HOPPER_BLOCK; c++)
        if (row[0] % HOPPER_BLOCK || row[c * factors] != row[0] + c)
            return -1;
    return row[0] / HOPPER_BLOCK;
}

/* Centres of several factors have no folded tiles. */
static int fold_tiles(const hopper_tiling *tiling, hopper_tile *tiles)
{
    int count = 0;
    for (int t = 0; t < tiling->tile_count && tiling->factors == 1; t++) {
        const int *centre = tiling->centre + tiles[t].group * HOPPER_BLOCK;
        tiles[t].folded = last_block(centre, 1) == tiles[t].leaf && fold_tile(&tiles[t]);
        count += tiles[t].folded;
    }
    return count;
}

/* ---- tiles ---- */

/* Folded ones last; in the order of groups and leaves. */
static int compare_tiles(const void *left, const void *right)
{
    const hopper_tile *a = left, *b = right;
    const int x[] = {a->folded, a->group, a->leaf}, y[] = {b->folded, b->group, b->leaf};
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static fpa_status allocate(arena *memory, int groups, int tiles, int stars, fpa_hopper_plan *hopper,
                           fpa_error *error)
{
    const size_t slots = (size_t)tiles * HOPPER_TILE;
    hopper->centre =
        arena_array(memory, (size_t)groups * HOPPER_BLOCK * hopper->centre_factors, sizeof *hopper->centre);
    hopper->group_first = arena_array(memory, groups + 1, sizeof *hopper->group_first);
    hopper->tile_leaf = arena_array(memory, tiles, sizeof *hopper->tile_leaf);
    hopper->feature = arena_array(memory, slots, sizeof *hopper->feature);
    hopper->weight = arena_array(memory, slots, sizeof *hopper->weight);
    hopper->degree = arena_array(memory, slots, sizeof *hopper->degree);
    hopper->star_group = arena_array(memory, stars + 1, sizeof *hopper->star_group);
    hopper->star_tile =
        arena_array(memory, (size_t)(stars + 1) * hopper->star_leaves, sizeof *hopper->star_tile);
    if (!hopper->centre || !hopper->group_first || !hopper->tile_leaf || !hopper->feature ||
        !hopper->weight || !hopper->degree || !hopper->star_group || !hopper->star_tile)
        return fail_memory(error);
    return FPA_OK;
}

/* Number of a group of the tiling, from 0 on in the order in which tiles need them. */
static int number_group(const hopper_tiling *tiling, int group, int first_tile, int *number,
                        fpa_hopper_plan *hopper)
{
    const size_t size = HOPPER_BLOCK * tiling->factors;
    if (number[group] < 0) {
        number[group] = hopper->groups++;
        hopper->group_first[number[group]] = first_tile;
        memcpy(hopper->centre + number[group] * size, tiling->centre + group * size,
               size * sizeof *hopper->centre);
    }
    return number[group];
}

/* Groups that gave all of their tiles away are left out. Each tile's group becomes its number. */
static fpa_status fill_tiles(const hopper_tiling *tiling, hopper_tile *tiles, arena *memory,
                             fpa_hopper_plan *hopper, fpa_error *error)
{
    const int whole = hopper->tiles - hopper->folded;
    int *number = arena_array(memory, tiling->group_count, sizeof *number);
    if (!number)
        return fail_memory(error);
    memset(number, -1, tiling->group_count * sizeof *number);
    for (int t = 0; t < hopper->tiles; t++) {
        tiles[t].group = number_group(tiling, tiles[t].group, t < whole ? t : whole, number, hopper);
        hopper->tile_leaf[t] = tiles[t].leaf;
        memcpy(hopper->feature + t * HOPPER_TILE, tiles[t].feature, sizeof tiles[t].feature);
    }
    hopper->group_first[hopper->groups] = whole;
    return FPA_OK;
}

/* ---- stars ---- */

/* The next tile of group g from t on; hopper->tiles: there is none. */
static int next_tile(const fpa_hopper_plan *hopper, const hopper_tile *tiles, int g, int t)
{
    while (t < hopper->tiles && tiles[t].group != g)
        t++;
    return t;
}

/* A star of tiles of group g from *t on, which becomes the first that has no place; the one with leaf `first`
 * comes first. True when it is there. */
static bool fill_star(const fpa_hopper_plan *hopper, const hopper_tile *tiles, int g, int *t, int first,
                      int *star)
{
    bool own = false;
    for (int i = 0; i < hopper->star_leaves; i++) {
        star[i] = *t < hopper->tiles ? *t : -1;
        if (star[i] >= 0 && hopper->tile_leaf[star[i]] == first) {
            memmove(star + 1, star, i * sizeof *star);
            star[0] = *t;
            own = true;
        }
        *t = next_tile(hopper, tiles, g, *t + 1);
    }
    return own;
}

static void add_stars(const hopper_tile *tiles, fpa_hopper_plan *hopper, bool own)
{
    const int leaves = hopper->star_leaves, factors = hopper->centre_factors;
    for (int g = 0; g < hopper->groups; g++) {
        const int block = last_block(hopper->centre + g * HOPPER_BLOCK * factors, factors);
        for (int t = next_tile(hopper, tiles, g, 0); t < hopper->tiles;)
            if (fill_star(hopper, tiles, g, &t, block, hopper->star_tile + hopper->stars * leaves) == own)
                hopper->star_group[hopper->stars++] = g;
    }
}

/* The table has room for one star more than there are, as one may be filled that is not wanted. */
static void fill_stars(const hopper_tile *tiles, fpa_hopper_plan *hopper)
{
    add_stars(tiles, hopper, true);
    hopper->own_stars = hopper->stars;
    add_stars(tiles, hopper, false);
}

/* ---- weights ---- */

/* Only a feature without factors has the row of ones, as its last row. */
static int piece_degree(const fpa_plan *plan, const fpa_piece *piece, int i)
{
    return piece->prefix_count + (piece->base + i != plan->ones_row);
}

/* What numbers of 8 bits' precision, and the exponents of float, can be multiplied by without an error. */
static bool is_exact(double weight)
{
    int exponent;
    return weight == 0 || (fabs(frexp(weight, &exponent)) == 0.5 && abs(exponent) < 64);
}

/* False of rows that a folded tile's copies do not have. */
static bool is_copied(const fpa_hopper_plan *hopper, int slot)
{
    return slot / HOPPER_TILE < hopper->tiles - hopper->folded || hopper_fold(slot % HOPPER_TILE) >= 0;
}

static void describe_weights(const fpa_plan *plan, fpa_hopper_plan *hopper)
{
    hopper->powers = true;
    for (int i = 0; i < hopper->tiles * HOPPER_TILE; i++) {
        const double copied = hopper->weight[i] * pow(plan->head->scale, hopper->degree[i]);
        hopper->weighted |= copied != 1 || hopper->weight[i] != 1;
        hopper->powers &= is_exact(copied);
        hopper->padded |= hopper->feature[i] < 0 && is_copied(hopper, i);
    }
}

static fpa_status fill_weights(const fpa_plan *plan, arena *memory, fpa_hopper_plan *hopper, fpa_error *error)
{
    int *slot_of = arena_array(memory, (size_t)plan->features, sizeof *slot_of);
    if (!slot_of)
        return fail_memory(error);
    for (int i = 0; i < hopper->tiles * HOPPER_TILE; i++)
        if (hopper->feature[i] >= 0)
            slot_of[hopper->feature[i]] = i;
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++) {
            const int slot = slot_of[plan->pieces[p].feature + i];
            hopper->weight[slot] = plan->pieces[p].weight;
            hopper->degree[slot] = piece_degree(plan, &plan->pieces[p], i);
        }
    describe_weights(plan, hopper);
    return FPA_OK;
}

fpa_status tiles_to_tables(fpa_plan *plan, const hopper_tiling *tiling, hopper_tile *tiles, int stars,
                           arena *memory, fpa_hopper_plan *hopper, fpa_error *error)
{
    hopper->tiles = tiling->tile_count;
    hopper->folded = fold_tiles(tiling, tiles);
    hopper->copy_rows = HOPPER_TILE * (hopper->tiles - hopper->folded) + HOPPER_FOLDED * hopper->folded;
    qsort(tiles, hopper->tiles, sizeof *tiles, compare_tiles);
    fpa_status status = allocate(&plan->memory, tiling->group_count, hopper->tiles, stars, hopper, error);
    if (!status)
        status = fill_tiles(tiling, tiles, memory, hopper, error);
    if (status)
        return status;
    fill_stars(tiles, hopper);
    return fill_weights(plan, memory, hopper, error);
}

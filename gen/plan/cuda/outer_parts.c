/* tiles_part: gives groups of few prefixes tiles of several suffix blocks.
 *
 * A tile has room for 8 prefixes. In a group of at most four they are there twice, and its tiles have two suffix
 * blocks; in one of at most two, four times, with four blocks. So the row of ones times all coordinates, or the few
 * rows of a last block, fill their tiles:
 *
 *     prefixes  1 . . . . . . .   7 tiles, one for each block      1 . 1 . 1 . 1 .   2 tiles
 *     suffixes  J                                                  J   K   L   M */
#include <string.h>

#include "outer_tiles.h"

/* What each group of the given tiles becomes. */
typedef struct parting {
    const outer_tiling *from;
    int most;   /* suffix blocks of a tile */
    int *block; /* [groups] the block whose rows are the last factors of its prefixes, -1: none */
    int *used;  /* [groups] prefixes, up to the last one that has a feature */
    int *home;  /* [tiles] the group that gets the tile */
    int *parts; /* [groups] suffix blocks of its tiles */
    int *count; /* [groups] tiles, before several become one */
} parting;

static const int *prefix_of(const outer_tiling *tiling, int g, int c)
{
    return tiling->prefix + (g * OUTER_BLOCK + c) * tiling->factors;
}

int outer_block_of_prefixes(const outer_tiling *tiling, int g)
{
    const int last = tiling->factors - 1, *first = prefix_of(tiling, g, 0);
    for (int c = 0; c < OUTER_BLOCK; c++) {
        const int *prefix = prefix_of(tiling, g, c);
        if (first[last] % OUTER_BLOCK || prefix[last] != first[last] + c ||
            memcmp(prefix, first, last * sizeof *first) != 0)
            return -1;
    }
    return first[last] / OUTER_BLOCK;
}

int outer_rows_used(const outer_tile *tile, bool suffix)
{
    int used = 0;
    for (int slot = 0; slot < OUTER_TILE; slot++) {
        const int i = suffix ? slot % OUTER_BLOCK : slot / OUTER_BLOCK;
        if (tile->feature[slot] >= 0 && i >= used)
            used = i + 1;
    }
    return used;
}

/* Suffix blocks of tiles of a group with so many prefixes. */
static int parts_of(const parting *p, int used)
{
    const int parts = used <= 2 ? 4 : used <= 4 ? 2 : 1;
    return parts < p->most ? parts : p->most;
}

static bool has_suffix(const outer_tiling *tiling, int g, int suffix)
{
    for (int t = 0; t < tiling->tile_count; t++)
        if (tiling->tiles[t].group == g && tiling->tiles[t].suffix == suffix)
            return true;
    return false;
}

/* The group that gets a tile: one whose few prefixes are the rows that the tile uses of its suffix, which then has
 * its transpose; or the tile's own. */
static int choose_home(const parting *p, int t)
{
    const outer_tile *tile = &p->from->tiles[t];
    const int g = tile->group, last = p->from->factors - 1, rows = outer_rows_used(tile, true);
    if (p->block[g] < 0 || parts_of(p, p->used[g]) > 1 || parts_of(p, rows) == 1)
        return g;
    for (int h = 0; h < p->from->group_count; h++)
        if (p->block[h] == tile->suffix && parts_of(p, p->used[h]) > 1 &&
            !memcmp(prefix_of(p->from, h, 0), prefix_of(p->from, g, 0), last * sizeof(int)) &&
            !has_suffix(p->from, h, p->block[g]))
            return h;
    return g;
}

static void describe(parting *p, arena *memory)
{
    const outer_tiling *from = p->from;
    int **tables[] = {&p->block, &p->used, &p->parts, &p->count};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        *tables[i] = arena_array(memory, from->group_count, sizeof(int));
    p->home = arena_array(memory, from->tile_count, sizeof *p->home);
    for (int g = 0; g < from->group_count; g++) {
        p->block[g] = outer_block_of_prefixes(from, g);
        p->used[g] = p->count[g] = 0;
    }
    for (int t = 0; t < from->tile_count; t++) {
        int *used = &p->used[from->tiles[t].group];
        const int own = outer_rows_used(&from->tiles[t], false);
        *used = own > *used ? own : *used;
    }
    for (int t = 0; t < from->tile_count; t++)
        p->home[t] = choose_home(p, t);
    for (int t = 0; t < from->tile_count; t++) {
        const int g = p->home[t],
                  rows = g == from->tiles[t].group ? 0 : outer_rows_used(&from->tiles[t], true);
        p->used[g] = rows > p->used[g] ? rows : p->used[g];
        p->count[g]++;
    }
    for (int g = 0; g < from->group_count; g++)
        p->parts[g] = p->count[g] > 1 ? parts_of(p, p->used[g]) : 1;
}

/* Adds tile t as part number `part` of tile *to; transposed if its group has changed. */
static void add_part(const parting *p, int t, int part, outer_tile *to)
{
    const outer_tile *tile = &p->from->tiles[t];
    const int g = p->home[t], prefixes = OUTER_BLOCK / p->parts[g];
    const bool turned = g != tile->group;
    for (int c = 0; c < prefixes; c++)
        for (int r = 0; r < OUTER_BLOCK; r++)
            to->feature[OUTER_BLOCK * (part * prefixes + c) + r] =
                tile->feature[turned ? OUTER_BLOCK * r + c : OUTER_BLOCK * c + r];
    for (int q = part; q < OUTER_QUARTERS; q++) /* empty parts have the same suffix, without features */
        if (q >= part * OUTER_QUARTERS / p->parts[g])
            to->quarter[q] = turned ? p->block[tile->group] : tile->suffix;
    to->suffix = to->quarter[0];
}

/* Makes group g, with repeated prefixes, and its tiles. */
static void fill_group(const parting *p, int g, outer_tiling *made)
{
    const int parts = p->parts[g], number = made->group_count++, factors = made->factors;
    outer_tile *tile = NULL;
    made->parts[number] = parts;
    for (int c = 0; c < OUTER_BLOCK; c++)
        memcpy(made->prefix + (number * OUTER_BLOCK + c) * factors,
               prefix_of(p->from, g, c % (OUTER_BLOCK / parts)), factors * sizeof *made->prefix);
    for (int t = 0, n = 0; t < p->from->tile_count; t++) {
        if (p->home[t] != g)
            continue;
        if (n % parts == 0) {
            tile = &made->tiles[made->tile_count++];
            *tile = (outer_tile){.group = number};
            memset(tile->feature, -1, sizeof tile->feature);
        }
        add_part(p, t, n++ % parts, tile);
    }
}

void tiles_part(const outer_tiling *tiling, int most, arena *memory, outer_tiling *made)
{
    parting p = {.from = tiling, .most = most};
    *made = (outer_tiling){.factors = tiling->factors};
    made->tiles = arena_array(memory, tiling->tile_count, sizeof *made->tiles);
    made->prefix = arena_array(memory, (size_t)tiling->group_count * OUTER_BLOCK * tiling->factors,
                               sizeof *made->prefix);
    made->parts = arena_array(memory, tiling->group_count, sizeof *made->parts);
    describe(&p, memory);
    for (int parts = 1; parts <= OUTER_QUARTERS; parts *= 2)
        for (int g = 0; g < tiling->group_count; g++)
            if (p.count[g] && p.parts[g] == parts)
                fill_group(&p, g, made);
}

/* tiles_cut: cuts groups of five or six prefixes into one of four and one of two, and transposes tiles that use few
 * rows of their suffix block, so that these rows become prefixes.
 *
 * tiles_part fills the tiles of groups of at most four prefixes by repeating these. This gives it more such groups:
 *
 *     n tiles of 6 prefixes                     n / 2 tiles of 4 prefixes and n / 4 of 2
 *     n groups' tiles with 4 rows of a block    their transposes, one group of 4 prefixes: n / 2 tiles */
#include <string.h>

#include "outer_tiles.h"

enum { WHOLE = 4, MOST_CUT = 6 }; /* prefixes of a cut group's first part; of both parts, at most */

/* Homes of tiles, the groups that may have them: the given groups, then for each block of rows one whose prefixes are
 * these rows. */
typedef struct cutting {
    const outer_tiling *from;
    int most; /* suffix blocks of a tile */
    int blocks, homes;
    int *block; /* [groups] the block whose rows are its prefixes, -1: none */
    /* [blocks] the home whose prefixes are that block: a given group, or the block's own home */
    int *home_of;
    bool *has;         /* [homes][blocks] whether a group has a tile with that suffix block */
    bool *can_turn;    /* [tiles] whether it may be transposed */
    bool *turned;      /* [tiles] whether it is */
    int *rows;         /* [tiles] rows of its suffix that features use, */
    int *prefixes;     /* [tiles] and prefixes */
    int *count, *used; /* [homes] tiles; prefixes that these use */
} cutting;

/* Tiles that tiles_part makes of so many tiles of a group with so many prefixes. */
static int parted_count(const cutting *c, int tiles, int prefixes)
{
    const int parts = prefixes <= 2 ? 4 : prefixes <= WHOLE ? 2 : 1;
    return divide_up(tiles, parts < c->most ? parts : c->most);
}

/* The same if the group is cut. */
static int cut_count(const cutting *c, int tiles)
{
    return parted_count(c, tiles, WHOLE) + parted_count(c, tiles, MOST_CUT - WHOLE);
}

static bool is_cut(const cutting *c, int home)
{
    const int tiles = c->count[home], used = c->used[home];
    return used > WHOLE && used <= MOST_CUT && cut_count(c, tiles) < tiles;
}

/* Tiles that remain of a home. */
static int home_count(const cutting *c, int home)
{
    return is_cut(c, home) ? cut_count(c, c->count[home]) : parted_count(c, c->count[home], c->used[home]);
}

/* The home of a tile, as it is transposed or not. */
static int home_of(const cutting *c, int t)
{
    const outer_tile *tile = &c->from->tiles[t];
    return c->turned[t] ? c->home_of[tile->suffix] : tile->group;
}

/* Counts the tiles and prefixes of all homes; returns the tiles that remain. */
static int count_all(const cutting *c)
{
    int sum = 0;
    memset(c->count, 0, c->homes * sizeof *c->count);
    memset(c->used, 0, c->homes * sizeof *c->used);
    for (int t = 0; t < c->from->tile_count; t++) {
        const int home = home_of(c, t), used = c->turned[t] ? c->rows[t] : c->prefixes[t];
        c->count[home]++;
        c->used[home] = used > c->used[home] ? used : c->used[home];
    }
    for (int h = 0; h < c->homes; h++)
        sum += home_count(c, h);
    return sum;
}

/* Suffix block by suffix block: transposes the tiles that have it and may be transposed, if fewer tiles remain. */
static void turn_suffixes(cutting *c)
{
    int least = count_all(c);
    for (int s = 0; s < c->blocks; s++) {
        for (int t = 0; t < c->from->tile_count; t++)
            c->turned[t] ^= c->can_turn[t] && c->from->tiles[t].suffix == s;
        const int count = count_all(c);
        for (int t = 0; t < c->from->tile_count && count >= least; t++)
            c->turned[t] &= c->from->tiles[t].suffix != s;
        least = count < least ? count : least;
    }
    count_all(c);
}

/* ---- tables ---- */

static void find_homes(cutting *c)
{
    const int groups = c->from->group_count;
    for (int b = 0; b < c->blocks; b++)
        c->home_of[b] = groups + b;
    for (int g = groups - 1; g >= 0; g--) {
        c->block[g] = outer_block_of_prefixes(c->from, g);
        if (c->block[g] >= 0)
            c->home_of[c->block[g]] = g;
    }
    for (int t = 0; t < c->from->tile_count; t++)
        c->has[c->from->tiles[t].group * c->blocks + c->from->tiles[t].suffix] = true;
}

/* Whether a tile may be transposed: it uses fewer rows of its suffix than prefixes, and the home of that block has no
 * tile with its prefixes' block yet. If several groups have the same block as prefixes, only the first one's tiles. */
static bool can_turn(const cutting *c, int t)
{
    const outer_tile *tile = &c->from->tiles[t];
    const int block = c->block[tile->group];
    return block >= 0 && block != tile->suffix && c->home_of[block] == tile->group &&
           c->rows[t] < c->prefixes[t] && c->rows[t] <= MOST_CUT &&
           !c->has[c->home_of[tile->suffix] * c->blocks + block];
}

static void describe(cutting *c, arena *memory)
{
    const int tiles = c->from->tile_count;
    for (int t = 0; t < tiles; t++)
        c->blocks = c->from->tiles[t].suffix >= c->blocks ? c->from->tiles[t].suffix + 1 : c->blocks;
    for (int g = 0; g < c->from->group_count; g++) {
        const int block = outer_block_of_prefixes(c->from, g);
        c->blocks = block >= c->blocks ? block + 1 : c->blocks;
    }
    c->homes = c->from->group_count + c->blocks;
    c->block = arena_array(memory, c->from->group_count, sizeof *c->block);
    c->home_of = arena_array(memory, c->blocks, sizeof *c->home_of);
    c->has = arena_array(memory, (size_t)c->homes * c->blocks, sizeof *c->has);
    c->can_turn = arena_array(memory, tiles, sizeof *c->can_turn);
    c->turned = arena_array(memory, tiles, sizeof *c->turned);
    c->rows = arena_array(memory, tiles, sizeof *c->rows);
    c->prefixes = arena_array(memory, tiles, sizeof *c->prefixes);
    c->count = arena_array(memory, c->homes, sizeof *c->count);
    c->used = arena_array(memory, c->homes, sizeof *c->used);
    find_homes(c);
    for (int t = 0; t < tiles; t++) {
        c->rows[t] = outer_rows_used(&c->from->tiles[t], true);
        c->prefixes[t] = outer_rows_used(&c->from->tiles[t], false);
    }
    for (int t = 0; t < tiles; t++)
        c->can_turn[t] = can_turn(c, t);
}

/* ---- the new tiling ---- */

/* A group with the prefixes of a home from number `first` on, repeated. */
static void add_group(const cutting *c, int home, int first, outer_tiling *made)
{
    int *prefix = made->prefix + made->group_count++ * OUTER_BLOCK;
    const int groups = c->from->group_count;
    for (int i = 0; i < OUTER_BLOCK; i++) {
        const int number = first + i % (OUTER_BLOCK - first);
        prefix[i] = home < groups ? c->from->prefix[home * OUTER_BLOCK + number]
                                  : (home - groups) * OUTER_BLOCK + number;
    }
}

/* A tile with the features of prefixes first to end - 1, transposed if it is turned. */
static void add_tile(const cutting *c, int t, int first, int end, outer_tiling *made)
{
    const outer_tile *tile = &c->from->tiles[t];
    outer_tile *to = &made->tiles[made->tile_count++];
    *to = (outer_tile){.group = made->group_count - 1,
                       .suffix = c->turned[t] ? c->block[tile->group] : tile->suffix};
    memset(to->feature, -1, sizeof to->feature);
    for (int p = first; p < end; p++)
        for (int r = 0; r < OUTER_BLOCK; r++)
            to->feature[OUTER_BLOCK * (p - first) + r] =
                tile->feature[c->turned[t] ? OUTER_BLOCK * r + p : OUTER_BLOCK * p + r];
}

static void add_home(const cutting *c, int home, int first, int end, outer_tiling *made)
{
    add_group(c, home, first, made);
    for (int t = 0; t < c->from->tile_count; t++)
        if (home_of(c, t) == home)
            add_tile(c, t, first, end, made);
}

void tiles_cut(const outer_tiling *tiling, int most, arena *memory, outer_tiling *made)
{
    cutting c = {.from = tiling, .most = most};
    *made = *tiling;
    if (tiling->factors != 1)
        return;
    describe(&c, memory);
    turn_suffixes(&c);
    *made = (outer_tiling){.factors = 1};
    made->tiles = arena_array(memory, 2 * (size_t)tiling->tile_count, sizeof *made->tiles);
    made->prefix = arena_array(memory, 2 * (size_t)c.homes * OUTER_BLOCK, sizeof *made->prefix);
    for (int h = 0; h < c.homes; h++) {
        const bool cut = is_cut(&c, h);
        if (c.count[h])
            add_home(&c, h, 0, cut ? WHOLE : OUTER_BLOCK, made);
        if (cut)
            add_home(&c, h, WHOLE, MOST_CUT, made);
    }
}

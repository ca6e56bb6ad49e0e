/* tiles_to_strips: divides the tiles of groups into strips of R tiles, with little padding.
 *
 * A group whose prefixes are a block I of rows (times factors that all of them share) and the group of block J can
 * each have the tile of I and J, since feature (i, j) is feature (j, i). Which of the two has it is a flow in a
 * network whose nodes are groups and whose edges are such tiles: groups with more tiles than wanted are sources,
 * those with fewer are sinks, and a path from one to the other moves one tile along each of its edges. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "machine/cuda_cost.h"
#include "base/round.h"
#include "outer_tiles.h"

enum { UNSEEN = -2, SOURCE = -1 };

typedef struct fused {
    const outer_tiling *tiling;
    int *block;        /* [groups] the block whose rows are its prefixes' last factors, -1: none */
    int *family;       /* [groups] the first group with the same other factors; itself without a block */
    int *order;        /* [groups] by family, then by number of tiles at first */
    int *other;        /* [tiles] the group that may have the tile instead, -1: none */
    bool *flipped;     /* [tiles] whether that group has it */
    int *count, *want; /* [groups] tiles it has, and should have */
    int *from;         /* [groups] in a search: the tile by which it was reached, UNSEEN, or SOURCE */
} fused;

static const int *group_prefix(const outer_tiling *tiling, int g, int c)
{
    return tiling->prefix + (g * OUTER_BLOCK + c) * tiling->factors;
}

/* ---- which groups may have a tile ---- */

static bool shares_prefix(const outer_tiling *tiling, const int *a, const int *b)
{
    return memcmp(a, b, (tiling->factors - 1) * sizeof *a) == 0;
}

/* The group, of those before number `before`, of that block and the other factors of g; -1: none. */
static int find_group(const fused *f, int g, int block, int before)
{
    for (int h = 0; h < before; h++)
        if (f->block[h] == block &&
            shares_prefix(f->tiling, group_prefix(f->tiling, h, 0), group_prefix(f->tiling, g, 0)))
            return h;
    return -1;
}

/* Finds blocks and families. Of groups with equal prefixes only the first one has a block, so that a tile may go to
 * one other group. */
static void find_blocks(fused *f)
{
    for (int g = 0; g < f->tiling->group_count; g++) {
        f->family[g] = g;
        f->block[g] = outer_block_of_prefixes(f->tiling, g);
        if (f->block[g] >= 0 && find_group(f, g, f->block[g], g) >= 0)
            f->block[g] = -1;
        for (int h = 0; f->block[g] >= 0 && f->family[g] == g && h < g; h++)
            if (f->block[h] >= 0 &&
                shares_prefix(f->tiling, group_prefix(f->tiling, h, 0), group_prefix(f->tiling, g, 0)))
                f->family[g] = h;
    }
}

static bool has_suffix(const outer_tiling *tiling, const int *first, int g, int suffix)
{
    for (int t = first[g]; t < first[g + 1]; t++)
        if (tiling->tiles[t].suffix == suffix)
            return true;
    return false;
}

/* Finds the other group of each tile. A tile stays if its transpose is a tile, too, or itself. first: [groups + 1]
 * first tile of each group. */
static void find_others(fused *f, const int *first)
{
    const outer_tiling *tiling = f->tiling;
    for (int t = 0; t < tiling->tile_count; t++) {
        const outer_tile *tile = &tiling->tiles[t];
        const int block = f->block[tile->group];
        f->other[t] = block < 0 ? -1 : find_group(f, tile->group, tile->suffix, tiling->group_count);
        if (f->other[t] >= 0 && has_suffix(tiling, first, f->other[t], block))
            f->other[t] = -1;
    }
}

static void count_tiles(const outer_tiling *tiling, int *count)
{
    memset(count, 0, tiling->group_count * sizeof *count);
    for (int t = 0; t < tiling->tile_count; t++)
        count[tiling->tiles[t].group]++;
}

struct ranked {
    int family, tiles, group;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    const int x[] = {a->family, a->tiles, a->group}, y[] = {b->family, b->tiles, b->group};
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static void order_groups(fused *f, arena *memory)
{
    const int groups = f->tiling->group_count;
    struct ranked *ranked = arena_array(memory, groups, sizeof *ranked);
    for (int g = 0; g < groups; g++)
        ranked[g] = (struct ranked){f->family[g], f->count[g], g};
    qsort(ranked, groups, sizeof *ranked, compare_ranked);
    for (int g = 0; g < groups; g++)
        f->order[g] = ranked[g].group;
}

static void fused_new(fused *f, const outer_tiling *tiling, arena *memory)
{
    const int groups = tiling->group_count, tiles = tiling->tile_count;
    int **tables[] = {&f->block, &f->family, &f->order, &f->count, &f->want, &f->from};
    *f = (fused){.tiling = tiling};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        *tables[i] = arena_array(memory, groups, sizeof(int));
    int *first = arena_array(memory, groups + 1, sizeof *first);
    f->other = arena_array(memory, tiles, sizeof *f->other);
    f->flipped = arena_array(memory, tiles, sizeof *f->flipped);
    count_tiles(tiling, f->count);
    for (int g = 0; g < groups; g++)
        first[g + 1] = first[g] + f->count[g];
    find_blocks(f);
    find_others(f, first);
    order_groups(f, memory);
}

/* ---- flips ---- */

/* Sets the number of tiles that each group should have, so that groups consist of whole strips: a family's remainders
 * are collected in as few groups as possible. */
static void set_wanted(fused *f, int suffixes)
{
    const int groups = f->tiling->group_count;
    for (int i = 0, end = 0; i < groups; i = end) {
        int rest = 0;
        for (end = i; end < groups && f->family[f->order[end]] == f->family[f->order[i]]; end++)
            rest += f->count[f->order[end]] % suffixes;
        for (int j = i; j < end; j++) {
            const int g = f->order[j], over = f->count[g] % suffixes;
            const int kept = !over ? 0 : rest < suffixes ? rest : suffixes;
            f->want[g] = f->count[g] - over + kept;
            rest -= kept;
        }
    }
}

/* Moves the tiles along the path that a search found: its end gains one tile, its source loses one. */
static void trace_back(fused *f, int end)
{
    int g = end;
    while (f->from[g] != SOURCE) {
        const int t = f->from[g];
        f->flipped[t] = !f->flipped[t];
        g = f->flipped[t] ? f->tiling->tiles[t].group : f->other[t];
    }
    f->count[g]--;
    f->count[end]++;
}

/* Move one tile from a group with too many, over any number of others, to one with too few. */
static bool move_one(fused *f)
{
    for (int g = 0; g < f->tiling->group_count; g++)
        f->from[g] = f->count[g] > f->want[g] ? SOURCE : UNSEEN;
    for (bool found = true; found;) {
        found = false;
        for (int t = 0; t < f->tiling->tile_count; t++) {
            if (f->other[t] < 0)
                continue;
            const int home = f->tiling->tiles[t].group;
            const int a = f->flipped[t] ? f->other[t] : home, b = f->flipped[t] ? home : f->other[t];
            if (f->from[a] == UNSEEN || f->from[b] != UNSEEN)
                continue;
            f->from[b] = t;
            found = true;
            if (f->count[b] < f->want[b]) {
                trace_back(f, b);
                return true;
            }
        }
    }
    return false;
}

/* Each move brings two groups one tile nearer to what they want, so it ends. */
static int balance(fused *f, int suffixes)
{
    memset(f->flipped, 0, f->tiling->tile_count * sizeof *f->flipped);
    count_tiles(f->tiling, f->count);
    set_wanted(f, suffixes);
    while (move_one(f)) {
    }
    int strips = 0;
    for (int g = 0; g < f->tiling->group_count; g++)
        strips += divide_up(f->count[g], suffixes);
    return strips;
}

/* Clocks of the state kernel for 16 tokens, counted as in work_outer.c, for blocks of three warpgroups of `held`
 * strips each; if these are even, warps have twice as many prefixes of one strip. */
static double strip_clocks(const fpa_gpu *gpu, int columns, int factors, int strips, int suffixes, int held)
{
    enum { WARPS = 16 };
    const int prefixes = held % 2 ? 2 : 4, rounds = 8 / prefixes * strips, tiles = strips * suffixes;
    const int blocks = (strips + 3 * held - 1) / (3 * held);
    const fpa_cuda_sum sum = {
        .products = 4.0 * columns * tiles,
        .shared = 2.0 * columns * tiles + 2.0 * (suffixes + factors * (1 + prefixes)) * rounds,
        .instructions = 6.0 * 4 * tiles + 7.0 * factors * prefixes / 2 * rounds + 19.0 * 12 * blocks};
    return cuda_clocks(gpu, &sum, true, WARPS);
}

/* The length of strips that takes the fewest clocks. */
static int choose_suffixes(const fpa_gpu *gpu, int columns, fused *f, int warpgroup_tiles)
{
    static const int sizes[] = {3, 6, 4, 2, 1}; /* the first of equals */
    int best = 1;
    double least = INFINITY;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] > warpgroup_tiles)
            continue;
        const double clocks = strip_clocks(gpu, columns, f->tiling->factors, balance(f, sizes[i]), sizes[i],
                                           warpgroup_tiles / sizes[i]);
        if (clocks < least) {
            least = clocks;
            best = sizes[i];
        }
    }
    return best;
}

/* Copies of the tiles, transposed where they have changed groups. */
static outer_tile *flip_tiles(const fused *f, arena *memory)
{
    const int count = f->tiling->tile_count;
    outer_tile *tiles = arena_copy(memory, f->tiling->tiles, count * sizeof *tiles);
    for (int t = 0; t < count; t++) {
        const outer_tile *tile = &f->tiling->tiles[t];
        if (!f->flipped[t])
            continue;
        tiles[t].group = f->other[t];
        tiles[t].suffix = f->block[tile->group];
        for (int c = 0; c < OUTER_BLOCK; c++)
            for (int r = 0; r < OUTER_BLOCK; r++)
                tiles[t].feature[OUTER_BLOCK * r + c] = tile->feature[OUTER_BLOCK * c + r];
    }
    return tiles;
}

void tiles_to_strips(const fpa_plan *plan, const outer_tiling *tiling, int columns, int warpgroup_tiles,
                     arena *memory, arena *lasting, fpa_outer_plan *outer)
{
    fused f;
    fused_new(&f, tiling, memory);
    outer->strip_length = choose_suffixes(gpu_of_target(plan->target), columns, &f, warpgroup_tiles);
    const int strips = balance(&f, outer->strip_length);
    outer_tile *tiles = flip_tiles(&f, memory);
    tiles_to_tables(plan, tiling, tiles, strips, memory, lasting, outer);
}

/* plan_block_tiles: tiles for features that are products of two rows: each is a whole block of 8 rows times another
 * one. For plans of product rows. */
#include <stdlib.h>
#include <string.h>

#include "outer_tiles.h"

/* A feature: row a of a prefix, row b of a suffix. */
typedef struct pair {
    int a, b, feature;
} pair;

static int compare_pairs(const void *left, const void *right)
{
    const pair *p = left, *q = right;
    const int x[] = {p->a / OUTER_BLOCK, p->b / OUTER_BLOCK, p->feature},
              y[] = {q->a / OUTER_BLOCK, q->b / OUTER_BLOCK, q->feature};
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static pair *list_pairs(const fpa_plan *plan, const fpa_outer_plan *outer, arena *memory)
{
    pair *pairs = arena_array(memory, (size_t)plan->features, sizeof *pairs);
    for (int p = 0; p < plan->piece_count; p++) {
        const fpa_piece *piece = &plan->pieces[p];
        pairs[p] = (pair){piece->prefix_count ? outer->row[piece->prefix[0]] : outer->ones_row,
                          outer->row[piece->base], (int)piece->feature};
    }
    qsort(pairs, plan->piece_count, sizeof *pairs, compare_pairs);
    return pairs;
}

static bool same_tile(const pair *p, const pair *q)
{
    return p->a / OUTER_BLOCK == q->a / OUTER_BLOCK && p->b / OUTER_BLOCK == q->b / OUTER_BLOCK;
}

/* Fills tiles from sorted pairs, with a group for each block of prefixes. false: two features are the same pair of rows. */
static bool fill_tiles(const pair *pairs, int count, outer_tiling *tiling)
{
    for (int i = 0; i < count; i++) {
        const int block = pairs[i].a / OUTER_BLOCK;
        if (i == 0 || pairs[i - 1].a / OUTER_BLOCK != block) {
            for (int c = 0; c < OUTER_BLOCK; c++)
                tiling->prefix[tiling->group_count * OUTER_BLOCK + c] = block * OUTER_BLOCK + c;
            tiling->group_count++;
        }
        if (i == 0 || !same_tile(&pairs[i - 1], &pairs[i])) {
            outer_tile *tile = &tiling->tiles[tiling->tile_count++];
            tile->group = tiling->group_count - 1;
            tile->suffix = pairs[i].b / OUTER_BLOCK;
            memset(tile->feature, -1, sizeof tile->feature);
        }
        int *slot = &tiling->tiles[tiling->tile_count - 1]
                         .feature[OUTER_BLOCK * (pairs[i].a % OUTER_BLOCK) + pairs[i].b % OUTER_BLOCK];
        if (*slot >= 0)
            return false;
        *slot = pairs[i].feature;
    }
    return true;
}

static int count_tiles(const pair *pairs, int count)
{
    int tiles = 0;
    for (int i = 0; i < count; i++)
        tiles += i == 0 || !same_tile(&pairs[i - 1], &pairs[i]);
    return tiles;
}

void plan_block_tiles(const fpa_plan *plan, const fpa_outer_plan *outer, arena *memory, outer_tiling *tiling,
                      double *slots)
{
    *tiling = (outer_tiling){.factors = 1};
    const pair *pairs = list_pairs(plan, outer, memory);
    const int tiles = count_tiles(pairs, plan->piece_count);
    *slots = (double)tiles * OUTER_TILE;
    if (tiles_are_sparse(plan, *slots))
        return;
    tiling->tiles = arena_array(memory, tiles, sizeof *tiling->tiles);
    tiling->prefix = arena_array(memory, (size_t)tiles * OUTER_BLOCK, sizeof *tiling->prefix);
    if (!fill_tiles(pairs, plan->piece_count, tiling))
        tiling->tile_count = 0;
}

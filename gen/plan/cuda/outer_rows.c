/* plan_row_tiles: tiles for features of one factor. A tile is 64 rows of a vector; its suffix is the first of their 8
 * blocks, and its group's prefixes are not used. */
#include <stdio.h>
#include <string.h>

#include "outer_tiles.h"

/* Fills the feature of each row of the tiles; false: two features are the same row. */
static bool place_features(const fpa_plan *plan, const fpa_outer_plan *outer, outer_tile *tiles)
{
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++) {
            const int row = outer->row[plan->pieces[p].base + i];
            int *slot = &tiles[row / OUTER_TILE].feature[row % OUTER_TILE];
            if (*slot >= 0)
                return false;
            *slot = (int)plan->pieces[p].feature + i;
        }
    return true;
}

static bool is_empty(const outer_tile *tile)
{
    for (int i = 0; i < OUTER_TILE; i++)
        if (tile->feature[i] >= 0)
            return false;
    return true;
}

/* Drops tiles of rows that only dots use. */
static int drop_empty(outer_tile *tiles, int count)
{
    int kept = 0;
    for (int t = 0; t < count; t++)
        if (!is_empty(&tiles[t]))
            tiles[kept++] = tiles[t];
    return kept;
}

/* Tiles of a strip: as many as a warpgroup holds, divided equally. */
static int choose_length(int tiles, int most)
{
    const int longest = most < OUTER_MAX_STRIP ? most : OUTER_MAX_STRIP;
    const int strips = tiles > longest ? divide_up(tiles, longest) : 1;
    return divide_up(tiles, strips);
}

void plan_row_tiles(const fpa_plan *plan, int warpgroup_tiles, arena *memory, arena *lasting,
                    fpa_outer_plan *outer)
{
    const int count = outer->row_blocks / OUTER_BLOCK;
    outer_tile *tiles = arena_array(memory, count, sizeof *tiles);
    int *prefix = arena_array(memory, OUTER_BLOCK, sizeof *prefix); /* zeros */
    for (int t = 0; t < count; t++) {
        tiles[t].suffix = t * OUTER_BLOCK;
        memset(tiles[t].feature, -1, sizeof tiles[t].feature);
    }
    outer->used = place_features(plan, outer, tiles);
    if (!outer->used) {
        snprintf(outer->why, sizeof outer->why, "two of its features are the same row");
        return;
    }
    const outer_tiling tiling = {.factors = 1,
                                 .group_count = 1,
                                 .prefix = prefix,
                                 .tile_count = drop_empty(tiles, count),
                                 .tiles = tiles};
    const int length = choose_length(tiling.tile_count, warpgroup_tiles);
    outer->strip_length = length > 1 ? length : 1;
    tiles_to_tables(plan, &tiling, tiles, divide_up(tiling.tile_count, outer->strip_length), memory, lasting,
                    outer);
}

/* outer_tiles: the steps of plan_outer from features to tables: groups of 8 prefixes with their tiles, their
 * rearrangements, strips, tables. Internal to outer*.c. */
#ifndef FPAC_GEN_PLAN_CUDA_OUTER_TILES_H
#define FPAC_GEN_PLAN_CUDA_OUTER_TILES_H

#include "base/round.h"
#include "gen/plan/plan.h"
#include "outer.h"

typedef struct outer_tile {
    int group, suffix;           /* suffix: a block of rows; */
    int quarter[OUTER_QUARTERS]; /* if a tile has several, that of each two prefixes */
    int feature[OUTER_TILE];     /* [8 prefixes][8 rows], -1: none */
    bool folded;                 /* see outer_fold */
} outer_tile;

/* Groups and tiles, before they are sorted and numbered for the tables. */
typedef struct outer_tiling {
    int factors; /* of a prefix */
    int group_count;
    int *prefix; /* [group_count][8][factors] */
    int *parts;  /* [group_count] suffix blocks of its tiles; NULL: one */
    int tile_count;
    outer_tile *tiles; /* [tile_count] in the order of groups, then of suffixes */
} outer_tiling;

/* Whether nearly all slots of tiles would be empty, or their tables would be megabytes of text. Whether partly empty
 * tiles are worth it is decided by the cost model (choice.c). */
bool tiles_are_sparse(const fpa_plan *plan, double slots);

/* Gathers features into groups and tiles; needs outer->row and ones_row. merge: groups of few prefixes may be merged.
 * turn: rows of suffix blocks of which features use few rows become factors of prefixes. *slots: slots of the tiles;
 * if features are too sparse, at least the number of slots that they would need, and there may be no tiles. */
void tiles_form(const fpa_plan *plan, const fpa_outer_plan *outer, bool merge, bool turn, arena *memory,
                outer_tiling *tiling, double *slots);

/* The same if each piece of `plan` is a feature of two rows: tiles are blocks of rows times blocks, and a group is a
 * block with all its tiles. No tiles also if two features are the same pair of rows. */
void plan_block_tiles(const fpa_plan *plan, const fpa_outer_plan *outer, arena *memory, outer_tiling *tiling,
                      double *slots);

/* Rearranges a tiling so that groups of few prefixes have tiles of several suffix blocks, at most `most`; these
 * groups come last. */
void tiles_part(const outer_tiling *tiling, int most, arena *memory, outer_tiling *made);

/* Rearranges features so that tiles_part makes fewer tiles: groups of five or six prefixes become two groups, and
 * tiles with few rows of a suffix block are transposed. Tilings with several prefix factors are unchanged. */
void tiles_cut(const outer_tiling *tiling, int most, arena *memory, outer_tiling *made);

/* The block whose rows are, in order, the last factors of a group's prefixes, if all their other factors are the
 * same; -1: none. */
int outer_block_of_prefixes(const outer_tiling *tiling, int g);

/* The number of a tile's prefixes, or of rows of its suffix, up to the last one that has a feature. */
int outer_rows_used(const outer_tile *tile, bool suffix);

/* Transposes tiles (prefixes of block I, suffix J -> prefixes of block J, suffix I) so that few strips need
 * padding, and fills outer's groups, tiles and strips by tiles_to_tables. */
void tiles_to_strips(const fpa_plan *plan, const outer_tiling *tiling, int columns, int warpgroup_tiles,
                     arena *memory, arena *lasting, fpa_outer_plan *outer);

/* The same if features are rows themselves: a tile is 64 consecutive rows of a vector. */
void plan_row_tiles(const fpa_plan *plan, int warpgroup_tiles, arena *memory, arena *lasting,
                    fpa_outer_plan *outer);

/* Fills the tables of *outer from tiles, which are sorted, and which make `strips` strips of outer->strip_length tiles. */
void tiles_to_tables(const fpa_plan *plan, const outer_tiling *tiling, outer_tile *tiles, int strips,
                     arena *memory, arena *lasting, fpa_outer_plan *outer);

#endif

/* plan_tiles: features -> groups of 8 prefixes with their tiles -> strips. Internal to plan_outer. */
#ifndef FPAC_GEN_PLAN_CUDA_OUTER_TILES_H
#define FPAC_GEN_PLAN_CUDA_OUTER_TILES_H

#include "base/round.h"
#include "gen/plan/plan.h"
#include "outer.h"

typedef struct outer_tile {
    int group, suffix;           /* suffix: block of rows, */
    int quarter[OUTER_QUARTERS]; /* and that of each two prefixes */
    int feature[OUTER_TILE];     /* [8 prefixes][8 rows], -1: none */
    bool folded;                 /* see outer_fold */
} outer_tile;

/* Groups and tiles as the features' own order gives them. Lives in one arena. */
typedef struct outer_tiling {
    int factors; /* of a prefix */
    int group_count;
    int *prefix; /* [group_count][8][factors] */
    int *parts;  /* [group_count] suffix blocks of its tiles; NULL: one */
    int tile_count;
    outer_tile *tiles; /* [tile_count] in the order of groups, then of suffixes */
} outer_tiling;

/* True when nearly all slots of tiles would be empty, or their tables were megabytes of text. Whether tiles that are
 * partly empty are worth it, the model of the machine says (choice.c). */
bool tiles_are_sparse(const fpa_plan *plan, double slots);

/* Needs outer->row and ones_row. merge: groups of few prefixes may be one. turn: rows of suffix blocks that have few become factors of prefixes. When the features are too sparse the result may have no tiles and
 * *slots is at least the number of slots that they would need; else *slots is that of the tiles. */
void tiles_form(const fpa_plan *plan, const fpa_outer_plan *outer, bool merge, bool turn, arena *memory,
                outer_tiling *tiling, double *slots);

/* The same of features of two rows, those of `plan` one a piece: a group is a block of rows, with all tiles that it has with blocks of
 * rows. No tiles, too, where two features are the same pair. */
void plan_block_tiles(const fpa_plan *plan, const fpa_outer_plan *outer, arena *memory, outer_tiling *tiling,
                      double *slots);

/* The same with tiles of several suffix blocks, at most so many, where groups have few prefixes: such groups come last. */
void tiles_part(const outer_tiling *tiling, int most, arena *memory, outer_tiling *made);

/* Rearranges features so that tiles_part makes fewer tiles: groups of five or six prefixes become two groups, and
 * tiles with few rows of a suffix block are transposed. Tilings with several prefix factors are unchanged. */
void tiles_cut(const outer_tiling *tiling, int most, arena *memory, outer_tiling *made);

/* Block of rows that the last factors of a group's prefixes are, in order, all others being the same; -1: none. */
int outer_block_of_prefixes(const outer_tiling *tiling, int g);

/* Prefixes of a tile, or rows of its suffix, up to the last one that has a feature. */
int outer_rows_used(const outer_tile *tile, bool suffix);

/* Transposes tiles (prefixes of block I, suffix J -> prefixes of block J, suffix I) so that few strips need
 * padding, and fills outer's groups, tiles and strips by tiles_to_tables. */
void tiles_to_strips(const fpa_plan *plan, const outer_tiling *tiling, int columns, int warpgroup_tiles,
                     arena *memory, arena *lasting, fpa_outer_plan *outer);

/* The same of features that are rows themselves: tiles are blocks of 64 of them as they lie. */
void plan_row_tiles(const fpa_plan *plan, int warpgroup_tiles, arena *memory, arena *lasting,
                    fpa_outer_plan *outer);

/* The tables of plan_outer, for tiles, which are put in order, that make so many strips of
 * outer->strip_length. */
void tiles_to_tables(const fpa_plan *plan, const outer_tiling *tiling, outer_tile *tiles, int strips,
                     arena *memory, arena *lasting, fpa_outer_plan *outer);

#endif

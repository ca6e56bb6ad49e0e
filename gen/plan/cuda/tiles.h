/* plan_tiles: features -> groups of 8 centres with their tiles -> stars. Internal to plan_hopper. */
#ifndef FPAC_GEN_PLAN_CUDA_TILES_H
#define FPAC_GEN_PLAN_CUDA_TILES_H

#include "base/round.h"
#include "gen/plan/plan.h"
#include "hopper.h"

typedef struct hopper_tile {
    int group, leaf;          /* leaf: block of rows */
    int feature[HOPPER_TILE]; /* [8 centres][8 rows], -1: none */
    bool folded;              /* see hopper_fold */
} hopper_tile;

/* Groups and tiles as the features' own order gives them. Lives in one arena. */
typedef struct hopper_tiling {
    int factors; /* of a centre */
    int group_count;
    int *centre; /* [group_count][8][factors] */
    int tile_count;
    hopper_tile *tiles; /* [tile_count] in the order of groups, then of leaves */
} hopper_tiling;

/* True when too many slots of tiles would be empty: half of them, after which the portable kernels take no
 * longer, or a third where features are few enough for one pass (plan_flow.h). */
bool tiles_are_sparse(const fpa_plan *plan, double slots);

/* Needs hopper->row and ones_row. When the features are too sparse the result may have no tiles and
 * *slots is at least the number of slots that they would need; else *slots is that of the tiles. */
fpa_status tiles_form(const fpa_plan *plan, const fpa_hopper_plan *hopper, arena *memory,
                      hopper_tiling *tiling, double *slots, fpa_error *error);

/* Transposes tiles (centres of block I, leaf J -> centres of block J, leaf I) so that few stars need
 * padding, and fills hopper's groups, tiles and stars by tiles_to_tables. */
fpa_status tiles_to_stars(fpa_plan *plan, const hopper_tiling *tiling, int warpgroup_tiles, arena *memory,
                          fpa_hopper_plan *hopper, fpa_error *error);

/* The tables of plan_hopper, for tiles, which are put in order, that make so many stars of
 * hopper->star_leaves. */
fpa_status tiles_to_tables(fpa_plan *plan, const hopper_tiling *tiling, hopper_tile *tiles, int stars,
                           arena *memory, fpa_hopper_plan *hopper, fpa_error *error);

#endif

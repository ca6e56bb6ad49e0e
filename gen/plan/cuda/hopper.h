/* plan_hopper: how the kernels of sm_90a see a head. They work on *tiles* of 64 features: 8 *centres*
 * times the 8 consecutive rows of one *leaf block*.
 *
 * Vocabulary, beside plan.h's. A *vector* is what a token has in packed rows, in blocks of 8 (16 bytes
 * of bf16). A *centre* is the product of all factors of a feature but the last. A *group* is 8 centres
 * and the tiles that have them in common; a *star* is a run of tiles of one group, for which one
 * warpgroup of the state kernel forms the centres once. The order of features is free: a table maps each
 * slot of a tile to the feature of plan->pieces, or to none. */
#ifndef FPAC_GEN_PLAN_CUDA_HOPPER_H
#define FPAC_GEN_PLAN_CUDA_HOPPER_H

#include <stdbool.h>

#include "base/error.h"

struct fpa_plan;

enum {
    HOPPER_BLOCK = 8,    /* rows of a block; centres of a group */
    HOPPER_TILE = 8 * 8, /* features */
    HOPPER_STEP = 16,    /* rows that a matrix instruction takes of a dot */
    HOPPER_MAX_STAR = 6, /* tiles */
    HOPPER_FOLDED = 40,  /* rows that copies have of a folded tile */
};

typedef struct fpa_hopper_plan {
    bool used;     /* else `why` says why not, nothing below is valid, and the portable kernels run */
    char why[160]; /* "its features fill only 40 % of tiles of 8 x 8" */
    /* rows of a vector, in a numbering of its own, by blocks of 8 */
    int *row;       /* [plan->row_count] hopper row of a plan's row, -1: not kept */
    int *source;    /* [8 row_blocks] plan's row of a hopper row (some twice), -1: zero for every token */
    int row_blocks; /* of a vector */
    bool natural;   /* the rows are the coordinates 0..d-1, d % 16 == 0: q and k are read as they lie */
    int ones_row, zero_row; /* hopper rows, -1: there is none */
    /* tiles, in the order of their groups; then the folded ones: of a block's rows times themselves */
    int centre_factors; /* F - 1; centres of fewer factors begin with rows of ones */
    int groups;
    int *centre;      /* [groups][8][centre_factors] hopper rows */
    int *group_first; /* [groups + 1] first tile that is not folded; some groups have none */
    int tiles, folded;
    int copy_rows;  /* 64 of a tile, HOPPER_FOLDED of a folded one */
    int *tile_leaf; /* [tiles] block of rows */
    int *feature;   /* [tiles][8 centres][8 rows] feature as plan->pieces count them, -1: none */
    double *weight; /* [tiles][64] on the key side; 0 where there is no feature */
    bool weighted;  /* some weight, with the scale that copies have, is not 1 */
    bool powers;    /* all weights, with that scale, are 0 or powers of two: products with them are exact */
    bool padded;    /* some slot has no feature */
    int *degree;    /* [tiles][64] factors that are not the row of ones: head->scale enters as often */
    /* stars: first those whose centres' last factor is a block that their first tile has as its leaf, then
     * the others, in the order of their groups */
    int star_leaves; /* R: tiles of a star, 1..HOPPER_MAX_STAR */
    int stars, own_stars;
    int *star_group; /* [stars] */
    int *star_tile;  /* [stars][star_leaves] tile, -1: padding at the end of a group */
    /* dots of the score */
    int *dot_first; /* [dots + 1] first entry of dot_step */
    int *dot_step;  /* 16 rows each, all the dot's or zero */
} fpa_hopper_plan;

/* What factor l of a group's centres is, in every group. */
typedef enum fpa_centre_kind {
    CENTRE_ANY,
    CENTRE_BLOCK, /* the rows of a whole block, in order */
    CENTRE_ROW    /* one row */
} fpa_centre_kind;

fpa_centre_kind hopper_centre_kind(const fpa_hopper_plan *hopper, int l);

/* Row of a folded tile's copy that holds slot 8 c + r, or -1: the slot of (r, c) has its features. */
int hopper_fold(int slot);

/* Fills *hopper from the rows, pieces and dots of plan, with memory of plan's arena. warpgroup_tiles:
 * tiles whose sums a warpgroup of the state kernel can hold, >= 1. A head that tiles do not suit gives
 * FPA_OK and used = false. FPA_NO_MEMORY is the only error. */
fpa_status plan_hopper(struct fpa_plan *plan, int warpgroup_tiles, fpa_hopper_plan *hopper, fpa_error *error);

#endif

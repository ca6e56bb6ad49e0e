/* plan_outer: features of a head as the wgmma kernels of the split schedule compute them: in *tiles* of 64 features,
 * 8 *prefixes* times the 8 consecutive rows of one *suffix block*.
 *
 * Vocabulary, beside plan.h's. A *vector* is a token's packed rows, in blocks of 8 (16 bytes of bf16). A *prefix* is
 * the product of all factors of a feature but the last. A *group* is 8 prefixes and the tiles that have them in
 * common; a *strip* is a run of tiles of one group, for which a warpgroup of the state kernel forms the prefixes
 * once. The order of features is free: a table maps each slot of a tile to a feature of plan->pieces, or to none. */
#ifndef FPAC_GEN_PLAN_CUDA_OUTER_H
#define FPAC_GEN_PLAN_CUDA_OUTER_H

#include <stdbool.h>

#include "base/arena.h"

struct fpa_plan;

enum {
    OUTER_BLOCK = 8,     /* rows of a block; prefixes of a group */
    OUTER_TILE = 8 * 8,  /* features */
    OUTER_STEP = 16,     /* rows that a matrix instruction takes of a dot */
    OUTER_MAX_STRIP = 6, /* tiles */
    OUTER_FOLDED = 40,   /* rows that copies have of a folded tile */
    OUTER_QUARTERS = 4,  /* of a tile: a warp's two prefixes each */
    /* flags of plan_outer's `parts`: groups are cut and tiles transposed (outer_cuts.c); features are turned
     * (outer_tiles.c) */
    OUTER_CUT = 8,
    OUTER_TURNED = 16,
};

typedef struct fpa_outer_plan {
    bool used;           /* else `why` says why not, and nothing below is valid */
    char why[160];       /* "its features fill only 40 % of tiles of 8 x 8" */
    bool products, late; /* it is of a plan of product rows; see plan_outer_of_products */
    bool rows; /* features are rows: a tile is 8 blocks from its suffix block on; there are no prefixes */
    /* rows of a vector, numbered by their place in it, in blocks of 8 */
    int *row;       /* [plan->row_count] vector row that has a plan's row, -1: none */
    int *source;    /* [8 row_blocks] plan's row of a vector row (some twice), -1: zero for every token */
    bool by_dots;   /* rows are in the order of dots; else by kind: coordinates, projections, weighted ones */
    int row_blocks; /* of a vector */
    int vector_rows; /* the first rows, which device memory has; the copy engine adds zeros */
    /* Behind those, in slabs of their own, coordinates that boxes bring from q and k as given: */
    int given_rows;   /* so many, 0: none; */
    int given_first;  /* from this coordinate on; */
    int given_slab;   /* in slabs from this one on */
    bool coordinates; /* a vector is the coordinates, then zeros: q and k are read as given */
    /* coordinates in a slab of 64 rows; fewer than 64 if the row of ones follows them, which the kernels write
     * themselves */
    int vector_box;
    int ones_row, zero_row; /* vector rows, -1: there is none */
    /* tiles, in the order of their groups; then folded ones, of a block's rows times themselves */
    int prefix_factors; /* of each prefix: one less than a feature has; shorter ones begin with rows of ones */
    int groups;
    int *prefix;      /* [groups][8][prefix_factors] vector rows */
    int *group_first; /* [groups + 1] first tile that is not folded; some groups have none */
    int tiles, folded;
    int copy_rows;     /* 64 of a tile, OUTER_FOLDED of a folded one */
    int *tile_suffix;  /* [tiles] suffix block */
    int *tile_quarter; /* [tiles][4] that of each two prefixes, if a tile has several */
    /* [groups] suffix blocks of a tile: 1, 2 or 4; each is multiplied by 8, 4 or 2 prefixes, the same ones */
    int *group_parts;
    bool parted;    /* some tiles have several */
    bool cut;       /* some group's prefixes begin within a block of rows */
    int *feature;   /* [tiles][8 prefixes][8 rows] feature as plan->pieces count them, -1: none */
    double *weight; /* [tiles][64] of the features of keys; 0 where there is no feature */
    double *copied; /* [tiles][64] the same times the scale of queries, which copies of the state include */
    bool weighted;  /* some weight, or some of `copied`, is not 1 */
    bool powers;    /* all of `copied` are 0 or powers of two: products with them are exact */
    bool padded;    /* some slot has no feature */
    int *degree;    /* [tiles][64] factors that are not the row of ones: head->scale enters as often */
    /* strips: first the own ones, whose first tile's suffix block has their prefixes' last factor, then the others;
     * each in the order of groups */
    int strip_length; /* R: tiles of a strip, 1..OUTER_MAX_STRIP */
    int strips, own_strips;
    int *strip_group; /* [strips] */
    int *strip_tile;  /* [strips][strip_length] tile, -1: padding at the end of a group */
    /* dots of the score */
    int *dot_first; /* [dots + 1] first entry of dot_step */
    int *dot_step;  /* a step of 16 rows of a vector: rows of the dot and zeros */
} fpa_outer_plan;

/* What factor l of a group's prefixes is, in every group. */
typedef enum fpa_prefix_kind {
    PREFIX_ANY,
    PREFIX_BLOCK, /* consecutive rows of a block, in order */
    PREFIX_ROW    /* the same row in all prefixes of a group */
} fpa_prefix_kind;

fpa_prefix_kind outer_prefix_kind(const fpa_outer_plan *outer, int l);

/* The row of a folded tile in a copy that has slot 8 c + r; -1: the copy has the slot of (r, c) instead, the same
 * product. */
int outer_fold(int slot);

/* Fills *outer from the rows, pieces and dots of plan, with tables in `lasting`. columns: tiles of 8 columns of a
 * block. parts: suffix blocks that a tile may have, 1, 2 or 4; 2 and 4 also with OUTER_CUT, all with OUTER_TURNED.
 * warpgroup_tiles: tiles whose sums a warpgroup of the state kernel can hold, at least 1. outer->used is false if
 * tiles do not suit the head. */
void plan_outer(const struct fpa_plan *plan, int columns, int warpgroup_tiles, int parts, arena *lasting,
                fpa_outer_plan *outer);

/* The same for a plan of product rows (product_rows.h): rows are in the order of its dots, tiles are blocks of rows
 * times blocks, or rows if features are. late: dots that are no factor of a product come after those that are, so
 * that rows that both have are placed with the latter's other rows. */
void plan_outer_of_products(const struct fpa_plan *plan, int columns, int warpgroup_tiles, int parts,
                            bool late, arena *lasting, fpa_outer_plan *outer);

/* Whether `late` makes any difference. */
bool outer_has_late_dots(const struct fpa_plan *plan);

#endif

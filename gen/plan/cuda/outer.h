/* plan_outer: how the kernels of sm_90a see a head. They work on *tiles* of 64 features: 8 *prefixes*
 * times the 8 consecutive rows of one *suffix block*.
 *
 * Vocabulary, beside plan.h's. A *vector* is what a token has in packed rows, in blocks of 8 (16 bytes
 * of bf16). A *prefix* is the product of all factors of a feature but the last. A *group* is 8 prefixes
 * and the tiles that have them in common; a *strip* is a run of tiles of one group, for which one
 * warpgroup of the state kernel forms the prefixes once. The order of features is free: a table maps each
 * slot of a tile to the feature of plan->pieces, or to none. */
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
    OUTER_QUARTERS = 4,  /* of a tile: two prefixes each, which a warp has */
    OUTER_CUT = 8,       /* beside suffix blocks of a tile: groups are cut, and suffixes become prefixes */
    OUTER_TURNED = 16, /* and, of prefixes of several factors, rows of blocks that have few become factors */
};

typedef struct fpa_outer_plan {
    bool used;           /* else `why` says why not, and nothing below is valid */
    char why[160];       /* "its features fill only 40 % of tiles of 8 x 8" */
    bool products, late; /* of a plan of product rows; see plan_outer_of_products */
    bool rows; /* features are rows: a tile is 8 blocks of them, from its suffix on; prefixes are 1 */
    /* rows of a vector, in a numbering of its own, by blocks of 8 */
    int *row;    /* [plan->row_count] vector row of a plan's row, -1: not kept */
    int *source; /* [8 row_blocks] plan's row of a vector row (some twice), -1: zero for every token */
    /* rows lie as dots have them; else as they are made: coordinates, projections, weighted ones */
    bool by_dots;
    int row_blocks;  /* of a vector */
    int vector_rows; /* the first ones, which device memory has; the copy engine adds zeros */
    /* Behind those, in slabs of their own, coordinates that boxes bring from q and k as they are given: */
    int given_rows;   /* so many, 0: none; */
    int given_first;  /* number of the first one; */
    int given_slab;   /* and the slab that it begins */
    bool coordinates; /* the rows are the coordinates, then zeros: q and k are read as they lie */
    /* coordinates that a box has of a slab of 64 rows; fewer than 64 if the row of ones follows them in the slab,
     * which the kernel writes itself */
    int vector_box;
    int ones_row, zero_row; /* vector rows, -1: there is none */
    /* tiles, in the order of their groups; then the folded ones: of a block's rows times themselves */
    int prefix_factors; /* F - 1; prefixes of fewer factors begin with rows of ones */
    int groups;
    int *prefix;      /* [groups][8][prefix_factors] vector rows */
    int *group_first; /* [groups + 1] first tile that is not folded; some groups have none */
    int tiles, folded;
    int copy_rows;     /* 64 of a tile, OUTER_FOLDED of a folded one */
    int *tile_suffix;  /* [tiles] block of rows */
    int *tile_quarter; /* [tiles][4] that of each two prefixes */
    /* [groups] suffix blocks of a tile: 1, 2 or 4, of which each has so many times fewer prefixes */
    int *group_parts;
    bool parted;    /* some group's are more than one */
    bool cut;       /* some group's prefixes begin amid a block */
    int *feature;   /* [tiles][8 prefixes][8 rows] feature as plan->pieces count them, -1: none */
    double *weight; /* [tiles][64] on the key side; 0 where there is no feature */
    double *copied; /* [tiles][64] the same with the scale of q, which copies have too */
    bool weighted;  /* some weight, with the scale that copies have, is not 1 */
    bool powers;    /* all weights, with that scale, are 0 or powers of two: products with them are exact */
    bool padded;    /* some slot has no feature */
    int *degree;    /* [tiles][64] factors that are not the row of ones: head->scale enters as often */
    /* strips: first those whose prefixes' last factor is a block that their first tile has as its suffix,
     * then the others, in the order of their groups */
    int strip_length; /* R: tiles of a strip, 1..OUTER_MAX_STRIP */
    int strips, own_strips;
    int *strip_group; /* [strips] */
    int *strip_tile;  /* [strips][strip_length] tile, -1: padding at the end of a group */
    /* dots of the score */
    int *dot_first; /* [dots + 1] first entry of dot_step */
    int *dot_step;  /* 16 rows each, all the dot's or zero */
} fpa_outer_plan;

/* What factor l of a group's prefixes is, in every group. */
typedef enum fpa_prefix_kind {
    PREFIX_ANY,
    PREFIX_BLOCK, /* the rows of a whole block, in order */
    PREFIX_ROW    /* one row */
} fpa_prefix_kind;

fpa_prefix_kind outer_prefix_kind(const fpa_outer_plan *outer, int l);

/* Row of a folded tile's copy that holds slot 8 c + r, or -1: the slot of (r, c) has its features. */
int outer_fold(int slot);

/* Fills *outer from the rows, pieces and dots of plan, with tables in `lasting`. columns: tiles of 8 of a
 * block. parts: suffix blocks that a tile may have, 1, 2 or 4, the last two also with OUTER_CUT, all with OUTER_TURNED. warpgroup_tiles: tiles whose sums a warpgroup of the state kernel can hold, >= 1. Of a head that tiles
 * do not suit used is false. */
void plan_outer(const struct fpa_plan *plan, int columns, int warpgroup_tiles, int parts, arena *lasting,
                fpa_outer_plan *outer);

/* The same of a plan of product rows (product_rows.h): rows lie as its dots have them, tiles are blocks times blocks, or rows where features are.
 * late: dots that are no factor of a product come behind those that are, so that rows that both have lie beside the latters' other ones. */
void plan_outer_of_products(const struct fpa_plan *plan, int columns, int warpgroup_tiles, int parts,
                            bool late, arena *lasting, fpa_outer_plan *outer);

/* Whether that makes any difference. */
bool outer_has_late_dots(const struct fpa_plan *plan);

#endif

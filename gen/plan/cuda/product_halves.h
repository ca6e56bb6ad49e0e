/* Halves of monomials, and which of their rows features are products of. Internal to plan_product_rows. */
#ifndef FPAC_GEN_PLAN_CUDA_PRODUCT_HALVES_H
#define FPAC_GEN_PLAN_CUDA_PRODUCT_HALVES_H

#include "product_rows.h"

enum { MOST_DEGREE = 8 }; /* of monomials: 2^7 ways to deal them out */

/* A product of dots. Of a dot that it has twice rows (i, j) and (j, i) are one, with weight 2. */
typedef struct half {
    int count, dot[MOST_DEGREE]; /* narrow ones first; equal ones follow each other */
    int rows, first;             /* plan's row of its first product row */
    double scale;                /* of keys, a power of two: f16 ends at 65,504 */
    int *number; /* row that a row of each dot makes, the last dot's next first; -1: another order has it */
    bool *used;  /* [rows] some feature has it */
    bool *late;  /* [rows] as number: the row is placed after those that are not late; NULL: none is late */
} half;

/* The halves of a monomial, the one of fewer rows first; -1: it has none. */
typedef struct dealt {
    int half[2], degree;
} dealt;

typedef struct maker {
    const fpa_plan *given; /* what is asked for, and how it is seen: itself, or */
    const fpa_plan *plan;  /* with ones as a row of the dot, so that all monomials are one (padded) */
    bool padded;
    int columns;
    bool both_orders;
    half *halves;
    int half_count;
    dealt *dealt;  /* [monomials] */
    int *base;     /* [rows] that a row is times its weight */
    double *gram;  /* [rows] */
    int *position; /* [dots][rows] of the row of that base in the dot, -1: it has none */
} maker;

/* Row number r of a half, in the numbers of the seen plan. */
int half_row(const maker *m, const half *h, int r);

/* The rows of its dots that a row of a half is the product of, in any order; false: another order has it. weight: of that one. */
bool half_split(const maker *m, const half *h, int ordered, int *position, double *weight);

/* Tiles of 8 x 8 that features fill, and those of two prefixes and 8 rows among them. */
typedef struct filled {
    int tiles, quarters;
} filled;

/* The pieces of `made`, one a feature, and which rows of halves are used. Where a feature can be several pairs of rows, those are taken that
 * fill few tiles of 8 x 8. NULL: they are there; else why not. */
const char *place_features(const maker *m, arena *memory, fpa_product_rows *made, filled *count);

#endif

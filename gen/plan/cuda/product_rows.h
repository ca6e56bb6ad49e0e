/* product_rows: a head of products of three dots and more, as one of products of two.
 *
 * The dots of a monomial are dealt out to two *halves*. A half of several dots is itself a dot, of *product rows*:
 *
 *     s1 s2 s3 = (sum_i q1_i k1_i) (sum_ij (q2_i q3_j) (k2_i k3_j))
 *
 * so that each feature is a row of one half times a row of the other one, whatever its degree, and tiles of 8 x 8 features
 * are nearly full. Product rows are formed once, by who packs vectors. */
#ifndef FPAC_GEN_PLAN_CUDA_PRODUCT_ROWS_H
#define FPAC_GEN_PLAN_CUDA_PRODUCT_ROWS_H

#include "gen/plan/plan.h"

/* What kernels see. */
typedef struct fpa_product_rows {
    /* the given one's, but for: row_count, with product rows behind its own; pieces, one a feature; dots; score */
    fpa_plan plan;
    fpa_score score;      /* without branches */
    int count;            /* product rows */
    int factors;          /* of each at most */
    int *factor;          /* [count][factors] the given plan's rows; behind the last one the row of ones */
    double *weight;       /* [count] of keys: powers of two, but of features */
    double *query_weight; /* [count] of queries; NULL: all 1 */
    int *dot_degree;      /* [score.dot_count] dots of the head that it is a product of */
    bool late;            /* as plan_outer_of_products has it */
} fpa_product_rows;

/* columns: tiles of 8 of a block, by which features are weighed against rows. both_orders: of a dot that a half has twice rows (i, j)
 * and (j, i) are two, which takes heads that have features of both. In `memory`. Where the head has no such monomial, or features are not
 * products of rows of its dots, it is said why; else NULL. */
const char *plan_product_rows(const fpa_plan *plan, int columns, bool both_orders, arena *memory,
                              fpa_product_rows *made);

#endif

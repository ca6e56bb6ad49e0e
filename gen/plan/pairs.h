/* pairs: kernels that are sums of products of two dot products, each of rows of its own:
 *   k(q, k) = sum over monomials m of  weight_m (q_A . k_A) (q_B . k_B),
 * where A and B are blocks of rows that belong to m alone. The gradient of q_A is the contraction of the gradients of m's
 * features with q_B, and vice versa. So NAME_chunk_contraction computes the gradients of all rows from the states of the
 * pass of values, monomial by monomial.
 *
 * Other kernels of several dot products are written as such a sum by *product rows*: the factors of a monomial are
 * divided between two halves, and the rows of a half are all products of one row of each of its dots (of no dot: a row of
 * ones). NAME_backward_gather computes product rows for the operands of passes, and NAME_backward_scatter computes the
 * gradients of the dots' rows from theirs.
 * Given: a score whose rows are coordinates. */
#ifndef FPAC_GEN_PLAN_PAIRS_H
#define FPAC_GEN_PLAN_PAIRS_H

#include "gen/simplify/simplify.h"

/* Rows of a matrix instruction: each dot begins at a multiple of 16 rows, and zeros fill its last 16. Blocks of 8 that
 * contain only such zeros form no features. */
enum { PAIR_STEP = 16 };

/* Whether all monomials of a score are such products. */
bool score_has_pairs(const fpa_score *score);

/* Whether gradients are computed that way: sums fit into registers, and there are enough features. */
bool pairs_suit(const fpa_simplified *simple);

/* Whether, in addition, the rows of dots are contiguous, begin at multiples of 16, and are all of the d rows. */
bool pairs_lie_apart(const fpa_score *score, int d);

/* A dot of a monomial: which = 0: the one with lower rows; 1: the other one. */
const fpa_branch *pair_dot(const fpa_score *score, int monomial, int which);

/* ---- product rows ---- */

enum {
    PAIR_DEGREE = 8, /* the most dots of a monomial */
    PAIR_SUMMED = 8, /* the most dots of a sum */
    PAIR_ONE = -1,   /* in place of a row's index: 1 for all tokens */
    PAIR_ZERO = -2   /* in place of a row's index: 0 for all tokens */
};

/* One dot, or a sum of dots, which is a dot of their rows, one after the other. */
typedef struct fpa_summed {
    int count, dot[PAIR_SUMMED];
} fpa_summed;

/* The dots of a monomial divided into two halves; a dot occurs as often as its power. Monomials of equal weight
 * that differ in one factor are merged: that factor is the sum of their dots. */
typedef struct fpa_halves {
    int monomial;        /* the first of the merged monomials */
    int degree, several; /* degree: number of factors; several: index of the factor that is a sum, -1: none */
    fpa_summed factor[PAIR_DEGREE];
    unsigned first; /* bit l: factor l belongs to the first half */
    /* number of product rows of each half, and index of the first one in a vector */
    int rows[2], position[2];
} fpa_halves;

/* Whether gradients are computed by product rows: there are several dots, none has weights, and sizes are as
 * above. */
bool halves_suit(const fpa_simplified *simple);

/* halves_count: the number of products of two halves of which the kernel is the sum. halves_of: one of them,
 * divided so that tiles and rows are fewest. */
int halves_count(const fpa_simplified *simple);
fpa_halves halves_of(const fpa_simplified *simple, int product);

/* halves_width: elements of a vector of all product rows, in which each half begins at a multiple of 16.
 * halves_factors: the most factors of a product row. */
int halves_width(const fpa_simplified *simple);
int halves_factors(const fpa_simplified *simple);

/* factor[halves_width][halves_factors]: for each element of a vector, the rows of which it is the product, then
 * PAIR_ONE. */
void halves_list(const fpa_simplified *simple, int *factor);

/* Rows of a dot of `width` rows from which features are formed: whole blocks of 8. Dot products read whole steps
 * of 16, of which the remaining rows are zero. */
int pair_rows(int width);

/* Blocks of 8 rows that a dot has. */
int pair_blocks(const fpa_branch *dot);

#endif

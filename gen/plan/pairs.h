/* pairs: kernels that are sums of products of two dots, each of rows of its own:
 *   k(q, k) = sum over monomials m of weight_m (q_A . k_A) (q_B . k_B),
 * A and B being blocks of m's own rows. The gradient of q_A is the contraction of m's features with q_B, and the other way round, so that gradients of all rows
 * are what NAME_chunk_contraction makes of the states of the pass of values, monomial by monomial.
 *
 * Other kernels of several dots become such a sum of *product rows*: the dots of a monomial are dealt out to two halves, and a half's rows are all products of a row
 * of each of its dots (of none: a row of ones). Who gathers operands of passes forms them, and takes their gradients back to the dots' rows.
 * Given: a score, of rows that are coordinates. */
#ifndef FPAC_GEN_PLAN_PAIRS_H
#define FPAC_GEN_PLAN_PAIRS_H

#include "gen/simplify/simplify.h"

enum {
    PAIR_STEP = 16
}; /* rows of a matrix instruction: a dot begins with one, and zeros fill its last one, of which no feature is made where a block of 8 is left */

/* Whether all of its monomials are such products. */
bool score_has_pairs(const fpa_score *score);

/* And such that they are contracted so: of sizes that sums have registers for, of features enough. */
bool pairs_suit(const fpa_simplified *simple);

/* Whether besides the dots lie one behind the other, from whole steps on, and are all of d rows. */
bool pairs_lie_apart(const fpa_score *score, int d);

/* A monomial's dots: which = 0: the one of the lower rows; 1: the other. */
const fpa_branch *pair_dot(const fpa_score *score, int monomial, int which);

/* ---- product rows ---- */

enum {
    PAIR_DEGREE = 8, /* dots of a monomial, at most, */
    PAIR_SUMMED = 8, /* and of a sum */
    PAIR_ONE = -1,   /* in the place of a row: 1, */
    PAIR_ZERO = -2   /* or 0 for all tokens */
};

/* One dot, or the sum of several: a dot of the rows of all, one behind the other. */
typedef struct fpa_summed {
    int count, dot[PAIR_SUMMED];
} fpa_summed;

/* A monomial's dot products in two halves, each as often as its power. Monomials of equal weight that differ in
 * one factor are merged: that factor is the sum of both. */
typedef struct fpa_halves {
    int monomial;        /* the first of them */
    int degree, several; /* factor that is a sum; -1: none */
    fpa_summed factor[PAIR_DEGREE];
    unsigned first;           /* bit l: factor l is the first half's */
    int rows[2], position[2]; /* product rows of either half, and where they begin in a vector */
} fpa_halves;

/* Whether gradients go by product rows: of several dots without weights, of sizes as above. */
bool halves_suit(const fpa_simplified *simple);

/* Products of two halves that the kernel of such a head is the sum of, and those of one; fewest tiles and rows. */
int halves_count(const fpa_simplified *simple);
fpa_halves halves_of(const fpa_simplified *simple, int product);

/* Numbers of a vector of all product rows, each half from a whole step on; factors of a product row, at most. */
int halves_width(const fpa_simplified *simple);
int halves_factors(const fpa_simplified *simple);

/* factor[halves_width][halves_factors] <- rows that each number of a vector is the product of; behind the last one PAIR_ONE. */
void halves_list(const fpa_simplified *simple, int *factor);

/* Rows of a dot that features have, of so many: whole blocks of 8. Up to its last step's end dots alone read on, of rows that are zero. */
int pair_rows(int width);

/* Blocks of 8 rows of a dot. */
int pair_blocks(const fpa_branch *dot);

#endif

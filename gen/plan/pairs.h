/* pairs: kernels that are sums of products of two dots, each of rows of its own:
 *   k(q, k) = sum over monomials m of weight_m (q_A . k_A) (q_B . k_B),
 * A and B being blocks of m's own rows. The gradient of q_A is the contraction of m's features with q_B, and the other way round, so that gradients of all rows
 * are what NAME_chunk_contraction makes of the states of the pass of values, monomial by monomial.
 * Given: a score, of rows that are coordinates. */
#ifndef FPAC_GEN_PLAN_PAIRS_H
#define FPAC_GEN_PLAN_PAIRS_H

#include "gen/simplify/simplify.h"

enum { PAIR_STEP = 16 }; /* rows of a matrix instruction: a dot begins with one, and zeros fill its last one */

/* Whether all of its monomials are such products. */
bool score_has_pairs(const fpa_score *score);

/* And such that they are contracted so: without a gate, of sizes that sums have registers for, of features enough. */
bool pairs_suit(const fpa_simplified *simple);

/* Whether besides the dots lie one behind the other, from whole steps on, and are all of d rows. */
bool pairs_lie_apart(const fpa_score *score, int d);

/* A monomial's dots: which = 0: the one of the lower rows; 1: the other. */
const fpa_branch *pair_dot(const fpa_score *score, int monomial, int which);

/* Blocks of 8 rows of a dot; of the monomial whose dots have most. */
int pair_blocks(const fpa_branch *dot);
int pairs_most_blocks(const fpa_score *score);

#endif

/* simplify: head -> equal head with fewer features, and the score of the parallel form.
 *
 * A head is a polynomial in the symbols s_r = (row_r q)(row_r k), one for each row of the input or of a matrix.
 * Each pass proves its identity when it runs: in exact rational arithmetic on the symbols (modulo a 61-bit prime
 * at random points), or, for dense matrices, by the residual of the Gram. For a head with a lift it is the
 * polynomial of the coordinates, and the result has no lift.
 * Given: a head as written. Gives: an equal head whose terms are the features that the state contains, the score,
 * and notes on the passes that were applied. It knows no target. passes.h lists the passes, one file each. */
#ifndef FPAC_GEN_SIMPLIFY_SIMPLIFY_H
#define FPAC_GEN_SIMPLIFY_SIMPLIFY_H

#include "head/head.h"

/* A product of dots: weight * prod_l dot_l ^ power[l]. */
typedef struct fpa_monomial {
    fpa_number weight;
    int *power; /* [dot_count] */
} fpa_monomial;

/* How the parallel form computes k(q,k): each dot once, then a polynomial of them. (q.k)^p is one dot and the
 * monomial dot^p. */
typedef struct fpa_score {
    int dot_count;
    fpa_branch *dots; /* [dot_count] sum over rows of gram * (row q)(row k) */
    int monomial_count;
    fpa_monomial *monomials; /* summed; sorted by decreasing power, lexicographically */
} fpa_score;

typedef struct fpa_simplified {
    fpa_head *head;  /* the features that the state holds: D = head_features(head) */
    fpa_score score; /* in head->memory, with sources of head->matrices */
    int note_count;
    char **notes; /* one line for each pass that was applied, with the reason; for explain */
    int warning_count;
    char **warnings; /* for example: a normalised head that does not depend on the query */
    /* the head's rows were made from another head's (gen/plan/row_head.h); rows that no branch uses are zero */
    bool made;
    double written; /* D of the head as written */
    /* The fewest features known: of the products of rows, as written or multiplied out, with blocks of 1, or of
     * all monomials of these degrees (head_features_bound). It is the exact minimum for polynomials of one form or
     * of coordinates; for several dense forms there may be fewer. */
    double minimum;
} fpa_simplified;

/* Fill *simple, to be freed with simplified_free. The features of the result:
 * - in a kernel that is a polynomial of few linear forms (power, tspow, spow, taylor ...), each power s^m of a form over
 *   r rows becomes one term for every non-decreasing tuple of blocks of head->block rows, with weight m!/prod mult! (the
 *   full construction of TSPOW, whose weights are integers). In squares (m = 2) a block with itself is halved down to two
 *   rows, by (a + b)^2 = 2 a b + a^2 + b^2: r (r + 1) / 2 features, and one more for each square of two rows. head->block
 *   0 takes the largest of 8, 4, 2, 1 within 1.4, 1.32, 1.20, 1 times the exact minimum;
 * - else the terms as written, after rank reduction and merging of equal monomials; dense branches that are diagonal in a
 *   common basis are transformed to it if that reduces D by at least a fifth.
 * UNSUPPORTED: weights are out of the range of float32, or there are too many terms; REFUSED: a proof failed. */
fpa_status simplify(const fpa_head *head, fpa_simplified *simple, fpa_error *error);
void simplified_free(fpa_simplified *simple);

/* The simplified head, its score and notes as text (--dump=simplified), malloc'ed. */
char *simplified_print(const fpa_simplified *simple);

#endif

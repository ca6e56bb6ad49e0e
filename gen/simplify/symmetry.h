/* symmetry: the rotations of q and k together that leave a kernel as it is: the orthogonal U with
 * k(Uq, Uk) = k(q, k) (the paper's "Invariant Properties", 3).
 *
 * For one product of branches they are the U that commute with every Gram G_l = W_l' W_l. Of a sum the kernel
 * counts, not how it is written: with f_l = q' G_l k, k = P(f_1, ..., f_n), they are looked for among the U that
 * commute with every H(q, k) = sum over l of dP/df_l G_l, the matrix of k's derivative. TSPOW, written over blocks,
 * has H in proportion to 1 and thus all of O(d), though the Grams of its blocks have O(b)^m only.
 *
 * Given: a head and what it simplifies to (its score is the whole kernel). Gives: a product of groups, each on a space of
 * its own. Reads numbers only; a row that is given at run time makes it unknown, but for weights of coordinates. */
#ifndef FPAC_GEN_SIMPLIFY_SYMMETRY_H
#define FPAC_GEN_SIMPLIFY_SYMMETRY_H

#include "simplify.h"

typedef enum fpa_symmetry_kind {
    /* These rotations, and no others near the identity: the group's connected component is that of its parts. Of
     * reflections, signs and exchanges only those that were searched for are known; a kernel may have more. */
    SYMMETRY_EXACT,
    SYMMETRY_AT_LEAST, /* these; there may be more: whatever the weights are, or several terms whose Grams do not commute */
    SYMMETRY_AT_RUN_TIME, /* depends on matrices that are given at run time; no parts */
    SYMMETRY_BEHIND_MAPS, /* branches take coordinates that a lift makes of q and k (head/lift.h); no parts */
    SYMMETRY_TOO_LARGE,   /* dense rows and more coordinates or dots than are looked at; no parts */
    SYMMETRY_KINDS
} fpa_symmetry_kind;

enum { SYMMETRY_MOST = 256 }; /* d, and dots, of a head with dense rows that is looked at */

/* A space and what may happen in it. */
typedef struct fpa_symmetry_part {
    int width; /* of the space */
    int order; /* n: O(n), all of it where n == width, else (n = 1) the sign alone; 0: known by its dimension */
    int dimension;   /* of the group: n (n - 1) / 2 */
    bool is_seen;    /* k depends on it */
    int *coordinate; /* [width] that span the space, from 0, ascending; NULL: rows of the basis do */
    int exchange;    /* two parts of the same number may be exchanged; those of -1 with none */
} fpa_symmetry_part;

typedef struct fpa_symmetry {
    arena memory;
    fpa_symmetry_kind kind;
    int d;
    bool exchanges_known; /* they were looked for: of coordinates alone, and where the score is not huge */
    int part_count;
    fpa_symmetry_part *parts; /* [part_count] by their first coordinate; of dense rows by falling order */
    double *basis;            /* [d][d] orthonormal rows, in the order of the parts; NULL: coordinates */
} fpa_symmetry;

/* Coordinates by exact arithmetic, dense rows in double: Grams that commute to 1e-8 are taken to. NO_MEMORY. */
fpa_status symmetry_find(const fpa_head *written, const fpa_simplified *simple, fpa_symmetry *symmetry,
                         fpa_error *error);
void symmetry_free(fpa_symmetry *symmetry);

int symmetry_dimension(const fpa_symmetry *symmetry); /* of the group; d (d - 1) / 2 of O(d) */
const char *symmetry_kind_name(
    fpa_symmetry_kind kind); /* "exact", "at least", "at run time", "behind maps", "too large" */

/* In words, cut with "..." where they are long: "O(8)^8, exchanges of 8 spaces of 8", where G stands for a group that is
 * known by its dimension; and "1-8 | 9-16 | a space of 16 (k does not see it)", coordinates counted from 1. */
enum { SYMMETRY_TEXT = 120 };
void symmetry_group_text(char text[SYMMETRY_TEXT], const fpa_symmetry *symmetry);
void symmetry_space_text(char text[SYMMETRY_TEXT], const fpa_symmetry *symmetry);

#endif

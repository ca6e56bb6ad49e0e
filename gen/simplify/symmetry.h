/* symmetry: the rotations of q and k together that do not change a kernel: the orthogonal U with k(Uq, Uk) = k(q,
 * k) (the paper's "Invariant Properties", 3).
 *
 * For one product of branches these are the U that commute with every Gram G_l = W_l' W_l. For a sum only the
 * kernel matters, not how it is written: with f_l = q' G_l k and k = P(f_1, ..., f_n), the search is among the U
 * that commute with every H(q, k) = sum over l of dP/df_l G_l, the matrix of k's derivative. TSPOW, written over
 * blocks, has H proportional to 1 and thus all of O(d), although the Grams of its blocks have O(b)^m only.
 *
 * Given: a head and the result of its simplification (its score is the whole kernel). Gives: a product of groups,
 * each on a space of its own. Only numbers are considered: a row that is given at run time makes the symmetry
 * unknown, except weights of coordinates. */
#ifndef FPAC_GEN_SIMPLIFY_SYMMETRY_H
#define FPAC_GEN_SIMPLIFY_SYMMETRY_H

#include "simplify.h"

typedef enum fpa_symmetry_kind {
    /* These are all rotations near the identity: the group's connected component is that of its parts. Of
     * reflections, signs and exchanges only those that were searched for are known; a kernel may have more. */
    SYMMETRY_EXACT,
    /* these, and perhaps more: weights are arbitrary, or there are several terms whose Grams do not commute */
    SYMMETRY_AT_LEAST,
    SYMMETRY_AT_RUN_TIME, /* depends on matrices that are given at run time; no parts */
    /* branches use coordinates that a lift computes from q and k (head/lift.h); no parts */
    SYMMETRY_BEHIND_MAPS,
    SYMMETRY_TOO_LARGE, /* dense rows, and more coordinates or dots than are searched; no parts */
    SYMMETRY_KINDS
} fpa_symmetry_kind;

enum { SYMMETRY_MOST = 256 }; /* the most coordinates, and dots, of a head with dense rows that is searched */

/* A space, and the group that acts on it. */
typedef struct fpa_symmetry_part {
    int width; /* dimension of the space */
    /* n: the group is O(n), on the whole space if n == width; n = 1: the sign alone; 0: only the group's dimension
     * is known */
    int order;
    int dimension; /* dimension of the group: n (n - 1) / 2 for O(n) */
    bool is_seen;  /* k depends on the space */
    /* [width] coordinates that span the space, 0-based, ascending; NULL: rows of the basis span it */
    int *coordinate;
    int exchange; /* parts with the same number can be exchanged; -1: with none */
} fpa_symmetry_part;

typedef struct fpa_symmetry {
    arena memory;
    fpa_symmetry_kind kind;
    int d;
    /* exchanges were searched for: only for coordinates, and if the score is not huge */
    bool exchanges_known;
    int part_count;
    /* [part_count], sorted by first coordinate; for dense rows by decreasing order */
    fpa_symmetry_part *parts;
    double *basis; /* [d][d] orthonormal rows, in the order of the parts; NULL: coordinates */
} fpa_symmetry;

/* Find a kernel's symmetry: for coordinates in exact arithmetic, for dense rows in double, where Grams that
 * commute up to 1e-8 are regarded as commuting. The caller frees *symmetry. NO_MEMORY. */
fpa_status symmetry_find(const fpa_head *written, const fpa_simplified *simple, fpa_symmetry *symmetry,
                         fpa_error *error);
void symmetry_free(fpa_symmetry *symmetry);

int symmetry_dimension(const fpa_symmetry *symmetry); /* dimension of the group; d (d - 1) / 2 for O(d) */
const char *symmetry_kind_name(
    fpa_symmetry_kind kind); /* "exact", "at least", "at run time", "behind maps", "too large" */

/* The group and its spaces in words, cut with "..." if they are long: "O(8)^8, permutations of 8 spaces of
 * dimension 8", where G stands for a group of which only the dimension is known; and "1-8 | 9-16 | a space of 16 (k
 * does not depend on it)", with coordinates counted from 1. */
enum { SYMMETRY_TEXT = 160 };
void symmetry_group_text(char text[SYMMETRY_TEXT], const fpa_symmetry *symmetry);
void symmetry_space_text(char text[SYMMETRY_TEXT], const fpa_symmetry *symmetry);

#endif

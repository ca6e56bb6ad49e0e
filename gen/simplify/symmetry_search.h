/* symmetry_search: declarations that the two searches for a kernel's symmetry share; private to the folder. */
#ifndef FPAC_GEN_SIMPLIFY_SYMMETRY_SEARCH_H
#define FPAC_GEN_SIMPLIFY_SYMMETRY_SEARCH_H

#include "symmetry.h"

typedef struct fpa_factor {
    int dot, power;
} fpa_factor;

typedef struct fpa_symmetry_search {
    arena scratch;
    const fpa_head *head; /* the head, for its matrices */
    const fpa_score *score;
    fpa_factor *factors; /* of monomial m: first[m] .. first[m + 1], at most HEAD_MAX_BRANCHES */
    int *first;
    fpa_symmetry *found;
} fpa_symmetry_search;

/* --- symmetry_coordinates.c: kernels of s_i = q_i k_i, in exact arithmetic. False: no memory --- */
bool symmetry_of_coordinates(fpa_symmetry_search *s);

/* --- symmetry_slopes.c: the space of matrices H = sum over dots of dP/df G, in double --- */

typedef struct fpa_slope_space {
    int count;     /* number of linearly independent matrices, each a sum over dots of unit * row * Gram */
    double *rows;  /* [count][dots] */
    double *units; /* [dots] */
    double *sizes; /* [count] largest element of each matrix */
} fpa_slope_space;

/* slope_space_find computes the space; the second function draws a random element of it, [d][d], whose largest
 * entry is 1 (all are 0 if the kernel is constant). Both return false if memory is out. */
bool slope_space_find(fpa_symmetry_search *s, fpa_slope_space *space);
bool slope_space_element(fpa_symmetry_search *s, const fpa_slope_space *space, uint64_t *random,
                         double *element);

/* --- symmetry_dense.c: kernels with constant dense rows, in double --- */
bool symmetry_of_dense(fpa_symmetry_search *s);

#endif

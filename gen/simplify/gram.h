/* simplify_gram: dense matrices in double, of which a kernel sees only the Gram W'W.
 * Private to simplify_*.c. */
#ifndef FPAC_GEN_SIMPLIFY_GRAM_H
#define FPAC_GEN_SIMPLIFY_GRAM_H

#include "base/arena.h"
#include "head/number.h"

typedef struct fpa_dense {
    int rows, cols;
    double *w; /* rows x cols, row-major */
} fpa_dense;

/* Grams are called equal when no element differs by more than this times the largest one: above the
 * rounding of sums of 1024 products, far below that of single precision. */
#define GRAM_TOLERANCE 1e-13
/* The same of every element for itself, against the diagonal of its row and column: small coordinates count as
 * large ones do, as long as single precision tells. */
#define SCALED_TOLERANCE 1e-8
/* Rank: what is left of a diagonal element below this times the largest one is called zero. */
#define RANK_TOLERANCE 1e-12

/* W'W, cols x cols, and WW', rows x rows; NULL: no memory. */
double *dense_gram(arena *memory, const fpa_dense *dense);
double *dense_products(arena *memory, const fpa_dense *dense);
/* Quick: false when some neighbouring columns are not orthogonal, so that W'W is not diagonal. */
bool columns_orthogonal(const fpa_dense *dense);
/* Has the n x n matrix WW' full rank? By Cholesky without pivots; a false no is possible. */
bool products_regular(arena *memory, const double *products, int n, bool *regular);

/* max |a - scale b| / max |a| over count elements. */
double gram_residual(const double *a, const double *b, double scale, size_t count);
/* max |a_ij - b_ij| / sqrt(a_ii a_jj), n x n */
double gram_scaled_residual(const double *a, const double *b, int n);
/* Largest element off the diagonal over the largest element of an n x n Gram. */
double gram_off_diagonal(const double *gram, int n);

/* R with R'R = gram (n x n) by pivoted Cholesky; rows of factor: the rank. pivots[k] (may be NULL):
 * the column in which rows after k are zero. */
bool gram_factor(arena *memory, const double *gram, int n, fpa_dense *factor, int *pivots);

/* Eigenvectors of a symmetric n x n matrix as the rows of vectors, by Jacobi's rotations; the matrix
 * is left with the eigenvalues on its diagonal. */
void gram_eigenvectors(double *matrix, int n, double *vectors);

/* A double that stands for a Gram weight: the rational of a small denominator that rounding
 * hides, if there is one, else itself. */
bool gram_ratio(double value, fpa_number *ratio); /* false: there is none */
fpa_number gram_number(arena *memory, double value);

#endif

/* simplify_gram: dense matrices in double. A kernel depends on a matrix W only by its Gram W'W. Private to
 * gen/simplify. */
#ifndef FPAC_GEN_SIMPLIFY_GRAM_H
#define FPAC_GEN_SIMPLIFY_GRAM_H

#include "base/arena.h"
#include "head/number.h"

typedef struct fpa_dense {
    int rows, cols;
    double *w; /* rows x cols, row-major */
} fpa_dense;

/* Grams are regarded as equal if no element differs by more than this times the largest element: above the
 * rounding errors of sums of 1024 products, far below those of single precision. */
#define GRAM_TOLERANCE 1e-13
/* The same for each element relative to the diagonal elements of its row and column, so that small coordinates
 * count like large ones, as far as single precision can tell. */
#define SCALED_TOLERANCE 1e-8
/* Rank: a remainder of a diagonal element below this times the largest one is regarded as zero. */
#define RANK_TOLERANCE 1e-12

/* W'W, cols x cols, and WW', rows x rows; NULL: no memory. */
double *dense_gram(arena *memory, const fpa_dense *dense);
double *dense_products(arena *memory, const fpa_dense *dense);
/* A quick test: false if some neighbouring columns are not orthogonal, so that W'W is not diagonal. */
bool columns_orthogonal(const fpa_dense *dense);
/* *regular: whether the n x n matrix WW' has full rank, by Cholesky's method without pivots, which may wrongly say
 * no. False: no memory. */
bool products_regular(arena *memory, const double *products, int n, bool *regular);

/* max |a - scale b| / max |a| over count elements. */
double gram_residual(const double *a, const double *b, double scale, size_t count);
/* max |a_ij - b_ij| / sqrt(a_ii a_jj), n x n */
double gram_scaled_residual(const double *a, const double *b, int n);
/* max |a_ij|, i != j, / max |a_ij| of an n x n Gram */
double gram_off_diagonal(const double *gram, int n);

/* R with R'R = gram (n x n) by pivoted Cholesky; factor->rows is the rank. pivots[k] (may be NULL): the column in
 * which the rows after k are zero. False: no memory. */
bool gram_factor(arena *memory, const double *gram, int n, fpa_dense *factor, int *pivots);

/* The eigenvectors of a symmetric n x n matrix become the rows of `vectors`, by Jacobi's rotations; the matrix
 * becomes diagonal, with the eigenvalues. */
void gram_eigenvectors(double *matrix, int n, double *vectors);

/* gram_ratio: the rational with a small denominator from which a Gram weight may have been rounded. gram_number:
 * that rational, or if there is none the double itself. */
bool gram_ratio(double value, fpa_number *ratio); /* false: there is none */
fpa_number gram_number(arena *memory, double value);

#endif

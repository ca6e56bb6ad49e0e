/* reference_rows: where the rows of a branch are in a projected token. A projected token is its input (d entries)
 * followed by its products with every matrix of the head, in order; or, for a head with a lift, its coordinates.
 *
 * That which contributes nothing costs nothing: rows of weight 0 and terms that are 0 are omitted, and equal
 * branches of one or several terms are one dot product. Apart from that, the head is evaluated as written. */
#ifndef FPAC_RUNTIME_REFERENCE_ROWS_H
#define FPAC_RUNTIME_REFERENCE_ROWS_H

#include <math.h>

#include "reference.h"

/* The dot product (W q).(W k) of a branch: a sum over its rows. */
typedef struct fpa_rows_dot {
    const fpa_branch *branch; /* the first of several equal ones */
    int count;                /* rows whose weight is not 0 */
    int64_t *at;              /* [count] indices in a projected token */
    double *weight;           /* [count], or NULL: all 1 */
} fpa_rows_dot;

typedef struct fpa_rows_term {
    double weight;
    int count; /* number of branches */
    int *dot;  /* [count] the dot of each branch */
} fpa_rows_term;

typedef struct fpa_rows {
    int64_t *offset; /* [matrix_count + 1] first entry of the source FPA_INPUT, then of each matrix */
    int64_t total;   /* entries of a projected token */
    int dot_count;
    fpa_rows_dot *dots;
    int term_count;
    fpa_rows_term *terms;
    double *value; /* [dot_count] room for the values of dots */
    arena memory;
} fpa_rows;

fpa_status rows_make(const fpa_head *head, fpa_rows *rows, fpa_error *error);
void rows_free(fpa_rows *rows);

/* The number of features of all terms; terms that are 0 are not counted. */
double rows_features(const fpa_rows *rows);

/* Entry (r, c) of a matrix, constant or given at run time, for a key/value head. */
double rows_entry(const fpa_problem *problem, int matrix, int64_t head, int r, int c);

/* Copy all matrices for a key/value head, one after the other, each transposed, [d][rows], so that vectors compute
 * several rows of a token's products at a time, each summed in the order of d. to: [total - d][d]. */
void rows_matrices(const fpa_problem *problem, int64_t head, double *to);

/* exp(x) for a sum x of log-gates; 1 without calling exp if x is 0, as it is without gates. */
static inline double rows_fade(double x)
{
    return x == 0 ? 1 : exp(x);
}

/* Whether the output of (batch, token, query head) is wanted. */
bool problem_wants(const fpa_problem *problem, int64_t b, int64_t t, int64_t h);

#endif

/* reference_rows: where a branch finds its rows once a token is projected. A projected token is
 * its input (d entries) followed by its products with every matrix of the head, in order; of a head with a lift,
 * its coordinates.
 *
 * What adds nothing costs nothing: rows of weight 0 and terms that are 0 are left out, and a branch that several
 * terms have, or one has several times, is one dot product. That is all that is made of the head as written. */
#ifndef FPAC_RUNTIME_REFERENCE_ROWS_H
#define FPAC_RUNTIME_REFERENCE_ROWS_H

#include <math.h>

#include "reference.h"

/* (W q).(W k) of a branch: a sum over its rows. */
typedef struct fpa_rows_dot {
    const fpa_branch *branch; /* the first that is written so */
    int count;                /* rows of any weight */
    int64_t *at;              /* [count] entries of a projected token */
    double *weight;           /* [count], or NULL: all 1 */
} fpa_rows_dot;

typedef struct fpa_rows_term {
    double weight;
    int count; /* of branches */
    int *dot;  /* [count] the dot of each */
} fpa_rows_term;

typedef struct fpa_rows {
    int64_t *offset; /* [matrix_count + 1] of source FPA_INPUT, then of each matrix */
    int64_t total;   /* entries of a projected token */
    int dot_count;
    fpa_rows_dot *dots;
    int term_count;
    fpa_rows_term *terms;
    double *value; /* [dot_count] for whoever evaluates them */
    arena memory;
} fpa_rows;

fpa_status rows_make(const fpa_head *head, fpa_rows *rows, fpa_error *error);
void rows_free(fpa_rows *rows);

/* Features of the terms, none of which is 0; of all of them. */
double rows_features(const fpa_rows *rows);

/* Entry (r, c) of a matrix, constant or given at run time for a key/value head. */
double rows_entry(const fpa_problem *problem, int matrix, int64_t head, int r, int c);

/* All matrices for a key/value head, one behind the other, each [d][rows]: vectors have several rows of a token's product at a time, of which each is
 * added up in the order of d. to: [total - d][d]. */
void rows_matrices(const fpa_problem *problem, int64_t head, double *to);

/* exp(x), x a sum of log-gates: without any, that is 1, and looking takes less time than the function. */
static inline double rows_fade(double x)
{
    return x == 0 ? 1 : exp(x);
}

/* Whether the output of (batch, token, query head) is asked for. */
bool problem_wants(const fpa_problem *problem, int64_t b, int64_t t, int64_t h);

#endif

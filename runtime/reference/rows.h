/* reference_rows: where a branch finds its rows once a token is projected. A projected token is
 * its input (d entries) followed by its products with every matrix of the head, in order. */
#ifndef FPAC_RUNTIME_REFERENCE_ROWS_H
#define FPAC_RUNTIME_REFERENCE_ROWS_H

#include "reference.h"

typedef struct fpa_rows {
    int64_t *offset; /* [matrix_count + 1] of source FPA_INPUT, then of each matrix */
    int64_t total;   /* entries of a projected token */
} fpa_rows;

fpa_status rows_make(const fpa_head *head, fpa_rows *rows, fpa_error *error);
void rows_free(fpa_rows *rows);

/* Entry (r, c) of a matrix, constant or given at run time for a key/value head. */
double rows_entry(const fpa_problem *problem, int matrix, int64_t head, int r, int c);

/* Whether the output of (batch, token, query head) is asked for. */
bool problem_wants(const fpa_problem *problem, int64_t b, int64_t t, int64_t h);

#endif

#include "rows.h"

#include <stdlib.h>

fpa_status rows_make(const fpa_head *head, fpa_rows *rows, fpa_error *error)
{
    *rows = (fpa_rows){.total = head->d};
    rows->offset = calloc((size_t)head->matrix_count + 1, sizeof *rows->offset);
    if (!rows->offset)
        return fail_memory(error);
    for (int m = 0; m < head->matrix_count; m++) {
        rows->offset[m + 1] = rows->total;
        rows->total += head->matrices[m].rows;
    }
    return FPA_OK;
}

void rows_free(fpa_rows *rows)
{
    free(rows->offset);
    *rows = (fpa_rows){0};
}

double rows_entry(const fpa_problem *problem, int matrix, int64_t head, int r, int c)
{
    const fpa_matrix *shape = &problem->head->matrices[matrix];
    int64_t slice = shape->per_head ? head : 0;

    switch (shape->kind) {
    case FPA_MATRIX_CONSTANT:
        return shape->data[(int64_t)r * shape->cols + c];
    case FPA_MATRIX_TRAINABLE:
        return problem->weights[matrix][(slice * shape->rows + r) * shape->cols + c];
    case FPA_MATRIX_TRAINABLE_DIAGONAL:
        return r == c ? problem->weights[matrix][slice * shape->cols + c] : 0;
    }
    return 0;
}

bool problem_wants(const fpa_problem *problem, int64_t b, int64_t t, int64_t h)
{
    return !problem->wanted || problem->wanted[(b * problem->length + t) * problem->query_heads + h];
}

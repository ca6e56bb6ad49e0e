/* row_head: a head of projected and weighted rows as a head of plain ones, whose q and k these are.
 *
 * k(q, k) = f(W scale q, G W k), G being weights of keys' rows, and the gradients of f with respect to both vectors of rows are those of
 * a head without matrices, whatever kernels it has. What is left are products of all tokens: d_q = scale W' d_rows(q),
 * d_k = W' G d_rows(k), and d_W, the sum over tokens of d_rows(q) scale q' + d_rows(k) k': matrices have no weights here.
 * Rows of a dot of coordinates are its own, one behind the other, so that kernels need no table to find them, unless fewer rows are made where
 * dots share them.
 * Given: a simplified head. Gives: the head of rows, with the same features in the same order, so that states are the
 * same, and where rows come from. */
#ifndef FPAC_GEN_PLAN_ROW_HEAD_H
#define FPAC_GEN_PLAN_ROW_HEAD_H

#include "base/arena.h"
#include "gen/simplify/simplify.h"
#include "machine/target.h"

/* A matrix whose rows are computed for every token. */
typedef struct fpa_projection {
    int matrix;    /* index of head->matrices */
    int first_row; /* row of the packed input where its rows begin */
} fpa_projection;

typedef struct fpa_row_head {
    arena memory;
    const fpa_simplified *simple; /* of rows: no branch has a matrix, scale is 1 */
    const fpa_simplified
        *line;    /* of its features, whose passes gradients are (feature_line.h); NULL: they are none */
    int width;    /* numbers of a vector of rows, whole pieces of 8; 0: there is none */
    double scale; /* of queries, which their rows have */
    int coordinate_count;
    int *coordinates; /* [coordinate_count] of q and k, which are a vector's first rows; -1: zeros */
    double *weights;  /* [coordinate_count] of keys */
    bool weighs;      /* some are not 1 */
    int projection_count;
    fpa_projection *projections; /* behind them, from whole pieces of 8 on, zeros between */
    const fpa_head *lifted;      /* NULL; or the head as written, whose lift makes the rows (lift_head.h), */
    const fpa_head *unlifted;    /* and that head as if they were given */
} fpa_row_head;

enum { ROW_HEAD_MOST = 512 }; /* numbers of a vector of rows */

/* In made->memory, which fails by a jump (arena.h), as what else makes operands does.
 * made->width 0: the head has neither matrices nor dots with weights, and `plain` is not set, or products of float32, or too many rows. */
void row_head_make(const fpa_simplified *simple, const fpa_target *target, bool plain, fpa_row_head *made);
void row_head_free(fpa_row_head *made);

#endif

/* row_head: a head of projected and weighted rows as a head of plain rows, which are its q and k.
 *
 * k(q, k) = f(W scale q, G W k), where G are weights of keys' rows. The gradients of f with respect to both vectors of
 * rows are those of a head without matrices, so that its kernels can compute them. What remains are products over all
 * tokens: d_q = scale W' d_rows(q), d_k = W' G d_rows(k), and d_W = sum over tokens of d_rows(q) scale q' + d_rows(k) k'
 * (rows of matrices have no weights here).
 * The rows of a dot of coordinates are contiguous, so that kernels need no table to find them, unless fewer rows are
 * made if dots share them.
 * Given: a simplified head. Gives: the head of rows, with the same features in the same order, so that states are equal,
 * and how rows are computed. */
#ifndef FPAC_GEN_PLAN_ROW_HEAD_H
#define FPAC_GEN_PLAN_ROW_HEAD_H

#include "base/arena.h"
#include "gen/simplify/simplify.h"
#include "machine/target.h"

/* A matrix whose rows are computed for every token. */
typedef struct fpa_projection {
    int matrix;    /* index of head->matrices */
    int first_row; /* packed row at which its rows begin */
} fpa_projection;

typedef struct fpa_row_head {
    arena memory;
    const fpa_simplified *simple; /* the head of rows: no branch has a matrix, scale is 1 */
    /* the line of its features, if gradients are passes of them (feature_line.h); NULL: they are not */
    const fpa_simplified *line;
    int width;    /* elements of a vector of rows, in whole pieces of 8; 0: no rows are made */
    double scale; /* the scale of queries, included in their rows */
    int coordinate_count;
    /* [coordinate_count] coordinates of q and k, the first rows of a vector; -1: a row of zeros */
    int *coordinates;
    double *weights; /* [coordinate_count] weights of keys' rows */
    bool weighs;     /* some weights are not 1 */
    int projection_count;
    /* rows of matrices, after the coordinates; each begins at a multiple of 8, with zeros in between */
    fpa_projection *projections;
    const fpa_head *lifted; /* the head as written, whose lift makes the rows (lift_head.h); NULL: no lift */
    const fpa_head *unlifted; /* that head as if coordinates were given as q and k */
} fpa_row_head;

enum { ROW_HEAD_MOST = 512 }; /* the most elements of a vector of rows */

/* Make the rows in made->memory, which fails by a jump (arena.h), as do other functions that make operands.
 * made->width becomes 0 if the head has neither matrices nor dots with weights and `plain` is not set, if its type
 * is float32, or if there are too many rows. */
void row_head_make(const fpa_simplified *simple, const fpa_target *target, bool plain, fpa_row_head *made);
void row_head_free(fpa_row_head *made);

#endif

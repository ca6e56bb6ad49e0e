/* plan_cuda_cells: the order of features in which gradients are cheap to contract.
 *
 * A *cell* is 8 features: a product of all factors but the last, its *prefix*, times a block of 8 packed
 * rows, its *suffix*. If d are the gradients of a cell's features, the suffix's rows get prefix d and the
 * prefix gets the sum of suffix d: one product a feature each, whatever its degree, while the prefix's own
 * factors get their gradients once for 8 features. A unit is two cells of the same suffix; units of a suffix
 * follow each other, in pairs, so that its rows and their sums stay in registers. Features of a cell that the
 * head does not have are zero. */
#ifndef FPAC_GEN_PLAN_CUDA_BACKWARD_CELLS_H
#define FPAC_GEN_PLAN_CUDA_BACKWARD_CELLS_H

#include "gen/plan/field.h"
#include "gen/plan/plan.h"

enum { CELL = 8, GROUP_CELLS = 16 }; /* features of a cell; cells whose prefixes are contracted together */

typedef struct fpa_cuda_cells {
    bool used;
    int units;
    int *suffix; /* [units] the block of rows of both of its cells */
    int prefixes;
    /* [factors - 1][whole groups of GROUP_CELLS] of each cell; after the last one the row of zeros */
    int *prefix_row;
    int features;
    int *given; /* [features] which feature of a state it is; -1: none */
} fpa_cuda_cells;

extern const fpa_field cuda_cells_fields[];

/* Rows with features in cells, in plan->memory, and the cells; `used` is false, and the rows unchanged, if
 * features have one factor, products are not 16-bit, or cells would be mostly empty. NULL: no memory. */
const fpa_cuda_rows *plan_cuda_cells(fpa_plan *plan, fpa_cuda_cells *cells);

#endif

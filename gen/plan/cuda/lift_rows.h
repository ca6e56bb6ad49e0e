/* plan_cuda_lift: sizes of NAME_lift_rows, which makes the coordinates of heads with a lift. */
#ifndef FPAC_GEN_PLAN_CUDA_LIFT_ROWS_H
#define FPAC_GEN_PLAN_CUDA_LIFT_ROWS_H

#include "gen/plan/plan.h"

enum {
    LIFT_THREADS = 128, /* threads of a block; twice as many if many rows' matrices are kept */
    LIFT_TOKENS = 64,   /* tokens of a block at a time; half as many of wide q and k */
    /* registers of a thread for kept matrices and angles: 255 less those for sums and addresses */
    LIFT_MOST_KEPT = 160,
    LIFT_MOST_STRIPS = 4,    /* strips if data is kept, so that several blocks fit */
    LIFT_STEP_REGISTERS = 4, /* registers of a lane for 16 rows and 16 columns of a 16-bit part of a matrix */
    /* position numbers times rows of a thread whose turns are kept, or computed once for its tokens */
    LIFT_MOST_TURNS = 32,
};

extern const fpa_field cuda_lift_fields[];

/* All zeros for heads without a lift. */
fpa_cuda_lift plan_cuda_lift(const fpa_plan *plan);

/* Whether kernels may make coordinates in place in shared memory: they are element-wise maps, in whole pieces
 * of 16 bytes, so that no piece has both numbers and zeros that must stay. */
bool lift_in_place(const fpa_plan *plan);

void geometry_lift_rows(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void print_lift_rows(FILE *out, const fpa_plan *plan);

#endif

/* plan_cuda_lift: sizes of NAME_lift_rows, which makes the coordinates of heads with a lift. */
#ifndef FPAC_GEN_PLAN_CUDA_LIFT_ROWS_H
#define FPAC_GEN_PLAN_CUDA_LIFT_ROWS_H

#include "gen/plan/plan.h"

enum {
    LIFT_THREADS = 128, /* of a block; of many rows whose matrices are kept twice as many */
    LIFT_TOKENS = 64,   /* that it takes at a time; of wide q and k half as many */
    /* registers of a thread for matrices and angles: 255 less what sums and addresses take */
    LIFT_MOST_KEPT = 160,
    LIFT_MOST_STRIPS = 4,    /* of what is kept, so that there is room for several blocks */
    LIFT_STEP_REGISTERS = 4, /* 16 rows and 16 columns of a matrix's part of 16 bits, a lane */
    /* numbers of the positions of a thread's rows that are kept, or made once for its tokens */
    LIFT_MOST_TURNS = 32,
};

extern const fpa_field cuda_lift_fields[];

/* Of heads without a lift all zeros. */
fpa_cuda_lift plan_cuda_lift(const fpa_plan *plan);

/* Whether kernels of coordinates may make them where q and k lie: they are maps, number by number, in whole pieces of 16 bytes,
 * so that none has both numbers and what has to stay zero. */
bool lift_in_place(const fpa_plan *plan);

void geometry_lift_rows(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void print_lift_rows(FILE *out, const fpa_plan *plan);

#endif

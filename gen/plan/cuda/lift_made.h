/* lift_made: which coordinates NAME_cluster_scan makes itself, from q and k where the copy engine left them,
 * so that they are neither written to device memory nor read there; the sizes that this needs, and its work. */
#ifndef FPAC_GEN_PLAN_CUDA_LIFT_MADE_H
#define FPAC_GEN_PLAN_CUDA_LIFT_MADE_H

#include "gen/plan/plan.h"

typedef enum fpa_lift_made {
    LIFT_BEFORE,  /* the head has no lift, or NAME_lift_rows makes coordinates */
    LIFT_MAPS,    /* element-wise maps */
    LIFT_TURNS,   /* element-wise maps rotated by positions: two coordinates for each number */
    LIFT_PRODUCT, /* maps of one product with a matrix */
} fpa_lift_made;

fpa_lift_made lift_made(const fpa_plan *plan);

/* Slabs of 64 numbers of a token's q or k as given, and of its coordinates. */
int lift_given_slabs(const fpa_plan *plan);
int lift_made_slabs(const fpa_plan *plan);

/* LIFT_PRODUCT: 16-bit parts of the matrix. */
int lift_matrix_parts(const fpa_plan *plan);

/* Work of making coordinates, for 16 tokens of q and k each. */
struct fpa_cuda_work work_made(const fpa_plan *plan);

/* LIFT_PRODUCT: whether each head has a matrix of its own. */
bool lift_made_by_head(const fpa_plan *plan);

/* LIFT_TURNS: bytes of what rows' angles are computed from, in two parts, and of queries' phases and
 * amplitudes. */
int lift_turn_bytes(const fpa_plan *plan);

#endif

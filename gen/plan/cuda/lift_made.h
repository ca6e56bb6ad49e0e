/* lift_made: which coordinates NAME_cluster_scan makes itself, of q and k where the copy engine left them, so that they are neither
 * written to device memory nor read there; what it needs for that, and what it does, counted. */
#ifndef FPAC_GEN_PLAN_CUDA_LIFT_MADE_H
#define FPAC_GEN_PLAN_CUDA_LIFT_MADE_H

#include "gen/plan/plan.h"

typedef enum fpa_lift_made {
    LIFT_BEFORE,  /* none are made, or NAME_lift_rows makes them */
    LIFT_MAPS,    /* maps, number by number */
    LIFT_TURNS,   /* the same, turned by functions of the position: two coordinates of each number */
    LIFT_PRODUCT, /* maps of one product with a matrix */
} fpa_lift_made;

fpa_lift_made lift_made(const fpa_plan *plan);

/* Slabs of 64 numbers that a token's q or k has as it is given, and as coordinates. */
int lift_given_slabs(const fpa_plan *plan);
int lift_made_slabs(const fpa_plan *plan);

/* Of a product: parts of 16 bits that its matrix has. */
int lift_matrix_parts(const fpa_plan *plan);

/* What NAME_cluster_scan does for that, for 16 tokens of q and k each. */
struct fpa_cuda_work work_made(const fpa_plan *plan);

/* Of a product: whether each head has a matrix of its own. */
bool lift_made_by_head(const fpa_plan *plan);

/* Of turns: bytes of what rows need: angles in two parts, and what queries are turned by besides. */
int lift_turn_bytes(const fpa_plan *plan);

#endif

/* lift_head: for gradients, a head with a lift as a head of its coordinates. Kernels read coordinates, which are
 * computed before they run, in place of q and k; afterwards, gradients of q, k and the lift's matrices are
 * computed from those of coordinates (docs/decisions/0158).
 * Given: a head, and the head that simplification made of it. Gives: a row head (row_head.h) whose rows are the
 * coordinates, in whole pieces of 8 with zeros after them, and the head as if coordinates were given as q and k. */
#ifndef FPAC_GEN_PLAN_LIFT_HEAD_H
#define FPAC_GEN_PLAN_LIFT_HEAD_H

#include "row_head.h"

/* `written` must outlive `made`. */
void lift_head_make(const fpa_simplified *simple, const fpa_head *written, fpa_row_head *made);

#endif

/* lift_head: a head with a lift as one of its coordinates, for gradients: kernels have coordinates in the place of q and k, which are
 * made before they run; what their gradients are to q, k and the lift's matrices is made behind them (docs/decisions/0158).
 * Given: a head and what simplification left of it. Gives: a row head (row_head.h) of coordinates in whole pieces, zeros behind them,
 * and the head as if these were given. */
#ifndef FPAC_GEN_PLAN_LIFT_HEAD_H
#define FPAC_GEN_PLAN_LIFT_HEAD_H

#include "row_head.h"

/* written must outlive made. */
void lift_head_make(const fpa_simplified *simple, const fpa_head *written, fpa_row_head *made);

#endif

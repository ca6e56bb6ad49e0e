/* lift_numbers: the instructions of a coordinate, and how exactly 16 bits represent a matrix; for all kernels
 * that make coordinates. */
#ifndef FPAC_GEN_PLAN_CUDA_LIFT_NUMBERS_H
#define FPAC_GEN_PLAN_CUDA_LIFT_NUMBERS_H

#include "gen/plan/plan.h"
#include "head/lift.h"

/* Whether one 16-bit part represents a matrix exactly; the column of constants, which is added in fp32, does
 * not count. */
bool lift_is_whole(const fpa_matrix *matrix, int width, fpa_dtype dtype);

/* Whether a constant matrix has elements of ordinary size, so that f16 represents them with an error of at
 * most 2^-12 of their row's largest element. */
bool lift_is_ordinary(const fpa_matrix *matrix, int width);

/* Instructions of a row and token besides its projections: product of factors, map, rotation, stores. */
int lift_finishing(const fpa_lift *lift, const fpa_lift_part *part, bool half);

#endif

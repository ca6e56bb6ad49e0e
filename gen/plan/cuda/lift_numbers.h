/* lift_numbers: the instructions of a coordinate, and how exactly 16 bits represent a matrix; for all kernels
 * that make coordinates. */
#ifndef FPAC_GEN_PLAN_CUDA_LIFT_NUMBERS_H
#define FPAC_GEN_PLAN_CUDA_LIFT_NUMBERS_H

#include "gen/plan/plan.h"
#include "head/lift.h"

/* Whether one 16-bit part represents a matrix exactly; the column of constants, which is added in fp32, does
 * not count. */
bool lift_is_whole(const fpa_matrix *matrix, int width, fpa_dtype dtype);

/* Whether a matrix is constant, and the largest element of each row, unless 0, is from 2^-12 up to 2^15: then
 * f16 represents all elements with an error of at most 2^-11 of that largest one. */
bool lift_is_ordinary(const fpa_matrix *matrix, int width);

/* Instructions of a row and token besides its projections: product of factors, map, rotation, stores. */
int lift_finishing(const fpa_lift *lift, const fpa_lift_part *part, bool half);

#endif

/* lift_numbers: what a coordinate costs, and what 16 bits are of a matrix; for whatever makes coordinates. */
#ifndef FPAC_GEN_PLAN_CUDA_LIFT_NUMBERS_H
#define FPAC_GEN_PLAN_CUDA_LIFT_NUMBERS_H

#include "gen/plan/plan.h"
#include "head/lift.h"

/* Whether numbers of 16 bits are all of a matrix; its column of constants is added in fp32. */
bool lift_is_whole(const fpa_matrix *matrix, int width, fpa_dtype dtype);

/* Whether a constant's rows are ordinary numbers: f16 has all of them, and what it rounds off is at most 2^-12 of a row's largest. */
bool lift_is_ordinary(const fpa_matrix *matrix, int width);

/* Instructions of a row and token besides its projections: their product, its map, its turn, its stores. */
int lift_finishing(const fpa_lift *lift, const fpa_lift_part *part, bool half);

#endif

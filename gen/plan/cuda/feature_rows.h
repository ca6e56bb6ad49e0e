/* feature_rows: a head as a linear one, whose rows are its features.
 *
 *     k(q, k) = scale^n sum_f  (scale^(n_f - n) phi_f(q)) (w_f phi_f(k))
 *
 * Each feature is one row of a vector, formed once by who packs vectors, of n_f factors, n at least. So a pass reads rows as they lie, however many blocks of columns of values there are (docs/decisions/0105-features-as-rows.md). */
#ifndef FPAC_GEN_PLAN_CUDA_FEATURE_ROWS_H
#define FPAC_GEN_PLAN_CUDA_FEATURE_ROWS_H

#include "product_rows.h"

/* In `memory`. NULL, or why not: rows would be many, or numbers of f16 too small or too large. */
const char *plan_feature_rows(const fpa_plan *plan, arena *memory, fpa_product_rows *made);

/* Of a feature, at most: a piece's prefix and one more. */
int feature_factors(const fpa_plan *plan);

#endif

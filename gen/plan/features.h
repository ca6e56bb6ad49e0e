/* plan_features: rows, pieces and dots, which all back ends share. */
#ifndef FPAC_GEN_PLAN_FEATURES_H
#define FPAC_GEN_PLAN_FEATURES_H

#include "plan.h"

/* How long pieces may be. */
typedef struct fpa_piece_limit {
    int most;     /* features */
    bool aligned; /* no piece reaches over a multiple of `most` features */
} fpa_piece_limit;

/* Pieces that a table has: a row each. */
#define PIECES_OF_TABLES ((fpa_piece_limit){.most = 8})

/* Fills plan->row_count to plan->dots. UNSUPPORTED when rows or pieces are too many. */
fpa_status plan_features(fpa_plan *plan, fpa_piece_limit limit, fpa_error *error);

/* What leaves f16's range sooner than states do: products of more factors, and weights that it has not. */
enum { MOST_FACTORS_OF_F16 = 2 };
bool f16_has(double weight);

#endif

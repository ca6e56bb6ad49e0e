/* plan_features: the rows, pieces and dots of a plan, which all back ends share. */
#ifndef FPAC_GEN_PLAN_FEATURES_H
#define FPAC_GEN_PLAN_FEATURES_H

#include "plan.h"

/* Limits of a piece's length. */
typedef struct fpa_piece_limit {
    int most;     /* the most features of a piece */
    bool aligned; /* no piece contains features on both sides of a multiple of `most` */
} fpa_piece_limit;

/* Pieces for kernels that read them from a table, a row each. */
#define PIECES_OF_TABLES ((fpa_piece_limit){.most = 8})

/* Fills plan->row_count to plan->dots. UNSUPPORTED: there are too many rows or pieces. */
fpa_status plan_features(fpa_plan *plan, fpa_piece_limit limit, fpa_error *error);

/* f16 features are products of at most so many factors, with weights for which f16_has is true: others leave the
 * range of f16 sooner than states do. */
enum { MOST_FACTORS_OF_F16 = 2 };
bool f16_has(double weight);

#endif

/* hand_lift: coordinates of a head's lift for hand_module, written by hand once more, or with one fault. */
#ifndef FPAC_TESTS_HAND_LIFT_H
#define FPAC_TESTS_HAND_LIFT_H

#include "hand_module.h"
#include "head/lift.h"

/* What is lifted: x, scaled already, of token t of the launch's positions and key/value head h. */
typedef struct hand_token {
    const fpa_head *head;
    const struct fpa_launch *launch;
    fault kind;
    fpa_side side;
    int64_t b, t, h;
    const double *x;
} hand_token;

void hand_lift(const hand_token *token, double *coordinates);

/* Whether the launch's mask lets a key take part. */
bool hand_keeps(const struct fpa_launch *launch, int64_t b, int64_t t, fault kind);

#endif

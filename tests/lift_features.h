/* lift_features: a head's coordinates and kernel in double, straight from head/lift.h, for tests of specs. */
#ifndef FPAC_TESTS_LIFT_FEATURES_H
#define FPAC_TESTS_LIFT_FEATURES_H

#include "head/lift.h"

/* One token's side: x is q or k of one key/value head, position its numbers (NULL: none). weights[m] are the values of
 * head->matrices[m] where that is trainable, of this key/value head; NULL when no matrix is. */
typedef struct lift_token {
    fpa_side side;
    int kv_head;
    const double *x, *position;
    const double *const *weights;
} lift_token;

/* The head's d coordinates of the token; heads without a lift have q, scaled, and k themselves. */
void lift_features(const fpa_head *head, const lift_token *token, double *coordinates);

/* k(q, k) of two tokens; the head's branches take coordinates or, without a lift, constant matrices. */
double lift_kernel(const fpa_head *head, const lift_token *query, const lift_token *key);

#endif

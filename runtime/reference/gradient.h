/* reference_gradient: gradients of the formula over pairs of tokens, straight from the head as the user wrote it.
 *
 * With L = sum of d_o * o they are dL/dq, dL/dk ... Never from states: pair by pair, by the product rule. Heads with a
 * lift have none yet.
 * Given: a problem and the gradient of its outputs. Gives: gradients of its operands, their magnitudes, and what plain
 * float arithmetic makes of them. */
#ifndef FPAC_RUNTIME_REFERENCE_GRADIENT_H
#define FPAC_RUNTIME_REFERENCE_GRADIENT_H

#include "reference.h"

/* One array an operand, shaped as it is in the problem, in double. NULL: not wanted. */
typedef struct fpa_gradients {
    double *q, *k, *v;
    double *log_gate;
    double *const *weights; /* by matrix index of the head; NULL, or with NULL entries: not wanted */
} fpa_gradients;

/* What a backward pass is given beside the problem. */
typedef struct fpa_saved {
    const double *d_o; /* [batch, length, query_heads, dv]: the gradient of o */
    /* What the forward pass saved, as it was stored: o like d_o, and the sum of scores by which the normaliser is made,
     * [batch, length, query_heads]. NULL: the formula's own. */
    const double *o, *den;
    int64_t
        span; /* tokens after which a running sum of log-gates' gradients is begun anew, counted from the first */
} fpa_saved;

/* Fills what is wanted of gradient. magnitude (may be NULL, else with the same arrays): the same sums without
 * cancellation, which errors are relative to; of log-gates with what a running sum over a span leaves of the parts that
 * it adds and takes off. UNSUPPORTED: of a head with a lift. */
fpa_status reference_gradient(const fpa_problem *problem, const fpa_saved *backward,
                              const fpa_gradients *gradient, const fpa_gradients *magnitude,
                              fpa_error *error);

/* The same walk in plain float, rounded at every operation, log-gates by a running sum over each span. */
fpa_status reference_gradient_plain(const fpa_problem *problem, const fpa_saved *backward,
                                    const fpa_gradients *gradient, fpa_error *error);

#endif

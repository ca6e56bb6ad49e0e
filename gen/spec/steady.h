/* steady: arithmetic that gives the same bits on every machine. Private to gen/spec. */
#ifndef FPAC_GEN_SPEC_STEADY_H
#define FPAC_GEN_SPEC_STEADY_H

#include <stdint.h>

/* Through a volatile, so that no compiler fuses a product with a sum where the machine could. */
static inline double steady_product(double a, double b)
{
    volatile double rounded = a * b;
    return rounded;
}

/* ln(x), x > 0, and the cosine and sine of numerator/denominator of a turn, by fixed sequences of operations of IEEE
 * doubles, not by the system's mathematical library; exact to a few units of the last place. */
double steady_log(double x);
void steady_turn(int64_t numerator, int64_t denominator, double *cosine, double *sine);

#endif

/* steady: arithmetic whose results have the same bits on every machine. Private to gen/spec. */
#ifndef FPAC_GEN_SPEC_STEADY_H
#define FPAC_GEN_SPEC_STEADY_H

#include <stdint.h>

/* A product that is rounded by itself: the volatile prevents compilers from fusing it with a sum. */
static inline double steady_product(double a, double b)
{
    volatile double rounded = a * b;
    return rounded;
}

/* ln(x) for x > 0, and the cosine and sine of numerator/denominator of a turn, by fixed sequences of IEEE
 * operations on doubles, without the system's mathematical library; exact up to a few units in the last place. */
double steady_log(double x);
void steady_turn(int64_t numerator, int64_t denominator, double *cosine, double *sine);

#endif

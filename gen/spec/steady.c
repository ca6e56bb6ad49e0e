#include "steady.h"

#include <math.h>
#include <stdbool.h>

/* The series 1 - x^2/(1 2) (1 - x^2/(3 4) (...)) of a cosine (offset 0), and 1 - x^2/(2 3) (1 - x^2/(4 5) (...))
 * of a sine divided by x (offset 1). */
static double alternating(double square, int offset)
{
    enum { TERMS = 9 }; /* for angles up to an eighth of a turn the next term is below 2^-60 */
    double sum = 1;
    for (int n = TERMS; n >= 1; n--)
        sum = 1 - steady_product(square / ((2 * n + offset - 1) * (2 * n + offset)), sum);
    return sum;
}

/* Reduces the angle to an eighth of a turn; in odd eighths it is measured from the end. */
void steady_turn(int64_t numerator, int64_t denominator, double *cosine, double *sine)
{
    const double eighth = 0x1.921fb54442d18p-1; /* pi / 4 */
    const int64_t part = numerator % denominator, full = (part < 0 ? part + denominator : part) * 8;
    const int octant = (int)(full / denominator);
    const int64_t rest = full % denominator, along = octant % 2 ? denominator - rest : rest;
    const double angle = steady_product((double)along / (double)denominator, eighth);
    const double square = steady_product(angle, angle);
    const double near = alternating(square, 0), far = steady_product(angle, alternating(square, 1));
    /* the angle is nearer to a quarter or three quarters of a turn */
    const bool swapped = (octant + 1) / 2 % 2;
    const double c = swapped ? far : near, s = swapped ? near : far;
    *cosine = octant >= 2 && octant < 6 ? -c : c;
    *sine = octant >= 4 ? -s : s;
}

/* ln(x) with x = m 2^e, m near 1: ln(m) = 2 artanh(z), z = (m - 1)/(m + 1). */
double steady_log(double x)
{
    enum { TERMS = 12 };
    const double log2 = 0x1.62e42fefa39efp-1;
    int exponent;
    double m = frexp(x, &exponent), sum = 0;
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        exponent--;
    }
    const double z = (m - 1) / (m + 1), square = steady_product(z, z);
    for (int n = TERMS; n >= 0; n--)
        sum = 1.0 / (2 * n + 1) + steady_product(square, sum);
    return steady_product(exponent, log2) + steady_product(2 * z, sum);
}

/* Rationals whose numerator and denominator fit 64 bits, with their value as a double. */
#include <math.h>

#include "number_wide.h"

typedef unsigned __int128 unsigned_wide;

static int bit_count(uint64_t value)
{
    return value ? 64 - __builtin_clzll(value) : 0;
}

/* num/den to the nearest double. If num or den has more than 53 bits, the quotient is computed with 64 bits, with the
 * remainder as a sticky bit, so that it is rounded once, and equally on every machine. */
static double ratio_value(uint64_t num, uint64_t den)
{
    if (bit_count(num) <= 53 && bit_count(den) <= 53)
        return (double)num / (double)den;
    int shift = 63 + bit_count(den) - bit_count(num);
    unsigned_wide scaled = (unsigned_wide)num << shift;
    uint64_t quotient = (uint64_t)(scaled / den);
    return ldexp((double)(quotient | (scaled % den != 0)), -shift);
}

fpa_number number_narrow(bool negative, uint64_t num, uint64_t den)
{
    double value = ratio_value(num, den);
    return (fpa_number){.num = negative ? -(int64_t)num : (int64_t)num,
                        .den = (int64_t)den,
                        .value = negative && num ? -value : value};
}

uint64_t number_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

fpa_number number_none(fpa_status why)
{
    return (fpa_number){.num = why, .value = NAN};
}

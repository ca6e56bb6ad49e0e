#include "words.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Prints an integer of at most 53 bits times a power of two. printf would be slow: matrices have tens of thousands
 * of numbers. */
void text_double(FILE *out, double value)
{
    static const char digits[] = "0123456789abcdef";
    char text[32], *at = text + sizeof text;
    int exponent = 0;
    if (!isfinite(value)) { /* only in a head that was not validated; the parser refuses it */
        fputs("nonfinite", out);
        return;
    }
    uint64_t integer = (uint64_t)ldexp(frexp(fabs(value), &exponent), 53);
    const int zeros = integer ? __builtin_ctzll(integer) : 0;
    exponent = integer ? exponent - 53 + zeros : 0;
    integer >>= zeros;
    unsigned size = (unsigned)abs(exponent);
    do
        *--at = digits[size % 10];
    while (size /= 10);
    *--at = exponent < 0 ? '-' : '+';
    *--at = 'p';
    do
        *--at = digits[integer % 16];
    while (integer /= 16);
    *--at = 'x';
    *--at = '0';
    if (signbit(value))
        *--at = '-';
    fwrite(at, 1, (size_t)(text + sizeof text - at), out);
}

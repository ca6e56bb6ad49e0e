#include "words.h"

#include <math.h>

void text_double(FILE *out, double value)
{
    int exponent = 0;
    long long integer;

    if (!isfinite(value)) { /* of a head that was not validated; the parser refuses it */
        fprintf(out, "nonfinite");
        return;
    }
    integer = (long long)ldexp(frexp(fabs(value), &exponent), 53);
    exponent -= 53;
    while (integer != 0 && integer % 2 == 0) {
        integer /= 2;
        exponent++;
    }
    fprintf(out, "%s0x%llxp%+d", signbit(value) ? "-" : "", integer, integer ? exponent : 0);
}

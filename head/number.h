/* number: exact rationals, with an honest fallback.
 *
 * Kernel weights are rationals (p!/prod m_c!, squares of sqrt2 ...). A number is
 * num/den in lowest terms while that fits 64 bits; when an operation leaves that
 * range, den becomes 0 and only the rounded value remains. Identities are proved
 * only where every number is exact. */
#ifndef FPAC_HEAD_NUMBER_H
#define FPAC_HEAD_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fpa_number {
    int64_t num, den; /* lowest terms, den > 0; den == 0: not exact */
    double value;     /* nearest double in either case */
} fpa_number;

enum { NUMBER_TEXT = 64 }; /* room for number_print */

fpa_number number_int(int64_t value);
fpa_number number_ratio(int64_t num, int64_t den); /* den != 0 */
/* Every finite double is a dyadic rational; exact when it fits. */
fpa_number number_double(double value);

fpa_number number_add(fpa_number a, fpa_number b);
fpa_number number_sub(fpa_number a, fpa_number b);
fpa_number number_mul(fpa_number a, fpa_number b);
fpa_number number_div(fpa_number a, fpa_number b); /* b not zero */
fpa_number number_pow(fpa_number a, int exponent); /* exponent >= 0 */

bool number_exact(fpa_number a);
bool number_is_zero(fpa_number a);
bool number_is_one(fpa_number a);
bool number_is_integer(fpa_number a); /* exact and den == 1 */
/* Exact comparison where both are exact, else equality of the doubles. */
bool number_equal(fpa_number a, fpa_number b);
int number_compare(fpa_number a, fpa_number b); /* -1, 0, 1 */

/* "3", "-1/2" or, when not exact, "~0x1.8p-1" (C's hexadecimal floating point, so
 * that nothing is lost). Always fits NUMBER_TEXT. number_parse reads it back;
 * false when text is not such a number. */
void number_print(char text[NUMBER_TEXT], fpa_number a);
bool number_parse(const char *text, fpa_number *a);

#endif

/* number_wide: rationals beyond 64 bits, by LibTomMath. Private to number*.c. */
#ifndef FPAC_HEAD_NUMBER_WIDE_H
#define FPAC_HEAD_NUMBER_WIDE_H

#include "number.h"

uint64_t number_gcd(uint64_t a, uint64_t b);
/* A number without a value. */
fpa_number number_none(fpa_status why);
/* num/den in lowest terms, both of at most 63 bits. */
fpa_number number_narrow(bool negative, uint64_t num, uint64_t den);

typedef enum wide_operation { WIDE_ADD, WIDE_SUB, WIDE_MUL, WIDE_DIV } wide_operation;
/* a operation b, for numbers of any size; in WIDE_DIV b is not zero. A result that fits 64 bits is narrow. */
fpa_number wide_apply(arena *memory, wide_operation operation, fpa_number a, fpa_number b);
/* mantissa * 2^exponent */
fpa_number wide_scaled(arena *memory, int64_t mantissa, int exponent);
bool wide_root(arena *memory, fpa_number square, fpa_number *root);

bool wide_negative(const fpa_wide *a);
bool wide_is_double(const fpa_wide *a); /* the number is exactly a double */
bool wide_equal(const fpa_wide *a, const fpa_wide *b);
int wide_compare(arena *memory, fpa_number a, fpa_number b);
size_t wide_bytes(const fpa_wide *a);
int wide_exponent(const fpa_wide *a); /* exponent of a power of two nearby */
/* |numerator| modulo a prime; *den is the denominator modulo the prime. */
uint64_t wide_residue(const fpa_wide *a, uint64_t prime, uint64_t *den);

/* Write decimal digits: "-3" or "-3/4". False: no memory. */
bool wide_write(FILE *out, const fpa_wide *a);
/* Read decimal numerator and denominator (NULL: 1), both without sign; FPA_INVALID unless they are in lowest
 * terms. */
fpa_number wide_read(arena *memory, bool negative, const char *num, const char *den);

#endif

/* number: exact rationals of any size.
 *
 * Kernel weights are rationals: p! / prod m_c!, squares of sqrt2, doubles (which are dyadic). So are their sums,
 * products and quotients: nothing is rounded. A number is num/den in lowest terms if both fit 64 bits, else two
 * integers of LibTomMath in an arena. Numbers are immutable; number_copy copies one that has to outlive its arena.
 *
 * A failed operation returns a number without a value, whose number_status is the reason. Operations on it return
 * it again; it equals no weight and has no sign, and head_validate and identity_check refuse it. So a caller can
 * compute on and check the final result only. If memory was out, memory->failed is set, too. */
#ifndef FPAC_HEAD_NUMBER_H
#define FPAC_HEAD_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "fpa_error.h"

typedef struct fpa_wide fpa_wide; /* number_wide.c */

typedef struct fpa_number {
    int64_t num, den;     /* lowest terms, den > 0; den == 0: it does not fit 64 bits */
    const fpa_wide *wide; /* if den == 0: the number; NULL: it has no value, and num is the fpa_status */
    double value; /* nearest double; 0 or infinite outside of the range of doubles; NaN without a value */
} fpa_number;

enum {
    NUMBER_BITS = 1 << 17, /* most bits of numerator and denominator; results with more are FPA_UNSUPPORTED */
    NUMBER_TEXT = 64,      /* room for number_print */
};

fpa_number number_int(int64_t value);
fpa_number number_ratio(int64_t num, int64_t den); /* den != 0; neither is INT64_MIN */
/* The exact value of a finite double; FPA_INVALID for others. */
fpa_number number_double(arena *memory, double value);

fpa_number number_add(arena *memory, fpa_number a, fpa_number b);
fpa_number number_sub(arena *memory, fpa_number a, fpa_number b);
fpa_number number_mul(arena *memory, fpa_number a, fpa_number b);
fpa_number number_div(arena *memory, fpa_number a, fpa_number b);     /* b zero: FPA_INVALID */
fpa_number number_pow(arena *memory, fpa_number a, int64_t exponent); /* exponent >= 0 */
/* True: the square root is rational, and *root is it; or `square` has no value, and so has *root. False: it is
 * irrational or imaginary. */
bool number_root(arena *memory, fpa_number square, fpa_number *root);

fpa_status number_status(fpa_number a);
/* The same, with an error that says why the number has no value. */
fpa_status number_check(fpa_number a, const char *where, fpa_error *error);

bool number_is_zero(fpa_number a);
bool number_is_one(fpa_number a);
int number_sign(fpa_number a); /* -1, 0, 1; 0 without a value */
/* log2 |a|. If a is outside of the range of doubles, log2 of a power of two nearby; -INFINITY for 0, NaN without a
 * value. */
double number_log2(fpa_number a);
bool number_to_int(fpa_number a, int64_t *value);
bool number_equal(fpa_number a, fpa_number b); /* numbers without values are equal if their statuses are */
/* -1, 0 or 1, as a is less than, equal to or greater than b; 0 with memory->failed set if memory is out. */
int number_compare(arena *memory, fpa_number a, fpa_number b);
/* The numerator modulo a prime of at most 61 bits; *den is the denominator modulo the prime. For hashes and proofs
 * of identities. */
uint64_t number_residue(fpa_number a, uint64_t prime, uint64_t *den);

/* A copy in the arena `memory`. */
fpa_number number_copy(arena *memory, fpa_number a);
fpa_number *numbers_copy(arena *memory, const fpa_number *numbers, size_t count); /* NULL: no memory */
/* A copy into `room` of number_bytes(a) bytes, aligned for a pointer. */
size_t number_bytes(fpa_number a);
fpa_number number_place(void *room, fpa_number a);

/* Text for people: "3", "-1/2"; a double as its shortest decimal if that is shorter: "0.3", "1e-09"; "~0.01", the
 * nearest double, if the digits are too many. */
void number_print(char text[NUMBER_TEXT], fpa_number a);
/* The spelling of a number in canonical text: "3", "-1/2", with as many digits as needed; doubles that do not fit
 * 64-bit fractions as "~0x1.8p-70", C's hexadecimal notation. False: no memory. number_parse reads it; FPA_INVALID
 * for anything else. */
bool number_write(FILE *out, fpa_number a);
fpa_number number_parse(arena *memory, const char *text, size_t length);

#endif

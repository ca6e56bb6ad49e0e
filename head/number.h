/* number: exact rationals of any size.
 *
 * Kernel weights are rationals (p!/prod m_c!, squares of sqrt2, doubles, which are dyadic ...), and
 * so is every sum, product and quotient of them: nothing is rounded. A number is num/den in lowest
 * terms while both fit 64 bits, else LibTomMath's integers in an arena; it is never changed, and
 * copied with number_copy where it outlives that arena.
 *
 * An operation that fails gives a number without a value, whose number_status says why. Operations
 * on it give the same again, it equals no weight and has no sign, head_validate and identity_check
 * refuse it: a caller may compute on and look at the end. Where memory was out, memory->failed is
 * set too. */
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
    int64_t num, den;     /* lowest terms, den > 0; den == 0: not within 64 bits */
    const fpa_wide *wide; /* the number, when den == 0; NULL: no value, and num is the fpa_status */
    double value;         /* nearest double; 0 or infinite out of its range, NaN without a value */
} fpa_number;

enum {
    NUMBER_BITS = 1 << 17, /* of numerator and denominator; beyond: FPA_UNSUPPORTED */
    NUMBER_TEXT = 64,      /* room for number_print */
};

fpa_number number_int(int64_t value);
fpa_number number_ratio(int64_t num, int64_t den); /* den != 0; neither is INT64_MIN */
/* Every finite double is a dyadic rational. Others: FPA_INVALID. */
fpa_number number_double(arena *memory, double value);

fpa_number number_add(arena *memory, fpa_number a, fpa_number b);
fpa_number number_sub(arena *memory, fpa_number a, fpa_number b);
fpa_number number_mul(arena *memory, fpa_number a, fpa_number b);
fpa_number number_div(arena *memory, fpa_number a, fpa_number b);     /* b zero: FPA_INVALID */
fpa_number number_pow(arena *memory, fpa_number a, int64_t exponent); /* exponent >= 0 */
/* True: the root is rational, and *root; or there is no value, and *root has none. */
bool number_root(arena *memory, fpa_number square, fpa_number *root);

fpa_status number_status(fpa_number a);
/* The same, with the message of a number without a value. */
fpa_status number_check(fpa_number a, const char *where, fpa_error *error);

bool number_is_zero(fpa_number a);
bool number_is_one(fpa_number a);
int number_sign(fpa_number a); /* -1, 0, 1; 0 without a value */
/* log2 |a|, also of what no double is near to (then of the power of two nearby); -INFINITY of 0, NaN without a
 * value. */
double number_log2(fpa_number a);
bool number_to_int(fpa_number a, int64_t *value);
bool number_equal(fpa_number a, fpa_number b); /* without a value: by the status */
/* -1, 0, 1; 0 and memory->failed when memory is out. */
int number_compare(arena *memory, fpa_number a, fpa_number b);
/* The numerator modulo a prime of at most 61 bits, and the denominator: for hashes and proofs. */
uint64_t number_residue(fpa_number a, uint64_t prime, uint64_t *den);

/* A copy whose memory is memory's. */
fpa_number number_copy(arena *memory, fpa_number a);
fpa_number *numbers_copy(arena *memory, const fpa_number *numbers, size_t count); /* NULL: no memory */
/* The same into room for number_bytes(a) bytes, aligned for a pointer. */
size_t number_bytes(fpa_number a);
fpa_number number_place(void *room, fpa_number a);

/* For people: "3", "-1/2"; doubles as the shortest decimal that gives them back, where that is shorter, "0.3", "1e-09";
 * "~0.01", the nearest double, when the digits are too many. */
void number_print(char text[NUMBER_TEXT], fpa_number a);
/* The one spelling of a number in canonical text: "3", "-1/2"; "~0x1.8p-70", C's hexadecimal
 * notation, for doubles beyond 64 bits, and digits as many as it takes for others. False: no memory.
 * number_parse reads it back: FPA_INVALID for anything else. */
bool number_write(FILE *out, fpa_number a);
fpa_number number_parse(arena *memory, const char *text, size_t length);

#endif

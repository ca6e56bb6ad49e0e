/* The one file that uses LibTomMath. Its integers own malloc'ed memory, so they exist only during an operation:
 * operands are read in place, in their arenas, and results are copied to an arena. */
#include "number_wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tommath.h>

struct fpa_wide {
    int num_digits, den_digits;
    bool negative;
    bool is_double;
    mp_digit digits[]; /* digits of the numerator, then of the denominator, least significant first */
};

enum {
    NARROW_DIGITS = (64 + MP_DIGIT_BIT - 1) / MP_DIGIT_BIT,
    LEAST_EXPONENT = -1074, /* exponent of the smallest positive double, 2^-1074 */
};

/* --- operands --- */

/* A number as LibTomMath's integers, which are read only. */
typedef struct wide_view {
    mp_int num, den;
    mp_digit room[2][NARROW_DIGITS]; /* room for the digits of a number of 64 bits */
} wide_view;

static mp_int borrow(const mp_digit *digits, int used, bool negative)
{
    return (mp_int){
        .used = used, .alloc = used, .sign = negative ? MP_NEG : MP_ZPOS, .dp = (mp_digit *)digits};
}

static mp_int borrow_narrow(mp_digit room[NARROW_DIGITS], uint64_t size, bool negative)
{
    int used = 0;
    for (; size; size >>= MP_DIGIT_BIT)
        room[used++] = size & MP_MASK;
    return borrow(room, used, negative);
}

static void view(fpa_number a, wide_view *seen)
{
    if (a.den) {
        uint64_t size = a.num < 0 ? -(uint64_t)a.num : (uint64_t)a.num;
        seen->num = borrow_narrow(seen->room[0], size, a.num < 0);
        seen->den = borrow_narrow(seen->room[1], (uint64_t)a.den, false);
        return;
    }
    seen->num = borrow(a.wide->digits, a.wide->num_digits, a.wide->negative);
    seen->den = borrow(a.wide->digits + a.wide->num_digits, a.wide->den_digits, false);
}

/* --- results --- */

static fpa_number no_memory(arena *memory)
{
    memory->failed = true;
    return number_none(FPA_NO_MEMORY);
}

/* The nearest double of quotient * 2^-shift, ties to even. The quotient's last bit is sticky: it is 1 if there is
 * a remainder. */
static double nearest_double(uint64_t quotient, int shift, bool *exact)
{
    const uint64_t least_normal = UINT64_C(1) << 54; /* in units of a quarter of the smallest number */
    if (shift == 2 - LEAST_EXPONENT && quotient < least_normal) {
        uint64_t kept = quotient >> 2, rest = quotient & 3;
        kept += rest > 2 || (rest == 2 && kept % 2);
        *exact = rest == 0;
        return ldexp((double)kept, LEAST_EXPONENT);
    }
    double value = ldexp((double)quotient, -shift);
    *exact = (quotient >> __builtin_ctzll(quotient)) >> 53 == 0 && isfinite(value);
    return value;
}

/* The nearest double of num/den, both positive. */
static mp_err find_value(const mp_int *num, const mp_int *den, double *value, bool *exact)
{
    mp_int scaled, rest;
    int shift = 63 + mp_count_bits(den) - mp_count_bits(num);
    mp_err error = mp_init_multi(&scaled, &rest, NULL);
    if (error)
        return error;
    if (shift > 2 - LEAST_EXPONENT)
        shift = 2 - LEAST_EXPONENT;
    if (shift >= 0) {
        error = mp_mul_2d(num, shift, &scaled);
        if (!error)
            error = mp_div(&scaled, den, &scaled, &rest);
    } else {
        error = mp_mul_2d(den, -shift, &scaled);
        if (!error)
            error = mp_div(num, &scaled, &scaled, &rest);
    }
    if (!error)
        *value = nearest_double(mp_get_mag_u64(&scaled) | !mp_iszero(&rest), shift, exact);
    mp_clear_multi(&scaled, &rest, NULL);
    return error;
}

static mp_int magnitude(const mp_int *a)
{
    return borrow(a->dp, a->used, false);
}

/* A number of lowest terms, den > 0, in memory. */
static fpa_number keep(arena *memory, const mp_int *num, const mp_int *den)
{
    const bool negative = num->sign == MP_NEG;
    const mp_int size = magnitude(num);
    const int num_bits = mp_count_bits(num), den_bits = mp_count_bits(den);
    double value;
    bool exact;
    if (num_bits <= 63 && den_bits <= 63)
        return number_narrow(negative, mp_get_mag_u64(num), mp_get_mag_u64(den));
    if (num_bits > NUMBER_BITS || den_bits > NUMBER_BITS)
        return number_none(FPA_UNSUPPORTED);
    if (find_value(&size, den, &value, &exact))
        return no_memory(memory);
    const size_t used = (size_t)num->used, more = (size_t)den->used;
    fpa_wide *wide = arena_alloc(memory, sizeof *wide + (used + more) * sizeof *wide->digits);
    if (!wide)
        return no_memory(memory);
    *wide = (fpa_wide){num->used, den->used, negative, exact};
    memcpy(wide->digits, num->dp, used * sizeof *wide->digits);
    memcpy(wide->digits + used, den->dp, more * sizeof *wide->digits);
    return (fpa_number){.wide = wide, .value = negative ? -value : value};
}

static bool is_power_of_two(const mp_int *a)
{
    return mp_cnt_lsb(a) + 1 == mp_count_bits(a);
}

static bool fits_word(const mp_int *a)
{
    return mp_count_bits(a) <= 64;
}

/* The gcd of a and b, both positive, replaces a. By subtractions and shifts, and in 64-bit words as soon as both
 * fit. */
static mp_err subtract_gcd(mp_int *a, mp_int *b)
{
    mp_err error = mp_div_2d(a, mp_cnt_lsb(a), a, NULL);
    while (!error && !mp_iszero(b)) {
        error = mp_div_2d(b, mp_cnt_lsb(b), b, NULL);
        if (mp_cmp_mag(a, b) == MP_GT)
            mp_exch(a, b);
        if (fits_word(b)) {
            mp_set_u64(a, number_gcd(mp_get_mag_u64(b), mp_get_mag_u64(a)));
            return error;
        }
        if (!error)
            error = mp_sub(b, a, b);
    }
    return error;
}

/* The gcd of two numbers that are not both even. mp_gcd of LibTomMath 1.2.0 is not used: it leaks when memory is
 * out (the last two labels of bn_mp_gcd.c are exchanged). */
static mp_err find_gcd(const mp_int *num, const mp_int *den, mp_int *divisor)
{
    mp_int rest;
    mp_err error = mp_init(&rest);
    if (error)
        return error;
    error = mp_copy(den, divisor);
    if (!error)
        error = mp_div(num, den, NULL, &rest);
    rest.sign = MP_ZPOS;
    if (!error && !mp_iszero(&rest))
        error = subtract_gcd(divisor, &rest);
    mp_clear(&rest);
    return error;
}

static mp_err divide_both(mp_int *num, mp_int *den, const mp_int *divisor)
{
    if (mp_cmp_d(divisor, 1) == MP_EQ)
        return MP_OKAY;
    mp_err error = mp_div(num, divisor, num, NULL);
    return error ? error : mp_div(den, divisor, den, NULL);
}

/* Reduces num/den to lowest terms, den > 0. If the denominator is a power of two, as for doubles, shifts suffice. */
static mp_err reduce(mp_int *num, mp_int *den)
{
    mp_int divisor;
    mp_err error = MP_OKAY;
    if (mp_iszero(num)) {
        mp_set(den, 1);
        return MP_OKAY;
    }
    if (den->sign == MP_NEG) {
        den->sign = MP_ZPOS;
        num->sign = num->sign == MP_NEG ? MP_ZPOS : MP_NEG;
    }
    const int twos = mp_cnt_lsb(num) < mp_cnt_lsb(den) ? mp_cnt_lsb(num) : mp_cnt_lsb(den);
    if (twos)
        error = mp_div_2d(num, twos, num, NULL);
    if (twos && !error)
        error = mp_div_2d(den, twos, den, NULL);
    if (error || is_power_of_two(den))
        return error;
    error = mp_init(&divisor);
    if (error)
        return error;
    error = find_gcd(num, den, &divisor);
    if (!error)
        error = divide_both(num, den, &divisor);
    mp_clear(&divisor);
    return error;
}

/* --- operations --- */

/* num = a.num * b.den +- b.num * a.den, den = a.den * b.den */
static mp_err sum(const wide_view *a, const wide_view *b, bool subtract, mp_int *num, mp_int *den)
{
    mp_err error = mp_mul(&a->num, &b->den, num);
    if (!error)
        error = mp_mul(&b->num, &a->den, den);
    if (!error)
        error = subtract ? mp_sub(num, den, num) : mp_add(num, den, num);
    return error ? error : mp_mul(&a->den, &b->den, den);
}

static mp_err compute(wide_operation operation, const wide_view *a, const wide_view *b, mp_int *num,
                      mp_int *den)
{
    const bool divide = operation == WIDE_DIV;
    if (operation == WIDE_ADD || operation == WIDE_SUB)
        return sum(a, b, operation == WIDE_SUB, num, den);
    mp_err error = mp_mul(&a->num, divide ? &b->den : &b->num, num);
    return error ? error : mp_mul(&a->den, divide ? &b->num : &b->den, den);
}

/* The number num/den, or none if computing them has failed (error). Clears both. */
static fpa_number settle(arena *memory, mp_err error, mp_int *num, mp_int *den)
{
    if (!error)
        error = reduce(num, den);
    fpa_number result = error ? no_memory(memory) : keep(memory, num, den);
    mp_clear_multi(num, den, NULL);
    return result;
}

fpa_number wide_apply(arena *memory, wide_operation operation, fpa_number a, fpa_number b)
{
    wide_view left, right;
    mp_int num, den;
    if (mp_init_multi(&num, &den, NULL))
        return no_memory(memory);
    view(a, &left);
    view(b, &right);
    return settle(memory, compute(operation, &left, &right, &num, &den), &num, &den);
}

fpa_number wide_scaled(arena *memory, int64_t mantissa, int exponent)
{
    wide_view seen;
    mp_int num, den;
    if (mp_init_multi(&num, &den, NULL))
        return no_memory(memory);
    view((fpa_number){.num = mantissa, .den = 1}, &seen);
    mp_err error = mp_mul_2d(&seen.num, exponent > 0 ? exponent : 0, &num);
    if (!error)
        error = mp_mul_2d(&seen.den, exponent < 0 ? -exponent : 0, &den);
    return settle(memory, error, &num, &den);
}

/* The integer root of `square`; *found false: there is none. */
static mp_err integer_root(const mp_int *square, mp_int *root, mp_int *again, bool *found)
{
    mp_err error = mp_sqrt(square, root);
    if (!error)
        error = mp_sqr(root, again);
    *found = !error && mp_cmp(again, square) == MP_EQ;
    return error;
}

bool wide_root(arena *memory, fpa_number square, fpa_number *root)
{
    wide_view seen;
    mp_int num, den, again;
    bool found = false;
    if (mp_init_multi(&num, &den, &again, NULL)) {
        *root = no_memory(memory);
        return true;
    }
    view(square, &seen);
    mp_err error = integer_root(&seen.num, &num, &again, &found);
    if (!error && found)
        error = integer_root(&seen.den, &den, &again, &found);
    if (error || found)
        *root = error ? no_memory(memory) : keep(memory, &num, &den);
    mp_clear_multi(&num, &den, &again, NULL);
    return error || found;
}

int wide_compare(arena *memory, fpa_number a, fpa_number b)
{
    wide_view left, right;
    mp_int first, second;
    if (mp_init_multi(&first, &second, NULL)) {
        memory->failed = true;
        return 0;
    }
    view(a, &left);
    view(b, &right);
    mp_err error = mp_mul(&left.num, &right.den, &first);
    if (!error)
        error = mp_mul(&right.num, &left.den, &second);
    const int order = error ? 0 : mp_cmp(&first, &second);
    memory->failed |= error != MP_OKAY;
    mp_clear_multi(&first, &second, NULL);
    return order;
}

/* --- what a number is --- */

static size_t digit_count(const fpa_wide *a)
{
    return (size_t)a->num_digits + (size_t)a->den_digits;
}

bool wide_negative(const fpa_wide *a)
{
    return a->negative;
}

bool wide_is_double(const fpa_wide *a)
{
    return a->is_double;
}

size_t wide_bytes(const fpa_wide *a)
{
    return sizeof *a + digit_count(a) * sizeof *a->digits;
}

bool wide_equal(const fpa_wide *a, const fpa_wide *b)
{
    return a == b ||
           (a->negative == b->negative && a->num_digits == b->num_digits && a->den_digits == b->den_digits &&
            memcmp(a->digits, b->digits, digit_count(a) * sizeof *a->digits) == 0);
}

int wide_exponent(const fpa_wide *a)
{
    const mp_int num = borrow(a->digits, a->num_digits, false);
    const mp_int den = borrow(a->digits + a->num_digits, a->den_digits, false);
    return mp_count_bits(&num) - mp_count_bits(&den);
}

static uint64_t digits_residue(const mp_digit *digits, int count, uint64_t prime)
{
    uint64_t residue = 0;
    for (int i = count - 1; i >= 0; i--)
        residue = (uint64_t)(((unsigned __int128)residue << MP_DIGIT_BIT | digits[i]) % prime);
    return residue;
}

uint64_t wide_residue(const fpa_wide *a, uint64_t prime, uint64_t *den)
{
    *den = digits_residue(a->digits + a->num_digits, a->den_digits, prime);
    return digits_residue(a->digits, a->num_digits, prime);
}

/* --- text --- */

static bool write_digits(FILE *out, const mp_int *a)
{
    const size_t room = (size_t)mp_count_bits(a) / 3 + 4;
    char *text = malloc(room);
    const bool written = text && mp_to_radix(a, text, room, NULL, 10) == MP_OKAY;
    if (written)
        fputs(text, out);
    free(text);
    return written;
}

bool wide_write(FILE *out, const fpa_wide *a)
{
    const mp_int num = borrow(a->digits, a->num_digits, a->negative);
    const mp_int den = borrow(a->digits + a->num_digits, a->den_digits, false);
    if (!write_digits(out, &num))
        return false;
    if (mp_cmp_d(&den, 1) == MP_EQ)
        return true;
    fputc('/', out);
    return write_digits(out, &den);
}

static mp_err read_fraction(const char *num_text, const char *den_text, mp_int *num, mp_int *den,
                            bool *lowest)
{
    mp_int before;
    mp_err error = mp_init(&before);
    if (error)
        return error;
    error = mp_read_radix(num, num_text, 10);
    if (!error)
        error = mp_read_radix(den, den_text, 10);
    if (!error)
        error = mp_copy(den, &before);
    if (!error)
        error = reduce(num, den);
    *lowest = !error && mp_cmp(den, &before) == MP_EQ;
    mp_clear(&before);
    return error;
}

fpa_number wide_read(arena *memory, bool negative, const char *num_text, const char *den_text)
{
    mp_int num, den;
    bool lowest;
    if (mp_init_multi(&num, &den, NULL))
        return no_memory(memory);
    fpa_number result = number_none(FPA_INVALID);
    if (read_fraction(num_text, den_text ? den_text : "1", &num, &den, &lowest))
        result = no_memory(memory);
    else if (lowest) {
        num.sign = negative && !mp_iszero(&num) ? MP_NEG : MP_ZPOS;
        result = keep(memory, &num, &den);
    }
    mp_clear_multi(&num, &den, NULL);
    return result;
}

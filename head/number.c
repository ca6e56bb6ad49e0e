#include "number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "number_wide.h"

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

static unsigned_wide wide_gcd(unsigned_wide a, unsigned_wide b)
{
    while (b > UINT64_MAX || a > UINT64_MAX) {
        if (!b)
            return a;
        unsigned_wide rest = a % b;
        a = b;
        b = rest;
    }
    return number_gcd((uint64_t)a, (uint64_t)b);
}

/* num/den in lowest terms; den != 0. False: the result does not fit 64 bits. */
static bool reduce(wide num, wide den, fpa_number *reduced)
{
    bool negative = (num < 0) != (den < 0);
    unsigned_wide top = num < 0 ? -(unsigned_wide)num : (unsigned_wide)num;
    unsigned_wide bottom = den < 0 ? -(unsigned_wide)den : (unsigned_wide)den;
    unsigned_wide divisor = bottom == 1 ? 1 : wide_gcd(top, bottom);
    top /= divisor;
    bottom /= divisor;
    if (top > INT64_MAX || bottom > INT64_MAX)
        return false;
    *reduced = number_narrow(negative, (uint64_t)top, (uint64_t)bottom);
    return true;
}

fpa_number number_int(int64_t value)
{
    return number_ratio(value, 1);
}

fpa_number number_ratio(int64_t num, int64_t den)
{
    fpa_number ratio;
    return den && reduce(num, den, &ratio) ? ratio : number_none(FPA_INVALID);
}

fpa_number number_double(arena *memory, double value)
{
    fpa_number number;
    int exponent;
    if (!isfinite(value))
        return number_none(FPA_INVALID);
    int64_t mantissa = (int64_t)ldexp(frexp(value, &exponent), 53);
    if (!mantissa)
        return number_int(0);
    int zeros = __builtin_ctzll((uint64_t)mantissa);
    mantissa /= (int64_t)1 << zeros;
    exponent += zeros - 53;
    if (exponent < -62 || exponent > 62)
        return wide_scaled(memory, mantissa, exponent);
    wide scale = (wide)1 << (exponent < 0 ? -exponent : exponent);
    return reduce(exponent < 0 ? mantissa : mantissa * scale, exponent < 0 ? scale : 1, &number)
               ? number
               : wide_scaled(memory, mantissa, exponent);
}

/* Whether a or b has no value; then *result is that one, as the result of an operation on both. */
static bool is_none(fpa_number a, fpa_number b, fpa_number *result)
{
    *result = number_status(a) ? a : b;
    return number_status(*result) != FPA_OK;
}

static bool both_narrow(fpa_number a, fpa_number b)
{
    return a.den && b.den;
}

/* a + sign b */
static fpa_number add_signed(arena *memory, fpa_number a, fpa_number b, int sign)
{
    fpa_number result;
    if (is_none(a, b, &result) ||
        (both_narrow(a, b) &&
         reduce((wide)a.num * b.den + sign * (wide)b.num * a.den, (wide)a.den * b.den, &result)))
        return result;
    return wide_apply(memory, sign < 0 ? WIDE_SUB : WIDE_ADD, a, b);
}

fpa_number number_add(arena *memory, fpa_number a, fpa_number b)
{
    return add_signed(memory, a, b, 1);
}

fpa_number number_sub(arena *memory, fpa_number a, fpa_number b)
{
    return add_signed(memory, a, b, -1);
}

fpa_number number_mul(arena *memory, fpa_number a, fpa_number b)
{
    fpa_number result;
    if (is_none(a, b, &result) ||
        (both_narrow(a, b) && reduce((wide)a.num * b.num, (wide)a.den * b.den, &result)))
        return result;
    return wide_apply(memory, WIDE_MUL, a, b);
}

fpa_number number_div(arena *memory, fpa_number a, fpa_number b)
{
    fpa_number result;
    if (is_none(a, b, &result))
        return result;
    if (number_is_zero(b))
        return number_none(FPA_INVALID);
    if (both_narrow(a, b) && reduce((wide)a.num * b.den, (wide)a.den * b.num, &result))
        return result;
    return wide_apply(memory, WIDE_DIV, a, b);
}

/* By repeated squaring. A result with too many bits fails after a few steps, whatever the exponent. */
fpa_number number_pow(arena *memory, fpa_number a, int64_t exponent)
{
    fpa_number result = number_int(1);
    while (exponent > 0 && !number_status(result)) {
        if (exponent % 2)
            result = number_mul(memory, result, a);
        exponent /= 2;
        if (exponent)
            a = number_mul(memory, a, a);
    }
    return result;
}

static int64_t integer_root(int64_t square)
{
    int64_t root = (int64_t)sqrt((double)square);
    while ((wide)root * root > square)
        root--;
    while ((wide)(root + 1) * (root + 1) <= square)
        root++;
    return root;
}

bool number_root(arena *memory, fpa_number square, fpa_number *root)
{
    *root = square;
    if (number_status(square))
        return true;
    if (number_sign(square) < 0)
        return false;
    if (!square.den)
        return wide_root(memory, square, root);
    int64_t num = integer_root(square.num), den = integer_root(square.den);
    *root = number_ratio(num, den);
    return num * num == square.num && den * den == square.den;
}

fpa_status number_status(fpa_number a)
{
    if (a.den || a.wide)
        return FPA_OK;
    return a.num ? (fpa_status)a.num : FPA_INVALID; /* 0 only in zeroed memory: FPA_INVALID */
}

fpa_status number_check(fpa_number a, const char *where, fpa_error *error)
{
    switch (number_status(a)) {
    case FPA_OK:
        return FPA_OK;
    case FPA_NO_MEMORY:
        return fail_memory(error);
    case FPA_UNSUPPORTED:
        return fail(error, FPA_UNSUPPORTED, where,
                    "a number has more than %d bits: take fewer digits, or smaller powers", NUMBER_BITS);
    default:
        return fail(error, FPA_INVALID, where, "a number is infinite or not a number");
    }
}

bool number_is_zero(fpa_number a)
{
    return a.den && a.num == 0;
}

bool number_is_one(fpa_number a)
{
    return a.den && a.num == a.den;
}

int number_sign(fpa_number a)
{
    if (a.den)
        return (a.num > 0) - (a.num < 0);
    return !a.wide ? 0 : wide_negative(a.wide) ? -1 : 1;
}

double number_log2(fpa_number a)
{
    const bool beyond = a.wide && (a.value == 0 || isinf(a.value));
    return beyond ? wide_exponent(a.wide) : log2(fabs(a.value));
}

bool number_to_int(fpa_number a, int64_t *value)
{
    *value = a.num;
    return a.den == 1;
}

bool number_equal(fpa_number a, fpa_number b)
{
    if (a.den || b.den || !a.wide || !b.wide)
        return a.num == b.num && a.den == b.den && a.wide == b.wide;
    return wide_equal(a.wide, b.wide);
}

/* Rounding is monotonic: if the nearest doubles differ, they have the order of the numbers. */
int number_compare(arena *memory, fpa_number a, fpa_number b)
{
    if (a.value != b.value)
        return (a.value > b.value) - (a.value < b.value);
    if (both_narrow(a, b)) {
        wide left = (wide)a.num * b.den, right = (wide)b.num * a.den;
        return (left > right) - (left < right);
    }
    return number_equal(a, b) ? 0 : wide_compare(memory, a, b);
}

uint64_t number_residue(fpa_number a, uint64_t prime, uint64_t *den)
{
    uint64_t size = 0;
    *den = (uint64_t)a.den % prime;
    if (a.den)
        size = (uint64_t)(a.num < 0 ? -a.num : a.num) % prime;
    else if (a.wide)
        size = wide_residue(a.wide, prime, den);
    return number_sign(a) < 0 && size ? prime - size : size;
}

/* --- copies --- */

size_t number_bytes(fpa_number a)
{
    return a.wide ? wide_bytes(a.wide) : 0;
}

fpa_number number_place(void *room, fpa_number a)
{
    if (a.wide)
        a.wide = memcpy(room, a.wide, wide_bytes(a.wide));
    return a;
}

fpa_number number_copy(arena *memory, fpa_number a)
{
    if (!a.wide)
        return a;
    void *room = arena_alloc(memory, wide_bytes(a.wide));
    return room ? number_place(room, a) : number_none(FPA_NO_MEMORY);
}

/* Consecutive numbers are often equal: they share a copy. */
fpa_number *numbers_copy(arena *memory, const fpa_number *numbers, size_t count)
{
    fpa_number *copies = arena_array(memory, count, sizeof *copies);
    for (size_t i = 0; copies && i < count; i++) {
        bool same = i && numbers[i].wide && numbers[i].wide == numbers[i - 1].wide;
        copies[i] = same ? copies[i - 1] : number_copy(memory, numbers[i]);
        if (number_status(copies[i]) == FPA_NO_MEMORY)
            return NULL;
    }
    return copies;
}

/* --- text --- */

/* Hexadecimal floating point as printf's %a, but independent of the locale's decimal point. */
static void print_double(char text[NUMBER_TEXT], double value)
{
    int exponent;
    uint64_t mantissa = (uint64_t)ldexp(frexp(fabs(value), &exponent), 53);
    char digits[16];
    snprintf(digits, sizeof digits, "%013" PRIx64, mantissa & ((UINT64_C(1) << 52) - 1));
    size_t length = strlen(digits);
    while (length && digits[length - 1] == '0')
        digits[--length] = 0;
    snprintf(text, NUMBER_TEXT, "~%s0x1%s%sp%+d", value < 0 ? "-" : "", length ? "." : "", digits,
             exponent - 1);
}

static void print_narrow(char text[NUMBER_TEXT], fpa_number a)
{
    if (a.den == 1)
        snprintf(text, NUMBER_TEXT, "%" PRId64, a.num);
    else
        snprintf(text, NUMBER_TEXT, "%" PRId64 "/%" PRId64, a.num, a.den);
}

/* The fewest decimal digits that read back as the same double, with a point whatever the locale is. */
static void print_decimal(char text[NUMBER_TEXT], double value)
{
    int precision = 1;
    do
        snprintf(text, NUMBER_TEXT, "%.*g", precision, value);
    while (strtod(text, NULL) != value && ++precision <= 17);
    char *point = text + strspn(text, "-0123456789");
    size_t length = strcspn(point, "0123456789e");
    if (length) {
        *point = '.';
        memmove(point + 1, point + length, strlen(point + length) + 1);
    }
}

/* If a fraction is the exact value of a double, replaces its text by the double's shortest decimal if that is
 * shorter, as for 0.3, whose denominator is a large power of two. */
static void shorten(char text[NUMBER_TEXT], fpa_number a)
{
    const int64_t exact = INT64_C(1) << 53;
    char decimal[NUMBER_TEXT];
    if ((a.den & (a.den - 1)) != 0 || a.num > exact || a.num < -exact)
        return;
    print_decimal(decimal, a.value);
    if (strlen(decimal) < strlen(text))
        memcpy(text, decimal, sizeof decimal);
}

void number_print(char text[NUMBER_TEXT], fpa_number a)
{
    text[0] = '~';
    if (a.den) {
        print_narrow(text, a);
        shorten(text, a);
    } else if (!a.wide)
        snprintf(text, NUMBER_TEXT, "?");
    else if (a.value == 0 || isinf(a.value))
        snprintf(text, NUMBER_TEXT, "~%s2^%d", wide_negative(a.wide) ? "-" : "", wide_exponent(a.wide));
    else
        print_decimal(wide_is_double(a.wide) ? text : text + 1, a.value);
}

bool number_write(FILE *out, fpa_number a)
{
    char text[NUMBER_TEXT];
    if (!a.den && a.wide && !wide_is_double(a.wide))
        return wide_write(out, a.wide);
    if (a.den)
        print_narrow(text, a);
    else if (a.wide)
        print_double(text, a.value);
    else
        snprintf(text, sizeof text, "?"); /* only in a head that was not validated; the parser refuses it */
    fputs(text, out);
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The exponent at the end of print_double's text: p-1. */
static bool scan_exponent(const char *text, int *exponent)
{
    bool negative = text[0] == 'p' && text[1] == '-';
    size_t digits = text[0] == 'p' ? strspn(text + 2, "0123456789") : 0;
    if (!digits || digits > 4 || text[2 + digits] || (!negative && text[1] != '+'))
        return false;
    *exponent = 0;
    for (text += 2; *text; text++)
        *exponent = *exponent * 10 + (*text - '0');
    *exponent = negative ? -*exponent : *exponent;
    return true;
}

/* Parses what print_double writes after the sign: 0x1.8p-1. */
static bool scan_double(const char *text, double *value)
{
    int digits = 0, exponent;
    uint64_t mantissa = 1;
    if (strncmp(text, "0x1", 3) != 0)
        return false;
    text += 3;
    if (*text == '.')
        for (text++; hex_digit(*text) >= 0 && digits < 13; text++, digits++)
            mantissa = mantissa << 4 | (uint64_t)hex_digit(*text);
    if (!scan_exponent(text, &exponent))
        return false;
    *value = ldexp((double)mantissa, exponent - 4 * digits);
    return true;
}

/* Accepts only the spelling of print_double, and only doubles that do not fit 64-bit fractions. */
static fpa_number parse_double(arena *memory, const char *text)
{
    char again[NUMBER_TEXT];
    bool negative = text[1] == '-';
    double value;
    if (!scan_double(text + 1 + negative, &value))
        return number_none(FPA_INVALID);
    fpa_number number = number_double(memory, negative ? -value : value);
    if (number.den)
        return number_none(FPA_INVALID);
    if (!number_status(number))
        print_double(again, number.value);
    return number_status(number) || strcmp(text, again) == 0 ? number : number_none(FPA_INVALID);
}

/* Digits without a leading zero, then the end. */
static bool is_whole(const char *text)
{
    return *text >= '1' && *text <= '9' && text[strspn(text, "0123456789")] == '\0';
}

/* Cuts text at the fraction's bar. */
static fpa_number parse_fraction(arena *memory, char *text)
{
    const bool negative = *text == '-';
    char *num = text + negative, *den = strchr(text, '/');
    if (den)
        *den++ = '\0';
    if (strcmp(text, "0") == 0 && !den)
        return number_int(0);
    if (!is_whole(num) || (den && (!is_whole(den) || strcmp(den, "1") == 0)))
        return number_none(FPA_INVALID);
    fpa_number number = wide_read(memory, negative, num, den);
    /* doubles have to be spelled as parse_double reads them */
    return number.wide && wide_is_double(number.wide) ? number_none(FPA_INVALID) : number;
}

fpa_number number_parse(arena *memory, const char *text, size_t length)
{
    if (length > 2 * (NUMBER_BITS / 3)) /* more digits than the bits allow */
        return number_none(FPA_UNSUPPORTED);
    char *own = strndup(text, length);
    if (!own) {
        memory->failed = true;
        return number_none(FPA_NO_MEMORY);
    }
    fpa_number number = own[0] == '~' ? parse_double(memory, own) : parse_fraction(memory, own);
    free(own);
    return number;
}

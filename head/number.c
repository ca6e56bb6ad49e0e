#include "number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

static int bit_count(uint64_t value)
{
    return value ? 64 - __builtin_clzll(value) : 0;
}

/* num/den to the nearest double. Beyond 53 bits the quotient is taken with 64 bits and the
 * remainder kept as a sticky bit, so that it is rounded once, on every machine alike. */
static double ratio_value(uint64_t num, uint64_t den)
{
    if (bit_count(num) <= 53 && bit_count(den) <= 53)
        return (double)num / (double)den;
    int shift = 63 + bit_count(den) - bit_count(num);
    unsigned_wide scaled = (unsigned_wide)num << shift;
    uint64_t quotient = (uint64_t)(scaled / den);
    return ldexp((double)(quotient | (scaled % den != 0)), -shift);
}

static fpa_number inexact(double value)
{
    return (fpa_number){.num = 0, .den = 0, .value = value};
}

static uint64_t narrow_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static unsigned_wide wide_gcd(unsigned_wide a, unsigned_wide b)
{
    while (b > UINT64_MAX || a > UINT64_MAX) {
        if (!b)
            return a;
        unsigned_wide rest = a % b;
        a = b;
        b = rest;
    }
    return narrow_gcd((uint64_t)a, (uint64_t)b);
}

/* num/den in lowest terms, or rounded when that does not fit. den != 0. */
static fpa_number reduce(wide num, wide den, double rounded)
{
    bool negative = (num < 0) != (den < 0);
    unsigned_wide top = num < 0 ? -(unsigned_wide)num : (unsigned_wide)num;
    unsigned_wide bottom = den < 0 ? -(unsigned_wide)den : (unsigned_wide)den;
    unsigned_wide divisor = bottom == 1 ? 1 : wide_gcd(top, bottom);
    top /= divisor;
    bottom /= divisor;
    if (top > INT64_MAX || bottom > INT64_MAX)
        return inexact(rounded);
    double value = ratio_value((uint64_t)top, (uint64_t)bottom);
    int64_t signed_top = negative ? -(int64_t)top : (int64_t)top;
    return (fpa_number){.num = signed_top, .den = (int64_t)bottom, .value = negative && top ? -value : value};
}

fpa_number number_int(int64_t value)
{
    return reduce(value, 1, (double)value);
}

fpa_number number_ratio(int64_t num, int64_t den)
{
    return reduce(num, den, (double)num / (double)den);
}

fpa_number number_double(double value)
{
    if (!isfinite(value))
        return inexact(value);
    int exponent;
    int64_t mantissa = (int64_t)ldexp(frexp(value, &exponent), 53);
    if (!mantissa)
        return number_int(0);
    int zeros = __builtin_ctzll((uint64_t)mantissa);
    mantissa /= (int64_t)1 << zeros;
    exponent += zeros - 53;
    if (exponent < -62 || exponent > 62)
        return inexact(value);
    wide scale = (wide)1 << (exponent < 0 ? -exponent : exponent);
    return exponent < 0 ? reduce(mantissa, scale, value) : reduce(mantissa * scale, 1, value);
}

fpa_number number_add(fpa_number a, fpa_number b)
{
    double rounded = a.value + b.value;
    if (!a.den || !b.den)
        return inexact(rounded);
    return reduce((wide)a.num * b.den + (wide)b.num * a.den, (wide)a.den * b.den, rounded);
}

fpa_number number_sub(fpa_number a, fpa_number b)
{
    b.num = -b.num;
    b.value = -b.value;
    return number_add(a, b);
}

fpa_number number_mul(fpa_number a, fpa_number b)
{
    double rounded = a.value * b.value;
    if (!a.den || !b.den)
        return inexact(rounded);
    return reduce((wide)a.num * b.num, (wide)a.den * b.den, rounded);
}

fpa_number number_div(fpa_number a, fpa_number b)
{
    double rounded = a.value / b.value;
    if (!a.den || !b.den || !b.num)
        return inexact(rounded);
    return reduce((wide)a.num * b.den, (wide)a.den * b.num, rounded);
}

fpa_number number_pow(fpa_number a, int exponent)
{
    fpa_number result = number_int(1);
    for (int i = 0; i < exponent; i++)
        result = number_mul(result, a);
    return result;
}

bool number_exact(fpa_number a)
{
    return a.den != 0;
}

bool number_is_zero(fpa_number a)
{
    return a.den ? a.num == 0 : a.value == 0;
}

bool number_is_one(fpa_number a)
{
    return a.den ? a.num == a.den : a.value == 1;
}

bool number_is_integer(fpa_number a)
{
    return a.den == 1;
}

bool number_equal(fpa_number a, fpa_number b)
{
    if (a.den && b.den)
        return a.num == b.num && a.den == b.den;
    return a.value == b.value;
}

int number_compare(fpa_number a, fpa_number b)
{
    if (a.den && b.den) {
        wide left = (wide)a.num * b.den, right = (wide)b.num * a.den;
        return (left > right) - (left < right);
    }
    return (a.value > b.value) - (a.value < b.value);
}

/* Hexadecimal floating point as printf's %a writes it, but whatever the locale's point is. */
static void print_inexact(char text[NUMBER_TEXT], double value)
{
    if (!isfinite(value)) {
        snprintf(text, NUMBER_TEXT, "~%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    int exponent;
    uint64_t mantissa = (uint64_t)ldexp(frexp(fabs(value), &exponent), 53);
    char digits[16];
    snprintf(digits, sizeof digits, "%013" PRIx64, mantissa & ((UINT64_C(1) << 52) - 1));
    size_t length = strlen(digits);
    while (length && digits[length - 1] == '0')
        digits[--length] = 0;
    snprintf(text, NUMBER_TEXT, "~%s0x%d%s%sp%+d", signbit(value) ? "-" : "", mantissa != 0,
             length ? "." : "", digits, mantissa ? exponent - 1 : 0);
}

void number_print(char text[NUMBER_TEXT], fpa_number a)
{
    if (!a.den)
        print_inexact(text, a.value);
    else if (a.den == 1)
        snprintf(text, NUMBER_TEXT, "%" PRId64, a.num);
    else
        snprintf(text, NUMBER_TEXT, "%" PRId64 "/%" PRId64, a.num, a.den);
}

/* Digits from *text on, as a value that fits int64_t; false when there are none or too many. */
static bool scan_digits(const char **text, int64_t *value)
{
    const char *start = *text;
    uint64_t sum = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        uint64_t digit = (uint64_t)(**text - '0');
        if (sum > (INT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = (int64_t)sum;
    return *text != start;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What print_inexact writes for finite values, after the sign: 0x1.8p-1. */
static bool scan_hexadecimal(const char *text, double *value)
{
    if (strncmp(text, "0x", 2) != 0 || (text[2] != '0' && text[2] != '1'))
        return false;
    uint64_t mantissa = (uint64_t)(text[2] - '0');
    int digits = 0;
    text += 3;
    if (*text == '.')
        for (text++; hex_digit(*text) >= 0 && digits < 13; text++, digits++)
            mantissa = mantissa << 4 | (uint64_t)hex_digit(*text);
    bool negative = text[0] == 'p' && text[1] == '-';
    int64_t exponent;
    if (text[0] != 'p' || (!negative && text[1] != '+'))
        return false;
    text += 2;
    if (!scan_digits(&text, &exponent) || exponent > 2000)
        return false;
    *value = ldexp((double)mantissa, (int)(negative ? -exponent : exponent) - 4 * digits);
    return !*text;
}

static bool scan_inexact(const char *text, fpa_number *a)
{
    double sign = *text == '-' ? -1 : 1, value;
    text += *text == '-';
    if (strcmp(text, "inf") == 0)
        value = INFINITY;
    else if (strcmp(text, "nan") == 0)
        value = NAN;
    else if (!scan_hexadecimal(text, &value))
        return false;
    *a = inexact(sign * value);
    return true;
}

static bool scan_exact(const char *text, fpa_number *a)
{
    int64_t num, den = 1;
    bool negative = *text == '-';
    text += negative;
    if (!scan_digits(&text, &num))
        return false;
    if (*text == '/') {
        text++;
        if (!scan_digits(&text, &den) || !den)
            return false;
    }
    *a = number_ratio(negative ? -num : num, den);
    return !*text;
}

/* Only the one spelling that number_print gives is accepted: equal numbers, equal bytes. */
bool number_parse(const char *text, fpa_number *a)
{
    char again[NUMBER_TEXT];
    bool inexactly = *text == '~';
    if (inexactly ? !scan_inexact(text + 1, a) : !scan_exact(text, a))
        return false;
    number_print(again, *a);
    return strcmp(text, again) == 0;
}

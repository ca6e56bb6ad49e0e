/* slow_ratio: ratios of long whole numbers, calculated as at school; what head/number.c is compared with. */
#ifndef FPAC_TESTS_SLOW_RATIO_H
#define FPAC_TESTS_SLOW_RATIO_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "head/number.h"
#include "claims.h"

static char *text_of(fpa_number a)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_true(number_write(out, a));
    fclose(out);
    return text;
}

/* --- the slow arithmetic: whole numbers of at most LIMBS digits to the base 2^16 --- */

enum { LIMBS = 2500 };

typedef struct whole {
    int used;
    uint32_t limb[LIMBS];
} whole;

static void whole_trim(whole *a)
{
    while (a->used && !a->limb[a->used - 1])
        a->used--;
}

/* a = a * factor + more */
static void whole_step(whole *a, uint32_t factor, uint32_t more)
{
    uint64_t carry = more;
    for (int i = 0; i < a->used || carry; i++) {
        assert_true(i < LIMBS);
        carry += i < a->used ? (uint64_t)a->limb[i] * factor : 0;
        a->limb[i] = (uint32_t)(carry & 0xffff);
        a->used = i < a->used ? a->used : i + 1;
        carry >>= 16;
    }
}

static whole *whole_mul(const whole *a, const whole *b)
{
    whole *product = calloc(1, sizeof *product);
    assert_true(a->used + b->used <= LIMBS);
    product->used = a->used + b->used;
    for (int i = 0; i < a->used; i++) {
        uint32_t carry = 0;
        for (int j = 0; j < b->used || carry; j++) {
            carry += product->limb[i + j] + (j < b->used ? a->limb[i] * b->limb[j] : 0);
            product->limb[i + j] = carry & 0xffff;
            carry >>= 16;
        }
    }
    whole_trim(product);
    return product;
}

static int whole_compare(const whole *a, const whole *b)
{
    if (a->used != b->used)
        return a->used < b->used ? -1 : 1;
    for (int i = a->used - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* a += b, or a -= b where a >= b */
static void whole_add(whole *a, const whole *b, bool subtract)
{
    int64_t carry = 0;
    for (int i = 0; i < b->used || carry; i++) {
        carry +=
            (i < a->used ? a->limb[i] : 0) + (i < b->used ? (int64_t)b->limb[i] * (subtract ? -1 : 1) : 0);
        a->limb[i] = (uint32_t)(carry & 0xffff);
        a->used = i < a->used ? a->used : i + 1;
        carry >>= 16;
    }
    whole_trim(a);
}

static bool whole_even(const whole *a)
{
    return a->limb[0] % 2 == 0;
}

static void whole_halve(whole *a)
{
    for (int i = 0; i < a->used; i++)
        a->limb[i] = a->limb[i] >> 1 | (i + 1 < a->used ? a->limb[i + 1] & 1 : 0) << 15;
    whole_trim(a);
}

/* Have a and b no common divisor? Not both are even. Destroys them. */
static bool whole_coprime(whole *a, whole *b)
{
    while (a->used && b->used) {
        while (whole_even(a))
            whole_halve(a);
        while (whole_even(b))
            whole_halve(b);
        whole *larger = whole_compare(a, b) > 0 ? a : b;
        whole_add(larger, larger == a ? b : a, true);
    }
    whole *left = a->used ? a : b;
    return left->used == 1 && left->limb[0] == 1;
}

typedef struct slow_ratio {
    bool negative;
    whole *num, *den;
} slow_ratio;

static whole *read_whole(const char **text)
{
    whole *a = calloc(1, sizeof *a);
    for (; **text >= '0' && **text <= '9'; ++*text)
        whole_step(a, 10, (uint32_t)(**text - '0'));
    return a;
}

/* From the canonical text; of doubles by the double. */
static slow_ratio slow_of(fpa_number a)
{
    char *text = text_of(a);
    const char *at = text;
    slow_ratio slow = {.negative = number_sign(a) < 0};
    if (*at == '~') {
        int exponent;
        uint64_t mantissa = (uint64_t)ldexp(frexp(fabs(a.value), &exponent), 53);
        slow.num = calloc(1, sizeof *slow.num);
        slow.den = calloc(1, sizeof *slow.den);
        for (int shift = 48; shift >= 0; shift -= 16)
            whole_step(slow.num, 1 << 16, (uint32_t)(mantissa >> shift & 0xffff));
        whole_step(slow.den, 1, 1);
        for (exponent -= 53; exponent; exponent += exponent < 0 ? 1 : -1)
            whole_step(exponent < 0 ? slow.den : slow.num, 2, 0);
    } else {
        at += *at == '-';
        slow.num = read_whole(&at);
        slow.den = calloc(1, sizeof *slow.den);
        if (*at++ == '/') {
            free(slow.den);
            slow.den = read_whole(&at);
        } else {
            whole_step(slow.den, 1, 1);
        }
    }
    free(text);
    whole_trim(slow.num);
    return slow;
}

static void slow_free(slow_ratio *a)
{
    free(a->num);
    free(a->den);
}

static slow_ratio slow_mul(slow_ratio a, slow_ratio b)
{
    return (slow_ratio){a.negative != b.negative, whole_mul(a.num, b.num), whole_mul(a.den, b.den)};
}

static slow_ratio slow_add(slow_ratio a, slow_ratio b)
{
    whole *left = whole_mul(a.num, b.den), *right = whole_mul(b.num, a.den), *den = whole_mul(a.den, b.den);
    bool negative = a.negative;
    if (a.negative != b.negative && whole_compare(left, right) < 0) {
        whole *other = left;
        left = right;
        right = other;
        negative = b.negative;
    }
    whole_add(left, right, a.negative != b.negative);
    free(right);
    return (slow_ratio){negative, left, den};
}

static bool slow_equal(slow_ratio a, slow_ratio b)
{
    whole *left = whole_mul(a.num, b.den), *right = whole_mul(b.num, a.den);
    bool equal = whole_compare(left, right) == 0 && (!left->used || a.negative == b.negative);
    free(left);
    free(right);
    return equal;
}

#endif

/* number: exact rationals of any size, against a slow arithmetic of our own. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "head/number.h"
#include "claims.h"
#include "slow_ratio.h"

static uint64_t random_state = 20240607;
static arena memory; /* of the test that runs */

static int free_memory(void **state)
{
    arena_free(&memory);
    return 0;
}

static uint64_t random_bits(void)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static fpa_number random_ratio(void)
{
    return number_ratio((int64_t)(random_bits() % 2001) - 1000, (int64_t)(random_bits() % 1000) + 1);
}

/* A finite double of any exponent, never 0. */
static double random_double(void)
{
    double value = 0;
    while (!isfinite(value) || value == 0) {
        uint64_t bits = random_bits();
        memcpy(&value, &bits, sizeof value);
    }
    return value;
}

/* Of every size: small ratios, ratios that fill 64 bits, doubles, and products of them. */
static fpa_number random_number(int depth)
{
    switch (random_bits() % (depth ? 5 : 3)) {
    case 0:
        return random_ratio();
    case 1:
        return number_ratio((int64_t)(random_bits() >> 1), (int64_t)(random_bits() >> 1) | 1);
    case 2:
        return number_double(&memory, random_double());
    case 3:
        return number_mul(&memory, random_number(depth - 1), random_number(depth - 1));
    default:
        return number_add(&memory, random_number(depth - 1), random_ratio());
    }
}

static void assert_ratio(fpa_number a, int64_t num, int64_t den)
{
    assert_int_equal(a.num, num);
    assert_int_equal(a.den, den);
    assert_null(a.wide);
    assert_true(a.value == (double)num / (double)den);
}

/* Both ways to the same number? Frees b. */
static void assert_slow(fpa_number a, slow_ratio b)
{
    slow_ratio own = slow_of(a);
    assert_int_equal(number_status(a), FPA_OK);
    assert_true(slow_equal(own, b));
    assert_true(a.value == 0 || (a.value < 0) == own.negative);
    slow_free(&own);
    slow_free(&b);
}

/* --- claims --- */

static void ratios_are_kept_in_lowest_terms_with_a_positive_denominator(void **state)
{
    static const int64_t cases[][4] = {{6, 4, 3, 2},
                                       {6, -4, -3, 2},
                                       {-6, -4, 3, 2},
                                       {0, -7, 0, 1},
                                       {12, 3, 4, 1},
                                       {INT64_MAX, INT64_MAX, 1, 1},
                                       {INT64_MAX, -1, -INT64_MAX, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_ratio(number_ratio(cases[i][0], cases[i][1]), cases[i][2], cases[i][3]);
}

static void arithmetic_agrees_with_the_slow_one(void **state)
{
    for (int i = 0; i < 400; i++) {
        fpa_number a = random_number(2), b = random_number(2);
        slow_ratio x = slow_of(a), y = slow_of(b), minus = y, inverse = {y.negative, y.den, y.num};
        minus.negative = !y.negative;
        assert_slow(number_add(&memory, a, b), slow_add(x, y));
        assert_slow(number_sub(&memory, a, b), slow_add(x, minus));
        assert_slow(number_mul(&memory, a, b), slow_mul(x, y));
        if (number_is_zero(b))
            assert_int_equal(number_status(number_div(&memory, a, b)), FPA_INVALID);
        else
            assert_slow(number_div(&memory, a, b), slow_mul(x, inverse));
        slow_free(&x);
        slow_free(&y);
        arena_free(&memory);
    }
}

static void numbers_of_any_size_are_in_lowest_terms(void **state)
{
    for (int i = 0; i < 200; i++) {
        fpa_number a =
            number_div(&memory, random_number(1), number_add(&memory, random_number(1), number_int(5)));
        if (number_status(a) || number_is_zero(a))
            continue;
        slow_ratio slow = slow_of(a);
        bool both_even = whole_even(slow.num) && whole_even(slow.den);
        char *text = text_of(a);
        if (text[0] != '~') /* a double's text is no fraction */
            assert_true(!both_even && whole_coprime(slow.num, slow.den));
        free(text);
        slow_free(&slow);
        arena_free(&memory);
    }
}

static void arithmetic_obeys_the_field_axioms(void **state)
{
    for (int i = 0; i < 2000; i++) {
        fpa_number a = random_number(i % 3), b = random_number(i % 3), c = random_number(i % 3);
        fpa_number ab = number_mul(&memory, a, b), ac = number_mul(&memory, a, c);
        assert_true(number_equal(number_add(&memory, a, b), number_add(&memory, b, a)));
        assert_true(
            number_equal(number_mul(&memory, ab, c), number_mul(&memory, a, number_mul(&memory, b, c))));
        assert_true(
            number_equal(number_mul(&memory, a, number_add(&memory, b, c)), number_add(&memory, ab, ac)));
        assert_true(number_equal(number_sub(&memory, number_add(&memory, a, b), b), a));
        if (!number_is_zero(b))
            assert_true(number_equal(number_mul(&memory, number_div(&memory, a, b), b), a));
        assert_int_equal(number_compare(&memory, a, b), number_sign(number_sub(&memory, a, b)));
        assert_false(memory.failed);
        arena_free(&memory);
    }
}

static void numbers_that_round_to_one_double_are_told_apart(void **state)
{
    fpa_number one = number_int(1), least = number_double(&memory, 1e-300);
    fpa_number above = number_add(&memory, one, least), below = number_sub(&memory, one, least);
    assert_true(above.value == 1 && below.value == 1);
    assert_int_equal(number_compare(&memory, above, below), 1);
    assert_int_equal(number_compare(&memory, below, one), -1);
    assert_int_equal(number_compare(&memory, above, number_add(&memory, one, least)), 0);
    assert_false(number_equal(above, below));
    assert_false(number_is_one(above));
    assert_true(number_equal(number_sub(&memory, above, least), one));
    assert_null(number_sub(&memory, above, least).wide);
}

static void powers_are_repeated_products(void **state)
{
    assert_ratio(number_pow(&memory, number_ratio(-2, 3), 5), -32, 243);
    assert_ratio(number_pow(&memory, number_int(7), 0), 1, 1);
    assert_ratio(number_pow(&memory, number_int(2), 62), INT64_C(1) << 62, 1);
    for (int n = 0; n < 70; n++) {
        fpa_number a = number_double(&memory, -0.1), product = number_int(1);
        for (int i = 0; i < n; i++)
            product = number_mul(&memory, product, a);
        assert_true(number_equal(number_pow(&memory, a, n), product));
    }
}

static void what_leaves_64_bits_stays_exact_and_comes_back(void **state)
{
    fpa_number large = number_pow(&memory, number_int(2), 63);
    assert_non_null(large.wide);
    assert_true(large.value == 0x1p63);
    assert_ratio(number_sub(&memory, large, number_int(1)), INT64_MAX, 1);
    assert_ratio(number_div(&memory, large, number_int(4)), INT64_C(1) << 61, 1);
    fpa_number tiny = number_mul(&memory, number_ratio(1, INT64_MAX), number_ratio(1, 3));
    assert_true(fabs(tiny.value * 3 * (double)INT64_MAX - 1) < 1e-15);
    assert_ratio(number_mul(&memory, tiny, number_int(3)), 1, INT64_MAX);
    assert_int_equal(number_status(number_int(INT64_MIN)), FPA_INVALID); /* has no negative */
    assert_int_equal(number_sign(number_double(&memory, -0x1p63)), -1);
}

static void doubles_are_exact_dyadic_numbers(void **state)
{
    assert_ratio(number_double(&memory, 0.375), 3, 8);
    assert_ratio(number_double(&memory, -6), -6, 1);
    assert_ratio(number_double(&memory, 0x1p62), INT64_C(1) << 62, 1);
    assert_ratio(number_double(&memory, -0.0), 0, 1);
    assert_true(number_double(&memory, 0.1).value == 0.1);
    assert_true(number_double(&memory, DBL_TRUE_MIN).value == DBL_TRUE_MIN);
    assert_int_equal(number_status(number_double(&memory, INFINITY)), FPA_INVALID);
    assert_int_equal(number_status(number_double(&memory, NAN)), FPA_INVALID);
    for (int i = 0; i < 1000; i++) {
        double x = random_double(), y = random_double(), product = x * y;
        assert_true(number_double(&memory, x).value == x);
        fpa_number exact = number_mul(&memory, number_double(&memory, x), number_double(&memory, y));
        assert_true(exact.value == product); /* the machine's product is correctly rounded */
        assert_true(number_add(&memory, number_double(&memory, x), number_double(&memory, y)).value == x + y);
        assert_true(number_div(&memory, number_double(&memory, x), number_double(&memory, y)).value == x / y);
        arena_free(&memory);
    }
}

/* Around the smallest numbers rounding is to fewer bits, and must be done once. */
static void small_products_are_rounded_once(void **state)
{
    for (int i = 0; i < 3000; i++) {
        double x = ldexp(0.5 + (double)(random_bits() >> 12) * 0x1p-53, -500),
               y = ldexp(0.5 + (double)(random_bits() >> 12) * 0x1p-53, -515 - (int)(random_bits() % 65));
        fpa_number exact = number_mul(&memory, number_double(&memory, x), number_double(&memory, y));
        assert_true(exact.value == x * y);
        arena_free(&memory);
    }
    for (int odd = 1; odd < 64; odd += 2) { /* ties: odd / 2 of the smallest number */
        fpa_number half = number_div(&memory, number_double(&memory, odd * DBL_TRUE_MIN), number_int(2));
        assert_true(half.value == ldexp(nearbyint(odd / 2.0), -1074));
    }
    fpa_number largest = number_double(&memory, DBL_MAX);
    assert_true(isinf(number_mul(&memory, largest, largest).value));
    assert_true(number_mul(&memory, largest, largest).value > 0);
    assert_true(number_add(&memory, largest, number_int(1)).value == DBL_MAX);
}

static void roots_of_squares_are_rational(void **state)
{
    for (int i = 0; i < 300; i++) {
        fpa_number a = random_number(1), root, square = number_mul(&memory, a, a);
        assert_true(number_root(&memory, square, &root));
        assert_true(number_equal(number_mul(&memory, root, root), square));
        assert_true(number_sign(root) >= 0);
        if (!number_is_zero(a))
            assert_false(number_root(&memory, number_mul(&memory, square, number_int(2)), &root));
        arena_free(&memory);
    }
    fpa_number root;
    assert_false(number_root(&memory, number_int(-4), &root));
}

/* No endless time, no endless memory. */
static void a_number_of_too_many_bits_is_refused_and_stays_so(void **state)
{
    fpa_error error = {0};
    fpa_number three = number_int(3), large = number_pow(&memory, three, 1000000000);
    assert_int_equal(number_status(large), FPA_UNSUPPORTED);
    assert_int_equal(number_status(number_pow(&memory, number_ratio(1, 3), INT64_MAX)), FPA_UNSUPPORTED);
    assert_int_equal(number_status(number_pow(&memory, three, 80000)), FPA_OK);
    assert_int_equal(number_check(large, "x.lua:3", &error), FPA_UNSUPPORTED);
    assert_string_equal(error.where, "x.lua:3");
    assert_non_null(strstr(error.message, "131072 bits"));
    for (int i = 0; i < 2; i++) {
        fpa_number a = i ? large : three, b = i ? three : large;
        assert_int_equal(number_status(number_add(&memory, a, b)), FPA_UNSUPPORTED);
        assert_int_equal(number_status(number_sub(&memory, a, b)), FPA_UNSUPPORTED);
        assert_int_equal(number_status(number_mul(&memory, a, b)), FPA_UNSUPPORTED);
        assert_int_equal(number_status(number_div(&memory, a, b)), FPA_UNSUPPORTED);
    }
    assert_false(number_is_zero(large) || number_is_one(large) || number_equal(large, three));
    assert_int_equal(number_sign(large), 0);
    assert_true(isnan(large.value));
    assert_int_equal(number_status((fpa_number){0}), FPA_INVALID); /* zeroed memory */
    assert_false(memory.failed);
}

static void a_copy_outlives_the_memory_of_its_number(void **state)
{
    arena own = {0};
    fpa_number a[3] = {number_int(1), number_pow(&own, number_double(&own, 0.1), 9), number_ratio(1, 3)};
    a[0] = a[1];
    fpa_number *copies = numbers_copy(&memory, a, 3), copy = number_copy(&memory, a[1]);
    char *text = text_of(a[1]), *room = malloc(number_bytes(a[1]));
    fpa_number placed = number_place(room, a[1]);
    arena_free(&own);
    const fpa_number all[] = {copies[0], copies[1], copy, placed};
    for (size_t i = 0; i < 4; i++) {
        char *again = text_of(all[i]);
        assert_string_equal(again, text);
        free(again);
    }
    assert_true(number_equal(copies[2], number_ratio(1, 3)));
    free(room);
    free(text);
}

static void the_value_is_the_nearest_double(void **state)
{
    /* the fourth is just above a tie: rounding it to 64 bits first would lose what decides */
    assert_true(number_ratio(INT64_MAX, INT64_MAX - 1).value == 1.0);
    assert_true(number_ratio((INT64_C(1) << 54) + 2, 1).value == 0x1p54);
    assert_true(number_ratio((INT64_C(1) << 54) + 3, 1).value == 0x1p54 + 4);
    assert_true(number_ratio((INT64_C(1) << 60) + 129, INT64_C(1) << 61).value == 0x1.0000000000001p-1);
    for (int i = 0; i < 1000; i++) {
        int64_t num = (int64_t)(random_bits() >> 1), den = (int64_t)(random_bits() >> 1) | 1;
        double exactish = (double)((long double)num / (long double)den);
        double value = number_ratio(num, den).value;
        assert_true(value == exactish || nextafter(value, exactish) == exactish);
    }
}

static void every_number_is_read_back_from_its_text(void **state)
{
    for (int i = 0; i < 1000; i++) {
        fpa_number a = i ? random_number(i % 4) : number_int(0);
        char *text = text_of(a);
        fpa_number again = number_parse(&memory, text, strlen(text));
        assert_int_equal(number_status(again), FPA_OK);
        assert_true(number_equal(again, a));
        assert_memory_equal(&again.value, &a.value, sizeof a.value);
        free(text);
        arena_free(&memory);
    }
}

/* What heads of earlier versions have keeps its bytes, and so their digests. */
static void texts_are_the_ones_documented(void **state)
{
    const struct {
        fpa_number number;
        const char *text, *shown;
    } cases[] = {{number_int(3), "3", "3"},
                 {number_ratio(-1, 2), "-1/2", "-1/2"},
                 {number_double(&memory, 0.1), "3602879701896397/36028797018963968", "0.1"},
                 {number_double(&memory, 0.3), "5404319552844595/18014398509481984", "0.3"},
                 {number_double(&memory, -2.7), NULL, "-2.7"},
                 {number_ratio(3, 4096), "3/4096", "3/4096"},
                 {number_ratio(1, 3), "1/3", "1/3"},
                 {number_double(&memory, 1e-9), "~0x1.12e0be826d695p-30", "1e-09"},
                 {number_double(&memory, -1e300), "~-0x1.7e43c8800759cp+996", "-1e+300"},
                 {number_double(&memory, 0x1p-70), "~0x1p-70", "8.470329472543003e-22"},
                 {number_double(&memory, DBL_TRUE_MIN), "~0x1p-1074", "5e-324"},
                 {number_pow(&memory, number_int(10), 23), "100000000000000000000000", "~1e+23"},
                 {number_pow(&memory, number_ratio(-1, 10), 21), "-1/1000000000000000000000", "~-1e-21"},
                 {number_pow(&memory, number_int(10), 400), NULL, "~2^1328"},
                 {number_double(&memory, INFINITY), "?", "?"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char shown[NUMBER_TEXT], *text = text_of(cases[i].number);
        number_print(shown, cases[i].number);
        assert_string_equal(shown, cases[i].shown);
        if (cases[i].text)
            assert_string_equal(text, cases[i].text);
        free(text);
    }
}

static void any_other_spelling_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "+3",
                                      "03",
                                      "2/4",
                                      "3/1",
                                      "1/0",
                                      "1/-2",
                                      "-0",
                                      "1.5",
                                      " 1",
                                      "1 ",
                                      "~",
                                      "~0x1p1",
                                      "~1.5",
                                      "~0x2p+0",
                                      "0x1p+0",
                                      "~0x1.80p+0",
                                      "~0x1p+0x",
                                      "9223372036854775808", /* a double: ~0x1p+63 */
                                      "1/9223372036854775808",
                                      "~0x1.8p-1", /* 64 bits suffice: 3/4 */
                                      "~0x0p+0",
                                      "~0x1p-1075",
                                      "~0x1p+1024",
                                      "~0x1.00000000000001p-70",
                                      "6/9223372036854775809",
                                      "30000000000000000000003/6",
                                      "0100000000000000000000001",
                                      "100000000000000000000001/1",
                                      "100000000000000000000001/",
                                      "100000000000000000000001/0",
                                      "100000000000000000000001/-2",
                                      "100000000000000000000001/2/3",
                                      "-",
                                      "/2",
                                      "?",
                                      "~inf",
                                      "~nan",
                                      "~nanx",
                                      "~0x1p+99999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (number_status(number_parse(&memory, bad[i], strlen(bad[i]))) != FPA_INVALID)
            fail_msg("\"%s\" was read as a number", bad[i]);
    }
    char *digits = malloc(1000001);
    memset(digits, '7', 1000000);
    digits[1000000] = '\0';
    assert_int_equal(number_status(number_parse(&memory, digits, 1000000)), FPA_UNSUPPORTED);
    assert_int_equal(number_status(number_parse(&memory, digits, 40000)), FPA_UNSUPPORTED);
    assert_int_equal(number_status(number_parse(&memory, digits, 39000)), FPA_OK);
    free(digits);
}

#define CLAIM(name) cmocka_unit_test_teardown(name, free_memory)

int main(void)
{
    printf("random seed %" PRIu64 "\n", random_state);
    const struct CMUnitTest tests[] = {
        CLAIM(ratios_are_kept_in_lowest_terms_with_a_positive_denominator),
        CLAIM(arithmetic_agrees_with_the_slow_one),
        CLAIM(numbers_of_any_size_are_in_lowest_terms),
        CLAIM(arithmetic_obeys_the_field_axioms),
        CLAIM(numbers_that_round_to_one_double_are_told_apart),
        CLAIM(powers_are_repeated_products),
        CLAIM(what_leaves_64_bits_stays_exact_and_comes_back),
        CLAIM(doubles_are_exact_dyadic_numbers),
        CLAIM(the_value_is_the_nearest_double),
        CLAIM(small_products_are_rounded_once),
        CLAIM(roots_of_squares_are_rational),
        CLAIM(a_number_of_too_many_bits_is_refused_and_stays_so),
        CLAIM(a_copy_outlives_the_memory_of_its_number),
        CLAIM(every_number_is_read_back_from_its_text),
        CLAIM(texts_are_the_ones_documented),
        CLAIM(any_other_spelling_is_refused),
    };
    return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}

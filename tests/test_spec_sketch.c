/* test_spec_sketch: sketches and random features of specs against their formulas in the time domain, and what is drawn
 * from seeds. How far estimates lie off: tests/test_sketch_statistics.c. */
#include "gen/spec/spec.h"
#include "gen/gen.h"
#include "gen/spec/steady.h"
#include "claims.h"
#include "lift_features.h"
#include "random_head.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 6, MOST_SIZE = 33, MOST_DEGREE = 4, HEADS = 2 };

static void load_good(const char *text, fpa_head_list *list)
{
    fpa_error error = {0};
    if (spec_load_text("mine.lua", NULL, text, strlen(text), list, &error) != FPA_OK)
        fail_msg("%s: %s\n%s", error.where, error.message, text);
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double kernel_of(const fpa_head *head, int kv_head, const double *q, const double *k)
{
    const lift_token query = {.side = FPA_QUERY, .kv_head = kv_head, .x = q},
                     key = {.side = FPA_KEY, .kv_head = kv_head, .x = k};
    return lift_kernel(head, &query, &key);
}

static void check_near(double value, double expected, const char *what)
{
    if (!(fabs(value - expected) <= 1e-12 * (1 + fabs(expected))))
        fail_msg("%s: %.17g, but the formula gives %.17g", what, value, expected);
}

/* ---- sketches in the time domain ---- */

/* A sketch of degree p and its options. */
typedef struct sketch {
    int degree, size, columns; /* with the constant's */
    double constant, gamma;
    int index[HEADS][MOST_DEGREE][WIDTH + 1], sign[HEADS][MOST_DEGREE][WIDTH + 1];
} sketch;

static sketch random_sketch(random_source *random)
{
    sketch s = {.degree = random_between(random, 1, MOST_DEGREE),
                .size = random_between(random, 1, MOST_SIZE)};
    s.constant = random_chance(random, 0.5) ? random_between(random, 1, 8) / 4.0 : 0;
    s.gamma = random_between(random, 1, 8) / 4.0;
    s.columns = s.constant > 0 ? WIDTH + 1 : WIDTH;
    for (int h = 0; h < HEADS; h++)
        for (int l = 0; l < s.degree; l++)
            for (int j = 0; j < s.columns; j++) {
                s.index[h][l][j] = random_between(random, 0, s.size - 1);
                s.sign[h][l][j] = random_chance(random, 0.5) ? 1 : -1;
            }
    return s;
}

static void print_array(FILE *out, const sketch *s, const int array[HEADS][MOST_DEGREE][WIDTH + 1])
{
    for (int h = 0; h < HEADS; h++) {
        fputs(h ? ", { " : "{ { ", out);
        for (int l = 0; l < s->degree; l++) {
            fputs(l ? ", { " : "{ ", out);
            for (int j = 0; j < s->columns; j++)
                fprintf(out, j ? ", %d" : "%d", array[h][l][j]);
            fputs(" }", out);
        }
        fputs(" }", out);
    }
    fputs(" }", out);
}

static void load_sketch(const sketch *s, const char *family, fpa_head_list *list)
{
    char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    fprintf(
        out,
        "return head { name = 'a', d = %d, terms = %s { d = %d, size = %d, heads = %d, constant = %.17g,\n"
        "gamma = %.17g, index_hash = ",
        WIDTH, family, WIDTH, s->size, HEADS, s->constant, s->gamma);
    print_array(out, s, s->index);
    fputs(",\nbit_hash = ", out);
    print_array(out, s, s->sign);
    if (strcmp(family, "tensorsketch") == 0)
        fprintf(out, ", degree = %d", s->degree);
    fputs(" } }", out);
    assert_int_equal(fclose(out), 0);
    load_good(text, list);
}

/* phi(x): count sketches of y = sqrt(g) x, sqrt(c), one convolved around with the other. */
static void convolve(const sketch *s, int h, const double *x, double phi[MOST_SIZE])
{
    memset(phi, 0, MOST_SIZE * sizeof *phi);
    phi[0] = 1;
    for (int l = 0; l < s->degree; l++) {
        double next[MOST_SIZE] = {0};
        for (int j = 0; j < s->columns; j++) {
            const double y = j < WIDTH ? sqrt(s->gamma) * x[j] : sqrt(s->constant);
            for (int n = 0; n < s->size; n++)
                next[(n + s->index[h][l][j]) % s->size] += s->sign[h][l][j] * y * phi[n];
        }
        memcpy(phi, next, sizeof next);
    }
}

static void check_sketch(const sketch *s, const fpa_head *head, random_source *random)
{
    for (int h = 0; h < HEADS; h++) {
        double q[WIDTH], k[WIDTH], phi_q[MOST_SIZE], phi_k[MOST_SIZE];
        char what[96];
        for (int i = 0; i < WIDTH; i++) {
            q[i] = random_normal(random);
            k[i] = random_normal(random);
        }
        convolve(s, h, q, phi_q);
        convolve(s, h, k, phi_k);
        snprintf(what, sizeof what, "degree %d, size %d, c %g, g %g", s->degree, s->size, s->constant,
                 s->gamma);
        check_near(kernel_of(head, h, q, k), dot(phi_q, phi_k, s->size), what);
    }
}

static void half_the_spectrum_is_the_convolution_of_count_sketches(void **state)
{
    random_source random = {20261123};
    for (int i = 0; i < 200; i++) {
        sketch s = random_sketch(&random);
        fpa_head_list list;
        load_sketch(&s, "tensorsketch", &list);
        assert_int_equal(list.heads[0]->d, s.size);
        check_sketch(&s, list.heads[0], &random);
        head_list_free(&list);
        s.degree = 1;
        load_sketch(&s, "countsketch", &list);
        check_sketch(&s, list.heads[0], &random);
        head_list_free(&list);
    }
}

/* ---- given matrices ---- */

static const double some_q[WIDTH] = {0.5, -1.25, 0.75, 2, -0.3, 0.1},
                    some_k[WIDTH] = {1.5, 0.4, -0.6, 0.2, 0.9, -1};

static void features_of_given_rows_have_their_formulas(void **state)
{
    static const double w[3][2] = {{0.5, -1}, {2, 0.25}, {-0.75, 1}}, u[3][2] = {{1, 1}, {-1, 2}, {0.5, 0}};
    static const char text[] =
        "local w, u = { { 0.5, -1 }, { 2, 0.25 }, { -0.75, 1 } }, { { 1, 1 }, { -1, 2 }, { 0.5, 0 } }\n"
        "return { head { name = 'favor', d = 2, terms = favor { d = 2, rows = w, gamma = 0.5, shift = 0.25 } "
        "},\n"
        "  head { name = 'poly', d = 2, terms = polysketch { w1 = w, w2 = u } },\n"
        "  head { name = 'peer', d = 2, terms = polysketch { w1 = w, w2 = u, gain = ratio(1, 3) } } }";
    fpa_head_list list;
    double favor = 0, m = 0;
    load_good(text, &list);
    for (int r = 0; r < 3; r++) {
        const double wq = dot(w[r], some_q, 2), wk = dot(w[r], some_k, 2);
        favor += exp(sqrt(0.5) * wq - 0.25 * dot(some_q, some_q, 2) - 0.25) *
                 exp(sqrt(0.5) * wk - 0.25 * dot(some_k, some_k, 2) - 0.25) / 3;
        m += wq * dot(u[r], some_q, 2) * wk * dot(u[r], some_k, 2);
    }
    check_near(kernel_of(list.heads[0], 0, some_q, some_k), favor, "favor");
    check_near(kernel_of(list.heads[1], 0, some_q, some_k), m * m / 9, "polysketch");
    check_near(kernel_of(list.heads[2], 0, some_q, some_k), m * m / 81, "polysketch with the gain 1/r");
    head_list_free(&list);
}

/* ---- what is drawn ---- */

/* Bits that no version and no machine may change: a seed is the same sketch for ever. The first six rows are also those
 * of splitmix64 and of polynomials over 2^31 - 1, evaluated elsewhere. */
static void seeds_give_the_same_numbers_for_ever(void **state)
{
    static const char text[] =
        "local index, sign = hashes { d = 8, size = 100, count = 2, seed = 7 }\n"
        "local fours = hashes { d = 8, size = 100, seed = 7, independence = 4 }\n"
        "local drawn = signs { rows = 1, d = 8, seed = 7 }\n"
        "return { head { name = 'a', d = 8, terms = term { dense {\n"
        "           index[1], index[2], sign[1], sign[2], fours[1], drawn[1] } } },\n"
        "  head { name = 'b', d = 2, terms = term { dense(gaussian { rows = 1, d = 2, seed = 7 }) } },\n"
        "  head { name = 'c', d = 2, terms = term { dense(gaussian { rows = 3, d = 2, seed = 7, orthogonal = "
        "true }) } "
        "} }";
    static const double whole[6][8] = {{87, 97, 7, 70, 80, 90, 53, 63},  {32, 56, 33, 57, 34, 58, 35, 59},
                                       {-1, 1, -1, -1, 1, -1, -1, 1},    {-1, -1, 1, 1, -1, 1, 1, -1},
                                       {72, 54, 29, 10, 69, 19, 26, 62}, {1, 1, -1, -1, 1, 1, 1, 1}};
    static const double normal[2] = {-0xaaf928dcefd99p-56, 0x70308b76aa859p-51};
    static const double orthogonal[3][2] = {{-0xc296d483aec3p-52, 0x1febe6ce48664fp-53},
                                            {-0x1df9a8418ba085p-52, -0xb6b9994012863p-55},
                                            {-0x1905d810b6a781p-53, 0xd42fbdbfe73ffp-52}};
    fpa_head_list list;
    load_good(text, &list);
    assert_memory_equal(list.heads[0]->matrices[0].data, whole, sizeof whole);
    assert_memory_equal(list.heads[1]->matrices[0].data, normal, sizeof normal);
    assert_memory_equal(list.heads[2]->matrices[0].data, orthogonal, sizeof orthogonal);
    head_list_free(&list);
}

/* Counts over seeds of what independence demands, in the spec language itself: 4000 draws, five deviations. */
static void hashes_are_as_independent_as_they_are_called(void **state)
{
    static const char text[] =
        "local draws, size, d = 4000, 4, 5\n"
        "for _, independence in ipairs { 2, 4 } do\n"
        "  local index, sign = hashes { d = d, size = size, count = draws, seed = 11, independence = "
        "independence }\n"
        "  local function near(count, share, what)\n"
        "    local off = count - draws * share\n"
        "    assert(off * off <= 25 * draws * share * (1 - share), what .. ' of ' .. independence .. ': ' .. "
        "count)\n"
        "  end\n"
        "  local function count(test)\n"
        "    local n = 0\n"
        "    for i = 1, draws do if test(index[i], sign[i]) then n = n + 1 end end\n"
        "    return n\n"
        "  end\n"
        "  for a = 1, d do\n"
        "    near(count(function(_, s) return s[a] == 1 end), 1 / 2, 'a sign')\n"
        "    for v = 0, size - 1 do\n"
        "      near(count(function(h) return h[a] == v end), 1 / size, 'an index')\n"
        "      for b = a + 1, d do\n"
        "        near(count(function(h) return h[a] == v and h[b] == (v + 1) % size end), 1 / size^2, 'a "
        "pair')\n"
        "        near(count(function(h, s) return h[a] == v and s[b] == 1 end), 1 / size / 2, 'an index and "
        "a sign')\n"
        "      end\n"
        "    end\n"
        "  end\n"
        "  near(count(function(_, s) return s[1] * s[2] * s[3] * s[4] == 1 end), 1 / 2, 'four signs')\n"
        "  near(count(function(_, s) return s[1] * s[2] * s[3] == 1 end), 1 / 2, 'three signs')\n"
        "  if independence == 4 then\n"
        "    near(count(function(h) return (h[1] + h[2] + h[3] + h[4]) % 2 == 0 end), 1 / 2, 'four "
        "indices')\n"
        "    near(count(function(h) return h[2] - h[1] == h[4] - h[3] end), 44 / 256, 'two differences')\n"
        "  end\n"
        "end\n"
        "return head { name = 'a', d = 2, terms = linear {} }";
    fpa_head_list list;
    load_good(text, &list);
    head_list_free(&list);
}

static void gaussian_rows_are_normal_and_blocks_stand_at_right_angles(void **state)
{
    enum { ROWS = 1000, D = 20 };
    fpa_head_list list;
    for (int orthogonal = 0; orthogonal < 2; orthogonal++) {
        char text[256];
        double sums[4] = {0};
        snprintf(
            text, sizeof text,
            "return head { name = 'a', d = %d, terms = term { dense(gaussian { rows = %d, d = %d, seed = 3,\n"
            "orthogonal = %s }) } }",
            D, ROWS, D, orthogonal ? "true" : "false");
        load_good(text, &list);
        const double *w = list.heads[0]->matrices[0].data;
        for (int i = 0; i < ROWS * D; i++)
            for (int power = 0; power < 4; power++)
                sums[power] += pow(w[i], power + 1) / (ROWS * D);
        /* moments 0, 1, 0, 3, with deviations of sqrt(1, 2, 15, 96) / sqrt(20000) */
        assert_true(fabs(sums[0]) < 0.035 && fabs(sums[1] - 1) < 0.05 && fabs(sums[2]) < 0.14 &&
                    fabs(sums[3] - 3) < 0.35);
        for (int r = 0; r < ROWS; r++)
            for (int other = r / D * D; orthogonal && other < r; other++)
                assert_true(fabs(dot(w + r * D, w + other * D, D)) < 1e-12);
        head_list_free(&list);
    }
}

static void steady_functions_are_those_of_the_library(void **state)
{
    for (int denominator = 1; denominator < 300; denominator++)
        for (int numerator = -denominator; numerator < 2 * denominator; numerator++) {
            double c, s;
            const long double angle = 6.283185307179586476925286766559L * numerator / denominator;
            steady_turn(numerator, denominator, &c, &s);
            assert_true(fabsl(c - cosl(angle)) < 4e-16L && fabsl(s - sinl(angle)) < 4e-16L);
            assert_true(fabs(c * c + s * s - 1) < 5e-16);
        }
    for (double x = 1e-300; x < 1e300; x *= 1.37)
        assert_true(fabs(steady_log(x) - log(x)) <= 4e-16 * fabs(log(x)) + 1e-17);
    for (double x = 0.5; x < 2; x += 0.001)
        assert_true(fabs(steady_log(x) - log(x)) <= 4e-16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_the_spectrum_is_the_convolution_of_count_sketches),
        cmocka_unit_test(features_of_given_rows_have_their_formulas),
        cmocka_unit_test(seeds_give_the_same_numbers_for_ever),
        cmocka_unit_test(hashes_are_as_independent_as_they_are_called),
        cmocka_unit_test(gaussian_rows_are_normal_and_blocks_stand_at_right_angles),
        cmocka_unit_test(steady_functions_are_those_of_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

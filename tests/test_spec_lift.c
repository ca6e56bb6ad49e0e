/* test_spec_lift: what coordinates {...}, maps, positions and masks of a spec become, and what is said of mistakes. */
#include "gen/spec/spec.h"
#include "gen/gen.h"
#include "claims.h"
#include "lift_features.h"
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void load_good(const char *text, fpa_head_list *list)
{
    fpa_error error = {0};
    if (spec_load_text("mine.lua", NULL, text, strlen(text), list, &error) != FPA_OK)
        fail_msg("%s: %s\n%s", error.where, error.message, text);
}

/* ---- the head's text, from its matrices on ---- */

#define HEAD4(terms) "return head { name = 'a', d = 4, terms = " terms " }"
#define PLAIN "inner 0x1p+0 0x0p+0 0x0p+0\ngain 0x1p+0 0x1p+0\nposition 0 0 0\n"
#define MAPPED(rows, map) "part real " #rows " factors 1\nmap " map "\n" PLAIN

static const struct {
    const char *spec, *text;
} lowered[] = {
    {HEAD4("linear { map = elu_plus_one }"),
     "matrices 0\nlift width 4 positions 0 key_mask 0 parts 1\n" MAPPED(
         4, "elu_plus_one elu_plus_one") "factor input 1-4\nterms 1\nterm 1 branches 1\nbranch "
                                         "coordinates input 1-4\nend\n"},
    {HEAD4("power { degree = 2, map_q = exp, map_k = identity }"),
     "matrices 0\nlift width 4 positions 0 key_mask 0 parts 1\n" MAPPED(
         4, "exp identity") "factor input 1-4\nterms 1\nterm 1 branches 2\nbranch coordinates input "
                            "1-4\nbranch coordinates input "
                            "1-4\nend\n"},
    /* equal ones written twice, and what is not mapped, behind them */
    {HEAD4("{ term { select { 3, 1 }:map(relu), diagonal { [2] = sqrt2, [4] = 1 } },\n"
           "  term { coordinates { select { 3, 1 }, map = relu }, select { 4 }, identity():map { k = "
           "silu } } }"),
     "matrices 0\nlift width 4 positions 0 key_mask 0 parts 3\n" MAPPED(
         2, "relu relu") "factor input 3,1\n" MAPPED(4,
                                                     "identity silu") "factor input 1-4\n" MAPPED(2,
                                                                                                  "identi"
                                                                                                  "ty "
                                                                                                  "identi"
                                                                                                  "ty") "fac"
                                                                                                        "tor"
                                                                                                        " in"
                                                                                                        "put"
                                                                                                        " 2,"
                                                                                                        "4\n"
                                                                                                        "ter"
                                                                                                        "ms "
                                                                                                        "2\n"
                                                                                                        "ter"
                                                                                                        "m "
                                                                                                        "1 "
                                                                                                        "bra"
                                                                                                        "nch"
                                                                                                        "es "
                                                                                                        "2\n"
                                                                                                        "bra"
                                                                                                        "nch"
                                                                                                        " co"
                                                                                                        "ord"
                                                                                                        "ina"
                                                                                                        "tes"
                                                                                                        " in"
                                                                                                        "put"
                                                                                                        " 1-"
                                                                                                        "2\n"
                                                                                                        "bra"
                                                                                                        "nch"
                                                                                                        " di"
                                                                                                        "ago"
                                                                                                        "nal"
                                                                                                        " in"
                                                                                                        "put"
                                                                                                        " 7-"
                                                                                                        "8 "
                                                                                                        "gra"
                                                                                                        "m "
                                                                                                        "2*"
                                                                                                        "1,"
                                                                                                        "1*"
                                                                                                        "1\n"
                                                                                                        "ter"
                                                                                                        "m "
                                                                                                        "1 "
                                                                                                        "bra"
                                                                                                        "nch"
                                                                                                        "es "
                                                                                                        "3\n"
                                                                                                        "bra"
                                                                                                        "nch"
                                                                                                        " co"
                                                                                                        "ord"
                                                                                                        "ina"
                                                                                                        "tes"
                                                                                                        " in"
                                                                                                        "put"
                                                                                                        " 1-"
                                                                                                        "2\n"
                                                                                                        "bra"
                                                                                                        "nch"
                                                                                                        " se"
                                                                                                        "lec"
                                                                                                        "t "
                                                                                                        "inp"
                                                                                                        "ut "
                                                                                                        "8\n"
                                                                                                        "bra"
                                                                                                        "nch"
                                                                                                        " co"
                                                                                                        "ord"
                                                                                                        "ina"
                                                                                                        "tes"
                                                                                                        " in"
                                                                                                        "put"
                                                                                                        " "
                                                                                                        "3-"
                                                                                                        "6\n"
                                                                                                        "end"
                                                                                                        "\n"},
    /* a constant term needs rows that a mask can take away */
    {"return head { name = 'a', d = 2, key_mask = true, terms = { term {}, linear {}, term {} } }",
     "matrices 0\nlift width 2 positions 0 key_mask 1 parts 2\n" MAPPED(
         1, "one one") "factor input 1\n" MAPPED(2, "identity identity") "factor input 1-2\nterms "
                                                                         "3\nterm 1 branches 1\nbranch "
                                                                         "coordinates input 1\nterm 1 "
                                                                         "branches 1\nbranch coordinates "
                                                                         "input 2-3\nterm 1 branches "
                                                                         "1\nbranch coordinates "
                                                                         "input 1\nend\n"},
    {"return head { name = 'a', d = 2, terms = { term {}, linear { map = one } } }",
     "matrices 0\nlift width 2 positions 0 key_mask 0 parts 1\n" MAPPED(
         2, "one one") "factor input 1-2\nterms 2\nterm 1 branches 0\nterm 1 branches 1\nbranch "
                       "coordinates input 1-2\nend\n"},
    /* matrices are the lift's, also those of plain branches; a diagonal's signs are kept under a map */
    {"return head { name = 'a', d = 2, terms = term { dense { { 1, 2 } }, trainable { name = 'w', rows = "
     "1 },\n"
     "  diagonal { -2, sqrt2 }:map(relu), diagonal { 1, 1 }:map(relu), trainable { name = 'g', diagonal "
     "= true },\n"
     "  trainable { name = 'u', rows = 1, bias = true } } }",
     "matrices 5\nconstant 1 2\n0x1p+0 0x1p+1\ntrainable w 1 2 per_head\nconstant 2 2\n-0x1p+1 "
     "0x0p+0\n0x0p+0 "
     "0x16a09e667f3bcdp-52\ntrainable_diagonal g 2 2 per_head\ntrainable u 1 3 per_head\n"
     "lift width 2 positions 0 key_mask 0 parts 6\n" MAPPED(
         1,
         "identity identity") "factor matrix "
                              "1\n" MAPPED(
                                  1,
                                  "iden"
                                  "tity"
                                  " ide"
                                  "ntit"
                                  "y") "factor matrix 2\n" MAPPED(2,
                                                                  "relu relu") "factor matrix "
                                                                               "3\n" MAPPED(
                                                                                   2,
                                                                                   "relu "
                                                                                   "relu") "f"
                                                                                           "a"
                                                                                           "c"
                                                                                           "t"
                                                                                           "o"
                                                                                           "r"
                                                                                           " "
                                                                                           "i"
                                                                                           "n"
                                                                                           "p"
                                                                                           "u"
                                                                                           "t"
                                                                                           " "
                                                                                           "1"
                                                                                           "-"
                                                                                           "2"
                                                                                           "\n" MAPPED(
                                                                                               2,
                                                                                               "identi"
                                                                                               "ty "
                                                                                               "identi"
                                                                                               "ty") "fac"
                                                                                                     "t"
                                                                                                     "or "
                                                                                                     "mat"
                                                                                                     "r"
                                                                                                     "ix "
                                                                                                     "4"
                                                                                                     "\n" MAPPED(
                                                                                                         1,
                                                                                                         "ide"
                                                                                                         "nti"
                                                                                                         "ty "
                                                                                                         "ide"
                                                                                                         "nti"
                                                                                                         "ty") "factor matrix 5\nterms 1\nterm 1 branches 6\n"
                                                                                                               "branch coordinates input 1\nbranch coordinates input 2\nbranch coordinates input 3-4\nbranch coordinates "
                                                                                                               "input 5-6\nbranch coordinates input 7-8\nbranch coordinates input 9\nend\n"},
    /* every field */
    {"return head { name = 'a', d = 2, positions = 2, terms = term { coordinates { identity(), select { "
     "2, 1 },\n"
     "  map = softplus, map_k = exp, inner = 2, square = 0.5, shift = 3, gain = 4, gain_k = 5, angle = "
     "'a',\n"
     "  phase = dense { { 0.5 }, { 1 } }, amplitude = trainable { name = 'c', rows = 2, shared = true } "
     "} } }",
     "matrices 3\ntrainable a 2 2 per_head\nconstant 2 1\n0x1p-1\n0x1p+0\ntrainable c 2 1 shared\n"
     "lift width 2 positions 2 key_mask 0 parts 1\npart real 2 factors 2\nmap softplus exp\n"
     "inner 0x1p+1 0x1p-1 0x3p+0\ngain 0x1p+2 0x5p+0\nposition 1 2 3\nfactor input 1-2\nfactor input "
     "2,1\n"
     "terms 1\nterm 1 branches 1\nbranch coordinates input 1-4\nend\n"},
    /* a constant angle is what kernels have of it */
    {"return head { name = 'a', d = 1, positions = 1, terms = term { coordinates { identity(),\n"
     "  angle = dense { { 1/3 } }, phase = dense { { 1/3 } } } } }",
     "matrices 2\nconstant 1 1\n0xaaaaabp-25\nconstant 1 1\n0x15555555555555p-54\n"
     "lift width 1 positions 1 key_mask 0 parts 1\npart real 1 factors 1\nmap identity identity\n"
     "inner 0x1p+0 0x0p+0 0x0p+0\ngain 0x1p+0 0x1p+0\nposition 1 2 0\nfactor input 1\nterms 1\n"
     "term 1 branches 1\nbranch coordinates input 1-2\nend\n"},
    /* complex, a constant behind each row, a matrix a head */
    {"local re, im = dense { { 1, 2, 9 } }, dense { { 3, 4, 0 } }\n"
     "return head { name = 'a', d = 2, terms = term { coordinates { { re, im }, { im, re }, gain_q = 2 } "
     "} }",
     "matrices 2\nconstant 1 3\n0x1p+0 0x1p+1 0x9p+0\nconstant 1 3\n0x3p+0 0x1p+2 0x0p+0\n"
     "lift width 2 positions 0 key_mask 0 parts 1\npart complex 1 factors 2\nmap identity identity\n"
     "inner 0x1p+0 0x0p+0 0x0p+0\ngain 0x1p+1 0x1p+0\nposition 0 0 0\nfactor matrix 1 2\nfactor matrix 2 "
     "1\n"
     "terms 1\nterm 1 branches 1\nbranch coordinates input 1-2\nend\n"},
    {"return head { name = 'a', d = 2, terms = term { dense { heads = { { { 1, 0 } }, { { 0, 1 } } } } } "
     "}",
     "matrices 1\nconstant 1 2 heads 2\n0x1p+0 0x0p+0\n0x0p+0 0x1p+0\n"
     "lift width 2 positions 0 key_mask 0 parts 1\n" MAPPED(
         1, "identity identity") "factor matrix 1\nterms 1\nterm 1 branches 1\nbranch coordinates input "
                                 "1\nend\n"},
    /* no lift where nothing asks for one */
    {HEAD4("{ term { dense { { 1, 2, 3, 4 } } }, term {} }"),
     "matrices 1\nconstant 1 4\n0x1p+0 0x1p+1 0x3p+0 0x1p+2\nterms 2\nterm 1 branches 1\nbranch dense "
     "matrix 1 "
     "1\nterm 1 branches 0\nend\n"},
};

static void coordinates_become_parts(void **state)
{
    for (size_t i = 0; i < sizeof lowered / sizeof *lowered; i++) {
        fpa_head_list list;
        load_good(lowered[i].spec, &list);
        char *text = head_print(list.heads[0]);
        assert_non_null(text);
        assert_string_equal(strstr(text, "matrices "), lowered[i].text);
        free(text);
        head_list_free(&list);
    }
}

/* Terms in plenty share what is equal, and the spec's limits hold. */
static void copies_of_one_branch_are_one_part(void **state)
{
    fpa_head_list list;
    load_good("local sum, w = {}, gaussian { rows = 8, d = 16, seed = 1 }\n"
              "for i = 1, 500 do sum[i] = term { dense(w):map(relu), identity() } end\n"
              "return head { name = 'a', d = 16, terms = sum }",
              &list);
    assert_int_equal(list.heads[0]->lift->part_count, 2);
    assert_int_equal(list.heads[0]->matrix_count, 1);
    assert_int_equal(list.heads[0]->d, 24);
    assert_int_equal(head_width(list.heads[0]), 16);
    head_list_free(&list);
}

/* ---- formulas ---- */

enum { WIDTH = 5, POSITIONS = 2 };

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void check_near(double value, double expected, const char *what)
{
    if (!(fabs(value - expected) <= 1e-12 * (1 + fabs(expected))))
        fail_msg("%s: %.17g, but the formula gives %.17g", what, value, expected);
}

static const double q[WIDTH] = {0.5, -1.25, 0.75, 2, -0.3}, k[WIDTH] = {1.5, 0.4, -0.6, 0.2, 0.9};

static double constant_kernel(const fpa_head *head)
{
    const lift_token query = {.side = FPA_QUERY, .x = q}, key = {.side = FPA_KEY, .x = k};
    return lift_kernel(head, &query, &key);
}

static double mapped_dot(fpa_map of_q, fpa_map of_k)
{
    double sum = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += lift_map(of_q, q[i]) * lift_map(of_k, k[i]);
    return sum;
}

static void families_take_maps(void **state)
{
    const double s = mapped_dot(FPA_MAP_ELU_PLUS_ONE, FPA_MAP_ELU_PLUS_ONE),
                 u = mapped_dot(FPA_MAP_EXP, FPA_MAP_SILU);
    const double w = (q[0] + 2 * q[1]) * (k[0] + 2 * k[1]);
    const struct {
        const char *terms;
        double value;
    } cases[] = {
        {"linear { map = elu_plus_one }", s},
        {"linear { map_q = exp, map_k = silu, weight = 3 }", 3 * u},
        {"power { degree = 3, map = elu_plus_one }", s * s * s},
        {"taylor { map = elu_plus_one }", 1 + s + s * s / 2},
        {"inhomogeneous { degree = 2, constant = 3, map_q = exp, map_k = silu }", (3 + u) * (3 + u)},
        {"power { degree = 2, of = dense { { 1, 2, 0, 0, 0 } } }", w * w},
        {"taylor { of = dense { { 1, 2, 0, 0, 0 } } }", 1 + w + w * w / 2},
        {"{ linear { map = elu_plus_one }, linear { weight = 2 } }", s + 2 * dot(q, k, WIDTH)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        fpa_head_list list;
        snprintf(text, sizeof text, "return head { name = 'a', d = 5, terms = %s }", cases[i].terms);
        load_good(text, &list);
        check_near(constant_kernel(list.heads[0]), cases[i].value, cases[i].terms);
        head_list_free(&list);
    }
}

/* Attention with a Fourier encoding of positions, and 1 + cos; weights by name: a, b and c of two key/value heads, or shared. */
static void fourier_has_its_formula(void **state)
{
    static const struct {
        const char *terms;
        bool one, phase, amplitude;
    } cases[] = {
        {"fourier { map = softplus }", false, true, true},
        {"fourier { map = softplus, form = 'one_plus' }", true, true, false},
        {"fourier { map = softplus, form = 'one_plus', c = 'c', b = false }", true, false, true},
        {"fourier { map = softplus, c = false }", false, true, false},
    };
    const double place[2][POSITIONS] = {{3, -0.5}, {-1, 2}};
    double weights[3][2 * WIDTH];
    for (int w = 0; w < 3; w++)
        for (int i = 0; i < 2 * WIDTH; i++)
            weights[w][i] = sin(1 + w + 3 * i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        fpa_head_list list;
        double expected = 0;
        const double *given[3];
        snprintf(text, sizeof text, "return head { name = 'a', d = 5, positions = 2, terms = %s }",
                 cases[i].terms);
        load_good(text, &list);
        const fpa_head *head = list.heads[0];
        for (int m = 0; m < head->matrix_count; m++)
            given[m] = weights[*head->matrices[m].name - 'a'];
        assert_int_equal(head->matrix_count, 1 + cases[i].phase + cases[i].amplitude);
        for (int r = 0; r < WIDTH; r++) {
            double t = cases[i].phase ? weights[1][r] : 0;
            for (int n = 0; n < POSITIONS; n++)
                t += weights[0][r * POSITIONS + n] * (place[0][n] - place[1][n]);
            expected += lift_map(FPA_MAP_SOFTPLUS, q[r]) * lift_map(FPA_MAP_SOFTPLUS, k[r]) *
                        (cases[i].one + (cases[i].amplitude ? weights[2][r] : 1) * cos(t));
        }
        const lift_token query = {FPA_QUERY, 0, q, place[0], given}, key = {FPA_KEY, 0, k, place[1], given};
        check_near(lift_kernel(head, &query, &key), expected, cases[i].terms);
        head_list_free(&list);
    }
}

/* ---- notes ---- */

/* Of the digest they are no part. */
static void families_say_what_they_estimate(void **state)
{
    static const char text[] =
        "return { head { name = 'a', d = 16, terms = { tensorsketch { d = 16, degree = 2, size = 32, seed = "
        "1,\n"
        "                  constant = 1/2, gamma = 1/sqrt(16) }, scaled(2, favor { d = 16, size = 8, seed = "
        "1 }) } },\n"
        "         head { name = 'b', d = 4, terms = countsketch { d = 4, size = 8, seed = 1 } },\n"
        "         head { name = 'c', d = 4, terms = { linear {}, note = 'n' .. ratio(1, 2) .. sqrt2 .. "
        "tonumber(gram(4)) } },\n"
        "         head { name = 'd', d = 4, terms = linear {} } }";
    static const char *const parts[] = {
        "tensorsketch: an estimate of (0.5 + 0.25 q.k)^2",
        "at most (3^2 - 1)/32 = 0.25 times (0.5 + 0.25 |q|^2)^2 (0.5 + 0.25 |k|^2)^2",
        "exact symmetric features are 153, more than these 32"};
    char digests[2][DIGEST_TEXT];
    fpa_head_list list;
    fpa_error error;
    load_good(text, &list);
    assert_int_equal(list.heads[0]->note_count, 2);
    for (int i = 0; i < 3; i++)
        assert_non_null(strstr(list.heads[0]->notes[0], parts[i]));
    assert_non_null(strstr(list.heads[0]->notes[1],
                           "favor: an estimate of exp(q.k), relative variance (exp(|q + k|^2) - 1)/8"));
    assert_non_null(
        strstr(list.heads[1]->notes[0], "exact symmetric features are 4, no more: they would be better"));
    assert_string_equal(list.heads[2]->notes[0], "n1/2the root of 22.0");
    *list.heads[3]->name = 'c';
    for (int h = 0; h < 2; h++)
        assert_int_equal(head_digest(list.heads[2 + h], digests[h], &error), FPA_OK);
    assert_string_equal(digests[0], digests[1]);
    head_list_free(&list);
}

/* ---- files ---- */

/* A .npy file of version 1. */
static void write_npy(const char *path, const char *type, const char *shape, const void *numbers, size_t size)
{
    char header[118];
    const int length = snprintf(header, sizeof header,
                                "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    memset(header + length, ' ', sizeof header - (size_t)length);
    header[sizeof header - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, sizeof header, file);
    fwrite(numbers, 1, size, file);
    assert_int_equal(fclose(file), 0);
}

static void arrays_of_hashes_and_a_matrix_a_head_come_from_files(void **state)
{
    const int32_t index[2][1][2] = {{{0, 3}}, {{2, 1}}}, sign[2][1][2] = {{{1, -1}}, {{-1, 1}}};
    const float w[2][1][2] = {{{1, 2}}, {{3, 4}}};
    char folder[64], path[128];
    static const char text[] =
        "return { head { name = 'a', d = 2, terms = tensorsketch { d = 2, size = 4, heads = 2,\n"
        "                  index_hash = npy 'index.npy', bit_hash = npy 'sign.npy' } },\n"
        "         head { name = 'b', d = 2, terms = term { dense 'w.npy' } } }";
    fpa_head_list list;
    fpa_error error = {0};
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/index.npy", folder);
    write_npy(path, "<i4", "(2, 1, 2)", index, sizeof index);
    snprintf(path, sizeof path, "%s/sign.npy", folder);
    write_npy(path, "<i4", "(2, 1, 2)", sign, sizeof sign);
    snprintf(path, sizeof path, "%s/w.npy", folder);
    write_npy(path, "<f4", "(2, 1, 2)", w, sizeof w);
    if (spec_load_text("mine.lua", folder, text, strlen(text), &list, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
    for (int h = 0; h < 2; h++) {
        const lift_token query = {.side = FPA_QUERY, .kv_head = h, .x = q},
                         key = {.side = FPA_KEY, .kv_head = h, .x = k};
        check_near(lift_kernel(list.heads[0], &query, &key), dot(q, k, 2),
                   "a count sketch without collisions");
        check_near(lift_kernel(list.heads[1], &query, &key),
                   (w[h][0][0] * q[0] + w[h][0][1] * q[1]) * (w[h][0][0] * k[0] + w[h][0][1] * k[1]),
                   "a matrix a head");
    }
    head_list_free(&list);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinates_become_parts),
        cmocka_unit_test(copies_of_one_branch_are_one_part),
        cmocka_unit_test(families_take_maps),
        cmocka_unit_test(fourier_has_its_formula),
        cmocka_unit_test(families_say_what_they_estimate),
        cmocka_unit_test(arrays_of_hashes_and_a_matrix_a_head_come_from_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

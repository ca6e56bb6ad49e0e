/* test_sketch_statistics: sketches and random features over many seeds, by the library's reference on the heads that specs
 * make: right in the mean, and with no more variance than is promised. The judge finds wrong ones. */
#include "gen/spec/spec.h"
#include "runtime/reference/reference.h"
#include "claims.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Seeds are 1 .. SEEDS, BATCH of them a text. A verdict stands DEVIATIONS standard errors off. */
enum { WIDTH = 6, PAIRS = 4, SEEDS = 400, BATCH = 20, DEVIATIONS = 4 };

/* Alike, at an acute angle, at a right one, of unlike lengths. */
static const double queries[PAIRS][WIDTH] = {{0.5, -0.25, 0.75, 0.5, -0.5, 0.25},
                                             {0.75, -0.5, 0.25, 1, 0.5, -0.25},
                                             {1, 0.5, -0.5, 0.25, 0.5, 0.25},
                                             {2, -1, 0.5, 1, 0.25, -0.75}};
static const double keys[PAIRS][WIDTH] = {{0.5, -0.25, 0.75, 0.5, -0.5, 0.25},
                                          {0.5, 0.25, -0.5, 0.75, 1, 0.25},
                                          {0.5, -0.5, 0.5, 0.25, -0.25, 0.25},
                                          {0.25, 0.25, 0.125, 0.5, -0.25, 0.5}};

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---- kernels over seeds ---- */

/* k(q, k) of each pair: a sequence of one token, v = 1. */
static void evaluate(const fpa_head *head, double values[PAIRS])
{
    const double ones[PAIRS] = {1, 1, 1, 1};
    const fpa_problem problem = {.head = head,
                                 .batch = PAIRS,
                                 .length = 1,
                                 .query_heads = 1,
                                 .heads = 1,
                                 .q = queries[0],
                                 .k = keys[0],
                                 .v = ones};
    fpa_error error = {0};
    assert_ok(reference_forward(&problem, values, NULL, &error), &error);
}

/* spec: makes `terms`; where it has %d it gets the seed. Some seeds a text: the vocabulary takes longer to read than a head to make. */
static void draw(const char *spec, int first, double values[BATCH][PAIRS])
{
    char text[1024];
    fpa_head_list list = {0};
    fpa_error error = {0};
    const char *mark = strstr(spec, "%d");
    assert_non_null(mark);
    const int used =
        snprintf(text, sizeof text,
                 "local heads = {}\nfor seed = %d, %d do\nlocal terms\n%.*sseed%s\n"
                 "heads[#heads + 1] = head { name = 'h' .. seed, d = %d, dv = 1, terms = terms }\n"
                 "end\nreturn heads",
                 first, first + BATCH - 1, (int)(mark - spec), spec, mark + 2, WIDTH);
    assert_true(used < (int)sizeof text);
    if (spec_load_text("estimate", NULL, text, (size_t)used, &list, &error))
        fail_msg("%s: %s\n%s", error.where, error.message, text);
    assert_int_equal(list.count, BATCH);
    for (int i = 0; i < BATCH; i++)
        evaluate(list.heads[i], values[i]);
    head_list_free(&list);
}

typedef struct moments {
    double mean, mean_error, variance, variance_error; /* errors: standard ones, of these samples */
} moments;

static moments moments_of(double values[SEEDS][PAIRS], int pair)
{
    double mean = 0, square = 0, fourth = 0;
    for (int s = 0; s < SEEDS; s++)
        mean += values[s][pair] / SEEDS;
    for (int s = 0; s < SEEDS; s++) {
        const double off = values[s][pair] - mean;
        square += off * off / SEEDS;
        fourth += off * off * off * off / SEEDS;
    }
    const double variance = square * SEEDS / (SEEDS - 1);
    return (moments){mean, sqrt(variance / SEEDS), variance, sqrt(fmax(fourth - square * square, 0) / SEEDS)};
}

static void estimate(const char *spec, moments seen[PAIRS])
{
    static double values[SEEDS][PAIRS];
    for (int s = 0; s < SEEDS; s += BATCH)
        draw(spec, s + 1, &values[s]);
    for (int i = 0; i < PAIRS; i++)
        seen[i] = moments_of(values, i);
}

/* ---- what is promised ---- */

/* An estimate of (c + g q.k)^p or, p = 0, exp(g q.k - 2 shift). The bound of the variance is `share` times (c + g |q|^2)^p
 * (c + g |k|^2)^p, or with `features` (exp(g |q + k|^2) - 1) / features times the square. */
typedef struct promise {
    const char *spec;
    int degree;
    double constant, gamma, shift, share, features;
} promise;

static double exact(const promise *p, int pair)
{
    const double s = p->gamma * dot(queries[pair], keys[pair]);
    return p->degree ? pow(p->constant + s, p->degree) : exp(s - 2 * p->shift);
}

static double bound(const promise *p, int pair)
{
    const double *q = queries[pair], *k = keys[pair];
    const double qq = p->gamma * dot(q, q), kk = p->gamma * dot(k, k), qk = p->gamma * dot(q, k);
    if (p->degree)
        return p->share * pow((p->constant + qq) * (p->constant + kk), p->degree);
    return (exp(qq + kk + 2 * qk) - 1) / p->features * exact(p, pair) * exact(p, pair);
}

typedef struct verdict {
    int biased, too_wide; /* pairs that are; one of them, */
    int pair;
    moments seen[PAIRS]; /* and what was seen */
} verdict;

static verdict judge(const promise *p)
{
    verdict v = {0};
    estimate(p->spec, v.seen);
    for (int i = 0; i < PAIRS; i++) {
        const moments *seen = &v.seen[i];
        const bool biased = !(fabs(seen->mean - exact(p, i)) <= DEVIATIONS * seen->mean_error);
        const bool too_wide = !(seen->variance <= bound(p, i) + DEVIATIONS * seen->variance_error);
        v.biased += biased;
        v.too_wide += too_wide;
        v.pair = biased || too_wide ? i : v.pair;
        assert_true(seen->variance > 0); /* else it is no estimate, and nothing was tried */
    }
    return v;
}

static verdict keeps(const promise *p)
{
    const verdict v = judge(p);
    const moments *seen = &v.seen[v.pair];
    if (v.biased || v.too_wide)
        fail_msg("%s, pair %d: mean %g (error %g) of %g, variance %g (error %g) of at most %g", p->spec,
                 v.pair, seen->mean, seen->mean_error, exact(p, v.pair), seen->variance, seen->variance_error,
                 bound(p, v.pair));
    return v;
}

/* ---- estimates that keep their promises ---- */

static void tensorsketches_are_right_in_the_mean_and_within_their_bounds(void **state)
{
    const promise promises[] = {
        {"terms = tensorsketch { d = 6, degree = 1, size = 15, seed = %d }", 1, 0, 1, 0, 2.0 / 15, 0},
        {"terms = tensorsketch { d = 6, degree = 2, size = 32, seed = %d }", 2, 0, 1, 0, 8.0 / 32, 0},
        {"terms = tensorsketch { d = 6, degree = 3, size = 31, seed = %d, independence = 4 }", 3, 0, 1, 0,
         26.0 / 31, 0},
        {"terms = tensorsketch { d = 6, degree = 2, size = 32, seed = %d, constant = 0.5, gamma = 0.25 }", 2,
         0.5, 0.25, 0, 8.0 / 32, 0},
    };
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        keeps(&promises[i]);
}

static void count_sketches_are_right_in_the_mean_and_within_their_bounds(void **state)
{
    const promise promises[] = {
        {"terms = countsketch { d = 6, size = 16, seed = %d }", 1, 0, 1, 0, 2.0 / 16, 0},
        {"terms = countsketch { d = 6, size = 4, seed = %d, constant = 1, independence = 4 }", 1, 1, 1, 0,
         2.0 / 4, 0},
        {"terms = linear { of = coordinates { dense(gaussian { rows = 32, d = 6, seed = %d }),\n"
         "gain = sqrt(ratio(1, 32)) } }",
         1, 0, 1, 0, 3.0 / 32, 0},
    };
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        keeps(&promises[i]);
}

static void product_sketches_are_right_in_the_mean_and_within_their_bounds(void **state)
{
    const promise promises[] = {
        {"terms = product_sketch { d = 6, degree = 2, size = 32, seed = %d }", 2, 0, 1, 0, 9.0 / 32, 0},
        {"terms = product_sketch { d = 6, degree = 3, size = 20, seed = %d }", 3, 0, 1, 0, 27.0 / 20, 0},
        {"terms = product_sketch { d = 6, degree = 2, size = 32, seed = %d, constant = 0.5, gamma = 0.25 }",
         2, 0.5, 0.25, 0, 9.0 / 32, 0},
    };
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        keeps(&promises[i]);
}

static void favor_is_right_in_the_mean_and_within_its_bound(void **state)
{
    const promise orthogonal = {
        "terms = favor { d = 6, size = 24, seed = %d, gamma = 0.25, shift = 0.5 }", 0, 0, 0.25, 0.5, 0, 24};
    const promise independent = {
        "terms = favor { d = 6, size = 24, seed = %d, gamma = 0.25, shift = 0.5, orthogonal = false }",
        0,
        0,
        0.25,
        0.5,
        0,
        24};
    const verdict less = keeps(&orthogonal), more = keeps(&independent);
    double gain = 0;
    for (int i = 0; i < PAIRS; i++) {
        const double formula = bound(&independent, i);
        if (!(fabs(more.seen[i].variance - formula) <= DEVIATIONS * more.seen[i].variance_error))
            fail_msg("pair %d: variance %g (error %g), but the formula has %g", i, more.seen[i].variance,
                     more.seen[i].variance_error, formula);
        gain += (more.seen[i].variance - less.seen[i].variance) / formula / PAIRS;
    }
    assert_true(gain > 0); /* of right angles */
}

/* The square of an estimate is too large in the mean by the estimate's variance. */
static void polysketch_is_too_large_by_its_variance_at_most(void **state)
{
    const promise square = {NULL, 2, 0, 1, 0, 9.0 / 16, 0};
    moments seen[PAIRS];
    estimate("terms = polysketch { d = 6, rows = 16, seed = %d }", seen);
    for (int i = 0; i < PAIRS; i++) {
        const double least = exact(&square, i) * exact(&square, i), most = least + bound(&square, i),
                     slack = DEVIATIONS * seen[i].mean_error;
        if (!(seen[i].mean >= least - slack && seen[i].mean <= most + slack))
            fail_msg("pair %d: mean %g, but %g to %g", i, seen[i].mean, least, most);
    }
}

/* ---- wrong ones ---- */

static void a_hash_that_both_factors_have_is_biased(void **state)
{
    const promise p = {"local index, sign = hashes { d = 6, size = 32, count = 1, seed = %d }\n"
                       "terms = tensorsketch { d = 6, degree = 2, size = 32,\n"
                       "index_hash = { index[1], index[1] }, bit_hash = { sign[1], sign[1] } }",
                       2,
                       0,
                       1,
                       0,
                       8.0 / 32,
                       0};
    assert_true(judge(&p).biased >=
                PAIRS / 2); /* by (q.k)^2 less the sum of q_i^2 k_i^2, which may be little */
}

static void the_same_signs_in_both_factors_are_biased(void **state)
{
    const promise p = {"local same = dense(signs { rows = 32, d = 6, seed = %d })\n"
                       "terms = { term { coordinates { same, same, gain = sqrt(ratio(1, 32)) } } }",
                       2,
                       0,
                       1,
                       0,
                       9.0 / 32,
                       0};
    assert_int_equal(judge(&p).biased, PAIRS);
}

static void random_features_without_their_square_are_biased(void **state)
{
    const promise p = {"terms = { term { coordinates { dense(gaussian { rows = 24, d = 6, seed = %d }),\n"
                       "map = exp, inner = 1 / 2, gain = sqrt(ratio(1, 24)) } } }",
                       0,
                       0,
                       0.25,
                       0,
                       0,
                       24};
    assert_int_equal(judge(&p).biased, PAIRS);
}

static void fewer_features_than_were_promised_vary_too_much(void **state)
{
    const promise p = {
        "terms = tensorsketch { d = 6, degree = 2, size = 8, seed = %d }", 2, 0, 1, 0, 8.0 / 512, 0};
    const verdict v = judge(&p);
    assert_int_equal(v.biased, 0);
    assert_int_equal(v.too_wide, PAIRS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensorsketches_are_right_in_the_mean_and_within_their_bounds),
        cmocka_unit_test(count_sketches_are_right_in_the_mean_and_within_their_bounds),
        cmocka_unit_test(product_sketches_are_right_in_the_mean_and_within_their_bounds),
        cmocka_unit_test(favor_is_right_in_the_mean_and_within_its_bound),
        cmocka_unit_test(polysketch_is_too_large_by_its_variance_at_most),
        cmocka_unit_test(a_hash_that_both_factors_have_is_biased),
        cmocka_unit_test(the_same_signs_in_both_factors_are_biased),
        cmocka_unit_test(random_features_without_their_square_are_biased),
        cmocka_unit_test(fewer_features_than_were_promised_vary_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

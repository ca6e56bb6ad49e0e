/* test_reference_window: softmax over the newest keys and a kernel of the older ones, against the formula as it stands,
 * whose exponentials long double can hold. */
#include <math.h>
#include <string.h>

#include "head/lift.h"
#include "claims.h"
#include "reference_bench.h"

enum { SEED = 23 };

static bool is_masked(const bench *b, int64_t batch, int64_t j)
{
    return b->key_mask && b->key_mask[batch * LENGTH + j] == 0;
}

/* The weight of a key, e^(scale q.k) or (scale sum of map(q) map(k))^2. */
static long double weight_of(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq)
{
    const fpa_head *head = b->problem.head;
    const double *q = b->q + ((batch * LENGTH + t) * QUERY_HEADS + hq) * D;
    const double *k = b->k + ((batch * LENGTH + j) * HEADS + hq / (QUERY_HEADS / HEADS)) * D;
    long double raw = 0, mapped = 0;
    for (int c = 0; c < D; c++) {
        const double y = head->scale * q[c];
        raw += (long double)y * k[c];
        mapped += (head->lift ? fmax(y, 0) * fmax(k[c], 0) : (long double)y * k[c]);
    }
    if (is_masked(b, batch, j))
        return 0;
    return t - j < head->window ? expl(raw) : mapped * mapped;
}

/* Column c of one output; with c = DV the sum of weights. */
static long double sum_of(const bench *b, int64_t batch, int64_t t, int64_t hq, int c)
{
    long double sum = 0;
    for (int64_t j = 0; j <= t; j++) {
        const double *v = b->v + ((batch * LENGTH + j) * HEADS + hq / (QUERY_HEADS / HEADS)) * DV;
        sum += weight_of(b, batch, t, j, hq) * (c < DV ? v[c] : 1);
    }
    return sum;
}

static double expected(const bench *b, int64_t output, int c)
{
    const fpa_head *head = b->problem.head;
    const int64_t hq = output % QUERY_HEADS, t = output / QUERY_HEADS % LENGTH;
    const int64_t batch = output / QUERY_HEADS / LENGTH;
    const long double den = sum_of(b, batch, t, hq, DV), sum = sum_of(b, batch, t, hq, c);
    if (head->normalize == FPA_NORMALIZE_MAX)
        return (double)(sum / fmaxl(den, head->eps));
    return (double)(sum / (den + (head->normalize == FPA_NORMALIZE_SUM ? (long double)head->eps : 1)));
}

static void expect_exact(bench *b)
{
    bench_run(b);
    for (int64_t i = 0; i < b->outputs * DV; i++) {
        const double o = expected(b, i / DV, (int)(i % DV));
        if (!(fabs(o - b->o[i]) <= 1e-11 * (fabs(o) + b->magnitude[i])))
            fail_msg("window %d, output %lld: %.17g is not %.17g", b->problem.head->window, (long long)i,
                     b->o[i], o);
        assert_true(b->magnitude[i] >= fabs(b->o[i]) * (1 - 1e-12));
    }
}

static void compare(fpa_head *head, double scale)
{
    static const int windows[] = {1, 2, LENGTH - 1, LENGTH, 20};
    static const fpa_normalize kinds[] = {FPA_NORMALIZE_SUM, FPA_NORMALIZE_MAX, FPA_NORMALIZE_ONE_PLUS_SUM};
    head->scale = scale;
    head->eps = 0.5; /* large enough to be seen, scaled or not */
    for (int i = 0; i < 15; i++) {
        bench b;
        head->window = windows[i % 5];
        head->normalize = kinds[i / 5];
        assert_int_equal(head_validate(head, NULL), FPA_OK);
        bench_setup(&b, head, SEED, false);
        expect_exact(&b);
        bench_expect_plain(&b, 60);
        bench_free(&b);
    }
    head_free(head);
}

static void the_newest_keys_have_exponentials(void **state)
{
    compare(power_head(2), 0.75);
    compare(power_head(2), -0.75);
}

static void exponentials_do_not_overflow(void **state)
{
    compare(power_head(2), 60);
}

/* Of a lift the window takes q and k as given, and a masked key has no weight there either. */
static void masked_keys_are_in_no_window(void **state)
{
    static const char text[] = "fpac head 1\nname lifted\nd 5\ndv 3\nblock 0\nchunk 0\ncausal 1\nscale "
                               "0x1p+0\nnormalize sum\neps 0x1p-1\n"
                               "gate 0\ndtype f32\nstate_dtype f32\nwindow 2\nmatrices 0\nlift width 5 "
                               "positions 0 key_mask 1 parts 1\n"
                               "part real 5 factors 1\nmap relu relu\ninner 0x1p+0 0x0p+0 0x0p+0\ngain "
                               "0x1p+0 0x1p+0\nposition 0 0 0\n"
                               "factor input 1-5\nterms 1\nterm 1 branches 2\nbranch coordinates input 1-5\n"
                               "branch coordinates input 1-5\nend\n";
    fpa_error error = {0};
    fpa_head *head = NULL;
    assert_ok(head_parse(text, strlen(text), &head, &error), &error);
    compare(head, 1);
}

/* A query sees what a softmax would, as long as its window has all keys. */
static void a_window_of_all_keys_is_softmax(void **state)
{
    fpa_head *head = power_head(1), *softmax = power_head(2);
    bench a, b;
    head->window = softmax->window = LENGTH;
    head->normalize = softmax->normalize = FPA_NORMALIZE_SUM;
    bench_setup(&a, head, SEED, false);
    bench_setup(&b, softmax, SEED, false);
    bench_run(&a);
    bench_run(&b);
    assert_memory_equal(a.o, b.o, (size_t)(a.outputs * DV) * sizeof *a.o);
    bench_free(&a);
    bench_free(&b);
    head_free(head);
    head_free(softmax);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_keys_have_exponentials),
        cmocka_unit_test(exponentials_do_not_overflow),
        cmocka_unit_test(masked_keys_are_in_no_window),
        cmocka_unit_test(a_window_of_all_keys_is_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

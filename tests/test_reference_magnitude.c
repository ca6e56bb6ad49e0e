/* test_reference_magnitude: the magnitude bounds the result, and single precision stays within it. */
#include <math.h>
#include <stdlib.h>

#include "claims.h"
#include "random_head.h"
#include "reference_bench.h"

enum { SEED = 5, RANDOM_HEADS = 60 };

static const random_limits wide = {.d = 9,
                                   .dv = 6,
                                   .degree = 4,
                                   .terms = 4,
                                   .features = 500,
                                   .trainable = true,
                                   .dense = true,
                                   .gate = true,
                                   .noncausal = true};

static void the_magnitude_is_never_below_the_result(void **state)
{
    print_message("seeds %d..%d\n", SEED, SEED + RANDOM_HEADS - 1);
    for (int i = 0; i < RANDOM_HEADS; i++) {
        fpa_head *head = random_head(SEED + i, &wide);
        bench b;
        bench_setup(&b, head, SEED + i, false);
        bench_run(&b);
        for (int64_t n = 0; n < b.outputs * head->dv; n++)
            assert_true(b.magnitude[n] >= fabs(b.o[n]) * (1 - 1e-12));
        bench_free(&b);
        head_free(head);
    }
}

static void without_cancellation_the_magnitude_is_the_result(void **state)
{
    fpa_head *head = power_head(3);
    bench b;
    bench_setup(&b, head, SEED + 9, true);
    bench_run(&b);
    for (int64_t i = 0; i < b.outputs * DV; i++)
        assert_true(fabs(b.magnitude[i] - b.o[i]) <= 1e-12 * b.o[i]);
    bench_free(&b);
    head_free(head);
}

static void the_magnitude_of_a_quotient_counts_both_errors(void **state)
{
    fpa_head *head = power_head(2);
    bench b;
    head->normalize = FPA_NORMALIZE_SUM;
    bench_setup(&b, head, SEED + 10, true);
    bench_run(&b);
    for (int64_t i = 0; i < b.outputs * DV; i++)
        assert_true(fabs(b.magnitude[i] - 2 * b.o[i]) <= 1e-5 * b.o[i]);
    bench_free(&b);
    head_free(head);
}

static void plain_evaluations_agree_to_single_precision(void **state)
{
    for (int i = 0; i < RANDOM_HEADS; i++) {
        fpa_head *head = random_head(SEED + i, &wide);
        int columns = head->dv > 2 ? 2 : head->dv;
        bench b;
        float *scores, *features;
        bench_setup(&b, head, SEED + i, false);
        bench_run(&b);
        scores = calloc((size_t)b.outputs * (size_t)head->dv, sizeof *scores);
        features = calloc((size_t)b.outputs * (size_t)columns, sizeof *features);
        assert_true(scores && features);
        assert_int_equal(reference_plain(&b.problem, scores, NULL), FPA_OK);
        assert_int_equal(reference_plain_features(&b.problem, columns, features, NULL), FPA_OK);
        for (int64_t n = 0; n < b.outputs * head->dv; n++) {
            int64_t token = n / head->dv, c = n % head->dv;
            assert_true(fabs((double)scores[n] - b.o[n]) <= 1e-5 * b.magnitude[n] + 1e-30);
            if (c < columns)
                assert_true(fabs((double)features[token * columns + c] - b.o[n]) <=
                            1e-5 * b.magnitude[n] + 1e-30);
        }
        free(scores);
        free(features);
        bench_free(&b);
        head_free(head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_magnitude_is_never_below_the_result),
        cmocka_unit_test(without_cancellation_the_magnitude_is_the_result),
        cmocka_unit_test(the_magnitude_of_a_quotient_counts_both_errors),
        cmocka_unit_test(plain_evaluations_agree_to_single_precision),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_verify_rounded: modules whose products are rounded to bf16 or f16 are accepted, and their
 * mistakes are refused all the same. */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "claims.h"
#include "dear.h"
#include "runtime/reference/round.h"
#include "runtime/verify/bound.h"
#include "hand_module.h"
#include "random_head.h"
#include "reference_bench.h"
#include "rounded_module.h"

enum { SEED = 11, RANDOM_HEADS = 60, FIXED = 6 /* of make test: each pair of types */, ALL = 7 };

static const fpa_dtype narrow[] = {FPA_BF16, FPA_F16};

static fpa_head *square(int d, int dv, int block, int chunk, fpa_dtype dtype)
{
    fpa_head *head = tspow_head(d, dv, block);
    head->chunk = chunk;
    head->dtype = dtype;
    return head;
}

static void expect_accepted(const fpa_head *head, fpa_verdict *verdict)
{
    fpa_error error = {0};
    if (rounded_verify(head, ALL, ROUNDED_RIGHT, verdict, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
}

static void floats_round_as_the_storage_types_do(void **state)
{
    random_source random = {SEED};
    for (int i = 0; i < 1 << (dear_tests() ? 20 : 17); i++) {
        uint32_t bits = (uint32_t)random_bits(&random);
        float x;
        memcpy(&x, &bits, sizeof x);
        for (int type = 0; !isnan(x) && type < FPA_DTYPES; type++) {
            float rounded = round_float((fpa_dtype)type, x);
            if (rounded != (float)dtype_round((fpa_dtype)type, x) || signbit(rounded) != signbit(x))
                fail_msg("%a becomes %a", (double)x, (double)rounded);
        }
    }
    for (uint32_t half = 0; half < 1 << 16; half++) /* ties, and the ends of the range */
        for (int more = -1; more <= 1; more++) {
            float x = f16_to_float((uint16_t)half);
            x = nextafterf(x + 0x1p-25f, (float)more * INFINITY);
            if (!isnan(x))
                assert_true(round_f16(x) == (float)dtype_round(FPA_F16, x));
        }
}

static void the_bound_counts_the_roundings_of_each_form(void **state)
{
    fpa_head *head = square(8, 5, 4, 8, FPA_BF16);
    fpa_facts facts = rounded_facts(head, ALL);
    fpa_bound step, own, read, resumed;
    step = bound_of(head, &facts, FORM_RECURRENT, 100, 0);
    own = bound_of(head, &facts, FORM_PARALLEL, 100, 0);
    read = bound_of(head, &facts, FORM_CHUNKED, 100, 0);
    resumed = bound_of(head, &facts, FORM_PARALLEL, 100, 2);
    assert_true(step.tau < 2e-5 && step.rounding == 0x1p-8);
    assert_true(own.tau > 0x1p-8 && own.tau < 1.1 * 0x1p-8);
    assert_true(read.tau > 5 * 0x1p-8 && read.tau < 5.2 * 0x1p-8);
    assert_true(resumed.tau == read.tau);
    head->scale = 0.3; /* one rounding of q for each factor */
    assert_true(bound_of(head, &facts, FORM_PARALLEL, 100, 0).tau > 3 * 0x1p-8);
    facts.arithmetic = FPA_F32;
    assert_true(bound_of(head, &facts, FORM_PARALLEL, 100, 0).tau < 1.1 * 0x1p-8);
    assert_true(bound_of(head, &facts, FORM_PARALLEL, 100, 0).rounding == 0);
    head_free(head);
}

static double pairs_tau(int degree)
{
    fpa_head *head = power_head(degree);
    head->dtype = FPA_BF16;
    head->scale = 1;
    const fpa_facts facts = rounded_facts(head, ALL);
    const double tau = bound_of(head, &facts, FORM_PARALLEL, 100, 0).tau;
    head_free(head);
    return tau;
}

/* Rows of a score's dots may be products of the rows of a half of the branches, n - 2 products a side. */
static void the_bound_counts_products_of_halves(void **state)
{
    for (int degree = 1; degree <= 5; degree++) {
        const double roundings = pairs_tau(degree) / 0x1p-8, most = 1 + 2 * fmax(degree - 2, 0);
        assert_true(roundings > most && roundings < 1.2 * most);
    }
}

/* Such rows are rounded as features are, in every form (the wider a dot is, the more of it cancels, and the less a score that is
 * rounded once tells of them), and no coarser score passes beside them. */
static void products_of_halves_are_accepted(void **state)
{
    enum { WIDTH = 12 };
    static const struct {
        rounded_fault fault;
        bool right;
    } cases[] = {{ROUNDED_RIGHT, true}, {ROUNDED_HALVES, true}, {ROUNDED_SCORE, false}};

    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            fpa_head *head = bench_head(1);
            fpa_verdict verdict;
            fpa_error error = {0};
            head->d = WIDTH;
            head->dtype = narrow[i];
            for (int l = 0; l < 4; l++)
                bench_branch(head, 0, FPA_INPUT, 0, WIDTH);
            const fpa_status status = rounded_verify(head, ALL, cases[k].fault, &verdict, &error);
            print_message("%s: %s\n", dtype_name(head->dtype), status ? error.message : verdict.text);
            assert_true((status == FPA_OK) == cases[k].right);
            assert_true(!cases[k].right || verdict.form[FORM_PARALLEL].rms_ratio < 1);
            head_free(head);
        }
}

/* make test: of two types, or of the two by two of a kind, one by turns. */
static bool is_turn(int number)
{
    return dear_tests() || number % 2 == 0;
}

static void correct_modules_are_accepted(void **state)
{
    for (int i = 0; i < 2; i++)
        for (int kind = 0; kind < FPA_NORMALIZE_KINDS; kind++)
            for (int gate = 0; gate < 2; gate++) {
                if (!is_turn(i + kind + gate))
                    continue;
                fpa_head *head = square(16, 5, 8, 24, narrow[i]);
                fpa_verdict verdict;
                head->normalize = (fpa_normalize)kind;
                head->gate = gate;
                head->scale = gate ? 0.3 : 0.25;
                expect_accepted(head, &verdict);
                print_message("%s, %s%s: %s\n", dtype_name(head->dtype), normalize_name(head->normalize),
                              gate ? ", gate" : "", verdict.text);
                for (int form = 0; form < FORMS; form++)
                    assert_true(verdict.form[form].checked && verdict.form[form].worst > 0);
                head_free(head);
            }
}

static void correct_modules_of_random_heads_are_accepted(void **state)
{
    random_limits limits = random_all;
    double worst = 0, ratio = 0;
    limits.features = 80;
    const int heads = dear_tests() ? RANDOM_HEADS : FIXED;
    print_message("seeds %d..%d\n", SEED, SEED + heads - 1);
    for (int i = 0; i < heads; i++) {
        fpa_head *head = random_head(SEED + i, &limits);
        fpa_verdict verdict;
        fpa_error error = {0};
        head->dtype = narrow[i % 2];
        head->state_dtype = i % 3 ? FPA_F32 : head->dtype;
        if (rounded_verify(head, ALL, ROUNDED_RIGHT, &verdict, &error) != FPA_OK)
            fail_msg("seed %d: %s: %s", SEED + i, error.where, error.message);
        for (int form = 0; form < FORMS; form++) {
            worst = fmax(worst, verdict.form[form].worst);
            ratio = fmax(ratio, verdict.form[form].rms_ratio);
        }
        head_free(head);
    }
    print_message("worst %.2g of the bound, RMS %.2g of plain\n", worst, ratio);
}

/* With forms that the fault reaches only, so that another cannot give it away. */
static void expect_refused(const fpa_head *head, int forms, rounded_fault kind)
{
    fpa_verdict verdict;
    fpa_error error = {0};
    if (rounded_verify(head, forms, kind, &verdict, &error) != FPA_REFUSED)
        fail_msg("%s, D = %.0f: fault %d was accepted: %s%s", dtype_name(head->dtype), head_features(head),
                 (int)kind, verdict.text, error.message);
    print_message("%s, D = %4.0f, fault %d: %s\n", dtype_name(head->dtype), head_features(head), (int)kind,
                  error.message);
}

static void every_fault_is_refused(void **state)
{
    for (int i = 0; i < 2; i++)
        for (int kind = ROUNDED_WEIGHT; kind <= ROUNDED_DECAY; kind++)
            for (int normalized = 0; normalized < 2; normalized++) {
                if (!is_turn(i + kind + normalized))
                    continue;
                fpa_head *head = square(16, 8, 8, 24, narrow[i]);
                head->gate = kind == ROUNDED_DECAY;
                head->normalize = normalized ? FPA_NORMALIZE_SUM : FPA_NORMALIZE_NONE;
                expect_refused(head, kind == ROUNDED_SCORE ? 1 << FORM_PARALLEL : 1 << FORM_CHUNKED,
                               (rounded_fault)kind);
                head_free(head);
            }
}

/* The more features, the less of a result is one of them: chunked, its half goes under in the roundings
 * of the others, a tile's does not. Recurrent, in float, one is enough. */
static void half_a_tile_of_2304_features_is_missed(void **state)
{
    for (int i = 0; i < 4; i++) {
        if (!is_turn(i % 2 + i / 2))
            continue;
        fpa_head *head = square(64, 8, 8, 64, narrow[i % 2]);
        head->normalize = i < 2 ? FPA_NORMALIZE_NONE : FPA_NORMALIZE_SUM;
        assert_true(head_features(head) == 2304);
        expect_refused(head, 1 << FORM_CHUNKED, ROUNDED_TILE);
        expect_refused(head, 1 << FORM_RECURRENT, ROUNDED_WEIGHT);
        head_free(head);
    }
}

/* make test: of bf16, whose roundings are the larger ones. */
static void a_correct_module_of_2304_features_is_accepted(void **state)
{
    for (int i = 0; i < (dear_tests() ? 2 : 1); i++) {
        fpa_head *head = square(64, 8, 8, 64, narrow[i]);
        fpa_verdict verdict;
        expect_accepted(head, &verdict);
        print_message("%s\n", verdict.text);
        head_free(head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_round_as_the_storage_types_do),
        cmocka_unit_test(the_bound_counts_the_roundings_of_each_form),
        cmocka_unit_test(the_bound_counts_products_of_halves),
        cmocka_unit_test(products_of_halves_are_accepted),
        cmocka_unit_test(correct_modules_are_accepted),
        cmocka_unit_test(correct_modules_of_random_heads_are_accepted),
        cmocka_unit_test(every_fault_is_refused),
        cmocka_unit_test(a_correct_module_of_2304_features_is_accepted),
        cmocka_unit_test(half_a_tile_of_2304_features_is_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_verify_lift: modules of heads with a lift are accepted where they are right, and each way of getting
 * coordinates, positions or masks wrong is refused. */
#include <stdio.h>
#include <string.h>

#include "claims.h"
#include "hand_module.h"
#include "head/lift.h"
#include "lifted_heads.h"
#include "random_head.h"

typedef fpa_head *maker(const char *options);

static fpa_head *fourier_seed(const char *options)
{
    return lifted_fourier(false, options);
}

static fpa_head *fourier_one(const char *options)
{
    return lifted_fourier(true, options);
}

static maker *const makers[] = {lifted_elu,      fourier_seed,  fourier_one,
                                lifted_constant, lifted_sketch, lifted_products};

static void correct_modules_are_accepted(void **state)
{
    static const char *const options[] = {
        "causal", "causal gate", "causal sum", "causal sum gate mask", "causal mask", "", "sum mask"};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        for (size_t j = 0; j < sizeof options / sizeof *options; j++) {
            fpa_head *head = makers[i](options[j]);
            fpa_verdict verdict = {0};
            fpa_error error = {0};
            head->chunk = 8;
            if (hand_verify(head, NO_FAULT, &verdict, &error))
                fail_msg("%zu, \"%s\": %s: %s", i, options[j], error.where, error.message);
            for (int form = 0; form < FORMS; form++)
                if (verdict.form[form].checked)
                    assert_true(verdict.form[form].worst < 0.5 && verdict.form[form].tau < 4e-5);
            assert_true(verdict.form[FORM_PARALLEL].checked);
            head_free(head);
        }
}

/* Of heads with parts of all kinds. In half precision a normaliser of terms that cancel may be known nowhere. */
static void correct_modules_of_random_heads_are_accepted(void **state)
{
    enum { SEED = 700, HEADS = 60 };
    random_limits limits = random_all;
    int lifted = 0, checked = 0;
    limits.features = 80;
    limits.lift = true;
    print_message("seeds %d..%d\n", SEED, SEED + HEADS - 1);
    for (int i = 0; i < HEADS; i++) {
        limits.half = i % 2;
        limits.normalize = !limits.half;
        fpa_head *head = random_head(SEED + (uint64_t)i, &limits);
        fpa_verdict verdict = {0};
        fpa_error error = {0};
        assert_non_null(head);
        lifted += head->lift != NULL;
        if (head->lift && hand_verify(head, NO_FAULT, &verdict, &error))
            fail_msg("seed %d: %s: %s", SEED + i, error.where, error.message);
        checked += verdict.form[FORM_PARALLEL].checked;
        head_free(head);
    }
    assert_true(lifted > HEADS / 4);
    assert_int_equal(checked, lifted);
}

/* Far positions and masked first tokens keep few outputs from being compared. */
static void most_outputs_are_compared(void **state)
{
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        fpa_head *head = makers[i]("causal sum mask");
        fpa_verdict verdict = {0};
        fpa_error error = {0};
        long long judged = 0, all = 0;
        head->chunk = 8;
        assert_int_equal(hand_verify(head, NO_FAULT, &verdict, &error), FPA_OK);
        assert_int_equal(sscanf(strstr(verdict.text, "tokens, ") + 8, "%lld of %lld", &judged, &all), 2);
        if (judged < all * 3 / 4)
            fail_msg("%zu: %s", i, verdict.text);
        head_free(head);
    }
}

/* No key so far: with no eps the formula says 0 / 0 there, which is nobody's fault. */
static void a_normaliser_without_keys_refuses_nobody(void **state)
{
    fpa_head *head = lifted_elu("causal sum mask");
    fpa_verdict verdict = {0};
    fpa_error error = {0};
    head->eps = 0;
    head->chunk = 8;
    assert_ok(hand_verify(head, NO_FAULT, &verdict, &error), &error);
    head_free(head);
}

static void a_device_gets_the_same_verdict(void **state)
{
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        fpa_head *head = makers[i]("causal sum mask");
        fpa_verdict here = {0}, there = {0};
        fpa_error error = {0};
        assert_int_equal(hand_verify(head, NO_FAULT, &here, &error), FPA_OK);
        if (hand_device_verify(head, NO_FAULT, &there, &error))
            fail_msg("%zu: %s: %s", i, error.where, error.message);
        assert_string_equal(here.text, there.text);
        assert_int_equal(hand_device.allocations, 0);
        head_free(head);
    }
}

static const struct {
    fault kind;
    maker *make;
    const char *options, *words;
} refusals[] = {
    {FAULT_MAP, NULL, "causal", "but the formula gives"},
    {FAULT_AMPLITUDE, fourier_seed, "causal", "but the formula gives"},
    {FAULT_CONJUGATE, lifted_sketch, "causal", "but the formula gives"},
    {FAULT_CONSTANT_HEADS, lifted_products, "causal", "but the formula gives"},
    {FAULT_POSITION, fourier_seed, "causal", "but the formula gives"},
    {FAULT_POSITION, fourier_one, "sum", "but the formula gives"},
    {FAULT_PHASE, fourier_seed, "causal", "but the formula gives"},
    {FAULT_PHASE, fourier_one, "causal sum", "but the formula gives"},
    {FAULT_POSITION_STRIDE, fourier_seed, "causal", "is not a number"},
    {FAULT_RECENT_POSITION, fourier_seed, "causal", "with recent tokens"},
    {FAULT_FUTURE_POSITION, fourier_seed, "causal", "but the formula gives"},
    {FAULT_NO_KEY_MASK, lifted_constant, "causal", "is not a number"},
    {FAULT_NO_KEY_MASK, lifted_elu, "sum mask", "is not a number"},
    {FAULT_MASK_BIT, lifted_constant, "causal", "but the formula gives"},
    {FAULT_MASKED_VALUE, lifted_elu, "causal sum mask", "is not a number"},
    {FAULT_MASKED_GATE, lifted_constant, "causal gate", "but the formula gives"},
};

/* Another map of q than of k. */
static fpa_head *two_maps(const char *options)
{
    lifted_text to;
    lifted_begin(&to, WIDTH, options);
    lifted_add(&to, "matrices 0\nlift width %d positions 0 key_mask 0 parts 1\n", WIDTH);
    lifted_part(&to, WIDTH, "silu softplus", lifted_as_is, lifted_ones, "0 0 0", "input 1-4");
    return lifted_finish(&to, WIDTH, 1);
}

static void every_fault_is_refused_in_its_words(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        fpa_head *head = (refusals[i].make ? refusals[i].make : two_maps)(refusals[i].options);
        fpa_verdict verdict = {0};
        fpa_error error = {0};
        head->chunk = 8;
        if (hand_verify(head, refusals[i].kind, &verdict, &error) != FPA_REFUSED)
            fail_msg("case %zu was accepted: %s", i, verdict.text);
        if (!strstr(error.message, refusals[i].words))
            fail_msg("case %zu: expected \"%s\" in \"%s\"", i, refusals[i].words, error.message);
        head_free(head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correct_modules_are_accepted),
        cmocka_unit_test(correct_modules_of_random_heads_are_accepted),
        cmocka_unit_test(most_outputs_are_compared),
        cmocka_unit_test(a_normaliser_without_keys_refuses_nobody),
        cmocka_unit_test(a_device_gets_the_same_verdict),
        cmocka_unit_test(every_fault_is_refused_in_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

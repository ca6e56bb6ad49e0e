/* test_verify_faults: each way of being wrong is refused in words. */
#include <string.h>

#include "claims.h"
#include "hand_module.h"

static void one_wrong_weight_of_2304_features_is_seen(void **state)
{
    fpa_head *head = tspow_head(64, 2, 8);
    fpa_verdict verdict;
    fpa_error error = {0};
    assert_true(head_features(head) == 2304);
    assert_int_equal(hand_verify(head, FAULT_WEIGHT, &verdict, &error), FPA_REFUSED);
    assert_non_null(strstr(error.message, "but the formula gives"));
    head_free(head);
}

static const struct {
    fault kind;
    const char *words[3];
} refusals[] = {
    {FAULT_WEIGHT, {"but the formula gives", "allowed is", "column"}},
    {FAULT_MASK, {"token 1,", "but the formula gives", "parallel form"}},
    {FAULT_GATE, {"but the formula gives", "token", "allowed is"}},
    {FAULT_GROUP, {"but the formula gives", "4 query heads", "2 heads"}},
    {FAULT_STRIDES, {"o at batch", "head-major", "is not a number"}},
    {FAULT_FUTURE, {"changing tokens 4 and later changed an earlier output"}},
    {FAULT_UNWRITTEN, {"was not written", "token 1,", "1 x 1 tokens"}},
    {FAULT_NAN, {"is not a number", "token 7,", "column 1"}},
    {FAULT_PAST_END, {"wrote outside the elements of o"}},
    {FAULT_WORKSPACE, {"wrote outside its workspace of"}},
    {FAULT_TOO_SMALL, {"asked for this workspace, and then reported that it is too small"}},
    {FAULT_REPEAT, {"the same call twice gave different bits"}},
    {FAULT_STATE_MISSING, {"an element of the final state was not written"}},
    {FAULT_STATE_OLD, {"cut after", "but the formula gives"}},
    {FAULT_STATE_PLACE, {"cut after", "but the formula gives"}},
    {FAULT_STATE_EMPTY, {"a call of no tokens changed the state"}},
    {FAULT_STATE_PAST_END, {"wrote outside the elements of the final state"}},
    {FAULT_NOISE, {"the RMS error is", "more than twice"}},
    {FAULT_LATE, {"token 18,", "but the formula gives"}},
    {FAULT_FORM, {"chunked form", "but the formula gives"}},
};

typedef fpa_status verifier(const fpa_head *head, fault kind, fpa_verdict *verdict, fpa_error *error);

static void expect_refusals(verifier *verify)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        fpa_head *head = tspow_head(8, 5, 4);
        fpa_verdict verdict;
        fpa_error error = {0};
        head->gate = true;
        if (verify(head, refusals[i].kind, &verdict, &error) != FPA_REFUSED)
            fail_msg("fault %d was accepted: %s", (int)refusals[i].kind, verdict.text);
        assert_string_equal(error.where, "tspow2");
        for (int w = 0; w < 3 && refusals[i].words[w]; w++)
            if (!strstr(error.message, refusals[i].words[w]))
                fail_msg("fault %d: expected \"%s\" in \"%s\"", (int)refusals[i].kind, refusals[i].words[w],
                         error.message);
        head_free(head);
    }
}

static void every_fault_is_refused_in_its_words(void **state)
{
    expect_refusals(hand_verify);
}

static void every_fault_on_a_device_is_refused_in_its_words(void **state)
{
    expect_refusals(hand_device_verify);
    assert_int_equal(hand_device.allocations, 0);
}

/* A device that fails is no verdict on the module. */
static void every_failing_call_of_a_device_ends_in_its_own_error(void **state)
{
    fpa_head *head = tspow_head(8, 5, 4);
    fpa_facts facts = hand_facts(head);
    head->gate = true;
    for (int call = 1; call <= 80; call++) {
        fpa_module module = hand_device_module(head, NO_FAULT);
        fpa_verdict verdict;
        fpa_error error = {0};
        hand_device.failing = call;
        assert_int_equal(verify_module(head, &facts, &module, &verdict, &error), FPA_DEVICE);
        assert_non_null(strstr(error.message, "was told to fail"));
        assert_int_equal(hand_device.allocations, 0);
        assert_int_equal(hand_device.entered, 0);
    }
    head_free(head);
}

/* All is asked at once; where that takes more memory than there is, one thing after the other, with the same verdict. */
static void what_a_device_has_no_memory_for_is_asked_alone(void **state)
{
    fpa_head *head = tspow_head(8, 5, 4);
    fpa_facts facts = hand_facts(head);
    fpa_verdict plenty, verdict;
    fpa_error error = {0};
    head->gate = true;
    assert_int_equal(hand_device_verify(head, NO_FAULT, &plenty, &error), FPA_OK);
    for (int lacking = 1; lacking <= 24; lacking++) {
        fpa_module module = hand_device_module(head, NO_FAULT);
        hand_device.lacking = lacking;
        if (verify_module(head, &facts, &module, &verdict, &error))
            fail_msg("allocation %d: %s", lacking, error.message);
        assert_true(hand_device.asked > lacking);
        assert_string_equal(verdict.text, plenty.text);
        assert_int_equal(hand_device.allocations, 0);
        assert_int_equal(hand_device.entered, 0);
    }
    head_free(head);
}

/* Three candidates, of which the faulty one is never the fastest: in it a token does not see its own key. */
enum { CANDIDATES = 3 };
static const char *listed[CANDIDATES];
static fpa_module computing;

static int list_candidates(const fpa_module *module, const fpa_call_size *size, fpa_candidate *out, int most)
{
    (void)module, (void)size;
    for (int i = 0; i < CANDIDATES && i < most; i++)
        out[i] = (fpa_candidate){.mechanism = listed[i],
                                 .segments = 1,
                                 .variant = i == 1,
                                 .cost.seconds = strcmp(listed[i], "faulty") == 0};
    return CANDIDATES;
}

static fpa_status forward_by(const fpa_module *module, int form, const struct fpa_launch *launch,
                             const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    hand_module(module->handle, candidate && !strcmp(candidate->mechanism, "faulty") ? FAULT_MASK : NO_FAULT);
    return computing.forward(module, form, launch, candidate, stream, error);
}

static void every_candidate_is_verified(void **state)
{
    fpa_head *head = tspow_head(8, 5, 4);
    fpa_module module = computing = hand_module(head, NO_FAULT);
    fpa_facts facts = hand_facts(head);
    fpa_verdict verdict;
    fpa_error error;
    module.handle = head;
    module.candidates = list_candidates;
    module.forward = forward_by;
    for (int faulty = -1; faulty < CANDIDATES; faulty++) {
        for (int i = 0; i < CANDIDATES; i++)
            listed[i] = i == faulty ? "faulty" : "right";
        assert_int_equal(verify_module(head, &facts, &module, &verdict, &error),
                         faulty < 0 ? FPA_OK : FPA_REFUSED);
        if (faulty >= 0)
            assert_non_null(strstr(error.message, "but the formula gives"));
    }
    head_free(head);
}

/* The faulty one is for long calls only, and the fastest of those with a state before and after, which no trial makes. */
static int list_by_size(const fpa_module *module, const fpa_call_size *size, fpa_candidate *out, int most)
{
    const bool best = size->state_in && size->state_out;
    const int count = size->length > 20 ? 2 : 1;
    for (int i = 0; i < count && i < most; i++)
        out[i] = (fpa_candidate){
            .mechanism = i ? "faulty" : "right", .segments = 1, .cost.seconds = i ? (best ? 1 : 3) : 2};
    return count;
}

static void a_candidate_that_is_the_fastest_of_other_calls_only_is_verified(void **state)
{
    fpa_head *head = tspow_head(8, 5, 4);
    fpa_module module = computing = hand_module(head, NO_FAULT);
    fpa_facts facts = hand_facts(head);
    fpa_verdict verdict;
    fpa_error error;
    module.handle = head;
    module.candidates = list_by_size;
    module.forward = forward_by;
    assert_int_equal(verify_module(head, &facts, &module, &verdict, &error), FPA_REFUSED);
    assert_non_null(strstr(error.message, "but the formula gives"));
    head_free(head);
}

static void a_module_without_forms_is_refused(void **state)
{
    fpa_head *head = tspow_head(8, 5, 4);
    fpa_module module = hand_module(head, NO_FAULT);
    fpa_facts facts = hand_facts(head);
    fpa_verdict verdict;
    fpa_error error;
    facts.forms = 0;
    assert_int_equal(verify_module(head, &facts, &module, &verdict, &error), FPA_REFUSED);
    assert_non_null(strstr(error.message, "no form"));
    head_free(head);
}

static void a_refused_module_is_unloaded_and_no_kernel_is_made(void **state)
{
    fpa_head *head = tspow_head(8, 5, 4);
    fpa_module module = hand_module(head, FAULT_MASK);
    fpa_facts facts = hand_facts(head);
    fpa_kernel *kernel = NULL;
    fpa_error error;
    module_unloads = 0;
    assert_int_equal(verify_kernel(head, &facts, &module, NULL, false, &kernel, &error), FPA_REFUSED);
    assert_null(kernel);
    assert_int_equal(module_unloads, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_wrong_weight_of_2304_features_is_seen),
        cmocka_unit_test(every_fault_is_refused_in_its_words),
        cmocka_unit_test(every_fault_on_a_device_is_refused_in_its_words),
        cmocka_unit_test(every_failing_call_of_a_device_ends_in_its_own_error),
        cmocka_unit_test(what_a_device_has_no_memory_for_is_asked_alone),
        cmocka_unit_test(every_candidate_is_verified),
        cmocka_unit_test(a_candidate_that_is_the_fastest_of_other_calls_only_is_verified),
        cmocka_unit_test(a_module_without_forms_is_refused),
        cmocka_unit_test(a_refused_module_is_unloaded_and_no_kernel_is_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

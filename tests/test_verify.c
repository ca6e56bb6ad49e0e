/* test_verify: correct modules are accepted, and verified modules become kernels. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "claims.h"
#include "hand_module.h"
#include "random_head.h"

enum { SEED = 3, RANDOM_HEADS = 60 };

static void a_correct_module_is_accepted(void **state)
{
    for (int kind = 0; kind < FPA_NORMALIZE_KINDS; kind++)
        for (int gate = 0; gate < 2; gate++) {
            fpa_head *head = tspow_head(8, 5, 4);
            fpa_verdict verdict;
            fpa_error error = {0};
            head->normalize = (fpa_normalize)kind;
            head->gate = gate;
            if (hand_verify(head, NO_FAULT, &verdict, &error) != FPA_OK)
                fail_msg("%s: %s", error.where, error.message);
            for (int form = 0; form < FORMS; form++) {
                assert_true(verdict.form[form].checked);
                assert_true(verdict.form[form].worst > 0 && verdict.form[form].worst < 1);
                assert_true(verdict.form[form].tau > 0 && verdict.form[form].tau < 2e-5);
                assert_true(verdict.form[form].rms_ratio <= 2);
            }
            assert_true(verdict.problems >= 8);
            assert_non_null(strstr(verdict.text, "chunked: "));
            assert_non_null(strstr(verdict.text, "to 31 tokens")); /* 3c + 7 */
            assert_null(strchr(verdict.text, '\n'));
            head_free(head);
        }
}

/* Poisoned gaps, states in place and matrices included: the device computes the very same. */
static void a_module_on_a_device_gets_the_verdict_of_the_same_module_here(void **state)
{
    random_limits limits = random_all;
    limits.features = 80;
    for (int i = 0; i < 12; i++) {
        fpa_head *head = random_head(SEED + i, &limits);
        fpa_verdict here, there;
        fpa_error error = {0};
        assert_int_equal(hand_verify(head, NO_FAULT, &here, &error), FPA_OK);
        if (hand_device_verify(head, NO_FAULT, &there, &error) != FPA_OK)
            fail_msg("seed %d: %s: %s", SEED + i, error.where, error.message);
        assert_string_equal(here.text, there.text);
        assert_int_equal(here.problems, there.problems);
        assert_int_equal(hand_device.allocations, 0);
        assert_int_equal(hand_device.entered, 0);
        head_free(head);
    }
}

static void correct_modules_of_random_heads_are_accepted(void **state)
{
    random_limits limits = random_all;
    limits.features = 80;
    limits.half = true;
    print_message("seeds %d..%d\n", SEED, SEED + RANDOM_HEADS - 1);
    for (int i = 0; i < RANDOM_HEADS; i++) {
        fpa_head *head = random_head(SEED + i, &limits);
        fpa_verdict verdict;
        fpa_error error = {0};
        if (hand_verify(head, NO_FAULT, &verdict, &error) != FPA_OK)
            fail_msg("seed %d: %s: %s", SEED + i, error.where, error.message);
        assert_true(verdict.form[FORM_PARALLEL].checked);
        assert_true(verdict.form[FORM_CHUNKED].checked);
        assert_int_equal(verdict.form[FORM_RECURRENT].checked, head->causal);
        head_free(head);
    }
}

static void a_verdict_does_not_depend_on_when_it_is_made(void **state)
{
    fpa_head *head = tspow_head(8, 5, 4);
    fpa_verdict first, second;
    assert_int_equal(hand_verify(head, NO_FAULT, &first, NULL), FPA_OK);
    assert_int_equal(hand_verify(head, NO_FAULT, &second, NULL), FPA_OK);
    assert_string_equal(first.text, second.text);
    head_free(head);
}

/* A chunk of 4096 makes 3c + 7 tokens dear for the reference: it then looks at some of them. */
static void long_chunks_are_checked_on_some_tokens_and_the_text_says_so(void **state)
{
    fpa_head *head = tspow_head(4, 1, 4);
    fpa_verdict verdict;
    fpa_error error = {0};
    long long judged, written;
    head->chunk = 4096;
    if (hand_verify(head, NO_FAULT, &verdict, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
    assert_non_null(strstr(verdict.text, "recurrent: "));
    assert_non_null(strstr(verdict.text, "to 12295 tokens"));
    assert_int_equal(sscanf(strstr(verdict.text, "tokens, ") + 8, "%lld of %lld", &judged, &written), 2);
    assert_true(judged > 0 && judged < written);
    head_free(head);
}

static void a_kernel_describes_its_head_and_owns_its_module(void **state)
{
    random_limits limits = random_all;
    fpa_head *head = random_head(SEED + 4, &limits);
    fpa_module module = hand_module(head, NO_FAULT);
    fpa_facts facts = hand_facts(head);
    fpa_kernel *kernel = NULL;
    fpa_error error = {0};
    module_unloads = 0;
    if (verify_kernel(head, &facts, &module, NULL, false, &kernel, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
    assert_string_equal(kernel->description.name, head->name);
    assert_string_equal(kernel->description.dtype, "f32");
    assert_int_equal(kernel->description.d, head->d);
    assert_int_equal(kernel->description.dv, head->dv);
    assert_int_equal(kernel->description.features, facts.features);
    assert_int_equal(kernel->description.normalized, head->normalize != FPA_NORMALIZE_NONE);
    assert_int_equal(kernel->description.from_cache, 0);
    assert_int_equal(kernel->description.device, 0);
    assert_string_equal(kernel->description.arithmetic, "f32");
    assert_non_null(strstr(kernel->description.verdict, "parallel: "));
    for (int m = 0, n = 0; m < head->matrix_count; m++)
        if (head->matrices[m].name)
            assert_string_equal(kernel->description.weight_names[n++], head->matrices[m].name);
    assert_int_equal(module_unloads, 0);
    kernel_free(kernel);
    assert_int_equal(module_unloads, 1);
    kernel_free(NULL);
}

/* A stand-in for a tensor of the toy call below, on device `number`. */
static DLTensor tensor_on(DLDeviceType type, int number, void *data, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {type, number}, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static void a_kernel_takes_tensors_of_its_own_device_only(void **state)
{
    fpa_head *head = tspow_head(8, 5, 4);
    fpa_module module = hand_device_module(head, NO_FAULT);
    fpa_facts facts = hand_facts(head);
    fpa_kernel *kernel = NULL;
    fpa_error error = {0};
    int64_t wide[] = {1, 1, 1, 8}, narrow[] = {1, 1, 1, 5};
    float memory[64];
    size_t size;
    facts.arithmetic = FPA_BF16;
    assert_int_equal(verify_kernel(head, &facts, &module, "checked before", true, &kernel, &error), FPA_OK);
    assert_int_equal(kernel->description.device, HAND_DEVICE);
    assert_string_equal(kernel->description.arithmetic, "bf16");
    DLTensor q = tensor_on(kDLCUDA, HAND_DEVICE, memory, wide), v = tensor_on(kDLCUDA, 0, memory, narrow);
    DLTensor k = tensor_on(kDLCUDAManaged, HAND_DEVICE, memory, wide);
    DLTensor o = tensor_on(kDLCUDA, HAND_DEVICE, memory + 32, narrow);
    fpa_tensors tensors = {.q = &q, .k = &k, .v = &v, .o = &o, .stream = memory};
    assert_int_equal(fpa_workspace_size(kernel, FPA_FORM_PARALLEL, &tensors, &size, &error), FPA_INVALID);
    assert_string_equal(error.where, "v");
    assert_non_null(
        strstr(error.message, "lies on CUDA device 0, but this kernel computes on CUDA device 3"));
    v.device.device_id = HAND_DEVICE;
    assert_int_equal(fpa_workspace_size(kernel, FPA_FORM_PARALLEL, &tensors, &size, &error), FPA_OK);
    assert_int_equal(
        fpa_forward(kernel, FPA_FORM_PARALLEL, &tensors, (void *)(uintptr_t)(1 << 20 | 64), size, &error),
        FPA_INVALID);
    assert_string_equal(error.where, "workspace");
    assert_non_null(strstr(error.message, "256 bytes"));
    kernel_free(kernel);
}

static void a_stored_verdict_is_taken_over_without_a_run(void **state)
{
    fpa_head *head = tspow_head(8, 5, 4);
    fpa_module module = hand_module(head, FAULT_WEIGHT);
    fpa_facts facts = hand_facts(head);
    fpa_kernel *kernel = NULL;
    assert_int_equal(verify_kernel(head, &facts, &module, "checked before", true, &kernel, NULL), FPA_OK);
    assert_string_equal(kernel->description.verdict, "checked before");
    assert_int_equal(kernel->description.from_cache, 1);
    assert_int_equal(module_calls, 0);
    kernel_free(kernel);
}

static void halves_round_to_nearest_even_and_back(void **state)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float half = f16_to_float((uint16_t)bits), brain = bf16_to_float((uint16_t)bits);
        if (!isnan(half))
            assert_int_equal(f16_from_float(half), bits);
        if (!isnan(brain))
            assert_int_equal(bf16_from_float(brain), bits);
    }
    assert_int_equal(f16_from_float(1 + 0x1p-11f), 0x3c00); /* a tie: to even */
    assert_int_equal(f16_from_float(1 + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(f16_from_float(0x1p-25f), 0);
    assert_int_equal(f16_from_float(65519), 0x7bff);
    assert_int_equal(f16_from_float(65520), 0x7c00);
    assert_int_equal(bf16_from_float(1 + 0x1p-8f), 0x3f80);
    assert_int_equal(bf16_from_float(1 + 3 * 0x1p-8f), 0x3f82);
    assert_true(isnan(f16_to_float(f16_from_float(NAN))) && isnan(bf16_to_float(bf16_from_float(NAN))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_module_is_accepted),
        cmocka_unit_test(a_module_on_a_device_gets_the_verdict_of_the_same_module_here),
        cmocka_unit_test(correct_modules_of_random_heads_are_accepted),
        cmocka_unit_test(a_verdict_does_not_depend_on_when_it_is_made),
        cmocka_unit_test(long_chunks_are_checked_on_some_tokens_and_the_text_says_so),
        cmocka_unit_test(a_kernel_describes_its_head_and_owns_its_module),
        cmocka_unit_test(a_kernel_takes_tensors_of_its_own_device_only),
        cmocka_unit_test(a_stored_verdict_is_taken_over_without_a_run),
        cmocka_unit_test(halves_round_to_nearest_even_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Emitted CUDA kernels of sm_90a on the CPU, launched by the library's own code: what they compute, and that
 * they end.
 *
 * make test: the heads of emulated_fixed (emulate/heads.h), which have every function that is emitted for any
 * head, each in every third call with late products or late copies, together in all, with every kernel and form; make
 * test-all: all heads in all calls. FPA_TEST_HEAD: one alone, by its name. Those with fused_chunk run in
 * test_cuda_emulated_fused.c. */
#include "claims.h"
#include "dear.h"
#include "emulate/parts.h"

#include <stdlib.h>
#include <string.h>

enum { FIXED = sizeof emulated_fixed / sizeof *emulated_fixed };

/* ---- what the fixed part has ---- */

/* NAME_chunk_contraction is of gradients: test_passes.c runs it. */
static char *without_contraction(const char *code)
{
    char *text = strdup(code), *begin, *end;
    assert_non_null(text);
    begin = strstr(text, "/* ---- chunk_contraction ----");
    if (!begin)
        return text;
    end = strstr(begin, "_chunk_contraction(");
    assert_non_null(end);
    end = strstr(end, "\n#endif\n"); /* behind the kernel itself */
    assert_non_null(end);
    memmove(begin, end, strlen(end) + 1);
    return text;
}

static void the_fixed_part_has_every_function_that_is_emitted_for_any_head(void **state)
{
    const emulated_fixture *f = *state;
    function_set all = {0}, fixed = {0};
    for (int i = 0; i < FIXED; i++)
        emulated_head_named(f, emulated_fixed[i]);
    for (int i = 0; i < f->list.count; i++) {
        const fpa_head *head = f->list.heads[i];
        char *code = without_contraction(emulated_source(f, i)->code);
        function_set_add(&all, code, head->name);
        if (emulated_is_fixed(head))
            function_set_add(&fixed, code, head->name);
        free(code);
    }
    const char *lacks = function_set_lacks(&fixed, &all);
    if (lacks)
        fail_msg("no head of emulated_fixed has %s: add one that has", lacks);
    print_message("%zu functions\n", all.count);
    assert_true(all.count > 300);
    function_set_free(&all);
    function_set_free(&fixed);
}

/* What constants and types tell apart. */
static bool is_gated(const fpa_head *h)
{
    return h->gate;
}

static bool is_f16(const fpa_head *h)
{
    return h->dtype == FPA_F16;
}

static bool has_narrow_state(const fpa_head *h)
{
    return h->state_dtype == FPA_BF16;
}

static bool has_half_state(const fpa_head *h)
{
    return h->state_dtype == FPA_F16;
}

static bool has_plain_sums(const fpa_head *h)
{
    return h->normalize == FPA_NORMALIZE_NONE;
}

static bool is_divided_by_sum(const fpa_head *h)
{
    return h->normalize == FPA_NORMALIZE_SUM;
}

static bool is_divided_by_max(const fpa_head *h)
{
    return h->normalize == FPA_NORMALIZE_MAX;
}

static bool is_divided_by_more(const fpa_head *h)
{
    return h->normalize == FPA_NORMALIZE_ONE_PLUS_SUM;
}

static bool sees_all(const fpa_head *h)
{
    return !h->causal;
}

static const struct trait {
    const char *what;
    bool (*has)(const fpa_head *head);
} traits[] = {
    {"a gate", is_gated},
    {"f16", is_f16},
    {"a state of bf16", has_narrow_state},
    {"a state of f16", has_half_state},
    {"no normaliser", has_plain_sums},
    {"normalize = 'sum'", is_divided_by_sum},
    {"normalize = 'max'", is_divided_by_max},
    {"normalize = 'one_plus_sum'", is_divided_by_more},
    {"causal = false", sees_all},
};

static void the_fixed_part_has_every_trait(void **state)
{
    const emulated_fixture *f = *state;
    for (size_t t = 0; t < sizeof traits / sizeof *traits; t++) {
        bool found = false;
        for (int i = 0; i < f->list.count; i++)
            found = found || (emulated_is_fixed(f->list.heads[i]) && traits[t].has(f->list.heads[i]));
        if (!found)
            fail_msg("no head of emulated_fixed has %s", traits[t].what);
    }
}

/* What one part leaves out, the other has. */
static void the_parts_have_every_kernel_and_every_call(void **state)
{
    unsigned kernels = 0, calls = 0;
    for (int part = 0; part < EMULATED_PARTS; part++) {
        kernels |= emulated_part_kernels((emulated_part)part);
        calls |= emulated_part_calls((emulated_part)part);
    }
    assert_int_equal(kernels, (1u << CUDA_STATE_PRODUCT) - 1);
    assert_int_equal(calls, (UINT64_C(1) << SEQUENCES_CALL) - 1);
}

/* ---- the formula ---- */

static void emitted_kernels_compute_the_formula(void **state)
{
    emulated_expect_formula(*state, PART_OTHERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_part_has_every_function_that_is_emitted_for_any_head),
        cmocka_unit_test(the_fixed_part_has_every_trait),
        cmocka_unit_test(the_parts_have_every_kernel_and_every_call),
        cmocka_unit_test(emitted_kernels_compute_the_formula),
    };
    return cmocka_run_group_tests_name("cuda emulated", tests, emulated_setup, emulated_teardown);
}

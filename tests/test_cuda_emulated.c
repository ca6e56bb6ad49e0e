/* Emitted CUDA kernels of sm_90a on the CPU, launched by the library's own code: what they compute, and that
 * they end.
 *
 * make test: the heads of emulated_fixed (emulate/heads.h), which have every function that is emitted for any
 * head, in every call, with every kernel and form; make test-all: all heads. */
#include "dear.h"
#include "emulate/trials.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FIXED = sizeof emulated_fixed / sizeof *emulated_fixed };

static bool is_fixed(const fpa_head *head)
{
    return is_one_of(emulated_fixed, FIXED, head->name);
}

/* ---- what the fixed part has ---- */

static void the_fixed_part_has_every_function_that_is_emitted_for_any_head(void **state)
{
    const emulated_fixture *f = *state;
    function_set all = {0}, fixed = {0};
    for (int i = 0; i < FIXED; i++)
        emulated_head_named(f, emulated_fixed[i]);
    for (int i = 0; i < f->list.count; i++) {
        const fpa_head *head = f->list.heads[i];
        function_set_add(&all, f->source[i].code, head->name);
        if (is_fixed(head))
            function_set_add(&fixed, f->source[i].code, head->name);
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
            found = found || (is_fixed(f->list.heads[i]) && traits[t].has(f->list.heads[i]));
        if (!found)
            fail_msg("no head of emulated_fixed has %s", traits[t].what);
    }
}

/* ---- the formula ---- */

static void emitted_kernels_compute_the_formula(void **state)
{
    const emulated_fixture *f = *state;
    static emulated_job jobs[EMULATED_MOST_HEADS];
    unsigned launched = 0, called = 0, forms = 0;
    int count = 0, wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < f->list.count; i++) {
        const bool large = f->source[i].facts.features > 2000;
        if (!dear_tests() && !is_fixed(f->list.heads[i]))
            continue;
        jobs[count++] = (emulated_job){.fixture = f,
                                       .head = i,
                                       .code = f->source[i].code,
                                       .number = i,
                                       .first = large ? LONG_CALL : 0,
                                       .end = large ? LONG_CALL + 4 : EMULATED_CALLS};
    }
    dear_report("heads", count, f->list.count);
    emulated_run(count, jobs);
    for (int i = 0; i < count; i++) {
        emulated_report(&jobs[i], "");
        wrong += jobs[i].status != FPA_OK;
        launched |= jobs[i].launched, called |= jobs[i].called, forms |= jobs[i].forms;
    }
    assert_int_equal(wrong, 0);
    for (int i = 0; i < FPA_CUDA_KERNELS; i++)
        if (!(launched >> i & 1))
            fail_msg("no head launches NAME_%s", cuda_kernel_names[i]);
    assert_int_equal(called, (1u << EMULATED_CALLS) - 1);
    assert_int_equal(forms, (1u << FORMS) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_part_has_every_function_that_is_emitted_for_any_head),
        cmocka_unit_test(the_fixed_part_has_every_trait),
        cmocka_unit_test(emitted_kernels_compute_the_formula),
    };
    return cmocka_run_group_tests_name("cuda emulated", tests, emulated_setup, emulated_teardown);
}

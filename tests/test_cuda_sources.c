/* CUDA sources of the heads and targets of compile_modules.h: that they stand alone, what the part of them has
 * that make test compiles, and which heads are refused. Nothing is compiled. */
#include "claims.h"
#include "compile_modules.h"
#include "dear.h"
#include "kernels.h"

#include <stdio.h>
#include <string.h>

/* ---- what the fixed part has ---- */

static void the_fixed_part_is_a_part(void **state)
{
    const compile_fixture *f = *state;
    for (int i = 0; i < MODULE_FIXED; i++) {
        bool found = false;
        for (int j = 0; j < f->count; j++)
            found = found || is_module(&f->jobs[j], &module_fixed[i]);
        if (!found)
            fail_msg("no test compiles %s, %s, %s", module_fixed[i].head, module_fixed[i].dtype,
                     module_fixed[i].target);
    }
}

/* In each of the two programs that compile some of it. */
static void the_fixed_part_has_every_group(void **state)
{
    const compile_fixture *f = *state;
    bool added[MODULE_GROUPS][2] = {{false}}, fixed[MODULE_GROUPS][2] = {{false}};
    for (int i = 0; i < f->count; i++) {
        const compile_job *job = &f->jobs[i];
        added[job->group][job->target->warpgroups] = true;
        fixed[job->group][job->target->warpgroups] |= is_fixed_module(job);
    }
    for (int g = 0; g < MODULE_GROUPS; g++)
        for (int w = 0; w < 2; w++)
            assert_true(fixed[g][w] == added[g][w]);
}

static void the_fixed_part_has_every_target_kind_and_type(void **state)
{
    bool types[FPA_DTYPES] = {false};
    for (int t = 0; t < target_count(); t++) {
        bool found = target_at(t)->backend != BACKEND_CUDA;
        for (int i = 0; i < MODULE_FIXED; i++)
            found = found || strcmp(module_fixed[i].target, target_at(t)->name) == 0;
        if (!found)
            fail_msg("the table has no module for %s", target_at(t)->name);
    }
    for (int k = 0; k < MODULE_KINDS; k++) {
        bool found = false;
        for (int i = 0; i < MODULE_FIXED; i++)
            found = found || strcmp(module_fixed[i].head, module_kinds[k]) == 0;
        if (!found)
            fail_msg("the table has no module of %s", module_kinds[k]);
    }
    for (int i = 0; i < MODULE_FIXED; i++)
        for (int d = 0; d < FPA_DTYPES; d++)
            types[d] = types[d] || strcmp(module_fixed[i].dtype, dtype_name((fpa_dtype)d)) == 0;
    for (int d = 0; d < FPA_DTYPES; d++)
        assert_true(types[d]);
}

/* chosen: NULL, or a set that gets them, too. */
static void add_functions(function_set *set, function_set *chosen, const compile_job *job)
{
    fpa_source source;
    fpa_error error;
    if (source_generate(job->head, job->target->name, &source, &error))
        return; /* too large: a test of its own */
    function_set_add(set, source.code, job->head->name);
    if (chosen)
        function_set_add(chosen, source.code, job->head->name);
    source_free(&source);
}

/* make test: of shipped heads, which have two targets each, one by turns. */
static bool is_looked_at(const compile_fixture *f, int job)
{
    return dear_tests() || f->jobs[job].group != SHIPPED || job / 2 % 2 == job % 2;
}

/* Kernels of warpgroups and portable ones may have functions of one name. */
static void the_fixed_part_has_every_function_that_is_emitted_for_any_module(void **state)
{
    const compile_fixture *f = *state;
    function_set all[2] = {0}, chosen[2] = {0};
    for (int i = 0; i < f->count; i++) {
        const bool warpgroups = f->jobs[i].target->warpgroups;
        const bool fixed = is_fixed_module(&f->jobs[i]);
        if (fixed || is_looked_at(f, i))
            add_functions(&all[warpgroups], fixed ? &chosen[warpgroups] : NULL, &f->jobs[i]);
    }
    for (int w = 0; w < 2; w++) {
        const char *lacks = function_set_lacks(&chosen[w], &all[w]);
        if (lacks)
            fail_msg("no %s module of the table has %s: add one that has", w ? "sm_90a" : "portable", lacks);
        print_message("%s: %zu functions\n", w ? "sm_90a" : "portable", all[w].count);
        assert_true(all[w].count > 150);
        function_set_free(&all[w]);
        function_set_free(&chosen[w]);
    }
}

/* Of modules of the table make test compiles some of the kernels. */
static void kernels_that_are_compiled_reach_every_function_that_any_reaches(void **state)
{
    compile_fixture *f = *state;
    for (int w = 0; w < 2; w++) {
        function_set all = {0}, chosen = {0};
        modules_choose_kernels(f, w);
        for (int i = 0; i < f->count; i++) {
            compile_job *job = &f->jobs[i];
            fpa_source source;
            fpa_error error;
            if (!job->code && !job->others)
                continue;
            assert_int_equal(source_generate(job->head, job->target->name, &source, &error), FPA_OK);
            assert_true(kernels_reach(source.code, job->head->name, &all));
            assert_true(!job->code || kernels_reach(job->code, job->head->name, &chosen));
            assert_true(!job->others || kernels_reach(job->others, job->head->name, &chosen));
            source_free(&source);
            compile_job_forget(job);
        }
        const char *lacks = function_set_lacks(&chosen, &all);
        if (lacks)
            fail_msg("no kernel that is compiled reaches %s", lacks);
        assert_true(all.count > 150);
        function_set_free(&all);
        function_set_free(&chosen);
    }
}

/* ---- sources ---- */

/* True when the target refuses the head as too large. */
static bool generate_twice(const fpa_head *head, const fpa_target *target)
{
    fpa_source first, second;
    fpa_error error;
    fpa_status status = source_generate(head, target->name, &first, &error);
    if (compile_too_large(target, status, &error))
        return true;
    if (status || source_generate(head, target->name, &second, &error))
        fail_msg("%s, %s: %s: %s", head->name, target->name, error.where, error.message);
    assert_string_equal(first.code, second.code);
    assert_string_equal(first.facts.target, target->name);
    assert_null(first.header);
    if (strstr(first.code, "#include"))
        fail_msg("%s, %s: the source includes something", head->name, target->name);
    source_free(&first);
    source_free(&second);
    return false;
}

/* Every head for every target in make test-all; in make test every sixth, by turns for one target each. */
static void sources_stand_alone_and_are_the_same_every_time(void **state)
{
    compile_fixture *f = *state;
    int of = 0, targets = 0;
    for (int t = 0; t < target_count(); t++)
        targets += target_at(t)->backend == BACKEND_CUDA;
    for (int t = 0; t < target_count(); t++) {
        int too_large = 0, count = 0;
        if (target_at(t)->backend != BACKEND_CUDA)
            continue;
        for (int i = 0; i < f->heads.count; i++)
            if (dear_tests() || (i % targets == of && i / targets % 6 == 0)) {
                too_large += generate_twice(f->heads.item[i].head, target_at(t));
                count++;
            }
        print_message("%s: %d heads, %d refused as too large\n", target_at(t)->name, count - too_large,
                      too_large);
        assert_true(count > 0);
        of++;
        assert_true(too_large <= 1);
    }
}

/* A file is compiled in parts, of which some of a head without decode read no table: a warning at every open. */
static void tables_of_heads_without_decode_may_stay_unread(void **state)
{
    static const char text[] = "return head { name = 'open', d = 6, dv = 4, causal = false,\n"
                               "  terms = inhomogeneous { degree = 3, constant = 1 } }";
    fpa_head_list list;
    fpa_source source;
    fpa_error error;
    assert_ok(spec_load_text("open.lua", NULL, text, sizeof text - 1, &list, &error), &error);
    assert_ok(source_generate(list.heads[0], "cuda:sm_90", &source, &error), &error);
    assert_non_null(strstr(source.code, "__attribute__((unused)) const float feature_weights["));
    assert_non_null(strstr(source.code, "__attribute__((unused)) const u16 feature_rows["));
    source_free(&source);
    head_list_free(&list);
}

/* ---- heads that CUDA does not serve ---- */

static void expect_refused(const char *fields, const char *figure, const char *limit)
{
    char text[256];
    fpa_head_list list;
    fpa_source source;
    fpa_error error;
    int length = snprintf(text, sizeof text, "return head { name = 'wide', %s }", fields);
    assert_ok(spec_load_text("wide.lua", NULL, text, (size_t)length, &list, &error), &error);
    assert_int_equal(source_generate(list.heads[0], "cuda:sm_90", &source, &error), FPA_UNSUPPORTED);
    if (!strstr(error.message, figure) || !strstr(error.message, limit))
        fail_msg("'%s: %s' does not name %s and %s", error.where, error.message, figure, limit);
    assert_null(source.code);
    head_list_free(&list);
}

static void a_head_that_is_too_large_for_cuda_is_refused_with_its_figure(void **state)
{
    expect_refused("d = 257, dv = 64, terms = linear {}", "257", "256");
    expect_refused("d = 64, dv = 513, terms = linear {}", "513", "512");
    expect_refused("d = 128, dv = 64, terms = power { degree = 3 }", "features", "262144");
    expect_refused("d = 64, dv = 64, terms = term { trainable { name = 'w', rows = 1000 }:map(relu) }",
                   "1000 coordinates", "shared memory");
    expect_refused("d = 64, dv = 513, terms = term { identity():map(relu) }", "513", "512");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_part_is_a_part),
        cmocka_unit_test(the_fixed_part_has_every_group),
        cmocka_unit_test(the_fixed_part_has_every_target_kind_and_type),
        cmocka_unit_test(the_fixed_part_has_every_function_that_is_emitted_for_any_module),
        cmocka_unit_test(kernels_that_are_compiled_reach_every_function_that_any_reaches),
        cmocka_unit_test(sources_stand_alone_and_are_the_same_every_time),
        cmocka_unit_test(tables_of_heads_without_decode_may_stay_unread),
        cmocka_unit_test(a_head_that_is_too_large_for_cuda_is_refused_with_its_figure),
    };
    return cmocka_run_group_tests_name("cuda sources", tests, modules_setup, modules_teardown);
}

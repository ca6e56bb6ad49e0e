#include "gen/gen.h"
#include "claims.h"

#include <stdio.h>
#include <string.h>

static void every_target_is_found_by_its_name(void **state)
{
    static const char *const names[BACKENDS] = {[BACKEND_C] = "c:", [BACKEND_CUDA] = "cuda:"};
    assert_true(target_count() >= 4);
    for (int i = 0; i < target_count(); i++) {
        const fpa_target *target = target_at(i);
        assert_ptr_equal(target_find(target->name), target);
        assert_int_equal(strncmp(target->name, names[target->backend], strlen(names[target->backend])), 0);
    }
}

static void names_of_no_target_find_nothing(void **state)
{
    static const char *const names[] = {"",        "c:",   "c:avx1024", "avx2",      "C:avx2",
                                        "c:avx2 ", "cuda", "cuda:",     "cuda:sm_9", "cuda:sm_900",
                                        "sm_",     "sm_9", "c:sm_90",   "SM_90"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(target_find(names[i]));
    assert_null(target_at(-1));
    assert_null(target_at(target_count()));
}

static void plain_c_is_the_widest_target_that_runs_here(void **state)
{
    const fpa_target *best = target_find("c");
    assert_ptr_equal(best, target_best());
    assert_non_null(best);
    assert_true(target_runs(best));
    for (int i = 0; i < target_count(); i++)
        if (target_runs(target_at(i)))
            assert_true(target_at(i)->vector <= best->vector);
}

static void only_targets_of_this_machine_run(void **state)
{
#if defined(__x86_64__)
    assert_true(target_runs(target_find("c:sse2")));
    assert_false(target_runs(target_find("c:neon")));
#elif defined(__aarch64__)
    assert_true(target_runs(target_find("c:neon")));
    assert_false(target_runs(target_find("c:sse2")));
#endif
}

static void a_level_runs_only_where_all_below_it_run(void **state)
{
    if (target_runs(target_find("c:avx512")))
        assert_true(target_runs(target_find("c:avx2")));
    if (target_runs(target_find("c:avx2")))
        assert_true(target_runs(target_find("c:sse2")));
}

static void a_gpu_is_found_by_its_short_name_too(void **state)
{
    int found = 0;
    for (int i = 0; i < target_count(); i++) {
        char name[32];
        const fpa_target *target = target_at(i);
        if (target->backend != BACKEND_CUDA)
            continue;
        snprintf(name, sizeof name, "sm_%d%s", target->capability, target->warpgroups ? "a" : "");
        assert_string_equal(target->march, name);
        assert_ptr_equal(target_find(name), target);
        snprintf(name, sizeof name, "cuda:sm_%d%s", target->capability, target->warpgroups ? "a" : "");
        assert_string_equal(target->name, name);
        assert_true(target->shared_memory > 0);
        assert_false(target_runs(target));
        found++;
    }
    assert_true(found >= 5);
}

static void a_gpu_runs_the_newest_target_of_its_own_generation(void **state)
{
    static const struct {
        int capability;
        const char *name; /* NULL: none */
    } cases[] = {
        {80, "cuda:sm_80"},   {86, "cuda:sm_86"},
        {87, "cuda:sm_86"},   {89, "cuda:sm_89"},
        {90, "cuda:sm_90a"},  {91, "cuda:sm_90"},
        {100, "cuda:sm_100"}, {103, "cuda:sm_103"},
        {120, "cuda:sm_120"}, {121, "cuda:sm_120"},
        {75, NULL},           {70, NULL},
        {110, NULL},          {0, NULL},
        {999, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fpa_target *target = target_for_capability(cases[i].capability);
        if (cases[i].name)
            assert_string_equal(target ? target->name : "none", cases[i].name);
        else
            assert_null(target);
    }
}

static void no_target_is_compiled_for_native(void **state)
{
    for (int i = 0; i < target_count(); i++) {
        const char *start = target_at(i)->backend == BACKEND_CUDA ? "sm_" : "-march=";
        assert_int_equal(strncmp(target_at(i)->march, start, strlen(start)), 0);
        assert_null(strstr(target_at(i)->march, "native"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_target_is_found_by_its_name),
        cmocka_unit_test(names_of_no_target_find_nothing),
        cmocka_unit_test(plain_c_is_the_widest_target_that_runs_here),
        cmocka_unit_test(only_targets_of_this_machine_run),
        cmocka_unit_test(a_level_runs_only_where_all_below_it_run),
        cmocka_unit_test(a_gpu_is_found_by_its_short_name_too),
        cmocka_unit_test(a_gpu_runs_the_newest_target_of_its_own_generation),
        cmocka_unit_test(no_target_is_compiled_for_native),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

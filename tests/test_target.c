#include "../gen/gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

static void every_target_is_found_by_its_name(void **state)
{
    (void)state;
    assert_true(target_count() >= 4);
    for (int i = 0; i < target_count(); i++) {
        const fpa_target *target = target_at(i);
        assert_ptr_equal(target_find(target->name), target);
        assert_int_equal(strncmp(target->name, "c:", 2), 0);
    }
}

static void names_of_no_target_find_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"", "c:", "c:avx1024", "avx2", "C:avx2", "c:avx2 ", "cuda"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(target_find(names[i]));
    assert_null(target_at(-1));
    assert_null(target_at(target_count()));
}

static void plain_c_is_the_widest_target_that_runs_here(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
    if (target_runs(target_find("c:avx512")))
        assert_true(target_runs(target_find("c:avx2")));
    if (target_runs(target_find("c:avx2")))
        assert_true(target_runs(target_find("c:sse2")));
}

static void no_target_is_compiled_for_native(void **state)
{
    (void)state;
    for (int i = 0; i < target_count(); i++) {
        assert_int_equal(strncmp(target_at(i)->march, "-march=", 7), 0);
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
        cmocka_unit_test(no_target_is_compiled_for_native),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* arena: what is needed for a while is freed with the rest, and who does not ask for memory does not go on without it. */
#include "base/arena.h"
#include "claims.h"

static void a_scratch_is_freed_with_its_arena_or_before(void **state)
{
    arena a = {0};
    arena *first = arena_scratch(&a), *second = arena_scratch(&a);
    assert_non_null(arena_alloc(first, 1 << 20));
    assert_non_null(arena_alloc(second, 1 << 20));
    arena_free(first);
    assert_non_null(arena_alloc(first, 1));
    arena_free(&a); /* under the address sanitizer nothing is left */
    assert_null(a.blocks);
}

static void an_allocation_without_memory_goes_where_it_is_told(void **state)
{
    arena a = {0};
    jmp_buf failure;
    assert_null(arena_array(&a, (size_t)-1, 2));
    assert_true(a.failed);
    a.failure = &failure;
    arena *scratch = arena_scratch(&a);
    if (!setjmp(failure)) {
        arena_array(scratch, (size_t)-1, 2);
        fail_msg("it came back");
    }
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scratch_is_freed_with_its_arena_or_before),
        cmocka_unit_test(an_allocation_without_memory_goes_where_it_is_told),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}

/* CUDA kernels of warpgroups (sm_90a), generated and compiled by NVRTC: needs no GPU. As test_cuda_compile.c,
 * which has the other targets. */
#include "claims.h"
#include "compile_modules.h"

#include <string.h>

static int setup(void **state)
{
    modules_setup(state);
    modules_compile(*state, true);
    return 0;
}

static void every_second_kind_of_head_compiles_in_narrower_types(void **state)
{
    modules_expect(*state, NARROW);
}

static void every_narrow_head_compiles_for_warpgroups(void **state)
{
    const compile_fixture *f = *state;
    int count = 0;
    for (int i = 0; i < f->count; i++) {
        fpa_source source;
        fpa_error error;
        if (f->jobs[i].group != WARPGROUPS)
            continue;
        assert_int_equal(source_generate(f->jobs[i].head, f->jobs[i].target->name, &source, &error), FPA_OK);
        count += strstr(source.code, "wgmma.mma_async") != NULL;
        source_free(&source);
    }
    assert_true(count >= 5);
    modules_expect(f, WARPGROUPS);
}

/* Large states leave few registers for addresses and factors: what is spilled there costs as much again, and
 * products of a kernel that lacks some wait for each other. */
static void large_states_keep_their_sums_in_registers(void **state)
{
    modules_expect(*state, STATES);
}

static void coordinates_compile_in_every_type(void **state)
{
    modules_expect(*state, LIFTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_second_kind_of_head_compiles_in_narrower_types),
        cmocka_unit_test(every_narrow_head_compiles_for_warpgroups),
        cmocka_unit_test(large_states_keep_their_sums_in_registers),
        cmocka_unit_test(coordinates_compile_in_every_type),
    };
    return cmocka_run_group_tests_name("cuda compile hopper", tests, setup, modules_teardown);
}

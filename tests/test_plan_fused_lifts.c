/* plan_fused_coordinates: which passes make their coordinates themselves, by how many warpgroups, and how these share a multiprocessor. */
#include "planned.h"
#include "gen/plan/cuda/fused_pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { REGISTERS = 65536, WARPGROUP = 128 };

static const struct lifting {
    const char *body; /* of head { ... } */
    int lifters;      /* warpgroups that make coordinates; 0: others make them */
    bool turns;
    int places; /* of 64 tokens' coordinates of a side */
} heads[] = {
    {"d = 64, dv = 64, normalize = 'sum', positions = 1, terms = fourier { map = softplus }", 1, true, 2},
    {"d = 64, dv = 24, dtype = 'f16', positions = 1, normalize = 'sum', terms = fourier { map = exp }", 1,
     true, 2},
    {"d = 64, dv = 64, normalize = 'sum', terms = favor { d = 64, size = 128, seed = 1, gamma = 1 / 8 }", 1,
     false, 3},
    /* two blocks leave no room for a third one */
    {"d = 24, dv = 64, scale = 1 / 2, normalize = 'one_plus_sum', terms = tensorsketch { d = 24, degree = 2, "
     "size = 128, seed = 1, constant = 1 }",
     1, false, 2},
    {"d = 64, dv = 64, terms = tensorsketch { d = 64, degree = 2, size = 256, seed = 1 }", 2, false, 2},
    /* numbers of four positions have no room in registers; nor is there a pass with a gate, or without whole pieces of values */
    {"d = 64, dv = 64, positions = 4, terms = fourier { map = softplus }", 0, false, 0},
    {"d = 64, dv = 64, gate = true, positions = 1, terms = fourier { map = softplus }", 0, false, 0},
    {"d = 64, dv = 60, positions = 1, terms = fourier { map = softplus }", 0, false, 0},
};

static void passes_make_coordinates_by_as_many_warpgroups_as_have_room(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        planned_head m;
        planned_make(&m, heads[i].body, "cuda:sm_90a");
        const fpa_fused_pass *pass = m.plan.cuda.fused_coordinates;
        if (!heads[i].lifters) {
            assert_true(!pass || !pass->lifts);
        } else {
            assert_non_null(pass);
            assert_true(pass->lifts);
            assert_int_equal(pass->turns, heads[i].turns);
            assert_int_equal(pass->lifters, heads[i].lifters);
            assert_int_equal(pass->places, heads[i].places);
            assert_int_equal(pass->blocks, heads[i].lifters == 1 ? 2 : 1);
            assert_true(pass->blocks * WARPGROUP *
                            (pass->walker_registers + pass->lifters * pass->lifter_registers) <=
                        REGISTERS);
            assert_true(pass->blocks * (pass->memory.size + 1024) <= m.plan.target->shared_memory);
        }
        planned_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_make_coordinates_by_as_many_warpgroups_as_have_room),
    };
    return cmocka_run_group_tests_name("plan fused lifts", tests, NULL, NULL);
}

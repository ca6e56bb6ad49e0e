/* plan_fused_coordinates: which passes make their coordinates themselves, by how many warpgroups, and how these share a multiprocessor; plan_fused_packed: of which packed rows
 * who packs makes coordinates. */
#include "claims.h"
#include "planned.h"
#include "gen/plan/cuda/fused_packed.h"
#include "gen/plan/cuda/fused_pass.h"
#include "head/lift.h"

#include <string.h>

enum { REGISTERS = 65536, WARPGROUP = 128 };

static const struct lifting {
    const char *body; /* of head { ... } */
    int lifters;      /* warpgroups that make coordinates; 0: others make them */
    bool turns;
    int places; /* of 64 tokens' coordinates of a side */
    bool own;   /* each side's by who multiplies it */
} heads[] = {
    {"d = 64, dv = 64, normalize = 'sum', positions = 1, terms = fourier { map = softplus }", 1, true, 2,
     false},
    {"d = 64, dv = 24, dtype = 'f16', positions = 1, normalize = 'sum', terms = fourier { map = exp }", 1,
     true, 2, false},
    {"d = 64, dv = 64, normalize = 'sum', terms = favor { d = 64, size = 128, seed = 1, gamma = 1 / 8 }", 1,
     false, 2, true},
    /* a state that leaves too few registers for keys' coordinates */
    {"d = 64, dv = 64, normalize = 'sum', terms = favor { d = 64, size = 256, seed = 1, gamma = 1 / 8 }", 2,
     false, 2, false},
    {"d = 24, dv = 24, terms = tensorsketch { d = 24, degree = 2, size = 96, seed = 1 }", 1, false, 3, false},
    /* two blocks leave no room for a third one */
    {"d = 24, dv = 64, scale = 1 / 2, normalize = 'one_plus_sum', terms = tensorsketch { d = 24, degree = 2, "
     "size = 128, seed = 1, constant = 1 }",
     1, false, 2, false},
    {"d = 64, dv = 64, terms = tensorsketch { d = 64, degree = 2, size = 256, seed = 1 }", 2, false, 2,
     false},
    /* numbers of four positions have no room in registers; nor is there a pass with a gate, or without whole pieces of values */
    {"d = 64, dv = 64, positions = 4, terms = fourier { map = softplus }", 0, false, 0, false},
    {"d = 64, dv = 64, gate = true, positions = 1, terms = fourier { map = softplus }", 0, false, 0, false},
    {"d = 64, dv = 60, positions = 1, terms = fourier { map = softplus }", 0, false, 0, false},
};

static void passes_make_coordinates_by_as_many_warpgroups_as_have_room(void **state)
{
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
            assert_int_equal(pass->own, heads[i].own);
            assert_int_equal(pass->blocks, heads[i].lifters == 1 ? 2 : 1);
            assert_true(pass->blocks * WARPGROUP *
                            (pass->walker_registers + pass->lifters * pass->lifter_registers) <=
                        REGISTERS);
            assert_true(pass->blocks * (pass->memory.size + 1024) <= m.plan.target->shared_memory);
        }
        planned_free(&m);
    }
}

/* Bodies of heads of packed rows, and whether who packs makes coordinates: few rows of constant matrices, for one block of values. */
static const struct packing {
    const char *body;
    bool lifts;
} packed_heads[] = {
    {"d = 64, dv = 64, normalize = 'one_plus_sum', terms = polysketch { d = 64, rows = 16, seed = 5 }", true},
    {"d = 64, dv = 64, gate = true, terms = polysketch { d = 64, rows = 16, seed = 5 }", true},
    {"d = 64, dv = 64, dtype = 'f16', terms = polysketch { d = 64, rows = 16, seed = 5 }", true},
    /* two blocks would make all of them twice */
    {"d = 64, dv = 256, terms = polysketch { d = 64, rows = 16, seed = 5 }", false},
    /* rows are stored by 8, boxes bring 16 bytes */
    {"d = 64, dv = 64, terms = polysketch { d = 64, rows = 12, seed = 5 }", false},
    {"d = 60, dv = 64, terms = polysketch { d = 60, rows = 16, seed = 5 }", false},
    {"d = 64, dv = 64, terms = term { trainable { name = 'w', rows = 16, shared = true }:map(relu), "
     "trainable { "
     "name = 'w', rows = 16, shared = true }:map(relu) }",
     false},
};

static void who_packs_makes_few_coordinates(void **state)
{
    for (size_t i = 0; i < sizeof packed_heads / sizeof *packed_heads; i++) {
        planned_head m;
        planned_make(&m, packed_heads[i].body, "cuda:sm_90a");
        const fpa_fused_packed *fused = m.plan.cuda.fused_packed;
        if (packed_heads[i].lifts)
            assert_non_null(fused);
        if (fused) {
            assert_int_equal(fused->lifts, packed_heads[i].lifts);
            assert_int_equal(fused->vector, fused->lifts ? m.plan.written->lift->width : m.plan.head->d);
            assert_int_equal(m.plan.cuda.geometry.fused_maps, fused->lifts);
            assert_true(fused->bytes <= m.plan.target->shared_memory);
        }
        planned_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_make_coordinates_by_as_many_warpgroups_as_have_room),
        cmocka_unit_test(who_packs_makes_few_coordinates),
    };
    return cmocka_run_group_tests_name("plan fused lifts", tests, NULL, NULL);
}

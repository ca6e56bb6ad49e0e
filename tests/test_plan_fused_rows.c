/* plan_fused_rows: which linear heads have one pass on rows as they lie, and how its warpgroups share features,
 * registers and shared memory. */
#include "claims.h"
#include "planned.h"
#include "gen/plan/cuda/fused_rows.h"

#include <string.h>

#define SCALED "diagonal { 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }"

/* Heads with it. */
static const struct passes {
    const char *body; /* of head { ... } */
    int width, key_groups, key_tiles;
    bool weighted;
    int blocks; /* on a multiprocessor */
} passes[] = {
    {"d = 201, dv = 200, terms = linear {}", 201, 2, 2, false, 1},
    {"d = 194, dv = 235, gate = true, terms = linear {}", 194, 2, 2, false, 1},
    {"d = 256, dv = 256, gate = true, terms = linear {}", 256, 2, 2, false, 1},
    {"d = 24, dv = 83, dtype = 'f16', terms = linear {}", 24, 1, 1, false, 1},
    {"d = 75, dv = 40, normalize = 'sum', terms = linear { weight = 3 }", 75, 1, 2, true, 2},
    {"d = 20, dv = 100, terms = term { " SCALED " }", 3, 1, 1, true, 1},
    {"d = 40, dv = 64, normalize = 'sum', terms = linear {}", 40, 1, 1, false, 1},
    {"d = 32, dv = 80, gate = true, terms = linear {}", 32, 1, 1, false, 2},
    {"d = 128, dv = 128, normalize = 'sum', gate = true, terms = linear {}", 128, 1, 2, false, 1},
    {"d = 160, dv = 64, gate = true, terms = linear {}", 160, 1, 3, false, 1},
    {"d = 256, dv = 64, normalize = 'sum', gate = true, terms = linear {}", 256, 2, 2, false,
     1}, /* two copies have no room */
    {"d = 24, dv = 16, gate = true, normalize = 'sum', terms = linear {}", 24, 1, 1, false, 2},
};

/* Heads of few features, which are packed as rows; and heads that keep what they have. */
static const struct packs {
    const char *body;
    int width, vector; /* 0: not packed */
    int scale_power;
} packs[] = {
    {"d = 24, dv = 254, gate = true, terms = term { select { 1, 2 }, dense(orthogonal { rows = 2, d = 24, "
     "seed = 1 }), select { 5, 6 }, identity() }",
     192, 192, 4},
    {"d = 29, dv = 256, scale = 1 / 8, terms = { term { identity(), select { 1, 2, 3, 4, 5 } }, term { "
     "select { 6, 7 } } }",
     139, 144, 1},
    {"d = 21, dv = 256, dtype = 'f16', terms = { term { select(range(1, 7)), select(range(9, 13)) }, term { "
     "identity() } }",
     56, 56, 1},
    {"d = 40, dv = 64, terms = term { select(range(3, 40)) }", 38, 40, 1},
    {"d = 16, dv = 16, terms = taylor { degree = 2 }", 0, 0, 0},
    {"d = 40, dv = 256, terms = power { degree = 2 }", 0, 0, 0},
};

static void few_features_of_wide_values_are_packed_as_rows(void **state)
{
    for (size_t i = 0; i < sizeof packs / sizeof *packs; i++) {
        const struct packs *p = &packs[i];
        planned_head m;
        planned_make(&m, p->body, "cuda:sm_90a");
        const fpa_fused_rows *rows = m.plan.cuda.fused_rows;
        const bool packed = rows && rows->packed;
        if (packed != (p->width > 0) || m.plan.cuda.geometry.fused_packs != packed)
            fail_msg("%s: packed %d, as the launch knows %d", p->body, packed,
                     m.plan.cuda.geometry.fused_packs);
        if (packed && (rows->width != p->width || rows->vector != p->vector ||
                       rows->scale_power != p->scale_power || rows->weighted))
            fail_msg("%s: %d features in vectors of %d, scale to the power %d", p->body, rows->width,
                     rows->vector, rows->scale_power);
        planned_free(&m);
    }
}

/* Columns of all values and the normaliser's have no registers: blocks of the pass's own width. */
static void columns_are_as_many_as_sums_have_registers(void **state)
{
    static const struct widths {
        const char *body;
        int blocks, tiles;
    } widths[] = {
        {"d = 256, dv = 128, terms = linear {}", 1, 16},
        {"d = 200, dv = 128, normalize = 'sum', terms = linear {}", 2, 8},
        {"d = 256, dv = 128, normalize = 'sum', gate = true, terms = linear {}", 2, 8},
        {"d = 256, dv = 256, normalize = 'sum', terms = linear {}", 3, 11},
        {"d = 128, dv = 128, normalize = 'sum', terms = linear {}", 1, 16},
    };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        planned_head m;
        planned_make(&m, widths[i].body, "cuda:sm_90a");
        const fpa_columns *columns = &m.plan.cuda.columns;
        if (!m.plan.cuda.fused_rows || columns->blocks != widths[i].blocks ||
            columns->tiles != widths[i].tiles)
            fail_msg("%s: fused_rows %d, %d blocks of %d tiles", widths[i].body, !!m.plan.cuda.fused_rows,
                     columns->blocks, columns->tiles);
        planned_free(&m);
    }
}

/* Heads without, and why. */
static const struct others {
    const char *body, *target, *why;
} others[] = {
    {"d = 201, dv = 200, terms = linear {}", "cuda:sm_90", "no wgmma"},
    {"d = 201, dv = 200, dtype = 'f32', terms = linear {}", "cuda:sm_90a", "not 16-bit coordinates"},
    {"d = 201, dv = 200, causal = false, terms = linear {}", "cuda:sm_90a", "it is not causal"},
    {"d = 40, dv = 64, causal = false, terms = term { select(range(3, 40)) }", "cuda:sm_90a",
     "it is not causal"},
    {"d = 24, dv = 64, causal = false, terms = term { trainable { name = 'w', rows = 20 } }", "cuda:sm_90a",
     "it is not causal"},
    {"d = 24, dv = 24, terms = power { degree = 2 }", "cuda:sm_90a", "not 16-bit coordinates"},
};

static void linear_heads_of_any_width_have_a_pass_on_rows_as_they_lie(void **state)
{
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        const struct passes *p = &passes[i];
        planned_head m;
        planned_make(&m, p->body, "cuda:sm_90a");
        const fpa_fused_rows *rows = m.plan.cuda.suited[FUSED_ROWS].plan;
        if (!rows)
            fail_msg("%s: %s", p->body, m.plan.cuda.suited[FUSED_ROWS].why);
        if (rows->width != p->width || rows->key_groups != p->key_groups || rows->key_tiles != p->key_tiles ||
            rows->weighted != p->weighted)
            fail_msg("%s: %d features, %d x %d tiles, weighted %d", p->body, rows->width, rows->key_groups,
                     rows->key_tiles, rows->weighted);
        planned_free(&m);
    }
}

static void heads_without_it_say_why(void **state)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        planned_head m;
        planned_make(&m, others[i].body, others[i].target);
        const fpa_suited *rows = &m.plan.cuda.suited[FUSED_ROWS];
        if (rows->plan || !strstr(rows->why, others[i].why))
            fail_msg("%s: '%s'", others[i].body, rows->why);
        planned_free(&m);
    }
}

/* A multiprocessor has 65,536 registers, of which setmaxnreg shares out eights: to the warpgroups of its blocks. The copy engine
 * writes slabs from multiples of 1024 bytes on. */
static void warpgroups_share_all_registers_and_memory_suffices(void **state)
{
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        planned_head m;
        planned_make(&m, passes[i].body, "cuda:sm_90a");
        const fpa_fused_rows *rows = m.plan.cuda.suited[FUSED_ROWS].plan;
        assert_non_null(rows);
        const int groups = 1 + rows->key_groups + rows->query_groups;
        assert_int_equal(rows->blocks, passes[i].blocks);
        assert_true(rows->blocks * groups * rows->first_registers <= 512 && rows->first_registers % 8 == 0);
        assert_true(rows->blocks > 1 || groups == 4);
        assert_true(rows->fetch_registers % 8 == 0 && rows->key_registers % 8 == 0 &&
                    rows->query_registers % 8 == 0);
        assert_true(rows->fetch_registers + rows->key_groups * rows->key_registers +
                        rows->query_groups * rows->query_registers <=
                    groups * rows->first_registers);
        /* sums of o, dots and scores at once: with less, ptxas serialises products */
        assert_true(!rows->factored || m.plan.cuda.columns.all < 16 || rows->query_registers >= 136);
        assert_true(rows->panels >= 2 && rows->copies >= rows->query_groups);
        assert_int_equal(rows->panel_bytes % 1024, 0);
        assert_int_equal(rows->query_bytes % 1024, 0);
        assert_true(rows->total_panels > rows->panels);
        assert_true(rows->total_panels * (rows->panel_bytes - rows->query_bytes) <= rows->at_barriers);
        assert_true(rows->blocks * (rows->bytes + 1024) <= m.plan.target->shared_memory + 1024);
        assert_int_equal(m.plan.cuda.geometry.kernel[CUDA_FUSED_CHUNK].threads, 128 * groups);
        assert_int_equal(m.plan.cuda.geometry.kernel[CUDA_FUSED_CHUNK].resident, rows->blocks);
        planned_free(&m);
    }
}

/* In several blocks, too, all heads' values have columns to lean, in one block more if need be; where copies have no room they have the rows that queries read. */
static void values_lean_in_several_blocks(void **state)
{
    static const struct leaning {
        const char *body;
        int blocks, tiles, copied;
    } heads[] = {
        {"d = 194, dv = 235, gate = true, terms = linear {}", 2, 16, 208},
        {"d = 42, dv = 155, terms = linear {}", 2, 11, 64},
        {"d = 67, dv = 171, dtype = 'f16', normalize = 'sum', terms = linear {}", 2, 12, 128},
        {"d = 128, dv = 256, gate = true, terms = linear {}", 2, 16, 128},
        {"d = 150, dv = 253, terms = linear {}", 3, 11, 192},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        planned_head m;
        planned_make(&m, heads[i].body, "cuda:sm_90a");
        const fpa_fused_rows *rows = m.plan.cuda.suited[FUSED_ROWS].plan;
        const fpa_columns *columns = &m.plan.cuda.columns;
        if (!rows)
            fail_msg("%s: no rows", heads[i].body);
        if (columns->blocks != heads[i].blocks || columns->tiles != heads[i].tiles ||
            rows->copied != heads[i].copied)
            fail_msg("%s: %d blocks of %d tiles, %d rows", heads[i].body, columns->blocks, columns->tiles,
                     rows->copied);
        planned_free(&m);
    }
}

/* All heads' vectors have room to lean, in one step of 16 more, and one slab if need be; where a lane would have two words of a row they come as words. These need tails
 * of whole pieces only where there is room. */
static void vectors_lean_in_steps_for_that(void **state)
{
    static const struct steps {
        const char *body;
        int steps, slabs, room;
        bool vector_words, value_words;
    } heads[] = {
        {"d = 160, dv = 64, gate = true, terms = linear {}", 10, 3, 0, true, true},
        {"d = 41, dv = 64, gate = true, terms = linear {}", 3, 1, 7, true, true},
        {"d = 47, dv = 64, gate = true, terms = linear {}", 4, 1, 17, true, true},
        {"d = 63, dv = 128, terms = linear {}", 5, 2, 17, true, true},
        {"d = 190, dv = 251, terms = linear {}", 13, 4, 18, true, true},
        {"d = 253, dv = 64, gate = true, terms = linear {}", 16, 4, 3, true, true},
        {"d = 242, dv = 256, gate = true, terms = linear {}", 16, 4, 14, true, false},
        {"d = 256, dv = 239, terms = linear {}", 16, 4, 0, false, true},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        planned_head m;
        planned_make(&m, heads[i].body, "cuda:sm_90a");
        const fpa_fused_rows *rows = m.plan.cuda.fused_rows;
        if (!rows)
            fail_msg("%s: no rows", heads[i].body);
        if (rows->steps != heads[i].steps || rows->slabs != heads[i].slabs ||
            rows->vector_room != heads[i].room || rows->vector_words != heads[i].vector_words ||
            rows->value_words != heads[i].value_words)
            fail_msg("%s: %d steps, %d slabs, room for %d, words %d, %d", heads[i].body, rows->steps,
                     rows->slabs, rows->vector_room, rows->vector_words, rows->value_words);
        planned_free(&m);
    }
}

/* In totals, who has no queries finishes panels, where that takes longer than products: where keys are weighed, or rows have no room to lean. */
static void totals_are_finished_by_more_where_panels_take_long(void **state)
{
    static const struct finished {
        const char *body;
        bool much;
    } heads[] = {
        {"d = 201, dv = 200, terms = linear {}", false},
        {"d = 194, dv = 235, gate = true, terms = linear {}", false},
        {"d = 190, dv = 235, gate = true, terms = linear {}", false},
        {"d = 253, dv = 64, gate = true, terms = linear {}", true},
        {"d = 256, dv = 256, gate = true, terms = linear {}", false},
        {"d = 75, dv = 40, normalize = 'sum', terms = linear { weight = 3 }", true},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        planned_head m;
        planned_make(&m, heads[i].body, "cuda:sm_90a");
        const fpa_fused_rows *rows = m.plan.cuda.suited[FUSED_ROWS].plan;
        assert_non_null(rows);
        if (rows->finishes_much != heads[i].much)
            fail_msg("%s: %d", heads[i].body, rows->finishes_much);
        planned_free(&m);
    }
}

static void features_have_the_slots_of_their_coordinates(void **state)
{
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        planned_head m;
        planned_make(&m, passes[i].body, "cuda:sm_90a");
        const fpa_fused_rows *rows = m.plan.cuda.suited[FUSED_ROWS].plan;
        assert_non_null(rows);
        assert_true(rows->slots >= rows->width);
        for (int s = 0; s < rows->slots; s++) {
            assert_int_equal(rows->slot_feature[s], s < rows->width ? s : -1);
            if (s < rows->width)
                assert_true(rows->weighted || rows->slot_weight[s] == 1);
        }
        planned_free(&m);
    }
}

/* By turns on an H200: docs/decisions/0099-ones-of-their-own.md. */
static void rows_are_chosen_beside_clusters_where_these_were_measured_to_take_longer(void **state)
{
    static const struct beside {
        const char *body;
        bool rows;
    } heads[] = {
        {"d = 128, dv = 128, gate = true, terms = linear {}", true},
        {"d = 128, dv = 256, terms = linear {}", true},
        {"d = 64, dv = 128, terms = linear {}", false},
        {"d = 64, dv = 128, gate = true, terms = linear {}", true},
        {"d = 128, dv = 128, terms = linear {}", true},
        {"d = 128, dv = 128, gate = true, normalize = 'sum', terms = linear {}", true},
        {"d = 64, dv = 64, gate = true, normalize = 'sum', terms = linear {}", false},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        planned_head m;
        planned_make(&m, heads[i].body, "cuda:sm_90a");
        if (m.plan.cuda.chosen[FUSED_ROWS] != heads[i].rows ||
            m.plan.cuda.chosen[CLUSTER_SCAN] != !heads[i].rows)
            fail_msg("%s: rows %d, clusters %d", heads[i].body, m.plan.cuda.chosen[FUSED_ROWS],
                     m.plan.cuda.chosen[CLUSTER_SCAN]);
        planned_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_heads_of_any_width_have_a_pass_on_rows_as_they_lie),
        cmocka_unit_test(few_features_of_wide_values_are_packed_as_rows),
        cmocka_unit_test(heads_without_it_say_why),
        cmocka_unit_test(columns_are_as_many_as_sums_have_registers),
        cmocka_unit_test(warpgroups_share_all_registers_and_memory_suffices),
        cmocka_unit_test(values_lean_in_several_blocks),
        cmocka_unit_test(vectors_lean_in_steps_for_that),
        cmocka_unit_test(totals_are_finished_by_more_where_panels_take_long),
        cmocka_unit_test(features_have_the_slots_of_their_coordinates),
        cmocka_unit_test(rows_are_chosen_beside_clusters_where_these_were_measured_to_take_longer),
    };
    return cmocka_run_group_tests_name("plan fused rows", tests, NULL, NULL);
}

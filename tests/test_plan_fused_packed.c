/* plan_fused_packed: which heads have one pass by warpgroups with tasks of their own, and in what order it
 * has their features. */
#include "gen/plan/cuda/fused_packed.h"
#include "claims.h"
#include "planned.h"

#include <stdlib.h>
#include <string.h>

#define SOME(rows, d, seed) "dense(orthogonal { d = " #d ", rows = " #rows ", seed = " #seed " })"

/* Heads with one pass. */
static const struct flowing {
    const char *body; /* of head { ... } */
    int key_groups, key_tiles, rows;
    bool coordinates;
    int whole;  /* units whose last factor's rows follow each other */
    int blocks; /* on a multiprocessor */
} flowing[] = {
    {"d = 16, dv = 64, normalize = 'sum', terms = taylor { degree = 2 }", 1, 3, 18, true, 10, 1},
    {"d = 16, dv = 64, block = 4, terms = taylor { degree = 2 }", 1, 3, 18, true, 10, 1},
    {"d = 16, dv = 64, block = 1, terms = taylor { degree = 2 }", 1, 3, 18, true, 9, 1},
    {"d = 24, dv = 24, terms = power { degree = 2 }", 1, 5, 34, true, 9, 1},
    {"d = 64, dv = 64, terms = term { " SOME(16, 64, 1) ", " SOME(32, 64, 2) " }", 2, 4, 50, false, 32, 1},
    {"d = 64, dv = 16, gate = true, terms = term { " SOME(16, 64, 1) ", " SOME(32, 64, 2) " }", 1, 8, 50,
     false, 32, 1},
    {"d = 64, dv = 128, terms = term { " SOME(16, 64, 1) ", " SOME(16, 64, 2) " }", 1, 4, 34, false, 16, 1},
    {"d = 48, dv = 48, terms = term { " SOME(3, 48, 1) ", " SOME(7, 48, 2) ", " SOME(5, 48, 3) " }", 1, 2, 18,
     false, 0, 2},
    {"d = 16, dv = 64, normalize = 'sum', window = 128, terms = taylor { degree = 2 }", 1, 3, 18, true, 10,
     1},
    {"d = 16, dv = 64, normalize = 'sum', window = 256, terms = taylor { degree = 2 }", 1, 3, 18, true, 10,
     1},
    {"d = 24, dv = 24, terms = { term { trainable { name = 'W', rows = 20 } }, term { identity() } }", 1, 1,
     58, true, 2, 2},
};

/* Heads without, and why. */
static const struct others {
    const char *body, *target, *why;
} others[] = {
    {"d = 64, dv = 64, terms = linear {}", "cuda:sm_90a", "not packed rows of 16-bit numbers"},
    {"d = 16, dv = 64, terms = taylor { degree = 2 }", "cuda:sm_90", "not packed rows of 16-bit numbers"},
    {"d = 16, dv = 64, causal = false, terms = tspow { d = 16, degree = 2, block = 8 }", "cuda:sm_90a",
     "it is not causal"},
    {"d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 8 }", "cuda:sm_90a",
     "does not fit into the registers"},
    {"d = 64, dv = 64, normalize = 'sum', terms = term { " SOME(16, 64, 1) ", " SOME(32, 64, 2) " }",
     "cuda:sm_90a", "does not fit into the registers"},
    {"d = 256, dv = 64, terms = { term { " SOME(8, 256, 1) " }, term { " SOME(8, 256, 1) ", " SOME(
         40, 256, 2) ", select { 1 } } }",
     "cuda:sm_90a", "do not fit into shared memory"},
};

static void heads_whose_state_registers_hold_have_one_pass(void **state)
{
    for (size_t i = 0; i < sizeof flowing / sizeof *flowing; i++) {
        const struct flowing *f = &flowing[i];
        planned_head m;
        planned_make_as(&m, f->body, "cuda:sm_90a", "fused_packed");
        const fpa_fused_packed *fused = m.plan.cuda.fused_packed;
        if (!fused)
            fail_msg("%s: %s", f->body, m.plan.cuda.suited[FUSED_PACKED].why);
        if (fused->key_groups != f->key_groups || fused->key_tiles != f->key_tiles || fused->rows < f->rows ||
            fused->rows >= f->rows + 8 || fused->coordinates != f->coordinates)
            fail_msg("%s: %d x %d tiles, %d rows, coordinates %d", f->body, fused->key_groups,
                     fused->key_tiles, fused->rows, fused->coordinates);
        assert_true(m.plan.cuda.fused);
        planned_free(&m);
    }
}

/* Of 25 tiles of columns two blocks of 13 would take two warpgroups of keys, and four of 7 would pack rows once more than three of 9. */
static void blocks_have_as_many_columns_as_a_warpgroup_holds_sums_of(void **state)
{
    planned_head m;
    planned_make(&m,
                 "d = 24, dv = 200, chunk = 64, terms = term { " SOME(10, 24, 1) ", " SOME(20, 24, 2) " }",
                 "cuda:sm_90a");
    const fpa_fused_packed *fused = m.plan.cuda.fused_packed;
    assert_non_null(fused);
    assert_int_equal(fused->key_groups, 1);
    assert_int_equal(m.plan.cuda.columns.tiles, 9);
    assert_int_equal(m.plan.cuda.columns.blocks, 3);
    planned_free(&m);
}

static void heads_without_one_pass_say_why(void **state)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        planned_head m;
        planned_make(&m, others[i].body, others[i].target);
        const fpa_suited *packed = &m.plan.cuda.suited[FUSED_PACKED];
        if (packed->plan || !strstr(packed->why, others[i].why))
            fail_msg("%s: '%s'", others[i].body, packed->why);
        planned_free(&m);
    }
}

/* A multiprocessor has 65,536 registers, of which setmaxnreg shares out eights: to four warpgroups, or five, that begin with as many each. */
static void assert_shared(const fpa_fused_share *share, int blocks, int groups, int packers, int keys)
{
    assert_true(share->pack_registers % 8 == 0 && share->key_registers % 8 == 0 &&
                share->query_registers % 8 == 0);
    assert_true(packers + keys <= groups);
    assert_true(packers * share->pack_registers + keys * share->key_registers +
                    (groups - packers - keys) * share->query_registers <=
                groups * (512 / blocks / groups / 8 * 8));
}

static void warpgroups_share_all_registers_and_memory_suffices(void **state)
{
    for (size_t i = 0; i < sizeof flowing / sizeof *flowing; i++) {
        planned_head m;
        planned_make_as(&m, flowing[i].body, "cuda:sm_90a", "fused_packed");
        const fpa_fused_packed *fused = m.plan.cuda.fused_packed;
        const int groups = 1 + fused->key_groups + fused->query_groups;
        assert_int_equal(fused->blocks, flowing[i].blocks);
        assert_int_equal(groups, fused->blocks > 1 ? 2 : fused->near_panels >= 3 ? 5 : 4);
        assert_shared(&fused->walk, fused->blocks, groups, 1, fused->key_groups);
        assert_shared(&fused->totals, fused->blocks, groups, fused->total_packers,
                      fused->key_groups * fused->total_parts);
        assert_true(fused->blocks * (fused->bytes + 1024) <= m.plan.target->shared_memory + 1024);
        assert_int_equal(fused->at_raw_stages % 1024, 0);
        assert_int_equal(fused->at_matrix % 1024, 0);
        assert_int_equal(fused->raw_bytes % 1024, 0);
        assert_true(fused->raw_row == 128 || 2 * fused->vector <= fused->raw_row);
        /* else a panel that waits for its values would wait for itself */
        assert_true(fused->values >= fused->raw_stages && fused->panels >= 2);
        /* beside a window, where rows are coordinates; vectors of both sides have a place together */
        assert_int_equal(fused->tasks, fused->near_panels && !fused->projected && !m.plan.weighted_count &&
                                           !m.plan.head->gate);
        assert_true(!fused->tasks || (fused->raw_stages % 2 == 0 && fused->values == fused->panels));
        /* else a packer would fill a place that the other one's panel still has */
        assert_true(fused->total_packers == 1 || (fused->raw_stages % 2 == 0 && fused->panels % 2 == 0));
        planned_free(&m);
    }
}

static void every_feature_has_one_slot(void **state)
{
    for (size_t i = 0; i < sizeof flowing / sizeof *flowing; i++) {
        planned_head m;
        planned_make_as(&m, flowing[i].body, "cuda:sm_90a", "fused_packed");
        const fpa_fused_packed *fused = m.plan.cuda.fused_packed;
        bool *seen = calloc((size_t)m.plan.features, sizeof *seen);
        assert_non_null(seen);
        assert_true(fused->slots >= m.plan.features);
        int count = 0, units = 0;
        for (int s = 0; s < fused->slots; s++) {
            units += s % CUDA_UNIT == 0 && fused->slot_feature[s] >= 0;
            if (fused->slot_feature[s] < 0)
                continue;
            assert_in_range(fused->slot_feature[s], 0, m.plan.features - 1);
            assert_false(seen[fused->slot_feature[s]]);
            seen[fused->slot_feature[s]] = true, count++;
        }
        assert_int_equal(count, m.plan.features);
        assert_int_equal(units, m.plan.cuda.rows->units); /* queries read no other ones */
        free(seen);
        planned_free(&m);
    }
}

/* The row of a factor of a slot's feature, counted from the last one; -1: it has no feature. */
static int row_of(const fpa_plan *plan, int slot, int from_last)
{
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const fpa_fused_packed *fused = plan->cuda.fused_packed;
    const int factor = rows->factors - 1 - (from_last ^ fused->slot_swapped[slot]);
    if (fused->slot_feature[slot] < 0)
        return -1;
    return rows->factor_row[factor * rows->features + fused->slot_feature[slot]];
}

/* Rows of a unit's factor that are the first one's, or follow each other (apart: 0, 1). */
static bool unit_goes(const fpa_plan *plan, int unit, int from_last, int apart)
{
    const int first = row_of(plan, unit * CUDA_UNIT, from_last);
    for (int i = 0; i < CUDA_UNIT; i++)
        if (first < 0 || row_of(plan, unit * CUDA_UNIT + i, from_last) != first + apart * i)
            return false;
    return true;
}

static void units_have_rows_that_follow_each_other_where_pieces_do(void **state)
{
    for (size_t i = 0; i < sizeof flowing / sizeof *flowing; i++) {
        planned_head m;
        int whole = 0;
        planned_make_as(&m, flowing[i].body, "cuda:sm_90a", "fused_packed");
        for (int u = 0; u < m.plan.cuda.fused_packed->slots / CUDA_UNIT; u++)
            whole +=
                unit_goes(&m.plan, u, 0, 1) || (unit_goes(&m.plan, u, 0, 0) && unit_goes(&m.plan, u, 1, 1));
        if (whole != flowing[i].whole)
            fail_msg("%s: %d units", flowing[i].body, whole);
        planned_free(&m);
    }
}

/* Of Taylor's features of degree 2 of 16 rows: keys fetch one factor of a warp's tiles once, and the other one of its second tile, where it has squares, by
 * exchanging halves of the first one's. */
static void warps_of_squares_fetch_few_rows(void **state)
{
    planned_head m;
    planned_make_as(&m, flowing[0].body, "cuda:sm_90a", "fused_packed");
    for (int s = 64; s < m.plan.cuda.fused_packed->slots; s++) {
        if (m.plan.cuda.fused_packed->slot_feature[s] < 0)
            continue;
        assert_int_equal(row_of(&m.plan, s, 0), row_of(&m.plan, s % 64, 0));
        if (s < 128)
            assert_int_equal(row_of(&m.plan, s, 1), row_of(&m.plan, s % 64 ^ 8, 1));
    }
    planned_free(&m);
}

/* ---- features of queries ---- */

/* Heads whose units have one fragment, halves of one and of two, halves of one that are the same, and rows of a table. */
static const char *const fetching[] = {
    "d = 16, dv = 64, normalize = 'sum', terms = taylor { degree = 2 }",
    "d = 24, dv = 24, terms = power { degree = 2 }",
    "d = 48, dv = 48, terms = term { " SOME(3, 48, 1) ", " SOME(7, 48, 2) ", " SOME(5, 48, 3) " }",
    "d = 16, dv = 16, terms = { term { trainable { name = 'a', rows = 8 } }, term { trainable { name = 'b', "
    "rows = 6 }, "
    "trainable { name = 'e', rows = 10 } }, term { trainable { name = 'f', rows = 4 }, trainable { name = "
    "'g', rows = "
    "4 }, trainable { name = 'h', rows = 4 } } }",
    "d = 64, dv = 64, terms = term { " SOME(16, 64, 1) ", " SOME(32, 64, 2) " }",
    "d = 24, dv = 24, terms = { term { trainable { name = 'W', rows = 20 } }, term { identity() } }",
};

enum { FETCHING = sizeof fetching / sizeof *fetching, MOST_PLACES = 64, HALF = CUDA_UNIT / 2 };

/* What the next groups' fetches leave in registers. */
static void fetch_for(const fpa_fused_queries *q, int group, int *holds)
{
    for (int i = 0; i < q->fetches; i++)
        if (q->fetch[i].group == group)
            holds[q->fetch[i].place] = q->fetch[i].fragment;
}

/* Row i of a factor of unit n of the order, by what registers hold. */
static int row_held(const fpa_fused_queries *q, int factor, int i, const int *holds)
{
    const fpa_fused_factor *at = &q->factor[factor];
    const fpa_fused_fragment *f = &q->fragment[at->fragment];
    assert_in_range(at->place, 0, q->places - 1);
    if (!f->halves)
        return q->fragment[holds[at->place]].row[i];
    return i < HALF ? q->fragment[holds[at->place]].row[f->low_half * HALF + i]
                    : q->fragment[holds[at->high_place]].row[f->high_half * HALF + i - HALF];
}

static void check_unit(const fpa_plan *plan, int n, const int *holds)
{
    const fpa_fused_packed *fused = plan->cuda.fused_packed;
    const int factors = plan->cuda.rows->factors, unit = fused->queries.unit[n];
    for (int l = 0; l < factors; l++)
        for (int i = 0; i < CUDA_UNIT; i++) {
            const int row = row_of(plan, unit * CUDA_UNIT + i, factors - 1 - l);
            if (row >= 0)
                assert_int_equal(row_held(&fused->queries, n * factors + l, i, holds), row - fused->row_base);
        }
}

/* As the template fetches: a group before its products, whose fragments stay until these are made. */
static void queries_hold_the_rows_of_each_unit_when_they_multiply_it(void **state)
{
    for (int h = 0; h < FETCHING; h++) {
        planned_head m;
        planned_make_as(&m, fetching[h], "cuda:sm_90a", "fused_packed");
        const fpa_fused_queries *q = &m.plan.cuda.fused_packed->queries;
        const int together = m.plan.cuda.fused_packed->walk.query_together;
        int holds[MOST_PLACES];
        memset(holds, 0xff, sizeof holds);
        assert_in_range(q->places, 1, MOST_PLACES);
        assert_int_equal(q->units, m.plan.cuda.rows->units);
        fetch_for(q, 0, holds);
        for (int g = 0; g < q->groups; g++) {
            fetch_for(q, g + 1, holds);
            for (int n = g * together; n < q->units && n < (g + 1) * together; n++)
                check_unit(&m.plan, n, holds);
        }
        planned_free(&m);
    }
}

static void each_unit_with_features_has_one_turn(void **state)
{
    for (int h = 0; h < FETCHING; h++) {
        planned_head m;
        planned_make_as(&m, fetching[h], "cuda:sm_90a", "fused_packed");
        const fpa_fused_packed *fused = m.plan.cuda.fused_packed;
        bool seen[FUSED_MOST_UNITS] = {false};
        for (int n = 0; n < fused->queries.units; n++) {
            assert_in_range(fused->queries.unit[n], 0, fused->slots / CUDA_UNIT - 1);
            assert_false(seen[fused->queries.unit[n]]);
            seen[fused->queries.unit[n]] = true;
        }
        planned_free(&m);
    }
}

/* Kinds of all fragments of a head. */
static void count_kinds(const char *body, int *halves, int *same_half_twice, int *looked_up)
{
    planned_head m;
    planned_make_as(&m, body, "cuda:sm_90a", "fused_packed");
    const fpa_fused_queries *q = &m.plan.cuda.fused_packed->queries;
    for (int j = 0; j < q->fragments; j++) {
        const fpa_fused_fragment *f = &q->fragment[j];
        assert_true(f->one + f->run + f->halves <= 1);
        *halves += f->halves;
        *same_half_twice += f->halves && f->low == f->high && f->low_half == f->high_half;
    }
    *looked_up += q->looked_up;
    planned_free(&m);
}

static void fragments_are_of_every_kind(void **state)
{
    int halves = 0, same_half_twice = 0, looked_up = 0;
    for (int h = 0; h < FETCHING; h++)
        count_kinds(fetching[h], &halves, &same_half_twice, &looked_up);
    assert_true(halves > same_half_twice && same_half_twice > 0 && looked_up > 0);
}

/* Of all products of 16 rows the last units are halves of the first ones' rows: nothing more is fetched for them. */
static void squares_fetch_each_row_of_queries_once(void **state)
{
    planned_head m;
    planned_make_as(&m, fetching[0], "cuda:sm_90a", "fused_packed");
    const fpa_fused_queries *q = &m.plan.cuda.fused_packed->queries;
    bool seen[4 * FUSED_MOST_UNITS] = {false};
    assert_true(q->fetches < q->fragments);
    for (int i = 0; i < q->fetches; i++) {
        assert_false(q->fragment[q->fetch[i].fragment].halves);
        assert_false(seen[q->fetch[i].fragment]);
        seen[q->fetch[i].fragment] = true;
    }
    planned_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_whose_state_registers_hold_have_one_pass),
        cmocka_unit_test(blocks_have_as_many_columns_as_a_warpgroup_holds_sums_of),
        cmocka_unit_test(heads_without_one_pass_say_why),
        cmocka_unit_test(warpgroups_share_all_registers_and_memory_suffices),
        cmocka_unit_test(every_feature_has_one_slot),
        cmocka_unit_test(units_have_rows_that_follow_each_other_where_pieces_do),
        cmocka_unit_test(warps_of_squares_fetch_few_rows),
        cmocka_unit_test(queries_hold_the_rows_of_each_unit_when_they_multiply_it),
        cmocka_unit_test(each_unit_with_features_has_one_turn),
        cmocka_unit_test(fragments_are_of_every_kind),
        cmocka_unit_test(squares_fetch_each_row_of_queries_once),
    };
    return cmocka_run_group_tests_name("plan of one pass", tests, NULL, NULL);
}

/* plan_outer: rows of a vector have runs and alignment, and dots read them by whole steps. */
#include "outer_made.h"

#include <math.h>

/* ---- rows ---- */

static void check_run(const int *row, int count, int aligned)
{
    if (row[0] < 0)
        return;
    assert_int_equal(row[0] % aligned, 0);
    for (int i = 1; i < count; i++)
        assert_int_equal(row[i], row[0] + i);
}

static void check_made_runs(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    assert_true(outer->row[0] <= 0);
    check_run(outer->row, plan->head->d, 16);
    for (int i = 0; i < plan->projection_count; i++)
        check_run(outer->row + plan->projections[i].first_row,
                  plan->head->matrices[plan->projections[i].matrix].rows, 16);
}

/* Of a coordinate behind packed rows. */
static bool is_given(const fpa_outer_plan *outer, int row)
{
    return outer->given_rows && row >= 64 * outer->given_slab;
}

/* Rows that no dot before has follow each other from a multiple of 16 on. */
static void check_dot_runs(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    int next = 0;
    for (int i = 0; i < plan->score->dot_count; i++) {
        next = (next + 15) / 16 * 16;
        for (int r = 0; r < plan->dots[i].row_count; r++)
            if (outer->row[plan->dots[i].rows[r]] >= next &&
                !is_given(outer, outer->row[plan->dots[i].rows[r]]))
                assert_int_equal(outer->row[plan->dots[i].rows[r]], next++);
    }
}

/* Coordinates in slabs of 64 rows, as many in each as a box has; the row of ones behind the first ones, in a step that no coordinate has a row in. */
static void check_boxes(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    const int box = outer->vector_box;
    assert_in_range(box, 16, 48);
    assert_int_equal(box % 16, 0);
    for (int i = 0; i < plan->head->d; i++)
        assert_int_equal(outer->row[i], i / box * 64 + i % box);
    assert_int_equal(outer->ones_row, box);
    assert_int_equal(outer->vector_rows, plan->head->d);
    /* dots read whole steps, of which the last one has all its blocks */
    assert_int_equal(outer->row_blocks,
                     plan->head->d > box ? (outer->row[plan->head->d - 1] / 16 + 1) * 2 : box / 8 + 1);
    assert_true(outer->coordinates);
}

static void check_rows(const struct made *m)
{
    const fpa_plan *plan = &m->head.plan;
    const fpa_outer_plan *outer = &m->outer;
    int kept = 0;
    bool gathered = false;
    for (int i = 0; i < plan->row_count; i++) {
        if (outer->row[i] < 0)
            continue;
        assert_in_range(outer->row[i], 0, 8 * outer->row_blocks - 1);
        assert_int_equal(outer->source[outer->row[i]], i);
        kept++;
    }
    /* what dots gather comes behind */
    for (int i = 0, seen = 0; i < 8 * outer->row_blocks; i++) {
        const int row = outer->source[i];
        const bool again = row >= 0 && outer->row[row] != i;
        seen += row >= 0 && !again;
        assert_true(!again || (outer->row[row] < i && seen == kept));
        assert_true(row < 0 || i < outer->vector_rows || outer->vector_box < 64 || is_given(outer, i));
        gathered |= again;
    }
    if (outer->vector_box < 64)
        check_boxes(plan, outer);
    else if (outer->by_dots)
        check_dot_runs(plan, outer);
    else
        check_made_runs(plan, outer);
    assert_int_equal(outer->ones_row, outer->row[plan->ones_row]);
    if (outer->zero_row >= 0)
        assert_int_equal(outer->source[outer->zero_row], -1);
    assert_int_equal(outer->coordinates,
                     outer->row[0] == 0 && !gathered && kept == plan->head->d + (outer->vector_box < 64));
    assert_true(outer->vector_rows == plan->head->d || outer->vector_rows % 8 == 0);
    assert_in_range(outer->vector_rows, 1, 8 * outer->row_blocks);
}

static void rows_keep_their_runs_and_alignment(void **state)
{
    each(check_rows);
}

/* ---- dots ---- */

static double by_rows(const fpa_dot *dot, const double *q, const double *k)
{
    double sum = 0;
    for (int r = 0; r < dot->row_count; r++)
        sum += q[dot->rows[r]] * k[dot->rows[r]];
    return sum;
}

static double by_steps(const fpa_outer_plan *outer, int dot, const double *q, const double *k)
{
    double sum = 0;
    for (int i = outer->dot_first[dot]; i < outer->dot_first[dot + 1]; i++) {
        assert_in_range(outer->dot_step[i], 0, outer->row_blocks / 2 - 1);
        for (int r = 16 * outer->dot_step[i]; r < 16 * outer->dot_step[i] + 16; r++)
            sum += q[r] * k[r];
    }
    return sum;
}

static void check_dots(const struct made *m)
{
    const fpa_outer_plan *outer = &m->outer;
    double *q, *k;
    srand(20260302); /* fixed */
    double *q_rows = random_rows(m, &q), *k_rows = random_rows(m, &k);
    assert_true(m->head.plan.score->dot_count > 0);
    for (int i = 0; i < m->head.plan.score->dot_count; i++) {
        const double expected = by_rows(&m->head.plan.dots[i], q_rows, k_rows);
        assert_true(fabs(by_steps(outer, i, q, k) - expected) <= 1e-12 * expected);
    }
    free(q_rows);
    free(k_rows);
    free(q);
    free(k);
}

static void steps_of_a_dot_hold_its_rows_and_zeros(void **state)
{
    each(check_dots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_keep_their_runs_and_alignment),
        cmocka_unit_test(steps_of_a_dot_hold_its_rows_and_zeros),
    };
    return cmocka_run_group_tests_name("plan_outer_rows", tests, NULL, NULL);
}

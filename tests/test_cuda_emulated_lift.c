/* Coordinates of heads with a lift on the CPU, in whole calls, against the formula: kernels of sm_90a, then those that
 * other machines have, of the same generation and of the first one with tensor cores of bf16.
 *
 * make test: the heads of emulated_fixed for sm_90a, two more for the others; make test-all: all of them. */
#include "claims.h"
#include "dear.h"
#include "emulate/parts.h"

#include <string.h>

enum { MOST_JOBS = 2 * EMULATED_MOST_HEADS, CALLS = 14 };

static const char *const targets[] = {"cuda:sm_80", "cuda:sm_90"};

/* What make test runs of each: complex rows, squares. */
static const char *const fixed[][2] = {{"sketch", "sketch"}, {"favor", "favor"}};

static void emitted_coordinates_are_those_of_the_formula(void **state)
{
    emulated_expect_formula(*state, PART_LIFT);
}

static bool is_lifted(const fpa_head *head)
{
    return head->lift != NULL;
}

/* Sources of lifted heads for a target. */
static int make_jobs(const emulated_fixture *f, int target, fpa_source *sources, emulated_job *jobs)
{
    fpa_error error;
    int count = 0;
    for (int i = 0; i < f->list.count; i++) {
        const fpa_head *head = f->list.heads[i];
        if (!is_lifted(head) || (!dear_tests() && !is_one_of(fixed[target], 2, head->name)))
            continue;
        assert_ok(source_generate(head, targets[target], &sources[count], &error), &error);
        jobs[count] = (emulated_job){.fixture = f, .head = i, .code = sources[count].code, .end = CALLS};
        if (!dear_tests()) { /* every other call */
            jobs[count].first = target;
            jobs[count].step = 2;
        }
        count++;
    }
    return count;
}

static void so_are_those_of_other_targets(void **state)
{
    const emulated_fixture *f = *state;
    static fpa_source sources[MOST_JOBS];
    static emulated_job jobs[MOST_JOBS];
    int count = 0, first = 0, wrong = 0;
    if (!f->ready)
        skip();
    for (int t = 0; t < 2; t++) {
        count += make_jobs(f, t, sources + count, jobs + count);
        first = t == 0 ? count : first;
    }
    for (int i = 0; i < count; i++)
        jobs[i].number = i;
    assert_true(first > 0 && first < count);
    emulated_run(count, jobs);
    for (int i = 0; i < count; i++) {
        emulated_report(&jobs[i], targets[i >= first]);
        wrong += jobs[i].status != FPA_OK || !(jobs[i].launched & UINT64_C(1) << CUDA_LIFT_ROWS);
        source_free(&sources[i]);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_coordinates_are_those_of_the_formula),
        cmocka_unit_test(so_are_those_of_other_targets),
    };
    return cmocka_run_group_tests_name("cuda emulated lift", tests, emulated_setup, emulated_teardown);
}

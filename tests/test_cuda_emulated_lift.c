/* Coordinates of heads with a lift, as emitted for warpgroups, for a machine of the same generation and for the first one
 * with tensor cores of bf16: whole calls on the CPU against the formula. */
#include "dear.h"
#include "emulate/lifts.h"
#include "emulate/trials.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TARGETS = 3, MOST_JOBS = TARGETS * EMULATED_MOST_HEADS };

static const char *const targets[TARGETS] = {"cuda:sm_90a", "cuda:sm_90", "cuda:sm_80"};

typedef struct lift_fixture {
    emulated_fixture of[TARGETS];
} lift_fixture;

static int setup(void **state)
{
    static lift_fixture f;
    char folder[sizeof f.of[0].folder];
    fpa_error error;
    fpa_status status = FPA_OK;
    const bool ready = emulated_possible();
    *state = &f;
    scratch_make(folder);
    if (ready)
        status = emulated_prepare(folder, &error);
    for (int t = 0; t < TARGETS && !status; t++) {
        f.of[t].ready = ready;
        memcpy(f.of[t].folder, folder, sizeof folder);
        status = emulated_load_heads(&f.of[t], lifted_heads, targets[t], &error);
    }
    if (status)
        print_error("%s: %s\n", error.where, error.message);
    return status ? -1 : 0;
}

static int teardown(void **state)
{
    lift_fixture *f = *state;
    for (int t = 0; t < TARGETS; t++) {
        for (int i = 0; i < f->of[t].list.count; i++)
            source_free(&f->of[t].source[i]);
        head_list_free(&f->of[t].list);
    }
    scratch_remove(f->of[0].folder);
    return 0;
}

static void coordinates_are_those_of_the_formula(void **state)
{
    const lift_fixture *f = *state;
    static emulated_job jobs[MOST_JOBS];
    int count = 0, wrong = 0;
    if (!f->of[0].ready)
        skip();
    for (int t = 0; t < TARGETS; t++)
        for (int i = 0; i < f->of[t].list.count; i++) {
            jobs[count] = (emulated_job){.fixture = &f->of[t],
                                         .head = i,
                                         .code = f->of[t].source[i].code,
                                         .number = count,
                                         .end = EMULATED_CALLS};
            count++;
        }
    emulated_run(count, jobs);
    for (int i = 0; i < count; i++) {
        emulated_report(&jobs[i], targets[jobs[i].fixture - f->of]);
        wrong += jobs[i].status != FPA_OK;
        assert_true(jobs[i].status || jobs[i].launched & 1u << CUDA_LIFT_ROWS);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinates_are_those_of_the_formula),
    };
    return cmocka_run_group_tests_name("cuda emulated lift", tests, setup, teardown);
}

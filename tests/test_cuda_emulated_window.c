/* Windows of exact softmax on the CPU, in whole calls, against the formula: emitted kernels, which are the same for all
 * targets but for what a generation's instructions are; of sm_90a, then of the first one with tensor cores of bf16.
 *
 * make test: the heads of emulated_fixed for sm_90a, one more for the other; make test-all: all of them. */
#include "claims.h"
#include "dear.h"
#include "emulate/parts.h"

#include <string.h>

/* What make test runs of them. */
static const char *const fixed[] = {"nearplain"};

static void emitted_windows_are_those_of_the_formula(void **state)
{
    emulated_expect_formula(*state, PART_WINDOW);
}

static void so_are_those_of_sm_80(void **state)
{
    const emulated_fixture *f = *state;
    static fpa_source sources[EMULATED_MOST_HEADS];
    static emulated_job jobs[EMULATED_MOST_HEADS];
    fpa_error error;
    int count = 0, wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < f->list.count; i++) {
        const fpa_head *head = f->list.heads[i];
        if (!head->window || (!dear_tests() && !is_one_of(fixed, 1, head->name)))
            continue;
        assert_ok(source_generate(head, "cuda:sm_80", &sources[count], &error), &error);
        jobs[count] = (emulated_job){
            .fixture = f, .head = i, .code = sources[count].code, .number = count, .end = SEQUENCES_CALL};
        count++;
    }
    assert_true(count > 0);
    emulated_run(count, jobs);
    for (int i = 0; i < count; i++) {
        emulated_report(&jobs[i], "cuda:sm_80");
        wrong += jobs[i].status != FPA_OK || !(jobs[i].launched & UINT64_C(1) << CUDA_DECODE_WINDOW);
        source_free(&sources[i]);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_windows_are_those_of_the_formula),
        cmocka_unit_test(so_are_those_of_sm_80),
    };
    return cmocka_run_group_tests_name("cuda emulated window", tests, emulated_setup, emulated_teardown);
}

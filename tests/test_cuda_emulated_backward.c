/* Emitted gradients for CUDA on the CPU, launched by the library's own code, beside those of the formula: the trials by
 * which verification judges a module, but of short sequences. */
#include "dear.h"
#include "emulate/backward.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

static void emitted_gradients_are_those_of_the_formula(void **state)
{
    enum { LONGER = 1400 }; /* tokens: a sum of log-gates' gradients over many chunks */
    static backward_job jobs[BACKWARD_MOST_HEADS];
    const backward_fixture *f = *state;
    unsigned launched = 0;
    int wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < f->list.count; i++)
        jobs[i] = (backward_job){.fixture = f, .head = i, .number = i, .code = f->source[i].code};
    jobs[backward_head_named(f, "gated")].longest = LONGER;
    backward_run(f->list.count, jobs);
    for (int i = 0; i < f->list.count; i++) {
        backward_report(&jobs[i], "");
        wrong += jobs[i].status != FPA_OK;
        launched |= jobs[i].launched;
    }
    assert_int_equal(wrong, 0);
    for (int i = CUDA_BACKWARD_OUTPUTS; i <= CUDA_BACKWARD_WEIGHTS; i++)
        if (!(launched >> i & 1))
            fail_msg("no head launches NAME_%s", cuda_kernel_names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_gradients_are_those_of_the_formula),
    };
    return cmocka_run_group_tests_name("cuda emulated backward", tests, backward_setup, backward_teardown);
}

/* The command on a GPU: what it measures there. Skipped where there is none. */
#include "claims.h"
#include "command_place.h"

static const char power_spec[] = "return head { name = 'square', d = 64, dv = 64, dtype = 'bf16', scale = 1 "
                                 "/ 8, terms = power { degree = 2 } }\n";

static void bench_tells_the_kernels_of_a_call(void **state)
{
    place here;
    if (!gpu_is_here())
        skip();
    place_begin(&here, power_spec);
    expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--length", "8192", "--heads", "4", "--form",
               "chunked", "--breakdown"),
           0, "us, each kernel by itself; ", NULL);
    expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--length", "8192", "--heads", "4", "--form",
               "chunked", "--breakdown", "--json"),
           0, "\"kernel\": \"chunk_", NULL); /* _state and _output, or _state_small */
    scratch_remove(here.folder);
}

static void design_measures_what_it_predicts(void **state)
{
    if (!gpu_is_here())
        skip();
    expect(RUN("fpac", "design", "--d", "32", "--state", "128KiB", "--target", "cuda", "--dtype", "bf16",
               "--heads", "4", "--measure", "2"),
           0, "median error of what is predicted: prefill ", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench_tells_the_kernels_of_a_call),
        cmocka_unit_test(design_measures_what_it_predicts),
    };
    return cmocka_run_group_tests_name("command on a GPU", tests, NULL, NULL);
}

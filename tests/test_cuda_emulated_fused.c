/* As test_cuda_emulated.c: the heads with fused_chunk. */
#include "emulate/parts.h"
#include "claims.h"

static void emitted_kernels_with_fused_chunk_compute_the_formula(void **state)
{
    emulated_expect_formula(*state, PART_FUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_kernels_with_fused_chunk_compute_the_formula),
    };
    return cmocka_run_group_tests_name("cuda emulated fused", tests, emulated_setup, emulated_teardown);
}

/* Portable CUDA kernels of the heads and targets of compile_modules.h, generated and compiled by NVRTC: needs
 * no GPU. What the compiler made of them is read from the cubins. Compiling tests are skipped where there is no
 * NVRTC. Those of warpgroups: test_cuda_compile_hopper.c. */
#include "base/parallel.h"
#include "runtime/cuda/build.h"
#include "claims.h"
#include "compile_modules.h"
#include "dear.h"
#include "nvrtc_hurry.h"

#include <stdlib.h>
#include <string.h>

static int setup(void **state)
{
    modules_setup(state);
    modules_compile(*state, false);
    return 0;
}

static void every_shipped_head_compiles_without_warnings_and_spills(void **state)
{
    modules_expect(*state, SHIPPED);
}

static void every_target_compiles_some_of_every_kind(void **state)
{
    modules_expect(*state, TARGETS);
}

static void every_kind_of_head_compiles_in_narrower_types(void **state)
{
    modules_expect(*state, NARROW);
}

static void the_largest_and_smallest_widths_compile(void **state)
{
    modules_expect(*state, WIDTHS); /* but d = 256 in f32 for sm_86 */
}

static void coordinates_compile_in_every_type(void **state)
{
    modules_expect(*state, LIFTS);
}

struct again {
    const fpa_head *head;
    fpa_object object;
    fpa_status status;
    fpa_error error;
};

static void compile_again(int index, void *argument)
{
    struct again *again = &((struct again *)argument)[index];
    fpa_source source;
    nvrtc_report report;
    again->status = source_generate(again->head, "cuda:sm_90", &source, &again->error);
    if (again->status)
        return;
    again->status = cuda_compile(NULL, &source, false, &again->object, &report, &again->error);
    nvrtc_report_free(&report);
    source_free(&source);
}

static void the_same_source_gives_the_same_cubin(void **state)
{
    enum { HEADS = 3, THIN = 2 /* of the widths */ };
    struct again twice[2 * HEADS] = {0};
    const compile_fixture *f = *state;
    const int heads = dear_tests() ? HEADS : 1;
    modules_need_nvrtc(f);
    for (int i = 0; i < 2 * heads; i++)
        twice[i].head = dear_tests() ? module_head(&f->heads, module_kinds[i / 2]) : f->widths.heads[THIN];
    nvrtc_hurry(); /* test_nvrtc.c asks the same of optimised code */
    parallel_run(2 * heads, compile_again, twice);
    nvrtc_hurry_no_more();
    for (int i = 0; i < 2 * heads; i++)
        assert_ok(twice[i].status, &twice[i].error);
    for (int i = 0; i < 2 * heads; i += 2) {
        assert_int_equal(twice[i].object.size, twice[i + 1].object.size);
        assert_memory_equal(twice[i].object.bytes, twice[i + 1].object.bytes, twice[i].object.size);
        free(twice[i].object.bytes);
        free(twice[i + 1].object.bytes);
    }
}

static void a_mistake_in_the_source_is_named_with_its_line(void **state)
{
    compile_fixture *f = *state;
    fpa_source source;
    fpa_object object;
    nvrtc_report report;
    fpa_error error;
    modules_need_nvrtc(f);
    assert_int_equal(source_generate(module_head(&f->heads, "linear_d64"), "cuda:sm_80", &source, &error),
                     FPA_OK);
    free(source.code);
    source.code =
        strdup("extern \"C\" __global__ void linear_d64_chunk_output(int n)\n{\n    n = unknown;\n}\n");
    assert_int_equal(cuda_compile(NULL, &source, false, &object, &report, &error), FPA_COMPILE);
    assert_null(object.bytes);
    assert_non_null(strstr(error.message, "unknown"));
    assert_non_null(strstr(error.message, "3"));
    nvrtc_report_free(&report);
    source_free(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_head_compiles_without_warnings_and_spills),
        cmocka_unit_test(every_target_compiles_some_of_every_kind),
        cmocka_unit_test(every_kind_of_head_compiles_in_narrower_types),
        cmocka_unit_test(the_largest_and_smallest_widths_compile),
        cmocka_unit_test(coordinates_compile_in_every_type),
        cmocka_unit_test(the_same_source_gives_the_same_cubin),
        cmocka_unit_test(a_mistake_in_the_source_is_named_with_its_line),
    };
    return cmocka_run_group_tests_name("cuda compile", tests, setup, modules_teardown);
}

/* What each program of an emitted file needs of its text. */
#include "runtime/cuda/programs.h"

#include <stdlib.h>
#include <string.h>

#include "claims.h"

static const char text[] =
    "/* a file { of two programs */\n"
    "#define FPA_CUDA_PART_ONE 1\n"
    "#define FPA_CUDA_PART_TWO 2\n"
    "#define FPA_CUDA_HAS(part) ((part) == FPA_CUDA_PART)\n"
    "#define twice(x) \\\n"
    "    doubled(x)\n"
    "typedef unsigned short u16;\n"
    "enum { WIDTH = 4 };\n"
    "static __device__ const u16 numbers[2][WIDTH] = {{1, 2, 3, 4}, {5, 6, 7, 8}};\n"
    "[[maybe_unused]] static __device__ const float weights[WIDTH] = {1, 2, 3, 4};\n"
    "static __device__ __attribute__((unused)) const __align__(4) u16 places[WIDTH] = {0};\n"
    "struct __align__(16) pair_of { int a; int sum() const { return a; } };\n"
    "template <class sizes, int count = (2 > 1), bool pairs = false> struct walk { int place; };\n"
    "template <bool pairs = false> __device__ walk<pair_of> find(int i) { walk<pair_of> w = {i}; return w; "
    "}\n"
    "__device__ int doubled(int i) { return 2 * i; /* } */ }\n"
    "__device__ float doubled(float a) { return a + places[0]; }\n"
    "__device__ int quoted(void) { const char *s = \"} never\\\"\"; return s[0] == '}'; }\n"
    "__device__ int never(void) { return numbers[0][0]; }\n"
    "#ifdef OTHER\n"
    "__device__ int chosen(void) { return 1; }\n"
    "#else\n"
    "__device__ int chosen(void) { return quoted(); }\n"
    "#endif\n"
    "#if FPA_CUDA_HAS(FPA_CUDA_PART_ONE)\n"
    "extern \"C\" __global__ void __launch_bounds__(32) first(float *y) { *y = twice(*y) + find(0).place; }\n"
    "#endif\n"
    "#if FPA_CUDA_HAS(FPA_CUDA_PART_TWO)\n"
    "extern \"C\" __global__ void second(float *y)\n"
    "{\n"
    "    *y = weights[chosen()];\n"
    "}\n"
    "#endif\n";

static char *text_of(const char *code, int part)
{
    file_programs *all = programs_read(code);
    assert_non_null(all);
    char *own = programs_text(all, part);
    assert_non_null(own);
    programs_free(all);
    return own;
}

static void a_program_has_its_kernels_and_what_they_name(void **state)
{
    static const struct {
        const char *definition;
        bool in_first, in_second;
    } all[] = {
        {" first(", true, false},         {" second(", false, true},
        {"#define twice", true, false},   {"    doubled(x)\n", true, false},
        {"typedef", true, true},          {"enum", true, true},
        {"numbers", false, false},        {"float weights[", false, true},
        {"u16 places[", true, false},     {"pair_of {", true, false},
        {" walk {", true, false},         {" find(int", true, false},
        {"int doubled(int", true, false}, {"float doubled(float", true, false},
        {" quoted(", false, true},        {" never(", false, false},
        {"return 1;", false, true},       {"#else", true, true},
    };
    (void)state;
    for (int part = 1; part <= 2; part++) {
        char *own = text_of(text, part);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if ((part == 1 ? all[i].in_first : all[i].in_second) != (strstr(own, all[i].definition) != NULL))
                fail_msg("program %d: %s", part, all[i].definition);
        free(own);
    }
}

/* Behind the heading, which counts from 1 again. */
static void lines_stay_where_they_are(void **state)
{
    static const char counted[] = "#line 1\n";
    (void)state;
    for (int part = 1; part <= 2; part++) {
        char *own = text_of(text, part);
        const char *line = strstr(own, counted), *whole = text;
        assert_non_null(line);
        line += strlen(counted);
        for (; *whole; line = strchr(line, '\n') + 1, whole = strchr(whole, '\n') + 1)
            if (*line != '\n')
                assert_memory_equal(line, whole, strcspn(whole, "\n"));
        free(own);
    }
}

static void programs_without_kernels_are_not_there(void **state)
{
    (void)state;
    file_programs *all = programs_read(text);
    assert_true(programs_has(all, 1) && programs_has(all, 2));
    assert_false(programs_has(all, 3));
    programs_free(all);
}

/* It says by other means what is in which. */
static void a_text_that_names_no_program_has_all_kernels_in_each(void **state)
{
    static const char plain[] = "__device__ int one(void) { return 1; }\n"
                                "__device__ int two(void) { return 2; }\n"
                                "__global__ void kernel(int *y) { *y = two(); }\n";
    (void)state;
    file_programs *all = programs_read(plain);
    assert_true(programs_has(all, 1) && programs_has(all, 7));
    programs_free(all);
    char *own = text_of(plain, 7);
    assert_non_null(strstr(own, "kernel(") && strstr(own, " two(") ? own : NULL);
    assert_null(strstr(own, " one("));
    free(own);
}

/* Texts that end anywhere are read to their end, and not farther. */
static void a_text_that_is_cut_is_read(void **state)
{
    (void)state;
    for (size_t length = 0; length < sizeof text; length++) {
        char *cut = strndup(text, length);
        assert_non_null(cut);
        free(text_of(cut, 1));
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_has_its_kernels_and_what_they_name),
        cmocka_unit_test(lines_stay_where_they_are),
        cmocka_unit_test(programs_without_kernels_are_not_there),
        cmocka_unit_test(a_text_that_names_no_program_has_all_kernels_in_each),
        cmocka_unit_test(a_text_that_is_cut_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A head's program is compiled in parts, which are kept together. */
#include "gen/gen.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/image.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/programs.h"
#include "cubin.h"
#include "nvrtc_hurry.h"

#include "nvrtc_fixture.h"

/* A kernel in each part but the second, which has a table only. */
static const char parted[] =
    "#ifndef FPA_CUDA_PART\n#error whole\n#endif\n"
    "#define NAME2(n) toy_part##n\n#define NAME(n) NAME2(n)\n"
    "#if FPA_CUDA_PART == BAD\n#error refused\n#endif\n"
    "extern \"C\" __device__ const int toy_table[4] = {1, 2, 3, 4};\n"
    "#if FPA_CUDA_PART != 2\n"
    "extern \"C\" __global__ void NAME(FPA_CUDA_PART)(int *y) { *y = toy_table[*y]; }\n"
    "#endif\n";

static fpa_status compile_parts(const fixture *f, int bad, fpa_object *object, fpa_error *error)
{
    char code[640];
    fpa_source source = {.code = code, .facts = {.name = "toy", .target = "cuda:sm_80"}};
    snprintf(code, sizeof code, "#define BAD %d\n%s", bad, parted);
    return builder_cuda.compile(&f->options, &source, object, error);
}

static void parts_with_kernels_are_compiled_apart_and_kept_together(void **state)
{
    fixture *f = *state;
    fpa_object object, again, images[FPA_CUDA_PARTS];
    fpa_error error = {0};
    need_nvrtc();
    assert_int_equal(compile_parts(f, 0, &object, &error), FPA_OK);
    assert_int_equal(f->log.lines, 1);
    assert_int_equal(image_split(&object, images, FPA_CUDA_PARTS), FPA_CUDA_PARTS - 1);
    for (int i = 0; i < FPA_CUDA_PARTS - 1; i++) {
        cubin module;
        char name[16];
        snprintf(name, sizeof name, "toy_part%d", i < 1 ? 1 : i + 2);
        assert_true(cubin_read(images[i].bytes, images[i].size, &module));
        assert_int_equal(module.count, 1);
        assert_string_equal(module.kernel[0].name, name);
    }
    assert_int_equal(compile_parts(f, 0, &again, &error), FPA_OK);
    assert_int_equal(again.size, object.size);
    assert_memory_equal(again.bytes, object.bytes, object.size);
    free(object.bytes);
    free(again.bytes);
    assert_int_equal(compile_parts(f, 3, &object, &error), FPA_COMPILE);
    assert_non_null(strstr(error.message, "refused"));
    assert_null(object.bytes);
}

static const cubin_kernel *find_kernel(const cubin *module, const char *name)
{
    for (int i = 0; i < module->count; i++)
        if (strcmp(module->kernel[i].name, name) == 0)
            return &module->kernel[i];
    return NULL;
}

/* The kernels of an emitted file, each in one part only, with the registers that it has in the whole. */
static void the_parts_of_a_head_have_all_of_its_kernels(void **state)
{
    fixture *f = *state;
    fpa_head_list list;
    fpa_source source;
    fpa_object whole_object, object, images[FPA_CUDA_PARTS];
    nvrtc_report report;
    fpa_error error = {0};
    cubin whole;
    const fpa_head *head;
    int found = 0;
    need_nvrtc();
    assert_int_equal(spec_load("specs/storage.lua", &list, &error), FPA_OK);
    assert_int_equal(head_list_find(&list, "linear_d64_bf16", "storage.lua", &head, &error), FPA_OK);
    assert_int_equal(source_generate(head, "cuda:sm_80", &source, &error), FPA_OK);
    assert_int_equal(cuda_compile(&f->options, &source, false, &whole_object, &report, &error), FPA_OK);
    assert_int_equal(builder_cuda.compile(&f->options, &source, &object, &error), FPA_OK);
    assert_true(cubin_read(whole_object.bytes, whole_object.size, &whole));
    int count = image_split(&object, images, FPA_CUDA_PARTS);
    for (int i = 0; i < count; i++) {
        cubin part;
        assert_true(cubin_read(images[i].bytes, images[i].size, &part));
        for (int k = 0; k < part.count; k++, found++) {
            const cubin_kernel *its = find_kernel(&whole, part.kernel[k].name);
            assert_non_null(its);
            assert_int_equal(its->registers, part.kernel[k].registers);
        }
    }
    assert_int_equal(found, whole.count);
    nvrtc_report_free(&report);
    free(whole_object.bytes);
    free(object.bytes);
    source_free(&source);
    head_list_free(&list);
}

/* None of a head's programs lacks what it needs: builder_cuda.compile would compile the whole text then, and nobody would see it. */
static void check_programs(const fpa_source *source)
{
    nvrtc_input input = {.file = "head.cu", .ptx = true}; /* what a text lacks is found before ptxas */
    fpa_error error = {0};
    file_programs *all = programs_read(source->code);
    assert_non_null(all);
    assert_ok(cuda_target(source->facts.target, &input.target, &error), &error);
    for (input.part = 1; input.part <= FPA_CUDA_PARTS; input.part++) {
        nvrtc_report report;
        fpa_object object;
        if (!programs_has(all, input.part))
            continue;
        char *own = programs_text(all, input.part), remarks[800];
        input.code = own;
        assert_ok(nvrtc_compile(&input, &object, &report, &error), &error);
        nvrtc_remarks(&report, remarks, sizeof remarks);
        assert_null(strstr(remarks, "never referenced"));
        assert_non_null(strstr((char *)object.bytes, ".entry "));
        nvrtc_report_free(&report);
        free(object.bytes);
        free(own);
    }
    programs_free(all);
}

static void programs_have_all_that_they_need(void **state)
{
    static const struct {
        const char *spec, *head;
        fpa_status (*generate)(const fpa_head *head, const char *target, fpa_source *source,
                               fpa_error *error);
    } heads[] = {{"bench/random.lua", "r1_09", source_generate},
                 {"specs/storage.lua", "tspow2_d64_bf16", source_generate_backward}};
    (void)state;
    need_nvrtc();
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        fpa_head_list list;
        fpa_source source;
        const fpa_head *head;
        fpa_error error = {0};
        assert_ok(spec_load_head(heads[i].spec, heads[i].head, &list, &error), &error);
        assert_ok(head_list_find(&list, heads[i].head, heads[i].spec, &head, &error), &error);
        assert_ok(heads[i].generate(head, "cuda:sm_90a", &source, &error), &error);
        check_programs(&source);
        source_free(&source);
        head_list_free(&list);
    }
}

/* The second kernel's function has a name that is nowhere in what the kernel needs: macros put it together. */
static const char hidden[] = "#define FPA_CUDA_PART_FIRST 1\n"
                             "#define FPA_CUDA_PART_SECOND 2\n"
                             "#define FPA_CUDA_HAS(part) ((part) == FPA_CUDA_PART)\n"
                             "#define TWICE(type) type##_twice\n"
                             "__device__ int int_twice(int i) { return 2 * i; }\n"
                             "#if FPA_CUDA_HAS(FPA_CUDA_PART_FIRST)\n"
                             "extern \"C\" __global__ void toy_first(int *y) { *y += 1; }\n"
                             "#endif\n"
                             "#if FPA_CUDA_HAS(FPA_CUDA_PART_SECOND)\n"
                             "extern \"C\" __global__ void toy_second(int *y) { *y = TWICE(int)(*y); }\n"
                             "#endif\n";

static void a_program_whose_own_text_lacks_something_is_compiled_by_the_text_of_all(void **state)
{
    static const char *const names[] = {"toy_first", "toy_second"};
    fixture *f = *state;
    char code[sizeof hidden];
    fpa_source source = {.code = memcpy(code, hidden, sizeof hidden),
                         .facts = {.name = "toy", .target = "cuda:sm_80"}};
    fpa_object object, images[FPA_CUDA_PARTS];
    fpa_error error = {0};
    need_nvrtc();
    assert_ok(builder_cuda.compile(&f->options, &source, &object, &error), &error);
    assert_non_null(strstr(f->log.text, "toy: note: program 2 was compiled by the text of all"));
    assert_null(strstr(f->log.text, "program 1 was"));
    assert_int_equal(image_split(&object, images, FPA_CUDA_PARTS), 2);
    for (int i = 0; i < 2; i++) {
        cubin module;
        assert_true(cubin_read(images[i].bytes, images[i].size, &module));
        assert_int_equal(module.count, 1);
        assert_string_equal(module.kernel[0].name, names[i]);
    }
    free(object.bytes);
}

int main(void)
{
    nvrtc_hurry();
    const struct CMUnitTest tests[] = {
        CLAIM(parts_with_kernels_are_compiled_apart_and_kept_together),
        CLAIM(the_parts_of_a_head_have_all_of_its_kernels),
        CLAIM(programs_have_all_that_they_need),
        CLAIM(a_program_whose_own_text_lacks_something_is_compiled_by_the_text_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

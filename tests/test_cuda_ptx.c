/* What tests/emulate makes of instructions, compared with a GPU: both run the same small kernels on the same
 * words (tests/emulate/instructions.cu.in), and leave the same bits. Products are of small integers, so that
 * sums are exact; a power of two may be 2 units in the last place off, other functions 2^-20. NVRTC compiles the kernels everywhere;
 * a GPU of compute capability 9.0 has all of the instructions. */
#include "runtime/cuda/build.h"
#include "emulate/instructions.h"
#include "emulate/module.h"
#include "emulate/tensor_map.h"
#include "emulate/translate.h"
#include "claims.h"
#include "dear.h"
#include "gpu_problem.h"
#include "nvrtc_hurry.h"
#include "scratch.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_WORDS = 132096, THREADS = 128, SHARED = 40 << 10, POISON = 0xa5 };

static float float_of(uint32_t bits)
{
    float a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

/* ---- tensors: what the copy engine fetches from, and writes to ---- */

enum { HEAD_BYTES = 144, TOKEN_BYTES = 288, FAR = 1 << 30, MOST = 0x7fff0000 };

static void encode(const fpa_driver *driver, const void *words, unsigned rank,
                   const unsigned long long sizes[TENSOR_RANK],
                   const unsigned long long strides[TENSOR_RANK - 1], unsigned box_tokens,
                   struct fpa_tensor_map *map)
{
    static const unsigned steps[TENSOR_RANK] = {1, 1, 1, 1, 1};
    const unsigned box[TENSOR_RANK] = {64, 1, box_tokens, 1, 1};
    CUresult result = driver->cuTensorMapEncodeTiled(
        map, CU_TENSOR_MAP_DATA_TYPE_UINT16, rank, (void *)(uintptr_t)words, sizes, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    assert_int_equal(result, CUDA_SUCCESS);
}

static void fill_map(const fpa_driver *driver, const void *words, unsigned tokens, unsigned box_tokens,
                     struct fpa_tensor_map *map)
{
    const unsigned long long sizes[TENSOR_RANK] = {72, 2, tokens, 1},
                             strides[TENSOR_RANK - 1] = {HEAD_BYTES, TOKEN_BYTES, TOKEN_BYTES * tokens};
    encode(driver, words, 4, sizes, strides, box_tokens, map);
}

/* As runtime/cuda/launch_maps.c has it: boxes that end with a sequence. */
static void fill_sequence_map(const fpa_driver *driver, const void *words, unsigned box_tokens,
                              struct fpa_tensor_map *map)
{
    const unsigned long long sizes[TENSOR_RANK] = {72, 2, FAR, MOST, MOST},
                             strides[TENSOR_RANK - 1] = {HEAD_BYTES, TOKEN_BYTES, TOKEN_BYTES,
                                                         (1ull << 35) - TOKEN_BYTES};
    encode(driver, words, 5, sizes, strides, box_tokens, map);
}

/* What a kernel is called with; words: addresses where it runs. */
static void make_call(const fpa_driver *driver, const void *in, void *out, struct fpa_cuda_call *call,
                      struct fpa_cuda_maps *maps)
{
    *call =
        (struct fpa_cuda_call){.q = in, .o = out, .progress = (unsigned *)out + OUT_WORDS - 64, .awaited = 1};
    memset(maps, 0, sizeof *maps);
    fill_map(driver, in, 70, 64, &maps->query);
    fill_map(driver, out, 20, 16, &maps->output);
    fill_sequence_map(driver, in, 64, &maps->key);
    fill_sequence_map(driver, out, 16, &maps->value);
}

/* ---- what both run ---- */

enum { KINDS = 2 };
static const char *const kinds[KINDS] = {"bf16", "f16"};

struct fixture {
    char folder[64];
    char *code[KINDS];
    uint32_t *in, *emulated, *other;
    bool emulates;
    void *library[KINDS];
    emulated_launch *launch[KINDS];
    emulated_module described; /* its driver describes tensors */
    test_gpu gpu;
    bool has_gpu; /* one that has all instructions */
};

static int setup(void **state)
{
    static struct fixture f;
    fpa_error error;
    int capability = 0;
    *state = &f;
    f.in = calloc(INSTRUCTION_WORDS, 4), f.emulated = calloc(OUT_WORDS, 4), f.other = calloc(OUT_WORDS, 4);
    scratch_make(f.folder);
    emulated_copies_boxes(&f.described, true);
    f.emulates = compiled_possible();
    if (!f.emulates)
        print_message("g++ or tests/emulate is not here: nothing is emulated\n");
    f.has_gpu = gpu_open(&f.gpu, 0);
    if (f.has_gpu && !driver_device(f.gpu.driver, 0, &(CUdevice){0}, &capability, &error) &&
        capability != 90) {
        print_message("the GPU has compute capability %d, and not 90\n", capability);
        gpu_close(&f.gpu);
        f.has_gpu = false;
    }
    if (f.emulates && compiled_prepare(f.folder, &error))
        return print_error("%s: %s\n", error.where, error.message), -1;
    for (int i = 0; i < KINDS; i++) {
        f.code[i] = instructions_code(kinds[i], 0, 1);
        if (f.emulates && emulated_load(f.code[i], kinds[i], f.folder, &f.library[i], &f.launch[i], &error))
            return print_error("%s: %s\n", error.where, error.message), -1;
    }
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < KINDS; i++) {
        if (f->library[i])
            dlclose(f->library[i]);
        free(f->code[i]);
    }
    free(f->in), free(f->emulated), free(f->other);
    if (f->has_gpu)
        gpu_close(&f->gpu);
    scratch_remove(f->folder);
    return 0;
}

/* Kernel i on the CPU, with words made for it. late: LATE_... */
static void run_emulated(struct fixture *f, int kind, int i, int late, uint32_t *out)
{
    char name[INSTRUCTION_NAME];
    struct fpa_cuda_call call;
    struct fpa_cuda_maps maps;
    const instruction run = instruction_at(i, name);
    void *kernel = dlsym(f->library[kind], name);
    if (!kernel)
        fail_msg("there is no %s", name);
    instruction_words(&run, kind == 1, f->in);
    memset(out, POISON, OUT_WORDS * 4);
    make_call(&f->described.driver, f->in, out, &call, &maps);
    const char *failure = f->launch[kind](kernel, run.blocks, 1, THREADS, SHARED, run.blocks > 1 ? 2 : 1, 1,
                                          &call, &maps, NULL, late, 0, false, 0);
    if (failure)
        fail_msg("%s, %s: %s", name, kinds[kind], failure);
}

static bool is_alike(enum check check, uint32_t a, uint32_t b)
{
    const float x = float_of(a), y = float_of(b);
    if (a == b || (check != BITS && isnan(x) && isnan(y)))
        return true;
    if (check == NEAR)
        return fabsf(x - y) <= 0x1p-20f;
    return check == TWO_ULP && signbit(x) == signbit(y) && isfinite(x) && isfinite(y) &&
           (a > b ? a - b : b - a) <= 2;
}

/* Whether words are alike; tells the first that is not. who: has made `words`. */
static bool same_words(struct fixture *f, int kind, int i, const uint32_t *words, const char *who)
{
    char name[INSTRUCTION_NAME];
    const instruction run = instruction_at(i, name);
    int first = -1, wrong = 0;
    for (int w = OUT_WORDS - 1; w >= 0; w--)
        if (!is_alike(run.check, words[w], f->emulated[w]))
            first = w, wrong++;
    if (wrong)
        print_message(
            "%s, %s: word %d (thread %d) is 0x%08x (%g) %s, but 0x%08x (%g) emulated; %d words differ\n",
            name, kinds[kind], first, first % THREADS, words[first], float_of(words[first]), who,
            f->emulated[first], float_of(f->emulated[first]), wrong);
    return !wrong;
}

static void the_emulation_gives_the_same_whatever_is_late(void **state)
{
    struct fixture *f = *state;
    int wrong = 0;
    if (!f->emulates)
        skip();
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < instruction_count; i++) {
            run_emulated(f, kind, i, 0, f->emulated);
            memset(f->other, POISON, OUT_WORDS * 4);
            assert_memory_not_equal(f->other, f->emulated, OUT_WORDS * 4);
            run_emulated(f, kind, i, LATE_PRODUCTS | LATE_COPIES, f->other);
            wrong += !same_words(f, kind, i, f->other, "with late copies and products");
        }
    assert_int_equal(wrong, 0);
}

/* ---- on a GPU ---- */

static fpa_status compile(const char *code, const char *name, fpa_object *object, fpa_error *error)
{
    fpa_source source = {.code = (char *)(uintptr_t)code, .facts.target = "cuda:sm_90a"};
    nvrtc_report report;
    snprintf(source.facts.name, sizeof source.facts.name, "%s", name);
    fpa_status status = cuda_compile(NULL, &source, false, object, &report, error);
    nvrtc_report_free(&report);
    return status;
}

/* Products of a warpgroup are most of what it takes: in make test every width, and either type, of every second one. */
static void nvrtc_accepts_the_kernels(void **state)
{
    const int step = dear_tests() ? 1 : KINDS;
    const char *version;
    fpa_error error;
    if (nvrtc_find(&version, &error)) {
        print_message("%s\n", error.message);
        skip();
    }
    nvrtc_hurry();
    for (int kind = 0; kind < KINDS; kind++) {
        fpa_object object;
        char *code = instructions_code(kinds[kind], kind % step, step);
        assert_ok(compile(code, kinds[kind], &object, &error), &error);
        free(object.bytes);
        free(code);
    }
    nvrtc_hurry_no_more();
}

/* Kernel i on the GPU, with the words that are in f->in. */
static void run_on_gpu(struct fixture *f, CUmodule module, int i, CUdeviceptr in, CUdeviceptr out)
{
    char name[INSTRUCTION_NAME];
    struct fpa_cuda_call call;
    struct fpa_cuda_maps maps;
    CUfunction kernel;
    const instruction run = instruction_at(i, name);
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = {2, 1, 1}};
    const CUlaunchConfig config = {.grid_x = (unsigned)run.blocks,
                                   .grid_y = 1,
                                   .grid_z = 1,
                                   .block_x = THREADS,
                                   .block_y = 1,
                                   .block_z = 1,
                                   .shared_bytes = SHARED,
                                   .stream = f->gpu.stream,
                                   .attributes = &cluster,
                                   .attribute_count = run.blocks > 1};
    void *parameters[] = {&call, &maps};
    make_call(f->gpu.driver, (void *)(uintptr_t)in, (void *)(uintptr_t)out, &call, &maps);
    CUDA(&f->gpu, cuModuleGetFunction(&kernel, module, name));
    CUDA(&f->gpu, cuMemcpyHtoD(in, f->in, INSTRUCTION_WORDS * 4));
    CUDA(&f->gpu, cuMemsetD8(out, POISON, OUT_WORDS * 4));
    CUDA(&f->gpu, cuCtxSynchronize());
    CUDA(&f->gpu, cuLaunchKernelEx(&config, kernel, parameters, NULL));
    if (f->gpu.driver->cuStreamSynchronize(f->gpu.stream))
        fail_msg("%s stops the GPU", name);
    CUDA(&f->gpu, cuMemcpyDtoH(f->other, out, OUT_WORDS * 4));
}

static int compare_with_gpu(struct fixture *f, int kind, CUdeviceptr in, CUdeviceptr out)
{
    CUmodule module;
    fpa_object object;
    fpa_error error;
    int wrong = 0;
    assert_ok(compile(f->code[kind], kinds[kind], &object, &error), &error);
    CUDA(&f->gpu, cuModuleLoadDataEx(&module, object.bytes, 0, NULL, NULL));
    for (int i = 0; i < instruction_count; i++) {
        run_emulated(f, kind, i, 0, f->emulated);
        run_on_gpu(f, module, i, in, out);
        wrong += !same_words(f, kind, i, f->other, "on the GPU");
    }
    CUDA(&f->gpu, cuModuleUnload(module));
    free(object.bytes);
    print_message("%s: %d of %d kernels leave the same\n", kinds[kind], instruction_count - wrong,
                  instruction_count);
    return wrong;
}

static void a_gpu_leaves_the_same_bits(void **state)
{
    struct fixture *f = *state;
    CUdeviceptr in, out;
    int wrong = 0;
    if (!f->has_gpu || !f->emulates)
        skip();
    CUDA(&f->gpu, cuMemAlloc(&in, INSTRUCTION_WORDS * 4));
    CUDA(&f->gpu, cuMemAlloc(&out, OUT_WORDS * 4));
    for (int kind = 0; kind < KINDS; kind++)
        wrong += compare_with_gpu(f, kind, in, out);
    CUDA(&f->gpu, cuMemFree(in));
    CUDA(&f->gpu, cuMemFree(out));
    assert_int_equal(wrong, 0);
}

/* ---- all of them ---- */

/* What leaves nothing that could be compared. */
static const char *const silent[] = {"nanosleep_u32",
                                     "cp_async_bulk_prefetch_L2_global",
                                     "cp_async_bulk_prefetch_L2_global_L2__cache_hint",
                                     "cp_async_bulk_prefetch_tensor_4d_L2_global_tile",
                                     "prefetch_global_L2",
                                     "griddepcontrol_launch_dependents",
                                     "griddepcontrol_wait"};

static bool is_silent(const char *name)
{
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (!strcmp(silent[i], name))
            return true;
    return false;
}

/* Whether the kernels of a type have the instruction, by its name in tests/emulate. */
static bool is_in_kernels(const struct fixture *f, const char *name)
{
    char call[256];
    bool found = false;
    snprintf(call, sizeof call, "ptx_%s(", name);
    for (int kind = 0; kind < KINDS && !found; kind++) {
        const char *reason;
        char *text = emulate_translate(f->code[kind], &reason);
        assert_non_null(text);
        found = strstr(text, call);
        free(text);
    }
    return found;
}

/* Functions ptx_... of a file, and products of a warpgroup by their columns. */
static int count_missing(const struct fixture *f, const char *path)
{
    fpa_file file;
    fpa_error error;
    int missing = 0;
    assert_ok(file_read(path, &file, &error), &error);
    for (const char *at = (char *)file.bytes; (at = strstr(at, "void ptx_"));) {
        char name[200];
        at += strlen("void ptx_");
        snprintf(name, sizeof name, "%.*s",
                 (int)strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"), at);
        if (at[strlen(name)] == '(' && !is_silent(name) && !is_in_kernels(f, name)) {
            print_message("%s: no kernel has %s\n", path, name);
            missing++;
        }
    }
    for (const char *at = (char *)file.bytes; (at = strstr(at, "\nEMULATE_WGMMA("));) {
        bool listed = false;
        at += strlen("\nEMULATE_WGMMA(");
        for (int i = 0; i < PRODUCTS; i++)
            listed = listed || product_columns[i] == atoi(at);
        missing += !listed;
    }
    free(file.bytes);
    return missing;
}

static void every_emulated_instruction_is_among_the_kernels(void **state)
{
    const struct fixture *f = *state;
    assert_int_equal(count_missing(f, "tests/emulate/ptx.h"), 0);
    assert_int_equal(count_missing(f, "tests/emulate/ptx_functions.h"), 0);
    assert_int_equal(count_missing(f, "tests/emulate/ptx_boxes.h"), 0);
    assert_int_equal(count_missing(f, "tests/emulate/ptx_clusters.h"), 0);
    assert_int_equal(count_missing(f, "tests/emulate/ptx_matrices.h"), 0);
    assert_int_equal(count_missing(f, "tests/emulate/ptx_products.h"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_emulated_instruction_is_among_the_kernels),
        cmocka_unit_test(nvrtc_accepts_the_kernels),
        cmocka_unit_test(the_emulation_gives_the_same_whatever_is_late),
        cmocka_unit_test(a_gpu_leaves_the_same_bits),
    };
    return cmocka_run_group_tests_name("cuda ptx", tests, setup, teardown);
}

/* Where the operands of CUDA kernels may lie and where not: far apart, on another GPU, elsewhere. Every test
 * is skipped where there is no GPU. */
#include "claims.h"
#include "gpu_problem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char specs[] =
    "return {\n"
    "  head { name = 'plain', d = 32, dv = 32, scale = 0.25, terms = tspow { d = 32, degree = 2, block = 8 } "
    "},\n"
    "  head { name = 'bfloat', d = 64, dv = 64, scale = 0.125, dtype = 'bf16', gate = true,\n"
    "         normalize = 'sum', terms = tspow { d = 64, degree = 2, block = 8 } },\n"
    "}\n";

static const fpa_form forms[] = {FPA_FORM_PARALLEL, FPA_FORM_CHUNKED, FPA_FORM_RECURRENT};
static const char *const form_names[] = {"parallel", "chunked", "recurrent"};

struct fixture {
    bool ready; /* there is a GPU */
    test_gpu gpu;
    fpa_kernel *plain, *bfloat;
};

static void need_gpu(const struct fixture *f)
{
    if (!f->ready)
        skip();
}

static bool open_on(const char *head, int device, fpa_kernel **kernel)
{
    fpa_error error;
    const fpa_options options = {.target = "cuda", .device = device, .cache_dir = ""};
    if (fpa_open_text("operands.lua", specs, head, &options, kernel, &error) == FPA_OK)
        return true;
    print_error("%s: %s: %s\n", head, error.where, error.message);
    return false;
}

static int setup(void **state)
{
    static struct fixture f;
    *state = &f;
    f.ready = gpu_open(&f.gpu, 0);
    return f.ready && (!open_on("plain", 0, &f.plain) || !open_on("bfloat", 0, &f.bfloat)) ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    fpa_close(f->plain);
    fpa_close(f->bfloat);
    gpu_close(&f->gpu);
    return 0;
}

/* ---- elements past 2^31 ---- */

/* Operands of few tokens whose strides put them gigabytes apart. Inputs share one piece of memory, o has
 * its own: the library refuses an output whose range of bytes another tensor's overlaps. */
typedef struct spread {
    CUdeviceptr inputs, o;
    size_t size;        /* bytes of each */
    int64_t strides[4]; /* of all: elements */
} spread;

enum { MIB = 1 << 20, PIECE = 64 * MIB, POISON = 0xa5 };

static int64_t offset_of(const spread *far, const gpu_operand *operand, int64_t row)
{
    int64_t h = row % operand->shape[2], t = row / operand->shape[2] % operand->shape[1],
            b = row / operand->shape[2] / operand->shape[1];
    return (b * far->strides[0] + t * far->strides[1] + h * far->strides[2]) *
           (int64_t)dtype_size(operand->dtype);
}

/* Move an operand's rows out to the spread's places behind base, or back, or put poison there. */
typedef enum direction { OUT, BACK, ERASE } direction;
static void move_rows(const test_gpu *gpu, const spread *far, gpu_operand *operand, CUdeviceptr base,
                      direction schedule)
{
    const size_t width = (size_t)operand->shape[3] * dtype_size(operand->dtype);
    for (int64_t row = 0; row < operand->count / operand->shape[3]; row++) {
        CUdeviceptr there = base + (CUdeviceptr)offset_of(far, operand, row);
        unsigned char *here = operand->host + (size_t)row * width;
        if (schedule == OUT)
            CUDA(gpu, cuMemcpyHtoD(there, here, width));
        else if (schedule == BACK)
            CUDA(gpu, cuMemcpyDtoH(here, there, width));
        else
            CUDA(gpu, cuMemsetD8(there, POISON, width));
    }
}

static void point_at(gpu_operand *operand, const spread *far, CUdeviceptr base)
{
    operand->tensor.data = (void *)(uintptr_t)base;
    operand->tensor.strides = (int64_t *)(uintptr_t)far->strides;
}

/* Everything in o's memory but its rows is as it was. */
static void expect_poison_between(const test_gpu *gpu, const spread *far, gpu_operand *o, const char *what)
{
    unsigned char *piece = malloc(PIECE), *poison = malloc(PIECE);
    assert_true(piece && poison);
    memset(poison, POISON, PIECE);
    move_rows(gpu, far, o, far->o, ERASE);
    CUDA(gpu, cuCtxSynchronize());
    for (size_t at = 0; at < far->size; at += PIECE) {
        size_t size = far->size - at < PIECE ? far->size - at : PIECE;
        CUDA(gpu, cuMemcpyDtoH(piece, far->o + at, size));
        if (memcmp(piece, poison, size) != 0)
            fail_msg("%s: something was written between the rows of o, at byte %zu or later", what, at);
    }
    free(piece);
    free(poison);
}

static void run_spread(const test_gpu *gpu, const spread *far, gpu_problem *problem, const fpa_kernel *kernel,
                       fpa_form form)
{
    static const int inputs[] = {IN_Q, IN_K, IN_V};
    size_t size;
    fpa_error error;
    for (int i = 0; i < 3; i++) {
        gpu_operand *operand = &problem->operand[inputs[i]];
        CUdeviceptr base = far->inputs + (CUdeviceptr)i * MIB;
        move_rows(gpu, far, operand, base, OUT);
        point_at(operand, far, base);
    }
    point_at(&problem->operand[OUT_O], far, far->o);
    CUDA(gpu, cuMemsetD8(far->o, POISON, far->size));
    CUDA(gpu, cuCtxSynchronize());
    CUdeviceptr workspace = problem_workspace(problem, kernel, form, &size);
    assert_ok(fpa_forward(kernel, form, &problem->tensors, (void *)(uintptr_t)workspace, size, &error),
              &error);
    problem_fetch(problem); /* the state; o's own memory was not used */
    move_rows(gpu, far, &problem->operand[OUT_O], far->o, BACK);
    CUDA(gpu, cuMemFree(workspace));
}

/* The same bytes as with everything close together. */
static void compare_spread(struct fixture *f, const spread *far, const char *what)
{
    const problem_shape shape = {2, 40, 2, 2};
    const fpa_description *is = fpa_describe(f->bfloat);
    for (int i = 0; i < 3; i++) {
        gpu_problem close, apart;
        problem_make(&close, is, &shape, 20, &f->gpu);
        problem_make(&apart, is, &shape, 20, &f->gpu);
        problem_run(&close, f->bfloat, forms[i]);
        run_spread(&f->gpu, far, &apart, f->bfloat, forms[i]);
        for (int out = 0; out < 2; out++) {
            int index = out ? OUT_STATE : OUT_O;
            if (memcmp(close.operand[index].host, apart.operand[index].host, close.operand[index].size))
                fail_msg("%s, %s: %s has other bytes", what, form_names[i], out ? "state_out" : "o");
        }
        expect_poison_between(&f->gpu, far, &apart.operand[OUT_O], what);
        problem_free(&close);
        problem_free(&apart);
    }
}

/* [2, 40, 2, 64] in bf16: strides of an axis so that its last index lies behind 2^31 elements. */
static void elements_past_2_31_are_reached_and_nothing_else(void **state)
{
    static const struct {
        const char *what;
        int64_t strides[4];
    } cases[] = {
        {"batches far apart", {(INT64_C(1) << 31) + 64 * 128, 128, 64, 1}},
        {"heads far apart", {40 * 64, 64, (INT64_C(1) << 31) + 64 * 256, 1}},
        {"tokens far apart", {128, (INT64_C(1) << 31) / 39 / 64 * 64 + 128, 64, 1}},
    };
    struct fixture *f = *state;
    size_t unused, total;
    need_gpu(f);
    spread far = {.size = (((size_t)1 << 32) + 4 * MIB)};
    CUDA(&f->gpu, cuMemGetInfo(&unused, &total));
    if (unused < 2 * far.size + 256 * (size_t)MIB) {
        print_message("the GPU has %zu MiB unused, which is too little\n", unused / MIB);
        skip();
    }
    CUDA(&f->gpu, cuMemAlloc(&far.inputs, far.size));
    CUDA(&f->gpu, cuMemAlloc(&far.o, far.size));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(far.strides, cases[i].strides, sizeof far.strides);
        compare_spread(f, &far, cases[i].what);
    }
    CUDA(&f->gpu, cuMemFree(far.inputs));
    CUDA(&f->gpu, cuMemFree(far.o));
}

/* ---- requests that are refused ---- */

static fpa_status refuse(struct fixture *f, const gpu_problem *problem, CUdeviceptr workspace, size_t size,
                         fpa_error *error)
{
    memset(error, 0, sizeof *error);
    return fpa_forward(f->plain, FPA_FORM_CHUNKED, &problem->tensors, (void *)(uintptr_t)workspace, size,
                       error);
}

static void expect_untouched(gpu_problem *problem)
{
    problem_fetch(problem);
    for (size_t i = 0; i < problem->operand[OUT_O].size; i++)
        assert_int_equal(problem->operand[OUT_O].host[i], 0xa5);
}

static void an_operand_that_lies_elsewhere_is_refused(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    static const int operands[] = {IN_Q, IN_K, IN_V, OUT_O, OUT_STATE};
    static const char *const names[] = {"q", "k", "v", "o", "state_out"};
    gpu_problem problem;
    fpa_error error;
    size_t size;
    problem_make(&problem, fpa_describe(f->plain), &(problem_shape){1, 100, 2, 2}, 10, &f->gpu);
    CUdeviceptr workspace = problem_workspace(&problem, f->plain, FPA_FORM_CHUNKED, &size);
    for (int i = 0; i < 5; i++) {
        DLTensor *tensor = &problem.operand[operands[i]].tensor, here = *tensor;
        tensor->device = (DLDevice){kDLCPU, 0};
        assert_int_equal(refuse(f, &problem, workspace, size, &error), FPA_INVALID);
        assert_string_equal(error.where, names[i]);
        tensor->device = (DLDevice){kDLCUDA, 1};
        assert_int_equal(refuse(f, &problem, workspace, size, &error), FPA_INVALID);
        assert_string_equal(error.where, names[i]);
        *tensor = here;
    }
    expect_untouched(&problem);
    assert_int_equal(refuse(f, &problem, workspace, size, &error), FPA_OK);
    CUDA(&f->gpu, cuStreamSynchronize(f->gpu.stream));
    CUDA(&f->gpu, cuMemFree(workspace));
    problem_free(&problem);
}

static void a_workspace_that_is_too_small_or_crooked_is_refused(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    gpu_problem problem;
    fpa_error error;
    size_t size;
    problem_make(&problem, fpa_describe(f->plain), &(problem_shape){1, 5000, 2, 2}, 11, &f->gpu);
    CUdeviceptr workspace = problem_workspace(&problem, f->plain, FPA_FORM_CHUNKED, &size);
    assert_true(size > 0); /* the chunked form keeps copies of the state there */
    assert_int_equal(refuse(f, &problem, workspace, size - 1, &error), FPA_INVALID);
    assert_string_equal(error.where, "workspace");
    assert_int_equal(refuse(f, &problem, 0, size, &error), FPA_INVALID);
    assert_string_equal(error.where, "workspace");
    assert_int_equal(refuse(f, &problem, workspace + 4, size, &error), FPA_INVALID);
    assert_string_equal(error.where, "workspace");
    expect_untouched(&problem);
    CUDA(&f->gpu, cuMemFree(workspace));
    problem_free(&problem);
}

/* The workspace is written before anything else is: no byte of it may be an operand's. */
static void a_workspace_that_overlaps_an_operand_is_refused(void **state)
{
    static const int operands[] = {IN_Q, IN_K, IN_V, OUT_O, OUT_STATE};
    static const char *const names[] = {"q", "k", "v", "o", "state_out"};
    struct fixture *f = *state;
    need_gpu(f);
    gpu_problem problem;
    fpa_error error;
    size_t size;
    CUdeviceptr memory;
    problem_make(&problem, fpa_describe(f->plain), &(problem_shape){1, 5000, 2, 2}, 11, &f->gpu);
    assert_int_equal(fpa_workspace_size(f->plain, FPA_FORM_CHUNKED, &problem.tensors, &size, &error), FPA_OK);
    assert_true(size > 256);
    const size_t behind = (size + 255) / 256 * 256,
                 room = problem.operand[OUT_STATE].size + problem.operand[IN_Q].size;
    CUDA(&f->gpu, cuMemAlloc(&memory, behind + room));
    for (int i = 0; i < 5; i++) {
        DLTensor *tensor = &problem.operand[operands[i]].tensor, here = *tensor;
        tensor->data = (void *)(uintptr_t)(memory + size / 16 * 16 - 16);
        assert_int_equal(refuse(f, &problem, memory, size, &error), FPA_INVALID);
        assert_string_equal(error.where, "workspace");
        if (!strstr(error.message, "overlaps") || !strstr(error.message, names[i]))
            fail_msg("%s: %s", names[i], error.message);
        tensor->data = (void *)(uintptr_t)memory; /* from its first byte on */
        assert_int_equal(refuse(f, &problem, memory, size, &error), FPA_INVALID);
        *tensor = here;
    }
    expect_untouched(&problem);
    problem.operand[OUT_O].tensor.data = (void *)(uintptr_t)(memory + behind); /* right behind it */
    assert_int_equal(refuse(f, &problem, memory, size, &error), FPA_OK);
    CUDA(&f->gpu, cuStreamSynchronize(f->gpu.stream));
    CUDA(&f->gpu, cuMemFree(memory));
    problem_free(&problem);
}

static void what_is_not_given_is_refused_by_its_name(void **state)
{
    static const char *const names[] = {"q", "k", "v", "o"};
    struct fixture *f = *state;
    need_gpu(f);
    gpu_problem problem;
    fpa_error error;
    size_t size;
    problem_make(&problem, fpa_describe(f->plain), &(problem_shape){1, 5000, 2, 2}, 11, &f->gpu);
    CUdeviceptr workspace = problem_workspace(&problem, f->plain, FPA_FORM_CHUNKED, &size);
    for (int i = 0; i < 4; i++) {
        const fpa_tensors all = problem.tensors;
        *(i == 0   ? &problem.tensors.q
          : i == 1 ? &problem.tensors.k
          : i == 2 ? &problem.tensors.v
                   : (const DLTensor **)(uintptr_t)&problem.tensors.o) = NULL;
        assert_int_equal(refuse(f, &problem, workspace, size, &error), FPA_INVALID);
        assert_string_equal(error.where, names[i]);
        problem.tensors = all;
    }
    assert_int_equal(
        fpa_forward(f->plain, FPA_FORM_CHUNKED, NULL, (void *)(uintptr_t)workspace, size, &error),
        FPA_INVALID);
    assert_int_equal(fpa_step(f->plain, &problem.tensors, (void *)(uintptr_t)workspace, size, &error),
                     FPA_INVALID);
    assert_string_equal(error.where, "state_in");
    assert_int_equal(fpa_forward(f->plain, FPA_FORM_CHUNKED, &problem.tensors, NULL, size, NULL),
                     FPA_INVALID);
    expect_untouched(&problem);
    CUDA(&f->gpu, cuMemFree(workspace));
    problem_free(&problem);
}

/* 2^33 sequences of no token: no memory is behind the tensors, nothing is launched, and nobody visits them one by one. */
static void sequences_without_tokens_take_no_time(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    gpu_problem problem;
    fpa_error error;
    size_t size;
    problem_make(&problem, fpa_describe(f->plain), &(problem_shape){1, 100, 2, 2}, 11, &f->gpu);
    problem.tensors.state_out = NULL;
    for (int i = 0; i < OPERANDS; i++) {
        problem.operand[i].shape[0] = INT64_C(1) << 33;
        problem.operand[i].shape[1] = 0;
    }
    alarm(60);
    for (fpa_form form = FPA_FORM_AUTO; form <= FPA_FORM_RECURRENT; form++) {
        assert_int_equal(fpa_workspace_size(f->plain, form, &problem.tensors, &size, &error), FPA_OK);
        assert_int_equal(size, 0);
        assert_int_equal(fpa_forward(f->plain, form, &problem.tensors, NULL, 0, &error), FPA_OK);
    }
    alarm(0);
    expect_untouched(&problem);
    problem_free(&problem);
}

static void a_call_outside_the_gpus_context_is_refused(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    gpu_problem problem;
    fpa_error error;
    size_t size;
    CUcontext popped;
    problem_make(&problem, fpa_describe(f->plain), &(problem_shape){1, 100, 2, 2}, 12, &f->gpu);
    CUdeviceptr workspace = problem_workspace(&problem, f->plain, FPA_FORM_CHUNKED, &size);
    CUDA(&f->gpu, cuCtxPopCurrent(&popped));
    fpa_status status = refuse(f, &problem, workspace, size, &error);
    CUDA(&f->gpu, cuCtxPushCurrent(popped));
    assert_true(status == FPA_INVALID || status == FPA_DEVICE);
    if (!strstr(error.message, "context"))
        fail_msg("the message does not name the context: %s: %s", error.where, error.message);
    expect_untouched(&problem);
    CUDA(&f->gpu, cuMemFree(workspace));
    problem_free(&problem);
}

static void a_gpu_that_is_not_there_is_refused(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    fpa_kernel *kernel;
    fpa_error error;
    const fpa_options options = {.target = "cuda", .device = f->gpu.driver->devices, .cache_dir = ""};
    fpa_status status = fpa_open_text("operands.lua", specs, "plain", &options, &kernel, &error);
    assert_true(status == FPA_INVALID || status == FPA_DEVICE);
    assert_null(kernel);
}

static void a_second_gpu_serves_its_own_operands(void **state)
{
    struct fixture *f = *state;
    test_gpu second;
    need_gpu(f);
    if (!gpu_open(&second, 1))
        skip();
    fpa_kernel *kernel;
    gpu_problem there, here, strange;
    fpa_error error;
    const problem_shape shape = {2, 300, 2, 2};
    assert_true(open_on("bfloat", 1, &kernel));
    problem_make(&there, fpa_describe(kernel), &shape, 13, &second);
    problem_run(&there, kernel, FPA_FORM_CHUNKED);
    gpu_close(&second);
    problem_make(&here, fpa_describe(f->bfloat), &shape, 13, &f->gpu);
    problem_run(&here, f->bfloat, FPA_FORM_CHUNKED);
    assert_true(operand_distance(&there.operand[OUT_O], &here.operand[OUT_O]) <=
                1e-2); /* another kind of GPU, perhaps */
    problem_make(&strange, fpa_describe(kernel), &shape, 13, &f->gpu);
    assert_int_equal(fpa_forward(kernel, FPA_FORM_CHUNKED, &strange.tensors, NULL, 0, &error), FPA_INVALID);
    assert_string_equal(error.where, "q");
    problem_free(&strange);
    problem_free(&here);
    assert_true(gpu_open(&second, 1));
    problem_free(&there);
    fpa_close(kernel);
    gpu_close(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_past_2_31_are_reached_and_nothing_else),
        cmocka_unit_test(an_operand_that_lies_elsewhere_is_refused),
        cmocka_unit_test(a_workspace_that_is_too_small_or_crooked_is_refused),
        cmocka_unit_test(a_workspace_that_overlaps_an_operand_is_refused),
        cmocka_unit_test(what_is_not_given_is_refused_by_its_name),
        cmocka_unit_test(sequences_without_tokens_take_no_time),
        cmocka_unit_test(a_call_outside_the_gpus_context_is_refused),
        cmocka_unit_test(a_gpu_that_is_not_there_is_refused),
        cmocka_unit_test(a_second_gpu_serves_its_own_operands),
    };
    return cmocka_run_group_tests_name("cuda operands", tests, setup, teardown);
}

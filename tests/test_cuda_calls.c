/* Calls of CUDA kernels on a GPU: against the C kernel of the same head, in streams and in graphs. Every
 * test is skipped where there is no GPU. */
#include "claims.h"
#include "gpu_problem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char specs[] =
    "return {\n"
    "  head { name = 'plain', d = 32, dv = 32, scale = 0.25, terms = tspow { d = 32, degree = 2, block = 8 } "
    "},\n"
    "  head { name = 'gated', d = 24, dv = 40, scale = 0.25, gate = true, normalize = 'sum',\n"
    "         terms = tspow { d = 24, degree = 2, block = 8 } },\n"
    "  head { name = 'bfloat', d = 64, dv = 64, scale = 0.125, dtype = 'bf16',\n"
    "         terms = tspow { d = 64, degree = 2, block = 8 } },\n"
    "  head { name = 'half', d = 16, dv = 24, scale = 0.25, dtype = 'f16', gate = true, normalize = 'sum',\n"
    "         terms = taylor { degree = 2 } },\n"
    "  head { name = 'wide', d = 32, dv = 128, scale = 0.25, dtype = 'bf16', normalize = 'sum',\n"
    "         terms = tspow { d = 32, degree = 2, block = 8 } },\n"
    "}\n";

enum { PLAIN, GATED, BFLOAT, HALF, WIDE, HEADS };
/* tolerance: of the two kernels' largest difference over the largest result */
static const struct {
    const char *name;
    double tolerance;
} heads[HEADS] = {{"plain", 2e-5}, {"gated", 1e-4}, {"bfloat", 3e-2}, {"half", 2e-2}, {"wide", 3e-2}};

static const fpa_form forms[] = {FPA_FORM_PARALLEL, FPA_FORM_CHUNKED, FPA_FORM_RECURRENT};
static const char *const form_names[] = {"parallel", "chunked", "recurrent"};

struct fixture {
    bool ready; /* there is a GPU */
    test_gpu gpu;
    fpa_kernel *cuda[HEADS], *c[HEADS];
};

static void need_gpu(const struct fixture *f)
{
    if (!f->ready)
        skip();
}

static bool open_on(const char *head, const char *target, int device, fpa_kernel **kernel)
{
    fpa_error error;
    const fpa_options options = {.target = target, .device = device, .cache_dir = ""};
    if (fpa_open_text("calls.lua", specs, head, &options, kernel, &error) == FPA_OK)
        return true;
    print_error("%s, %s: %s: %s\n", head, target, error.where, error.message);
    return false;
}

static int setup(void **state)
{
    static struct fixture f;
    *state = &f;
    f.ready = gpu_open(&f.gpu, 0);
    for (int i = 0; f.ready && i < HEADS; i++)
        if (!open_on(heads[i].name, "cuda", 0, &f.cuda[i]) ||
            !open_on(heads[i].name, float_target(), 0, &f.c[i]))
            return -1;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < HEADS; i++) {
        fpa_close(f->cuda[i]);
        fpa_close(f->c[i]);
    }
    gpu_close(&f->gpu);
    return 0;
}

/* ---- beside the C kernel ---- */

static void expect_near(const gpu_problem *gpu, const gpu_problem *cpu, int head, const char *form,
                        const problem_shape *shape)
{
    static const int outputs[] = {OUT_O, OUT_STATE};
    for (int i = 0; i < 2; i++) {
        double error = operand_distance(&gpu->operand[outputs[i]], &cpu->operand[outputs[i]]);
        if (!(error <= heads[head].tolerance))
            fail_msg("%s, %s, [%lld, %lld, %lld/%lld]: %s differs by %g, but %g is allowed", heads[head].name,
                     form, (long long)shape->batch, (long long)shape->length, (long long)shape->query_heads,
                     (long long)shape->heads, i ? "state_out" : "o", error, heads[head].tolerance);
    }
}

/* Both kernels on one shape, then on its state once more. The C kernel's form is its own choice. */
static void compare(struct fixture *f, int head, fpa_form form, const char *name, problem_shape shape)
{
    const fpa_description *is = fpa_describe(f->cuda[head]);
    gpu_problem gpu, cpu, gpu_next, cpu_next;
    problem_make(&gpu, is, &shape, 1, &f->gpu);
    problem_make(&cpu, is, &shape, 1, NULL);
    problem_run(&gpu, f->cuda[head], form);
    problem_run(&cpu, f->c[head], FPA_FORM_AUTO);
    expect_near(&gpu, &cpu, head, name, &shape);
    problem_make(&gpu_next, is, &shape, 2, &f->gpu);
    problem_make(&cpu_next, is, &shape, 2, NULL);
    problem_resume(&gpu_next, &cpu); /* one state for both: a state moves between machines */
    problem_resume(&cpu_next, &cpu);
    problem_run(&gpu_next, f->cuda[head], form);
    problem_run(&cpu_next, f->c[head], FPA_FORM_AUTO);
    expect_near(&gpu_next, &cpu_next, head, name, &shape);
    problem_free(&gpu);
    problem_free(&cpu);
    problem_free(&gpu_next);
    problem_free(&cpu_next);
}

static void every_length_agrees_with_the_c_kernel_in_every_form(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    for (int head = 0; head < HEADS; head++) {
        int64_t c = fpa_describe(f->cuda[head])->chunk;
        const int64_t lengths[] = {0, 1, 2, 63, c - 1, c, c + 1, 3 * c + 7};
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (int i = 0; i < 3; i++)
                compare(f, head, forms[i], form_names[i], (problem_shape){2, lengths[l], 4, 2});
    }
}

static void many_short_heads_agree_with_the_c_kernel(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    for (int i = 0; i < 3; i++) {
        compare(f, PLAIN, forms[i], form_names[i], (problem_shape){100, 37, 30, 30});
        compare(f, HALF, forms[i], form_names[i], (problem_shape){3000, 5, 1, 1});
    }
}

static void one_long_head_agrees_with_the_c_kernel(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    for (int head = 0; head < HEADS; head++) {
        compare(f, head, FPA_FORM_CHUNKED, "chunked", (problem_shape){1, 20000, 1, 1});
        compare(f, head, FPA_FORM_AUTO, "auto", (problem_shape){1, 20000, 1, 1});
    }
}

static void steps_go_on_where_a_prefill_ended(void **state)
{
    enum { STEPS = 5 };
    struct fixture *f = *state;
    need_gpu(f);
    for (int head = 0; head < HEADS; head++) {
        const fpa_description *is = fpa_describe(f->cuda[head]);
        const problem_shape long_one = {2, 300, 4, 2}, token = {2, 1, 4, 2};
        gpu_problem gpu, cpu;
        problem_make(&gpu, is, &long_one, 7, &f->gpu);
        problem_make(&cpu, is, &long_one, 7, NULL);
        problem_run(&gpu, f->cuda[head], FPA_FORM_CHUNKED);
        problem_run(&cpu, f->c[head], FPA_FORM_CHUNKED);
        for (uint64_t t = 0; t < STEPS; t++) {
            gpu_problem gpu_step, cpu_step;
            problem_make(&gpu_step, is, &token, 100 + t, &f->gpu);
            problem_make(&cpu_step, is, &token, 100 + t, NULL);
            problem_resume(&gpu_step, &gpu);
            problem_resume(&cpu_step, &cpu);
            problem_run(&gpu_step, f->cuda[head], FPA_FORM_RECURRENT);
            problem_run(&cpu_step, f->c[head], FPA_FORM_RECURRENT);
            expect_near(&gpu_step, &cpu_step, head, "step", &token);
            problem_free(&gpu);
            problem_free(&cpu);
            gpu = gpu_step;
            cpu = cpu_step;
        }
        problem_free(&gpu);
        problem_free(&cpu);
    }
}

/* The state read and written at one place gives the bytes of two. */
static void update_in_place(struct fixture *f, int head, fpa_form form, problem_shape shape)
{
    const fpa_description *is = fpa_describe(f->cuda[head]);
    gpu_problem before, apart, inside;
    size_t size;
    fpa_error error;
    problem_make(&before, is, &shape, 3, &f->gpu);
    problem_run(&before, f->cuda[head], FPA_FORM_AUTO);
    problem_make(&apart, is, &shape, 4, &f->gpu);
    problem_make(&inside, is, &shape, 4, &f->gpu);
    problem_resume(&apart, &before);
    problem_resume(&inside, &before);
    problem_run(&apart, f->cuda[head], form);
    inside.tensors.state_out = &inside.operand[IN_STATE].tensor;
    CUdeviceptr workspace = problem_workspace(&inside, f->cuda[head], form, &size);
    assert_ok(fpa_forward(f->cuda[head], form, &inside.tensors, (void *)(uintptr_t)workspace, size, &error),
              &error);
    problem_fetch(&inside);
    CUDA(&f->gpu, cuMemcpyDtoH(inside.operand[OUT_STATE].host, inside.operand[IN_STATE].device,
                               inside.operand[IN_STATE].size));
    for (int i = 0; i < 2; i++) {
        int output = i ? OUT_STATE : OUT_O;
        assert_memory_equal(inside.operand[output].host, apart.operand[output].host,
                            apart.operand[output].size);
    }
    CUDA(&f->gpu, cuMemFree(workspace));
    problem_free(&before);
    problem_free(&apart);
    problem_free(&inside);
}

static void a_state_is_updated_in_place(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    for (int head = 0; head < HEADS; head++)
        update_in_place(f, head, FPA_FORM_RECURRENT, (problem_shape){2, 1, 2, 2});
}

/* More blocks than run at a time: late ones must not read what early ones wrote. */
static void a_state_is_updated_in_place_by_more_blocks_than_fit(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    for (int i = 0; i < 2; i++) {
        update_in_place(f, HALF, forms[i], (problem_shape){16, 300, 64, 8});
        update_in_place(f, WIDE, forms[i], (problem_shape){64, 130, 4, 4});
        update_in_place(f, WIDE, forms[i], (problem_shape){1, 3000, 4, 2});
    }
}

/* ---- a piece of a sequence, in two halves ---- */

/* One byte of workspace less than what both halves ask for is too little for one of them. */
static void run_piece(const gpu_problem *problem, const fpa_kernel *kernel)
{
    fpa_tensors outputs = problem->tensors, total = problem->tensors;
    fpa_error error;
    size_t size;
    CUdeviceptr workspace;
    outputs.state_out = NULL;
    total.q = NULL, total.o = NULL, total.state_in = NULL;
    assert_int_equal(fpa_piece_workspace(kernel, &outputs, &size, &error), FPA_OK);
    CUDA(problem->gpu, cuMemAlloc(&workspace, size + 1));
    void *const at = (void *)(uintptr_t)workspace;
    if (size)
        assert_true(fpa_piece_total(kernel, &total, at, size - 1, &error) == FPA_INVALID ||
                    fpa_piece_outputs(kernel, &outputs, at, size - 1, &error) == FPA_INVALID);
    fpa_status status = fpa_piece_total(kernel, &total, at, size, &error);
    if (!status)
        status = fpa_piece_outputs(kernel, &outputs, at, size, &error);
    assert_ok(status, &error);
    CUDA(problem->gpu, cuStreamSynchronize(problem->gpu->stream));
    CUDA(problem->gpu, cuMemFree(workspace));
}

/* The outputs are a forward's from that state; the total is what a forward without a state ends with. */
static void compare_piece(struct fixture *f, int head, problem_shape shape)
{
    const fpa_kernel *kernel = f->cuda[head];
    gpu_problem before, whole, alone, piece;
    gpu_problem *const all[] = {&before, &whole, &alone, &piece};
    for (int i = 0; i < 4; i++)
        problem_make(all[i], fpa_describe(kernel), &shape, i ? 9 : 10, &f->gpu);
    problem_run(&before, kernel, FPA_FORM_CHUNKED);
    problem_resume(&whole, &before);
    problem_resume(&piece, &before);
    problem_run(&whole, kernel, FPA_FORM_CHUNKED);
    problem_run(&alone, kernel, FPA_FORM_CHUNKED);
    problem_poison(&piece);
    run_piece(&piece, kernel);
    problem_fetch(&piece);
    const double outputs = operand_distance(&piece.operand[OUT_O], &whole.operand[OUT_O]),
                 total = operand_distance(&piece.operand[OUT_STATE], &alone.operand[OUT_STATE]);
    if (!(outputs <= heads[head].tolerance && total <= heads[head].tolerance))
        fail_msg("%s, a piece of %lld tokens: o differs by %g, the total by %g, but %g is allowed",
                 heads[head].name, (long long)shape.length, outputs, total, heads[head].tolerance);
    for (int i = 0; i < 4; i++)
        problem_free(all[i]);
}

static void a_piece_is_its_total_then_its_outputs(void **state)
{
    static const int64_t lengths[] = {
        1, 300, 3001, 9001}; /* the last one of more chunks than NAME_segment_scan takes at once */
    struct fixture *f = *state;
    need_gpu(f);
    for (int head = 0; head < HEADS; head++)
        for (int i = 0; i < 4; i++)
            compare_piece(f, head, (problem_shape){2, lengths[i], 4, 2});
}

/* ---- streams and graphs ---- */

static unsigned char *copy_of(const gpu_operand *operand)
{
    unsigned char *copy = malloc(operand->size + 1);
    assert_non_null(copy);
    memcpy(copy, operand->host, operand->size);
    return copy;
}

static void expect_bytes(const gpu_problem *problem, const unsigned char *o, const unsigned char *state_out,
                         const char *what)
{
    if (memcmp(problem->operand[OUT_O].host, o, problem->operand[OUT_O].size) != 0)
        fail_msg("%s: o has other bytes", what);
    if (memcmp(problem->operand[OUT_STATE].host, state_out, problem->operand[OUT_STATE].size) != 0)
        fail_msg("%s: state_out has other bytes", what);
}

static void repeated_runs_give_the_same_bytes(void **state)
{
    enum { RUNS = 5 };
    struct fixture *f = *state;
    need_gpu(f);
    for (int head = 0; head < HEADS; head++)
        for (int i = 0; i < 3; i++) {
            gpu_problem problem;
            problem_make(&problem, fpa_describe(f->cuda[head]), &(problem_shape){1, 3001, 4, 2}, 5, &f->gpu);
            problem_run(&problem, f->cuda[head], forms[i]);
            unsigned char *o = copy_of(&problem.operand[OUT_O]),
                          *state_out = copy_of(&problem.operand[OUT_STATE]);
            for (int run = 1; run < RUNS; run++) {
                problem_run(&problem, f->cuda[head], forms[i]);
                expect_bytes(&problem, o, state_out, form_names[i]);
            }
            free(o);
            free(state_out);
            problem_free(&problem);
        }
}

/* Capture in global mode fails when anything in the process allocates or waits meanwhile. */
static CUgraphExec capture(struct fixture *f, const gpu_problem *problem, const fpa_kernel *kernel,
                           fpa_form form, CUdeviceptr workspace, size_t size)
{
    fpa_error error;
    CUgraph graph;
    CUgraphExec executable;
    CUDA(&f->gpu, cuStreamBeginCapture(f->gpu.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    fpa_status status =
        fpa_forward(kernel, form, &problem->tensors, (void *)(uintptr_t)workspace, size, &error);
    CUDA(&f->gpu, cuStreamEndCapture(f->gpu.stream, &graph));
    assert_ok(status, &error);
    CUDA(&f->gpu, cuGraphInstantiate(&executable, graph, 0));
    CUDA(&f->gpu, cuGraphDestroy(graph));
    return executable;
}

static void a_captured_forward_replays_to_the_same_bytes(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    for (int head = 0; head < HEADS; head++)
        for (int i = 0; i < 3; i++) {
            gpu_problem problem;
            size_t size;
            problem_make(&problem, fpa_describe(f->cuda[head]), &(problem_shape){2, 1100, 2, 2}, 6, &f->gpu);
            problem_run(&problem, f->cuda[head], forms[i]);
            unsigned char *o = copy_of(&problem.operand[OUT_O]),
                          *state_out = copy_of(&problem.operand[OUT_STATE]);
            CUdeviceptr workspace = problem_workspace(&problem, f->cuda[head], forms[i], &size);
            problem_poison(&problem);
            CUgraphExec graph = capture(f, &problem, f->cuda[head], forms[i], workspace, size);
            for (int run = 0; run < 2; run++) {
                problem_poison(&problem);
                CUDA(&f->gpu, cuGraphLaunch(graph, f->gpu.stream));
                problem_fetch(&problem);
                expect_bytes(&problem, o, state_out, "a replayed graph");
            }
            CUDA(&f->gpu, cuGraphExecDestroy(graph));
            CUDA(&f->gpu, cuMemFree(workspace));
            free(o);
            free(state_out);
            problem_free(&problem);
        }
}

static void the_default_stream_serves_too(void **state)
{
    struct fixture *f = *state;
    need_gpu(f);
    gpu_problem problem;
    problem_make(&problem, fpa_describe(f->cuda[PLAIN]), &(problem_shape){2, 200, 2, 2}, 8, &f->gpu);
    problem_run(&problem, f->cuda[PLAIN], FPA_FORM_CHUNKED);
    unsigned char *o = copy_of(&problem.operand[OUT_O]), *state_out = copy_of(&problem.operand[OUT_STATE]);
    problem.tensors.stream = NULL;
    size_t size;
    fpa_error error;
    CUdeviceptr workspace = problem_workspace(&problem, f->cuda[PLAIN], FPA_FORM_CHUNKED, &size);
    problem_poison(&problem);
    assert_int_equal(fpa_forward(f->cuda[PLAIN], FPA_FORM_CHUNKED, &problem.tensors,
                                 (void *)(uintptr_t)workspace, size, &error),
                     FPA_OK);
    CUDA(&f->gpu, cuCtxSynchronize());
    problem_fetch(&problem);
    expect_bytes(&problem, o, state_out, "the default stream");
    CUDA(&f->gpu, cuMemFree(workspace));
    free(o);
    free(state_out);
    problem_free(&problem);
}

struct worker {
    struct fixture *fixture;
    gpu_problem problem;
    CUdeviceptr workspace;
    size_t size;
    CUstream stream;
    fpa_status status;
    fpa_error error;
};

static void *call_often(void *argument)
{
    enum { CALLS = 20 };
    struct worker *w = argument;
    const fpa_driver *driver = w->fixture->gpu.driver;
    CUcontext popped;
    driver->cuCtxPushCurrent(w->fixture->gpu.context);
    w->problem.tensors.stream = w->stream;
    for (int i = 0; i < CALLS && !w->status; i++)
        w->status = fpa_forward(w->fixture->cuda[GATED], FPA_FORM_CHUNKED, &w->problem.tensors,
                                (void *)(uintptr_t)w->workspace, w->size, &w->error);
    if (!w->status && driver->cuStreamSynchronize(w->stream) != CUDA_SUCCESS)
        w->status = FPA_DEVICE;
    driver->cuCtxPopCurrent(&popped);
    return NULL;
}

static void threads_may_use_one_kernel_in_streams_of_their_own(void **state)
{
    enum { THREADS = 4 };
    struct fixture *f = *state;
    need_gpu(f);
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    gpu_problem alone;
    problem_make(&alone, fpa_describe(f->cuda[GATED]), &(problem_shape){2, 700, 2, 2}, 9, &f->gpu);
    problem_run(&alone, f->cuda[GATED], FPA_FORM_CHUNKED);
    for (int i = 0; i < THREADS; i++) {
        struct worker *w = &workers[i];
        *w = (struct worker){.fixture = f};
        problem_make(&w->problem, fpa_describe(f->cuda[GATED]), &(problem_shape){2, 700, 2, 2}, 9, &f->gpu);
        w->workspace = problem_workspace(&w->problem, f->cuda[GATED], FPA_FORM_CHUNKED, &w->size);
        CUDA(&f->gpu, cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, w), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        struct worker *w = &workers[i];
        assert_ok(w->status, &w->error);
        problem_fetch(&w->problem);
        expect_bytes(&w->problem, alone.operand[OUT_O].host, alone.operand[OUT_STATE].host, "a thread");
        CUDA(&f->gpu, cuStreamDestroy(w->stream));
        CUDA(&f->gpu, cuMemFree(w->workspace));
        problem_free(&w->problem);
    }
    problem_free(&alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_agrees_with_the_c_kernel_in_every_form),
        cmocka_unit_test(many_short_heads_agree_with_the_c_kernel),
        cmocka_unit_test(one_long_head_agrees_with_the_c_kernel),
        cmocka_unit_test(steps_go_on_where_a_prefill_ended),
        cmocka_unit_test(a_state_is_updated_in_place),
        cmocka_unit_test(a_state_is_updated_in_place_by_more_blocks_than_fit),
        cmocka_unit_test(a_piece_is_its_total_then_its_outputs),
        cmocka_unit_test(repeated_runs_give_the_same_bytes),
        cmocka_unit_test(a_captured_forward_replays_to_the_same_bytes),
        cmocka_unit_test(the_default_stream_serves_too),
        cmocka_unit_test(threads_may_use_one_kernel_in_streams_of_their_own),
    };
    return cmocka_run_group_tests_name("cuda calls", tests, setup, teardown);
}

/* Recent tokens beside states, of each sequence as many as it has: the bits of a call for each by itself on the CPU, its results on
 * a GPU, where there is one. */
#include "c_hurry.h"
#include "claims.h"
#include "gpu_problem.h"

#include <stdlib.h>
#include <string.h>

static const char specs[] =
    "local square = tspow { d = 16, degree = 2, block = 8 }\n"
    "return {\n"
    "  head { name = 'plain', d = 16, dv = 24, scale = 0.25, terms = square },\n"
    "  head { name = 'gated', d = 16, dv = 16, scale = 0.25, gate = true, normalize = 'one_plus_sum',\n"
    "         terms = square },\n"
    "  head { name = 'narrow', d = 32, dv = 32, scale = 0.25, dtype = 'bf16', state_dtype = 'bf16',\n"
    "         gate = true, terms = tspow { d = 32, degree = 2, block = 8 } },\n"
    "  head { name = 'near', d = 16, dv = 16, normalize = 'sum', window = 8, terms = square },\n"
    "}\n";

enum {
    PLAIN,
    GATED,
    NARROW,
    NEAR,
    KERNELS,
    SEQUENCES = 6,
    SLOTS = 8,
    HEADS = 2,
    QUERY_HEADS = 4,
    MOST = 150
};
static const char *const names[KERNELS] = {"plain", "gated", "narrow", "near"};
static const double tolerance[KERNELS] = {2e-5, 1e-4, 3e-2, 0}; /* on a GPU, of the largest output */

/* Nobody's token first and last; none, its query's alone, some, as many as there may be, and panels of them. */
static const int64_t offsets[SEQUENCES + 1] = {1, 1, 2, 7, 7 + MOST + 1, 7 + MOST + 1, 7 + MOST + 1 + 70};
static const int32_t slots[SEQUENCES] = {2, 5, -1, 0, 3, 7};
enum { TOTAL = 7 + MOST + 1 + 70 + 1 };

struct fixture {
    bool ready; /* there is a GPU */
    test_gpu gpu;
    fpa_kernel *c[KERNELS], *cuda[KERNELS];
};

static fpa_kernel *open_on(const char *target, const char *name)
{
    const fpa_options options = {.target = target, .cache_dir = ""};
    fpa_kernel *kernel = NULL;
    fpa_error error;
    if (fpa_open_text("recent_sequences.lua", specs, name, &options, &kernel, &error))
        print_error("%s, %s: %s: %s\n", name, target, error.where, error.message);
    return kernel;
}

static int setup(void **state)
{
    static struct fixture f;
    *state = &f;
    c_hurry();
    f.ready = gpu_open(&f.gpu, 0);
    for (int i = 0; i < NEAR && f.ready; i++)
        if (!(f.cuda[i] = open_on("cuda", names[i])))
            return -1;
    return 0;
}

/* When a test wants it: compute-sanitizer looks at those that do not. */
static const fpa_kernel *on_cpu(struct fixture *f, int head)
{
    if (!f->c[head])
        f->c[head] = open_on(float_target(), names[head]);
    assert_non_null(f->c[head]);
    return f->c[head];
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < KERNELS; i++) {
        fpa_close(f->c[i]);
        fpa_close(f->cuda[i]);
    }
    gpu_close(&f->gpu);
    return 0;
}

/* Keys and values of TOTAL tokens, of which the first SEQUENCES queries and outputs are the call's; a pool of states. */
typedef struct call {
    gpu_problem problem, before; /* before: whose states fill the pool */
    fpa_tensors tensors;
    DLTensor q, o, list[2];
    int64_t few[4], wide[4], count[2];
    struct {
        int64_t offsets[SEQUENCES + 1];
        int32_t slots[SEQUENCES];
    } numbers;
    CUdeviceptr device; /* 0: they lie here */
} call;

/* bits: of a number; at: where they begin in `numbers`. */
static DLTensor whole_numbers(call *c, int which, int64_t count, uint8_t bits, size_t at)
{
    c->count[which] = count;
    return (DLTensor){.data = c->device ? (void *)(uintptr_t)(c->device + at) : (char *)&c->numbers + at,
                      .device = {c->device ? kDLCUDA : kDLCPU, 0},
                      .ndim = 1,
                      .dtype = {kDLInt, bits, 1},
                      .shape = &c->count[which]};
}

static void say(call *c, const int64_t *begins, const int32_t *states)
{
    memcpy(c->numbers.offsets, begins, sizeof c->numbers.offsets);
    memcpy(c->numbers.slots, states, sizeof c->numbers.slots);
    if (c->device)
        CUDA(c->problem.gpu, cuMemcpyHtoD(c->device, &c->numbers, sizeof c->numbers));
}

static void make(call *c, const fpa_kernel *kernel, const test_gpu *gpu)
{
    const fpa_description *is = fpa_describe(kernel);
    memset(c, 0, sizeof *c);
    problem_make(&c->before, is, &(problem_shape){SLOTS, 40, QUERY_HEADS, HEADS}, 3, gpu);
    problem_run(&c->before, kernel, FPA_FORM_PARALLEL);
    problem_make(&c->problem, is, &(problem_shape){1, TOTAL, QUERY_HEADS, HEADS}, 4, gpu);
    if (gpu)
        CUDA(gpu, cuMemAlloc(&c->device, sizeof c->numbers));
    say(c, offsets, slots);
    c->tensors = c->problem.tensors;
    c->q = *c->tensors.q, c->o = *c->tensors.o;
    memcpy(c->few, c->q.shape, sizeof c->few);
    memcpy(c->wide, c->o.shape, sizeof c->wide);
    c->few[1] = c->wide[1] = SEQUENCES;
    c->q.shape = c->few, c->o.shape = c->wide;
    c->list[0] = whole_numbers(c, 0, SEQUENCES + 1, 64, 0);
    c->list[1] = whole_numbers(c, 1, SEQUENCES, 32, sizeof c->numbers.offsets);
    c->tensors.q = &c->q, c->tensors.o = &c->o;
    c->tensors.state_out = NULL;
    c->tensors.state_in = &c->before.operand[OUT_STATE].tensor;
    c->tensors.state_index = &c->list[1];
    c->tensors.cu_seqlens = &c->list[0];
    c->tensors.recent = MOST;
}

static void drop(call *c)
{
    if (c->device)
        CUDA(c->problem.gpu, cuMemFree(c->device));
    problem_free(&c->problem);
    problem_free(&c->before);
}

static void run(const call *c, const fpa_kernel *kernel, const fpa_tensors *tensors)
{
    const test_gpu *gpu = c->problem.gpu;
    fpa_error error;
    size_t size;
    CUdeviceptr device = 0;
    void *workspace;
    assert_ok(fpa_workspace_size(kernel, FPA_FORM_AUTO, tensors, &size, &error), &error);
    if (gpu) {
        CUDA(gpu, cuMemAlloc(&device, size + 1));
        workspace = (void *)(uintptr_t)device;
    } else {
        workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    }
    assert_ok(fpa_forward(kernel, FPA_FORM_AUTO, tensors, workspace, size, &error), &error);
    if (gpu) {
        CUDA(gpu, cuStreamSynchronize(gpu->stream));
        CUDA(gpu, cuMemFree(device));
    } else {
        free(workspace);
    }
}

/* Tokens first .. of an operand of one batch. */
static DLTensor tokens_of(const DLTensor *whole, int64_t shape[4], int64_t first, int64_t count)
{
    int64_t row = whole->dtype.bits / 8;
    DLTensor part = *whole;
    memcpy(shape, whole->shape, sizeof(int64_t) * (size_t)whole->ndim);
    for (int a = 2; a < whole->ndim; a++)
        row *= shape[a];
    shape[1] = count;
    part.shape = shape;
    part.byte_offset += (uint64_t)(first * row);
    return part;
}

/* Each sequence that has a token, by a call of its own. */
static void run_alone(const call *c, const fpa_kernel *kernel)
{
    for (int s = 0; s < SEQUENCES; s++) {
        const int64_t first = offsets[s], count = offsets[s + 1] - first;
        int64_t shape[5][4], states[3];
        fpa_tensors own = c->tensors;
        DLTensor state = *c->tensors.state_in;
        if (count == 0)
            continue;
        const DLTensor q = tokens_of(own.q, shape[0], s, 1), k = tokens_of(own.k, shape[1], first, count);
        const DLTensor v = tokens_of(own.v, shape[2], first, count);
        DLTensor o = tokens_of(own.o, shape[3], s, 1), gate;
        if (own.log_gate) {
            gate = tokens_of(own.log_gate, shape[4], first, count);
            own.log_gate = &gate;
        }
        memcpy(states, state.shape, sizeof states);
        states[0] = 1;
        state.shape = states;
        state.byte_offset +=
            (uint64_t)(slots[s] < 0 ? 0 : slots[s]) * (c->before.operand[OUT_STATE].size / SLOTS);
        own.q = &q, own.k = &k, own.v = &v, own.o = &o;
        own.state_in = slots[s] < 0 ? NULL : &state;
        own.cu_seqlens = own.state_index = NULL;
        own.recent = count - 1;
        if (count == 1) /* nothing is lacking: a step whose state nobody wants */
            own.recent = 0;
        run(c, kernel, &own);
    }
}

static unsigned char *outputs_of(gpu_problem *problem)
{
    gpu_operand *o = &problem->operand[OUT_O];
    unsigned char *copy = malloc(o->size);
    assert_non_null(copy);
    problem_fetch(problem);
    memcpy(copy, o->host, o->size);
    return copy;
}

/* The call's outputs, and those of calls for each; what is nobody's stays as it was in both. */
static void compute(call *c, const fpa_kernel *kernel, unsigned char *o[2])
{
    problem_poison(&c->problem);
    run(c, kernel, &c->tensors);
    o[0] = outputs_of(&c->problem);
    problem_poison(&c->problem);
    run_alone(c, kernel);
    o[1] = outputs_of(&c->problem);
}

static void each_sequence_has_the_bits_of_a_call_of_its_own(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < NEAR; i++) {
        const fpa_kernel *kernel = on_cpu(f, i);
        unsigned char *o[2];
        call c;
        make(&c, kernel, NULL);
        compute(&c, kernel, o);
        assert_memory_equal(o[0], o[1], c.problem.operand[OUT_O].size);
        assert_memory_not_equal(o[0], o[0] + c.problem.operand[OUT_O].size / TOTAL,
                                QUERY_HEADS); /* nobody's, a query's */
        free(o[0]), free(o[1]);
        drop(&c);
    }
}

static void so_it_has_on_a_gpu_to_rounding(void **state)
{
    const struct fixture *f = *state;
    if (!f->ready)
        skip();
    for (int i = 0; i < NEAR; i++) {
        unsigned char *o[2];
        call c;
        make(&c, f->cuda[i], &f->gpu);
        compute(&c, f->cuda[i], o);
        const size_t row = c.problem.operand[OUT_O].size / TOTAL; /* of a token */
        gpu_operand ours = c.problem.operand[OUT_O], theirs = ours;
        ours.count = theirs.count = ours.count / TOTAL;
        for (int s = 0; s < TOTAL; s++) {
            ours.host = o[0] + (size_t)s * row, theirs.host = o[1] + (size_t)s * row;
            if (s >= SEQUENCES || offsets[s + 1] == offsets[s])
                assert_memory_equal(ours.host, theirs.host, row); /* nobody's */
            else if (!(operand_distance(&ours, &theirs) <= tolerance[i]))
                fail_msg("%s, sequence %d of %d keys: %g from a call of its own", names[i], s,
                         (int)(offsets[s + 1] - offsets[s]), operand_distance(&ours, &theirs));
        }
        free(o[0]), free(o[1]);
        drop(&c);
    }
}

/* Under compute-sanitizer: nothing outside of the tensors is touched. */
static void numbers_that_say_nothing_do_no_harm(void **state)
{
    static const int64_t wrong[SEQUENCES + 1] = {-7, INT64_MAX, 40, INT64_MIN, TOTAL, TOTAL + 1, 3};
    static const int32_t no_slots[SEQUENCES] = {SLOTS, INT32_MIN, INT32_MAX, 0, -2, 1};
    const struct fixture *f = *state;
    if (!f->ready)
        skip();
    for (int i = 0; i < NEAR; i++) {
        call c;
        make(&c, f->cuda[i], &f->gpu);
        say(&c, wrong, no_slots);
        run(&c, f->cuda[i], &c.tensors);
        drop(&c);
    }
}

static void wrong_numbers_are_named_on_the_cpu(void **state)
{
    static const int64_t back[SEQUENCES + 1] = {1, 1, 2, 7, 6, 8, 9},
                                          long_one[SEQUENCES + 1] = {0, 0, 0, 0, 0, 0, TOTAL};
    static const struct {
        const int64_t *offsets;
        const char *says;
    } wrong[] = {{back, "[4] is 6, less than 7"},
                 {long_one, "says that sequence 5 has 229 tokens, but with recent = 150"}};
    const fpa_kernel *kernel = on_cpu(*state, PLAIN);
    call c;
    make(&c, kernel, NULL);
    for (int i = 0; i < 2; i++) {
        fpa_error error;
        say(&c, wrong[i].offsets, slots);
        assert_int_equal(fpa_forward(kernel, FPA_FORM_AUTO, &c.tensors, NULL, 0, &error), FPA_INVALID);
        assert_string_equal(error.where, "cu_seqlens");
        assert_non_null(strstr(error.message, wrong[i].says));
    }
    drop(&c);
}

/* A window's keys are in no state: how to go on with such a head is said instead. */
static void a_head_with_a_window_says_what_to_give(void **state)
{
    const fpa_kernel *kernel = on_cpu(*state, NEAR);
    fpa_error error;
    size_t size;
    call c;
    make(&c, kernel, NULL);
    assert_int_equal(fpa_workspace_size(kernel, FPA_FORM_AUTO, &c.tensors, &size, &error), FPA_INVALID);
    assert_string_equal(error.where, "recent");
    assert_non_null(strstr(error.message, "last 7 tokens again before its new ones"));
    drop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sequence_has_the_bits_of_a_call_of_its_own),
        cmocka_unit_test(so_it_has_on_a_gpu_to_rounding),
        cmocka_unit_test(numbers_that_say_nothing_do_no_harm),
        cmocka_unit_test(wrong_numbers_are_named_on_the_cpu),
        cmocka_unit_test(a_head_with_a_window_says_what_to_give),
    };
    return cmocka_run_group_tests_name("cuda recent sequences", tests, setup, teardown);
}

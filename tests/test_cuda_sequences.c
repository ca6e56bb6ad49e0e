/* Sequences of different lengths on a GPU: each has what a call of its own gives, a captured graph follows other offsets and
 * other slots, and numbers that say nothing do no harm. */
#include "claims.h"
#include "gpu_problem.h"

#include <stdlib.h>
#include <string.h>

enum { TOTAL = 3000, SEQUENCES = 5, SLOTS = 12, HEADS = 2, MOST_ERROR = 100 /* of a hundred thousand */ };

static const char spec[] =
    "local t = tspow { d = 32, degree = 2, block = 8 }\n"
    "return {\n"
    "  head { name = 'single', d = 32, dv = 32, terms = t },\n"
    "  head { name = 'brain', d = 32, dv = 32, dtype = 'bf16', terms = t, gate = true },\n"
    "  head { name = 'few', d = 32, dv = 32, dtype = 'bf16', terms = linear {} },\n"
    "}\n";
static const char *const names[] = {"single", "brain", "few"};
enum { KERNELS = 3 };

struct fixture {
    test_gpu gpu;
    bool ready;
    fpa_kernel *kernel[KERNELS];
};

static int setup(void **state)
{
    static struct fixture f;
    const fpa_options options = {.target = "cuda"};
    fpa_error error = {0};
    *state = &f;
    f.ready = gpu_open(&f.gpu, 0);
    for (int i = 0; i < KERNELS && f.ready; i++)
        if (fpa_open_text("sequences.lua", spec, names[i], &options, &f.kernel[i], &error))
            return print_error("%s: %s\n", error.where, error.message), -1;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < KERNELS; i++)
        fpa_close(f->kernel[i]);
    if (f->ready)
        gpu_close(&f->gpu);
    return 0;
}

/* ---- a call of packed sequences ---- */

typedef struct packed {
    gpu_problem problem;
    int64_t offset_shape[1], index_shape[1], pool_shape[3];
    DLTensor offsets, in, out, pool;
    CUdeviceptr numbers, states;
    size_t state_bytes;
} packed;

static DLTensor whole_numbers(CUdeviceptr at, int64_t *shape)
{
    return (DLTensor){.data = (void *)(uintptr_t)at,
                      .device = {kDLCUDA, 0},
                      .ndim = 1,
                      .dtype = {kDLInt, 32, 1},
                      .shape = shape};
}

static void make(packed *p, struct fixture *f, const fpa_kernel *kernel)
{
    const fpa_description *is = fpa_describe(kernel);
    enum { ROW = 64 }; /* numbers of each list's room */
    memset(p, 0, sizeof *p);
    problem_make(&p->problem, is, &(problem_shape){1, TOTAL, HEADS, HEADS}, 7, &f->gpu);
    p->offset_shape[0] = SEQUENCES + 1;
    p->index_shape[0] = SEQUENCES;
    memcpy(p->pool_shape, (int64_t[]){SLOTS, HEADS, is->state_elements}, sizeof p->pool_shape);
    p->state_bytes = sizeof(float) * HEADS * (size_t)is->state_elements;
    CUDA(&f->gpu, cuMemAlloc(&p->numbers, 3 * ROW * sizeof(int32_t)));
    CUDA(&f->gpu, cuMemAlloc(&p->states, SLOTS * p->state_bytes));
    CUDA(&f->gpu, cuMemsetD8Async(p->states, 0, SLOTS * p->state_bytes, f->gpu.stream));
    p->offsets = whole_numbers(p->numbers, p->offset_shape);
    p->in = whole_numbers(p->numbers + ROW * sizeof(int32_t), p->index_shape);
    p->out = whole_numbers(p->numbers + 2 * ROW * sizeof(int32_t), p->index_shape);
    p->pool = (DLTensor){.data = (void *)(uintptr_t)p->states,
                         .device = {kDLCUDA, 0},
                         .ndim = 3,
                         .dtype = {kDLFloat, 32, 1},
                         .shape = p->pool_shape};
    fpa_tensors *t = &p->problem.tensors;
    t->cu_seqlens = &p->offsets;
    t->state_index = &p->in;
    t->state_out_index = &p->out;
    t->state_in = t->state_out = &p->pool;
}

static void drop(packed *p, struct fixture *f)
{
    CUDA(&f->gpu, cuMemFree(p->numbers));
    CUDA(&f->gpu, cuMemFree(p->states));
    problem_free(&p->problem);
}

static void say(const packed *p, struct fixture *f, const int32_t *offsets, const int32_t *in,
                const int32_t *out)
{
    const DLTensor *to[] = {&p->offsets, &p->in, &p->out};
    const int32_t *from[] = {offsets, in, out};
    for (int i = 0; i < 3; i++)
        CUDA(&f->gpu, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)to[i]->data, from[i],
                                   (size_t)to[i]->shape[0] * sizeof(int32_t)));
}

static const int32_t lengths[2][SEQUENCES + 1] = {{0, 700, 700, 701, 2500, TOTAL},
                                                  {4, 100, 1800, 1800, 1999, 2990}};
static const int32_t begins[2][SEQUENCES] = {{-1, 3, 3, -1, 7}, {0, 0, -1, 9, 3}};
static const int32_t ends[2][SEQUENCES] = {{0, 1, 2, -1, 7}, {5, 6, 7, 8, -1}};

/* o of a call for each sequence alone, with the states that the slots have. */
static unsigned char *alone(packed *p, struct fixture *f, const fpa_kernel *kernel, int which)
{
    gpu_operand *o = &p->problem.operand[OUT_O];
    unsigned char *copy = malloc(o->size);
    fpa_tensors t = p->problem.tensors;
    int64_t one[3] = {1, HEADS, p->pool_shape[2]};
    DLTensor state = p->pool;
    assert_non_null(copy);
    state.shape = one;
    t.cu_seqlens = t.state_index = t.state_out_index = NULL;
    t.state_out = NULL;
    problem_poison(&p->problem);
    for (int s = 0; s < SEQUENCES; s++) {
        const int64_t begin = lengths[which][s], length = lengths[which][s + 1] - begin;
        const int32_t slot = begins[which][s];
        DLTensor part[5];
        int64_t shape[5][4];
        const DLTensor **at[5] = {&t.q, &t.k, &t.v, (const DLTensor **)(void *)&t.o, &t.log_gate};
        const DLTensor *whole[5] = {p->problem.tensors.q, p->problem.tensors.k, p->problem.tensors.v,
                                    p->problem.tensors.o, p->problem.tensors.log_gate};
        for (int i = 0; i < 5; i++) {
            if (!whole[i])
                continue;
            part[i] = *whole[i];
            memcpy(shape[i], whole[i]->shape, sizeof(int64_t) * (size_t)whole[i]->ndim);
            int64_t row = whole[i]->dtype.bits / 8;
            for (int a = 2; a < whole[i]->ndim; a++)
                row *= shape[i][a];
            shape[i][1] = length;
            part[i].shape = shape[i];
            part[i].byte_offset = (uint64_t)(begin * row);
            *at[i] = &part[i];
        }
        state.byte_offset = slot < 0 ? 0 : (uint64_t)slot * p->state_bytes;
        t.state_in = slot < 0 ? NULL : &state;
        if (length == 0)
            continue;
        gpu_problem own = p->problem;
        own.tensors = t;
        size_t size;
        fpa_error error = {0};
        const CUdeviceptr workspace = problem_workspace(&own, kernel, FPA_FORM_CHUNKED, &size);
        assert_ok(fpa_forward(kernel, FPA_FORM_CHUNKED, &t, (void *)(uintptr_t)workspace, size, &error),
                  &error);
        CUDA(&f->gpu, cuStreamSynchronize(f->gpu.stream));
        CUDA(&f->gpu, cuMemFree(workspace));
    }
    problem_fetch(&p->problem);
    memcpy(copy, o->host, o->size);
    return copy;
}

static void a_graph_follows_other_offsets_and_slots(void **state)
{
    struct fixture *f = *state;
    if (!f->ready)
        skip();
    for (int i = 0; i < KERNELS; i++) {
        packed p;
        size_t size;
        fpa_error error = {0};
        CUgraph graph;
        CUgraphExec executable;
        make(&p, f, f->kernel[i]);
        gpu_operand *o = &p.problem.operand[OUT_O];
        say(&p, f, lengths[0], begins[0], ends[0]);
        const CUdeviceptr workspace = problem_workspace(&p.problem, f->kernel[i], FPA_FORM_CHUNKED, &size);
        CUDA(&f->gpu, cuStreamBeginCapture(f->gpu.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        const fpa_status status = fpa_forward(f->kernel[i], FPA_FORM_CHUNKED, &p.problem.tensors,
                                              (void *)(uintptr_t)workspace, size, &error);
        CUDA(&f->gpu, cuStreamEndCapture(f->gpu.stream, &graph));
        assert_ok(status, &error);
        CUDA(&f->gpu, cuGraphInstantiate(&executable, graph, 0));
        for (int which = 0; which < 2; which++) {
            say(&p, f, lengths[which], begins[which], ends[which]);
            unsigned char *expected = alone(&p, f, f->kernel[i], which);
            gpu_operand other = *o;
            problem_poison(&p.problem);
            CUDA(&f->gpu, cuGraphLaunch(executable, f->gpu.stream));
            CUDA(&f->gpu, cuStreamSynchronize(f->gpu.stream));
            problem_fetch(&p.problem);
            other.host = expected;
            if (!(operand_distance(o, &other) * 100000 < MOST_ERROR * (o->dtype == FPA_F32 ? 1 : 20)))
                fail_msg("%s: %g between one call and a call for each", names[i],
                         operand_distance(o, &other));
            free(expected);
        }
        CUDA(&f->gpu, cuGraphExecDestroy(executable));
        CUDA(&f->gpu, cuGraphDestroy(graph));
        CUDA(&f->gpu, cuMemFree(workspace));
        drop(&p, f);
    }
}

/* ---- recent tokens ---- */

enum { RECENT_BATCH = 3, RECENT = 4 };

/* `batch` sequences of `tokens` tokens each, of which the first is number `first` of all that there are. */
static DLTensor *cut(DLTensor *to, int64_t shape[4], const DLTensor *whole, int64_t batch, int64_t tokens,
                     int64_t first)
{
    int64_t row = whole->dtype.bits / 8;
    *to = *whole;
    memcpy(shape, whole->shape, sizeof(int64_t) * (size_t)whole->ndim);
    for (int a = 2; a < whole->ndim; a++)
        row *= shape[a];
    shape[0] = batch, shape[1] = tokens;
    to->shape = shape;
    to->byte_offset = (uint64_t)(first * row);
    return to;
}

/* A token with recent ones: of all sequences with the slots that say() told, or of sequence `only` with its own. */
static void decode_recent(packed *p, struct fixture *f, const fpa_kernel *kernel, int only, int32_t slot)
{
    const fpa_tensors *all = &p->problem.tensors;
    const int64_t batch = only < 0 ? RECENT_BATCH : 1, first = only < 0 ? 0 : only, keys = RECENT + 1;
    int64_t shape[5][4], one[3] = {1, HEADS, p->pool_shape[2]};
    DLTensor q, k, v, o, gate, pool = p->pool;
    gpu_problem call = p->problem;
    size_t size;
    fpa_error error;
    call.tensors = (fpa_tensors){.q = cut(&q, shape[0], all->q, batch, 1, first),
                                 .k = cut(&k, shape[1], all->k, batch, keys, first * keys),
                                 .v = cut(&v, shape[2], all->v, batch, keys, first * keys),
                                 .o = cut(&o, shape[3], all->o, batch, 1, first),
                                 .state_in = &pool,
                                 .recent = RECENT,
                                 .stream = all->stream};
    if (all->log_gate)
        call.tensors.log_gate = cut(&gate, shape[4], all->log_gate, batch, keys, first * keys);
    if (only < 0) {
        p->in.shape[0] = batch;
        call.tensors.state_index = &p->in;
    } else {
        pool.shape = one;
        pool.byte_offset = (uint64_t)slot * p->state_bytes;
    }
    const CUdeviceptr workspace = problem_workspace(&call, kernel, FPA_FORM_RECURRENT, &size);
    assert_ok(
        fpa_forward(kernel, FPA_FORM_RECURRENT, &call.tensors, (void *)(uintptr_t)workspace, size, &error),
        &error);
    CUDA(&f->gpu, cuStreamSynchronize(f->gpu.stream));
    CUDA(&f->gpu, cuMemFree(workspace));
}

static void recent_tokens_lie_beside_slots(void **state)
{
    static const int32_t nothing[SEQUENCES] = {-1, -1, -1, -1, -1}, first[SEQUENCES] = {0, 1, 2, 3, 4},
                         slots[SEQUENCES] = {4, 0, 3};
    struct fixture *f = *state;
    if (!f->ready)
        skip();
    for (int i = 0; i < KERNELS; i++) {
        packed p;
        make(&p, f, f->kernel[i]);
        gpu_operand *o = &p.problem.operand[OUT_O], other = *o;
        say(&p, f, lengths[0], nothing, first); /* states of five sequences */
        problem_run(&p.problem, f->kernel[i], FPA_FORM_CHUNKED);
        say(&p, f, lengths[0], slots, first);
        problem_poison(&p.problem);
        for (int s = 0; s < RECENT_BATCH; s++)
            decode_recent(&p, f, f->kernel[i], s, slots[s]);
        problem_fetch(&p.problem);
        other.count = RECENT_BATCH * HEADS * fpa_describe(f->kernel[i])->dv;
        other.host = malloc(o->size);
        assert_non_null(other.host);
        memcpy(other.host, o->host, o->size);
        problem_poison(&p.problem);
        decode_recent(&p, f, f->kernel[i], -1, 0);
        problem_fetch(&p.problem);
        gpu_operand mine = *o;
        mine.count = other.count;
        if (!(operand_distance(&mine, &other) * 100000 < MOST_ERROR * (o->dtype == FPA_F32 ? 1 : 20)))
            fail_msg("%s: %g between slots and states of their own", names[i],
                     operand_distance(&mine, &other));
        free(other.host);
        drop(&p, f);
    }
}

/* Under compute-sanitizer: nothing outside of the tensors is touched. */
static void numbers_that_say_nothing_do_no_harm(void **state)
{
    struct fixture *f = *state;
    static const int32_t offsets[SEQUENCES + 1] = {-7, 2000000000, 40, -2000000000, TOTAL, 3},
                                             in[SEQUENCES] = {SLOTS, -2000000000, 2000000000, 0, 1},
                                             out[SEQUENCES] = {2000000000, 2, -5, 2, 3};
    if (!f->ready)
        skip();
    for (int i = 0; i < KERNELS; i++)
        for (int form = 0; form < 3; form++) {
            packed p;
            make(&p, f, f->kernel[i]);
            say(&p, f, offsets, in, out);
            problem_run(&p.problem, f->kernel[i], (fpa_form)form);
            drop(&p, f);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_follows_other_offsets_and_slots),
        cmocka_unit_test(recent_tokens_lie_beside_slots),
        cmocka_unit_test(numbers_that_say_nothing_do_no_harm),
    };
    return cmocka_run_group_tests_name("cuda sequences", tests, setup, teardown);
}

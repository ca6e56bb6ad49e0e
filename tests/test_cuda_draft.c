/* Drafts: on the CPU, and where there is a GPU there too. */
#include "c_hurry.h"
#include "claims.h"
#include "recent.h"

#include <stdlib.h>
#include <string.h>

static const char specs[] =
    "return {\n"
    "  head { name = 'plain', d = 32, dv = 32, scale = 0.25, terms = tspow { d = 32, degree = 2, block = 8 } "
    "},\n"
    "  head { name = 'gated', d = 24, dv = 40, scale = 0.25, gate = true, normalize = 'sum',\n"
    "         terms = tspow { d = 24, degree = 2, block = 8 } },\n"
    "  head { name = 'bfloat', d = 32, dv = 64, scale = 0.25, dtype = 'bf16', state_dtype = 'bf16',\n"
    "         gate = true, terms = tspow { d = 32, degree = 2, block = 8 } },\n"
    "}\n";

/* tolerance: of the largest difference to one forward over all tokens, over the largest result */
static const struct {
    const char *name;
    double tolerance;
} heads[] = {{"plain", 2e-5}, {"gated", 1e-4}, {"bfloat", 4e-2}};

enum { HEADS = sizeof heads / sizeof *heads, BATCH = 3, SLOTS = 2 * BATCH };

static int setup(void **state)
{
    static recent_fixture f = {.file = "draft.lua", .specs = specs, .count = HEADS};
    *state = &f;
    for (int i = 0; i < HEADS; i++)
        f.names[i] = heads[i].name;
    return recent_open(&f);
}

/* ---- a decode loop ---- */

/* Tokens of an operand, each sequence's from a place of its own on, copied out; or back into it. */
static void move(gpu_operand *all, gpu_operand *few, const int64_t *at, bool back, const test_gpu *gpu)
{
    const size_t row = all->size / (size_t)(all->shape[0] * all->shape[1]);
    if (back && gpu)
        CUDA(gpu, cuMemcpyDtoH(few->host, few->device, few->size));
    for (int64_t b = 0; b < few->shape[0]; b++)
        for (int64_t t = 0; t < few->shape[1]; t++) {
            unsigned char *in = all->host + (size_t)(b * all->shape[1] + at[b] + t) * row,
                          *out = few->host + (size_t)(b * few->shape[1] + t) * row;
            if (at[b] + t < all->shape[1])
                memcpy(back ? in : out, back ? out : in, row);
            else if (!back)
                memset(out, 0xff, row); /* no numbers: tokens that will not be accepted */
        }
    if (!back && gpu) {
        CUDA(gpu, cuMemcpyHtoD(few->device, few->host, few->size));
        CUDA(gpu, cuCtxSynchronize());
    }
}

/* Sequences of a problem, decoded by drafts of `tokens`, of which they accept different numbers. */
typedef struct loop {
    gpu_problem *whole, parts[2];
    gpu_problem *now, *before; /* before: the draft that may be accepted */
    const fpa_kernel *kernel;
    int64_t at[BATCH], counted[BATCH]; /* tokens that the state has; that it takes in next */
    int32_t count[BATCH];
    int64_t count_shape[1];
    DLTensor counts;
    CUdeviceptr device;
} loop;

static void set_counts(loop *l)
{
    const test_gpu *gpu = l->whole->gpu;
    l->count_shape[0] = BATCH;
    l->counts = (DLTensor){.data = gpu ? (void *)(uintptr_t)l->device : l->count,
                           .device = l->whole->operand[IN_Q].tensor.device,
                           .ndim = 1,
                           .dtype = {kDLInt, 32, 1},
                           .shape = l->count_shape};
    if (gpu) {
        CUDA(gpu, cuMemcpyHtoD(l->device, l->count, sizeof l->count));
        CUDA(gpu, cuCtxSynchronize());
    }
}

static void compute(const loop *l, const fpa_tensors *tensors, const fpa_accepted *accepted)
{
    const test_gpu *gpu = l->whole->gpu;
    size_t size;
    fpa_error error;
    CUdeviceptr device = 0;
    assert_ok(fpa_draft_workspace(l->kernel, tensors, accepted, &size, &error), &error);
    void *host = gpu ? NULL : aligned_alloc(64, (size + 127) / 64 * 64);
    if (gpu)
        CUDA(gpu, cuMemAlloc(&device, size + 256));
    assert_ok((tensors->q ? fpa_draft : fpa_accept)(l->kernel, tensors, accepted,
                                                    gpu ? (void *)(uintptr_t)device : host, size, &error),
              &error);
    if (gpu) {
        CUDA(gpu, cuStreamSynchronize(gpu->stream));
        CUDA(gpu, cuMemFree(device));
    }
    free(host);
}

static void load(loop *l, gpu_problem *part, const int64_t *at)
{
    static const int inputs[] = {IN_Q, IN_K, IN_V, IN_GATE};
    for (int i = 0; i < 4; i++)
        if (part->operand[inputs[i]].size)
            move(&l->whole->operand[inputs[i]], &part->operand[inputs[i]], at, false, l->whole->gpu);
}

static fpa_accepted accepted_of(const loop *l)
{
    const fpa_tensors *t = &l->before->tensors;
    return (fpa_accepted){.count = &l->counts, .k = t->k, .v = t->v, .log_gate = t->log_gate};
}

/* One pass: what was accepted of the draft before goes into the state, then a draft. fused: in one call. */
static void pass(loop *l, bool first, bool fused)
{
    fpa_tensors ask = l->now->tensors, state = {.stream = ask.stream};
    const fpa_accepted accepted = accepted_of(l);
    const DLTensor *in = first ? NULL : l->whole->tensors.state_out;
    load(l, l->now, l->at);
    ask.state_in = first && !fused ? NULL : in;
    ask.state_out = NULL;
    state.state_in = in;
    state.state_out = l->whole->tensors.state_out;
    if (fused) {
        ask.state_in = in;
        ask.state_out = state.state_out;
        compute(l, &ask, &accepted);
    } else {
        compute(l, &state, &accepted);
        ask.state_in = state.state_out;
        compute(l, &ask, NULL);
    }
    move(&l->whole->operand[OUT_O], &l->now->operand[OUT_O], l->at, true, l->whole->gpu);
}

/* Sequence b accepts another number each time, none as well; never tokens that are not there. */
static void accept(loop *l, int64_t tokens, int round)
{
    const int64_t length = l->whole->operand[IN_Q].shape[1];
    gpu_problem *draft = l->before;
    l->before = l->now;
    l->now = draft;
    for (int b = 0; b < BATCH; b++) {
        int64_t n = (b + round) % (tokens + 1);
        n = l->at[b] + n > length ? length - l->at[b] : n;
        l->count[b] = (int32_t)n;
        l->at[b] += n;
    }
    set_counts(l);
}

static bool is_done(const loop *l)
{
    bool done = true;
    for (int b = 0; b < BATCH; b++)
        done = done && l->at[b] == l->whole->operand[IN_Q].shape[1];
    return done;
}

static void decode(gpu_problem *whole, const fpa_kernel *kernel, int64_t tokens, bool fused)
{
    const problem_shape part = {.batch = BATCH,
                                .length = tokens,
                                .query_heads = whole->operand[IN_Q].shape[2],
                                .heads = whole->operand[IN_K].shape[2]};
    loop l = {.whole = whole, .kernel = kernel, .now = &l.parts[0], .before = &l.parts[1]};
    problem_poison(whole);
    problem_make(l.now, fpa_describe(kernel), &part, 1, whole->gpu);
    problem_make(l.before, fpa_describe(kernel), &part, 1, whole->gpu);
    if (whole->gpu)
        CUDA(whole->gpu, cuMemAlloc(&l.device, sizeof l.count + 256));
    set_counts(&l);
    for (int round = 0; !is_done(&l) || round == 0; round++) {
        pass(&l, round == 0, fused);
        accept(&l, tokens, round + 1);
        assert_true(round < 1000);
    }
    const fpa_accepted accepted = accepted_of(&l); /* what the last draft had to accept */
    const fpa_tensors state = {.state_in = whole->tensors.state_out,
                               .state_out = whole->tensors.state_out,
                               .stream = whole->tensors.stream};
    compute(&l, &state, &accepted);
    if (whole->gpu) {
        gpu_operand *to = &whole->operand[OUT_STATE];
        CUDA(whole->gpu, cuMemcpyDtoH(to->host, to->device, to->size));
        CUDA(whole->gpu, cuMemFree(l.device));
    }
    problem_free(l.now);
    problem_free(l.before);
}

/* `once`: the recurrent form over all tokens, on the CPU. */
static void expect_same(const gpu_problem *decoded, const gpu_problem *once, int head, int64_t tokens)
{
    static const int outputs[] = {OUT_O, OUT_STATE};
    for (int i = 0; i < 2; i++) {
        double error = operand_distance(&decoded->operand[outputs[i]], &once->operand[outputs[i]]);
        if (!(error <= heads[head].tolerance))
            fail_msg("%s, drafts of %lld: %s differs by %g, but %g is allowed", heads[head].name,
                     (long long)tokens, i ? "the final state" : "o", error, heads[head].tolerance);
    }
}

static void compare(const recent_fixture *f, fpa_kernel *const *kernels, const test_gpu *gpu)
{
    static const int64_t tokens[] = {1, 5, 16};
    static const problem_shape shapes[] = {{BATCH, 37, 6, 3}, {BATCH, 21, 2, 2}};
    for (int i = 0; i < HEADS; i++)
        for (int s = 0; s < 2; s++) {
            gpu_problem once, decoded;
            problem_make(&once, fpa_describe(f->c[i]), &shapes[s], 5, NULL);
            problem_run(&once, f->c[i], FPA_FORM_RECURRENT);
            problem_make(&decoded, fpa_describe(kernels[i]), &shapes[s], 5, gpu);
            for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++) {
                decode(&decoded, kernels[i], tokens[t], (t + (size_t)s) % 2);
                expect_same(&decoded, &once, i, tokens[t]);
            }
            problem_free(&once);
            problem_free(&decoded);
        }
}

static void decoding_by_drafts_is_one_forward(void **state)
{
    const recent_fixture *f = *state;
    compare(f, f->c, NULL);
}

static void decoding_by_drafts_is_one_forward_on_a_gpu(void **state)
{
    const recent_fixture *f = *state;
    if (!f->ready)
        skip();
    compare(f, f->cuda, &f->gpu);
}

/* ---- what is refused ---- */

/* A draft of 4 tokens behind one of 3, of which 2 are accepted by each of 2 sequences. */
typedef struct refused {
    gpu_problem now, before;
    fpa_tensors tensors;
    fpa_accepted accepted, *given;
    int32_t count[2];
    int64_t shape[1];
    DLTensor counts;
} refused;

static void make_refused(refused *r, const fpa_kernel *kernel)
{
    const problem_shape now = {2, 4, 3, 3}, before = {2, 3, 3, 3};
    *r = (refused){.count = {2, 2}, .shape = {2}};
    problem_make(&r->now, fpa_describe(kernel), &now, 1, NULL);
    problem_make(&r->before, fpa_describe(kernel), &before, 2, NULL);
    r->counts = (DLTensor){
        .data = r->count, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLInt, 32, 1}, .shape = r->shape};
    memset(r->now.operand[OUT_STATE].host, 0, r->now.operand[OUT_STATE].size);
    r->tensors = r->now.tensors;
    r->tensors.state_in = r->tensors.state_out;
    r->accepted = (fpa_accepted){.count = &r->counts,
                                 .k = r->before.tensors.k,
                                 .v = r->before.tensors.v,
                                 .log_gate = r->before.tensors.log_gate};
    r->given = &r->accepted;
}

static void expect_refusal(const fpa_kernel *kernel, void (*spoil)(refused *), const char *where,
                           const char *words)
{
    static unsigned char room[1 << 22] __attribute__((aligned(64)));
    fpa_error error = {0};
    refused r;
    make_refused(&r, kernel);
    spoil(&r);
    assert_int_equal(fpa_draft(kernel, &r.tensors, r.given, room, sizeof room, &error), FPA_INVALID);
    assert_string_equal(error.where, where);
    if (!strstr(error.message, words))
        fail_msg("%s: %s", error.where, error.message);
    problem_free(&r.now);
    problem_free(&r.before);
}

static void a_count_too_large(refused *r)
{
    r->count[1] = 4;
}

static void a_count_below_zero(refused *r)
{
    r->count[0] = -1;
}

static void a_count_less(refused *r)
{
    r->shape[0] = 1;
}

static void no_count(refused *r)
{
    r->accepted.count = NULL;
}

static void no_gate(refused *r)
{
    r->accepted.log_gate = NULL;
}

static void no_state_out(refused *r)
{
    r->tensors.state_out = NULL;
}

static void nothing_accepted(refused *r)
{
    r->given = NULL;
}

static void keys_alone(refused *r)
{
    r->tensors.q = NULL;
    r->tensors.o = NULL;
}

static void recent_tokens(refused *r)
{
    r->tensors.recent = 1;
}

static void outputs_over_accepted_values(refused *r)
{
    r->tensors.o = &r->now.operand[OUT_O].tensor;
    r->tensors.o->data = r->before.operand[IN_V].host;
}

static void a_sequence_less(refused *r)
{
    r->before.operand[IN_K].shape[0] = r->before.operand[IN_V].shape[0] = 1;
    r->before.operand[IN_GATE].shape[0] = r->shape[0] = 1;
    r->now.operand[OUT_STATE].shape[0] = 1;
}

static void mistakes_are_named(void **state)
{
    const recent_fixture *f = *state;
    const fpa_kernel *gated = f->c[1];
    expect_refusal(gated, a_count_too_large, "accepted.count", "[1] is 4, but there are 3 tokens");
    expect_refusal(gated, a_count_below_zero, "accepted.count", "[0] is -1");
    expect_refusal(gated, a_count_less, "accepted.count", "has 1 numbers, but sequences are 2");
    expect_refusal(gated, no_count, "accepted.count", "NULL");
    expect_refusal(gated, no_gate, "accepted.log_gate", "is NULL");
    expect_refusal(gated, no_state_out, "state_out",
                   "is NULL, but the state with the accepted tokens is written to it");
    expect_refusal(gated, nothing_accepted, "state_out", "is given without accepted");
    expect_refusal(gated, keys_alone, "q", "is NULL, but k or v is given");
    expect_refusal(gated, recent_tokens, "recent", "is given, but drafts do not support it");
    expect_refusal(gated, outputs_over_accepted_values, "o", "overlaps");
    expect_refusal(gated, a_sequence_less, "state_in", "has 1 sequences, but q has 2");
}

int main(void)
{
    c_hurry_a_little();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_by_drafts_is_one_forward),
        cmocka_unit_test(decoding_by_drafts_is_one_forward_on_a_gpu),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests_name("drafts", tests, setup, recent_close);
}

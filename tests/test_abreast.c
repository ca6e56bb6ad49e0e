/* test_abreast: heads that a thread walks in turn have the bits of heads that have a thread each. */
#include "runtime/api/fpa.h"
#include "c_hurry.h"
#include "claims.h"
#include "openmp_threads.h"
#include "random_head.h"

#include <stdlib.h>
#include <string.h>

enum {
    H = 5,
    GROUP = 2,
    HQ = H * GROUP,
    D = 8,
    DV = 12,
    CHUNK = 48,
    MOST = 4 /* sequences */,
    POOL = 6,
    ALONE = MOST * H /* threads */
};

static const char spec[] =
    "local terms = power { degree = 2 }\n"
    "return head { name = 'plain', d = 8, dv = 12, chunk = 48, terms = terms },\n"
    "  head { name = 'mean', d = 8, dv = 12, chunk = 48, gate = true, normalize = 'sum', terms = terms },\n"
    "  head { name = 'narrow', d = 8, dv = 12, chunk = 48, dtype = 'bf16', state_dtype = 'bf16', terms = "
    "terms }\n";

/* Tokens of each sequence; ragged: packed into one. */
typedef struct call {
    int64_t batch, length;
    const int32_t *offsets; /* [batch + 1]; NULL: of `length` each */
    bool begins, ends;      /* with a state given, with one wanted */
    bool pool;              /* of them, by index */
} call;

/* Numbers of one operand [batch, tokens, heads, width] of either order. */
typedef struct operand {
    DLTensor tensor;
    int64_t shape[4], stride[4];
    size_t bytes;
    void *data;
} operand;

static void place(operand *a, int axes, const int64_t *shape, bool side_by_side, int bits)
{
    const int64_t tokens = shape[1], heads = shape[2], width = axes == 4 ? shape[3] : 1;
    memcpy(a->shape, shape, (size_t)axes * sizeof *shape);
    a->stride[0] = tokens * heads * width;
    a->stride[1] = side_by_side ? heads * width : width;
    a->stride[2] = side_by_side ? width : tokens * width;
    a->stride[3] = 1;
    a->bytes = (size_t)(shape[0] * a->stride[0]) * (size_t)bits / 8;
    a->data = calloc(a->bytes + 1, 1);
    assert_non_null(a->data);
    a->tensor = (DLTensor){
        .data = a->data, .device = {kDLCPU, 0}, .ndim = axes, .shape = a->shape, .strides = a->stride};
    a->tensor.dtype = (DLDataType){bits == 16 ? kDLBfloat : kDLFloat, (uint8_t)bits, 1};
}

/* Where an element of [batch, token, head, width] is. */
static char *element(const operand *a, int64_t i)
{
    const int64_t width = a->tensor.ndim == 4 ? a->shape[3] : 1, e = i % width, h = i / width % a->shape[2],
                  t = i / width / a->shape[2] % a->shape[1], b = i / width / a->shape[2] / a->shape[1];
    const int64_t at = b * a->stride[0] + t * a->stride[1] + h * a->stride[2] + e;
    return (char *)a->data + at * (a->tensor.dtype.bits / 8);
}

static int64_t count_of(const operand *a)
{
    return (int64_t)(a->bytes / (a->tensor.dtype.bits / 8U));
}

/* The same numbers whatever the order. */
static void fill(operand *a, uint64_t seed, double low, double high)
{
    random_source random = {seed};
    for (int64_t i = 0; i < count_of(a); i++) {
        const float value = (float)(low + (high - low) * random_unit(&random));
        const char *bytes = (const char *)&value; /* its upper half is bf16 */
        memcpy(element(a, i), bytes + sizeof value - a->tensor.dtype.bits / 8U, a->tensor.dtype.bits / 8U);
    }
}

static DLTensor numbers(void *data, int64_t *count)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLInt, 32, 1}, .shape = count};
}

typedef struct operands {
    operand q, k, v, gate, o, given, wanted; /* states are [slots, head, elements] */
    size_t workspace;                        /* bytes */
} operands;

static void free_operands(operands *x)
{
    operand *all[] = {&x->q, &x->k, &x->v, &x->gate, &x->o, &x->given, &x->wanted};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
}

static void make_operands(const call *c, const fpa_description *head, bool side_by_side, operands *x)
{
    const int bits = head->dtype[0] == 'b' ? 16 : 32;
    const int64_t batch = c->offsets ? 1 : c->batch, tokens = c->offsets ? c->offsets[c->batch] : c->length,
                  slots = c->pool ? POOL : c->batch;
    place(&x->q, 4, (int64_t[]){batch, tokens, HQ, D}, side_by_side, bits);
    place(&x->k, 4, (int64_t[]){batch, tokens, H, D}, side_by_side, bits);
    place(&x->v, 4, (int64_t[]){batch, tokens, H, DV}, side_by_side, bits);
    place(&x->o, 4, (int64_t[]){batch, tokens, HQ, DV}, side_by_side, bits);
    place(&x->gate, 3, (int64_t[]){batch, tokens, H}, side_by_side, 32);
    place(&x->given, 3, (int64_t[]){slots, H, head->state_elements}, true, bits);
    place(&x->wanted, 3, (int64_t[]){slots, H, head->state_elements}, true, bits);
    fill(&x->q, 1, 0, 0.5);
    fill(&x->k, 2, 0, 0.5);
    fill(&x->v, 3, -1, 1);
    fill(&x->gate, 4, -0.1, 0);
    fill(&x->given, 5, 0, 1);
}

/* One forward pass with a workspace of just the bytes that it asks for. */
static void run(const fpa_kernel *kernel, const call *c, bool side_by_side, operands *x)
{
    static int32_t in[MOST] = {4, -1, 0, 2}, out[MOST] = {1, 3, -1, 5};
    const fpa_description *head = fpa_describe(kernel);
    int64_t boundaries = c->batch + 1, sequences = c->batch;
    fpa_error error = {0};
    void *workspace = NULL;
    make_operands(c, head, side_by_side, x);
    DLTensor offsets = numbers((void *)c->offsets, &boundaries), from = numbers(in, &sequences),
             to = numbers(out, &sequences);
    fpa_tensors tensors = {.q = &x->q.tensor, .k = &x->k.tensor, .v = &x->v.tensor, .o = &x->o.tensor};
    tensors.log_gate = head->gate ? &x->gate.tensor : NULL;
    tensors.cu_seqlens = c->offsets ? &offsets : NULL;
    tensors.state_in = c->begins ? &x->given.tensor : NULL;
    tensors.state_out = c->ends ? &x->wanted.tensor : NULL;
    tensors.state_index = c->pool && c->begins ? &from : NULL;
    tensors.state_out_index = c->pool && c->ends ? &to : NULL;
    assert_ok(fpa_workspace_size(kernel, FPA_FORM_CHUNKED, &tensors, &x->workspace, &error) ||
                  posix_memalign(&workspace, 64, x->workspace + 1) ||
                  fpa_forward(kernel, FPA_FORM_CHUNKED, &tensors, workspace, x->workspace, &error),
              &error);
    free(workspace);
}

/* Outputs and states of few threads and of one a head. */
static void compare(const fpa_kernel *kernel, const call *c, bool side_by_side, int threads)
{
    operands turns = {0}, alone = {0};
    openmp_threads(threads);
    run(kernel, c, side_by_side, &turns);
    openmp_threads(ALONE);
    run(kernel, c, side_by_side, &alone);
    if (memcmp(turns.o.data, alone.o.data, alone.o.bytes) ||
        memcmp(turns.wanted.data, alone.wanted.data, alone.wanted.bytes))
        fail_msg("%d threads, %d sequences of %d tokens, %s: other bits", threads, (int)c->batch,
                 (int)c->length, side_by_side ? "heads side by side" : "heads apart");
    free_operands(&turns);
    free_operands(&alone);
}

/* A thread has the states of all its heads where sequences have several chunks. */
static void check_workspace(const fpa_kernel *kernel)
{
    const size_t states = H * 4 * (size_t)fpa_describe(kernel)->state_elements;
    operands of_one = {0}, of_more = {0};
    run(kernel, &(call){.batch = 1, .length = CHUNK}, true, &of_one);
    run(kernel, &(call){.batch = 1, .length = CHUNK + 1}, true, &of_more);
    assert_in_range(of_more.workspace - of_one.workspace, states * (H - 1) / H, states + 64 * H);
    free_operands(&of_one);
    free_operands(&of_more);
}

static void check(const char *name)
{
    static const int32_t ragged[MOST + 1] = {0, 0, 1, 101, 251}, equal[MOST + 1] = {0, 60, 120, 180, 240};
    static const call calls[] = {
        {1, 0, NULL, true, true, false},     {2, 1, NULL, true, true, false},
        {1, 48, NULL, false, true, false},   {1, 49, NULL, true, false, false},
        {3, 151, NULL, false, false, false}, {2, 144, NULL, true, true, false},
        {4, 100, NULL, true, true, true},    {4, 251, ragged, true, true, false},
        {4, 251, ragged, true, true, true},  {4, 251, ragged, false, false, false},
        {4, 240, equal, true, true, true},
    };
    fpa_kernel *kernel = NULL;
    fpa_error error = {0};
    openmp_threads(1); /* verification walks heads in turn, too */
    assert_ok(fpa_open_text("abreast.lua", spec, name, NULL, &kernel, &error), &error);
    if (!openmp_threads(1))
        skip();
    check_workspace(kernel);
    for (int threads = 1; threads <= 4; threads++)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            compare(kernel, &calls[i], true, threads);
            compare(kernel, &calls[i], false, threads);
        }
    fpa_close(kernel);
}

static void heads_in_turn_have_the_bits_of_heads_one_by_one(void **state)
{
    check("plain");
}

static void gates_and_normalisers_change_nothing_of_that(void **state)
{
    check("mean");
}

static void states_that_are_stored_narrow_run_apart(void **state)
{
    check("narrow");
}

static int hurry(void **state)
{
    c_hurry_a_little();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_in_turn_have_the_bits_of_heads_one_by_one),
        cmocka_unit_test(gates_and_normalisers_change_nothing_of_that),
        cmocka_unit_test(states_that_are_stored_narrow_run_apart),
    };
    return cmocka_run_group_tests_name("abreast", tests, hurry, NULL);
}

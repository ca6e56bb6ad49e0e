/* test_pieces: a prompt in pieces, the state handed over, against one pass: bit for bit where pieces are whole chunks, near it
 * where they are not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/fpa.h"
#include "claims.h"
#include "scratch.h"

enum { B = 2, L = 310, HQ = 4, H = 2, D = 16, CHUNK = 48 };

static const char spec[] =
    "return head { name = 'plain', d = 16, dv = 16, chunk = 48, terms = power { degree = 2 } },\n"
    "  head { name = 'mean', d = 16, dv = 16, chunk = 48, gate = true, normalize = 'sum', terms = power { "
    "degree = 2 } },\n"
    "  head { name = 'window', d = 16, dv = 16, normalize = 'sum', window = 16, terms = power { degree = 2 } "
    "},\n"
    "  head { name = 'open', d = 16, dv = 16, causal = false, terms = power { degree = 2 } }\n";

typedef struct operand {
    DLTensor tensor;
    int64_t shape[4], stride[4];
    float *values;
    size_t count;
} operand;

typedef struct fixture {
    char folder[64];
    operand q, k, v, o, gate, state;
} fixture;

/* Positive where normalisers are made of them. */
static void make(operand *a, int axes, const int64_t *shape, float low, float high)
{
    a->count = 1;
    for (int i = axes - 1; i >= 0; i--) {
        a->shape[i] = shape[i];
        a->stride[i] = (int64_t)a->count;
        a->count *= (size_t)shape[i];
    }
    a->values = calloc(a->count, sizeof(float));
    assert_non_null(a->values);
    for (size_t i = 0; i < a->count; i++)
        a->values[i] =
            low + (high - low) * (float)((uint32_t)(i * 2654435761u + (unsigned)axes) >> 8) * 0x1p-24f;
    a->tensor = (DLTensor){.data = a->values,
                           .device = {kDLCPU, 0},
                           .ndim = axes,
                           .dtype = {kDLFloat, 32, 1},
                           .shape = a->shape,
                           .strides = a->stride};
}

static int setup(void **state)
{
    static fixture f;
    *state = &f;
    scratch_make(f.folder);
    make(&f.q, 4, (int64_t[]){B, L, HQ, D}, 0, 0.5f);
    make(&f.k, 4, (int64_t[]){B, L, H, D}, 0, 0.5f);
    make(&f.v, 4, (int64_t[]){B, L, H, D}, -1, 1);
    make(&f.o, 4, (int64_t[]){B, L, HQ, D}, 0, 0);
    make(&f.gate, 3, (int64_t[]){B, L, H}, -0.1f, 0);
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    operand *all[] = {&f->q, &f->k, &f->v, &f->o, &f->gate};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->values);
    scratch_remove(f->folder);
    return 0;
}

/* Tokens first .. of all tensors. */
static DLTensor piece_of(const operand *a, int64_t shape[4], int64_t first, int64_t tokens)
{
    DLTensor piece = a->tensor;
    memcpy(shape, a->shape, sizeof a->shape);
    shape[1] = tokens;
    piece.shape = shape;
    piece.byte_offset = (uint64_t)(first * a->stride[1]) * sizeof(float);
    return piece;
}

static void run_piece(fixture *f, const fpa_kernel *kernel, int64_t first, int64_t tokens)
{
    int64_t shape[5][4];
    fpa_error error;
    size_t size;
    DLTensor q = piece_of(&f->q, shape[0], first, tokens), k = piece_of(&f->k, shape[1], first, tokens);
    DLTensor v = piece_of(&f->v, shape[2], first, tokens), o = piece_of(&f->o, shape[3], first, tokens);
    DLTensor gate = piece_of(&f->gate, shape[4], first, tokens);
    const fpa_tensors tensors = {.q = &q,
                                 .k = &k,
                                 .v = &v,
                                 .o = &o,
                                 .log_gate = fpa_describe(kernel)->gate ? &gate : NULL,
                                 .state_in = first ? &f->state.tensor : NULL,
                                 .state_out = &f->state.tensor};
    assert_int_equal(fpa_workspace_size(kernel, FPA_FORM_CHUNKED, &tensors, &size, &error), FPA_OK);
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    assert_ok(fpa_forward(kernel, FPA_FORM_CHUNKED, &tensors, workspace, size, &error), &error);
    free(workspace);
}

typedef struct results {
    float *o, *state;
} results;

/* All tokens, in pieces of so many. */
static results run(fixture *f, const fpa_kernel *kernel, int64_t piece)
{
    results r;
    make(&f->state, 3, (int64_t[]){B, H, fpa_describe(kernel)->state_elements}, 0, 0);
    for (int64_t first = 0; first < L; first += piece)
        run_piece(f, kernel, first, L - first < piece ? L - first : piece);
    r.o = malloc(f->o.count * sizeof(float));
    assert_non_null(r.o);
    memcpy(r.o, f->o.values, f->o.count * sizeof(float));
    r.state = f->state.values;
    return r;
}

static double distance(const float *a, const float *b, size_t count)
{
    double most = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return most / largest;
}

static void compare(fixture *f, const char *head)
{
    static const int64_t whole[] = {CHUNK, 2 * CHUNK, 5 * CHUNK}, others[] = {1, 47, 100};
    const fpa_options options = {.cache_dir = f->folder};
    fpa_kernel *kernel;
    fpa_error error;
    assert_ok(fpa_open_text("pieces.lua", spec, head, &options, &kernel, &error), &error);
    assert_int_equal(fpa_describe(kernel)->chunk, CHUNK);
    const results wanted = run(f, kernel, L);
    const size_t states = f->state.count;
    for (int i = 0; i < 3; i++) {
        const results r = run(f, kernel, whole[i]), near = run(f, kernel, others[i]);
        assert_memory_equal(r.o, wanted.o, f->o.count * sizeof(float));
        assert_memory_equal(r.state, wanted.state, states * sizeof(float));
        assert_true(distance(near.o, wanted.o, f->o.count) < 2e-6);
        assert_true(distance(near.state, wanted.state, states) < 2e-6);
        free(r.o), free(r.state), free(near.o), free(near.state);
    }
    free(wanted.o), free(wanted.state);
    fpa_close(kernel);
}

static void pieces_of_whole_chunks_have_the_bits_of_one_pass(void **state)
{
    compare(*state, "plain");
}

static void gates_and_normalisers_change_nothing_of_that(void **state)
{
    compare(*state, "mean");
}

/* ---- totals and outputs apart ---- */

/* A piece's tensors. */
typedef struct halves {
    int64_t shape[5][4];
    DLTensor q, k, v, o, gate;
    fpa_tensors total, outputs;
} halves;

static void divide(halves *x, const fixture *f, const fpa_kernel *kernel, int64_t first, int64_t tokens,
                   DLTensor *total, const DLTensor *before)
{
    const DLTensor *const gate = fpa_describe(kernel)->gate ? &x->gate : NULL;
    x->gate = piece_of(&f->gate, x->shape[4], first, tokens);
    x->q = piece_of(&f->q, x->shape[0], first, tokens);
    x->k = piece_of(&f->k, x->shape[1], first, tokens);
    x->v = piece_of(&f->v, x->shape[2], first, tokens);
    x->o = piece_of(&f->o, x->shape[3], first, tokens);
    x->total = (fpa_tensors){.k = &x->k, .v = &x->v, .log_gate = gate, .state_out = total};
    x->outputs =
        (fpa_tensors){.q = &x->q, .k = &x->k, .v = &x->v, .o = &x->o, .log_gate = gate, .state_in = before};
}

static void run_halves(const fpa_kernel *kernel, const halves *x)
{
    fpa_error error;
    size_t size;
    assert_int_equal(fpa_piece_workspace(kernel, &x->outputs, &size, &error), FPA_OK);
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    assert_ok(fpa_piece_total(kernel, &x->total, workspace, size, &error) ||
                  fpa_piece_outputs(kernel, &x->outputs, workspace, size, &error),
              &error);
    free(workspace);
}

static fpa_kernel *open_head(const fixture *f, const char *head)
{
    const fpa_options options = {.cache_dir = f->folder};
    fpa_kernel *kernel;
    fpa_error error;
    assert_ok(fpa_open_text("pieces.lua", spec, head, &options, &kernel, &error), &error);
    return kernel;
}

/* What a piece's gates leave of the state before it. */
static double decay_of(const fixture *f, int64_t b, int64_t head, int64_t first)
{
    double sum = 0;
    for (int64_t t = first; t < L; t++)
        sum += f->gate.values[(b * L + t) * H + head];
    return exp(sum);
}

/* Two pieces, the second one with the first one's total before it; their totals, joined, are the whole's. */
static void compare_halves(fixture *f, const char *head)
{
    fpa_kernel *kernel = open_head(f, head);
    const bool gate = fpa_describe(kernel)->gate;
    const size_t elements = (size_t)fpa_describe(kernel)->state_elements;
    const results wanted = run(f, kernel, L);
    operand total, rest;
    halves x;
    make(&total, 3, (int64_t[]){B, H, fpa_describe(kernel)->state_elements}, 0, 0);
    make(&rest, 3, (int64_t[]){B, H, fpa_describe(kernel)->state_elements}, 0, 0);
    memset(f->o.values, 0, f->o.count * sizeof(float));
    divide(&x, f, kernel, 0, 2 * CHUNK, &total.tensor, NULL);
    run_halves(kernel, &x);
    divide(&x, f, kernel, 2 * CHUNK, L - 2 * CHUNK, &rest.tensor, &total.tensor);
    run_halves(kernel, &x);
    assert_true(distance(f->o.values, wanted.o, f->o.count) < 2e-6);
    for (size_t i = 0; i < total.count; i++) {
        const int64_t which = (int64_t)(i / elements);
        const double decay = gate ? decay_of(f, which / H, which % H, 2 * CHUNK) : 1;
        total.values[i] = (float)(decay * (double)total.values[i]) + rest.values[i];
    }
    assert_true(distance(total.values, wanted.state, total.count) < 2e-6);
    free(wanted.o), free(wanted.state), free(total.values), free(rest.values);
    fpa_close(kernel);
}

static void a_piece_has_its_total_and_then_its_outputs(void **state)
{
    compare_halves(*state, "plain");
}

static void so_has_a_piece_with_gates_and_a_normaliser(void **state)
{
    compare_halves(*state, "mean");
}

static void a_piece_without_tokens_has_a_total_of_zeros(void **state)
{
    fixture *f = *state;
    fpa_kernel *kernel = open_head(f, "mean");
    operand total;
    halves x;
    make(&total, 3, (int64_t[]){B, H, fpa_describe(kernel)->state_elements}, 1, 2);
    divide(&x, f, kernel, L, 0, &total.tensor, NULL);
    run_halves(kernel, &x);
    for (size_t i = 0; i < total.count; i++)
        assert_true(total.values[i] == 0);
    free(total.values);
    fpa_close(kernel);
}

static void expect_refusal(fpa_status status, const fpa_error *error, const char *where)
{
    assert_int_equal(status, FPA_INVALID);
    assert_string_equal(error->where, where);
}

static void what_belongs_to_the_other_half_is_refused(void **state)
{
    fixture *f = *state;
    fpa_kernel *kernel = open_head(f, "plain");
    operand total;
    halves x;
    fpa_error error;
    make(&total, 3, (int64_t[]){B, H, fpa_describe(kernel)->state_elements}, 0, 0);
    divide(&x, f, kernel, 0, L, &total.tensor, &total.tensor);
    expect_refusal(fpa_piece_total(kernel, &x.outputs, NULL, 0, &error), &error, "q");
    expect_refusal(fpa_piece_outputs(kernel, &x.total, NULL, 0, &error), &error, "state_out");
    x.total.state_in = &total.tensor;
    expect_refusal(fpa_piece_total(kernel, &x.total, NULL, 0, &error), &error, "state_in");
    x.total.state_in = NULL, x.total.state_out = NULL;
    expect_refusal(fpa_piece_total(kernel, &x.total, NULL, 0, &error), &error, "state_out");
    expect_refusal(fpa_piece_outputs(kernel, &x.total, NULL, 0, &error), &error, "q");
    x.outputs.recent = 1;
    expect_refusal(fpa_piece_outputs(kernel, &x.outputs, NULL, 0, &error), &error, "recent");
    expect_refusal(fpa_piece_total(kernel, NULL, NULL, 0, &error), &error, "tensors");
    expect_refusal(fpa_piece_total(NULL, &x.total, NULL, 0, &error), &error, "kernel");
    free(total.values);
    fpa_close(kernel);
}

static void a_workspace_that_does_not_do_is_refused(void **state)
{
    fixture *f = *state;
    fpa_kernel *kernel = open_head(f, "plain");
    operand total;
    halves x;
    fpa_error error;
    size_t size;
    make(&total, 3, (int64_t[]){B, H, fpa_describe(kernel)->state_elements}, 0, 0);
    divide(&x, f, kernel, 0, L, &total.tensor, NULL);
    assert_int_equal(fpa_piece_workspace(kernel, &x.outputs, &size, &error), FPA_OK);
    assert_true(size > 0);
    char *workspace = aligned_alloc(64, (size + 128) / 64 * 64);
    expect_refusal(fpa_piece_outputs(kernel, &x.outputs, workspace, size - 1, &error), &error, "workspace");
    assert_non_null(strstr(error.message, "fpa_piece_workspace"));
    expect_refusal(fpa_piece_outputs(kernel, &x.outputs, NULL, 0, &error), &error, "workspace");
    expect_refusal(fpa_piece_outputs(kernel, &x.outputs, workspace + 4, size, &error), &error, "workspace");
    expect_refusal(fpa_piece_workspace(kernel, &x.outputs, NULL, &error), &error, "bytes");
    expect_refusal(fpa_piece_workspace(NULL, &x.outputs, &size, &error), &error, "kernel");
    free(workspace), free(total.values);
    fpa_close(kernel);
}

static void heads_whose_queries_need_other_keys_are_refused(void **state)
{
    static const char *const heads[] = {"window", "open"};
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        fpa_kernel *kernel = open_head(f, heads[i]);
        halves x;
        fpa_error error;
        size_t size;
        divide(&x, f, kernel, 0, L, NULL, NULL);
        assert_int_equal(fpa_piece_workspace(kernel, &x.outputs, &size, &error), FPA_UNSUPPORTED);
        assert_int_equal(fpa_piece_outputs(kernel, &x.outputs, NULL, 0, &error), FPA_UNSUPPORTED);
        assert_string_equal(error.where, heads[i]);
        fpa_close(kernel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_whole_chunks_have_the_bits_of_one_pass),
        cmocka_unit_test(gates_and_normalisers_change_nothing_of_that),
        cmocka_unit_test(a_piece_has_its_total_and_then_its_outputs),
        cmocka_unit_test(so_has_a_piece_with_gates_and_a_normaliser),
        cmocka_unit_test(a_piece_without_tokens_has_a_total_of_zeros),
        cmocka_unit_test(what_belongs_to_the_other_half_is_refused),
        cmocka_unit_test(a_workspace_that_does_not_do_is_refused),
        cmocka_unit_test(heads_whose_queries_need_other_keys_are_refused),
    };
    setenv("FPA_CFLAGS", "-Og", 0);
    return cmocka_run_group_tests(tests, setup, teardown);
}

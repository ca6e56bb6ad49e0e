/* test_backward_sequences: gradients of sequences of different lengths in one batch, with states in a pool, have the bits of
 * calls of each sequence by itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/fpa.h"
#include "claims.h"
#include "scratch.h"

enum {
    TOTAL = 229,
    S = 5,
    SLOTS = 3,
    HQ = 4,
    H = 2,
    D = 6,
    DV = 5,
    ROWS = 3,
    STATE = 18 * (DV + 1),
    MARK = 77
};

static const char spec[] =
    "return head { name = 'gated', d = 6, dv = 5, gate = true, normalize = 'one_plus_sum',\n"
    "              terms = term { trainable { name = 'W', rows = 3 }, identity() } }\n";

/* Tokens before the first sequence and behind the last are nobody's. */
static int32_t offsets[S + 1] = {3, 3, 40, 41, 180, 225};
static int64_t wide_offsets[S + 1] = {3, 3, 40, 41, 180, 225};
static int32_t slots[S] = {1, 2, -1, 0, 2};

/* Axes of tokens or states, and their numbers: [1 or batch, tokens, width], [count, H, STATE], [H, ROWS, D]. */
typedef struct array {
    DLTensor tensor;
    int64_t shape[4], rows, width; /* rows of so many numbers each */
    float *values;
} array;

enum { Q, K, V, O, DEN, GATE, W, S_IN, D_O, D_S_OUT, D_Q, D_K, D_V, D_GATE, D_W, D_S_IN, ARRAYS };

static const struct kind {
    int axes;
    int64_t shape[3]; /* behind tokens, sequences or slots */
    bool tokens, written, positive;
} kinds[ARRAYS] = {
    [Q] = {4, {HQ, D}, .tokens = true, .positive = true},
    [K] = {4, {H, D}, .tokens = true, .positive = true},
    [V] = {4, {H, DV}, .tokens = true},
    [O] = {4, {HQ, DV}, .tokens = true, .written = true},
    [DEN] = {3, {HQ, 1}, .tokens = true, .written = true},
    [GATE] = {3, {H, 1}, .tokens = true},
    [W] = {3, {H, ROWS, D}, .positive = true},
    [S_IN] = {3, {SLOTS, H, STATE}},
    [D_O] = {4, {HQ, DV}, .tokens = true},
    [D_S_OUT] = {3, {S, H, STATE}},
    [D_Q] = {4, {HQ, D}, .tokens = true, .written = true},
    [D_K] = {4, {H, D}, .tokens = true, .written = true},
    [D_V] = {4, {H, DV}, .tokens = true, .written = true},
    [D_GATE] = {3, {H, 1}, .tokens = true, .written = true},
    [D_W] = {3, {H, ROWS, D}, .written = true},
    [D_S_IN] = {3, {S, H, STATE}, .written = true},
};

typedef struct fixture {
    char folder[64];
    fpa_kernel *kernel;
    array a[ARRAYS];
    fpa_error error;
} fixture;

static void make(array *a, const struct kind *kind, int seed)
{
    a->rows = kind->tokens ? TOTAL : kind->shape[0];
    a->width = kind->tokens ? kind->shape[0] * kind->shape[1] : kind->shape[1] * kind->shape[2];
    if (kind->tokens)
        memcpy(a->shape, (int64_t[]){1, TOTAL, kind->shape[0], kind->shape[1]}, sizeof a->shape);
    else
        memcpy(a->shape, kind->shape, sizeof kind->shape);
    a->values = calloc((size_t)(a->rows * a->width), sizeof(float));
    assert_non_null(a->values);
    for (int64_t i = 0; i < a->rows * a->width; i++) {
        const float value =
            (float)((uint32_t)(i * 2654435761u + (unsigned)seed * 40503u) >> 8) * 0x1p-24f - 0.5f;
        a->values[i] = kind->written ? MARK : kind->positive ? fabsf(value) : value;
    }
    a->tensor = (DLTensor){.data = a->values,
                           .device = {kDLCPU, 0},
                           .ndim = kind->axes,
                           .dtype = {kDLFloat, 32, 1},
                           .shape = a->shape};
}

static int setup(void **state)
{
    static fixture f;
    *state = &f;
    scratch_make(f.folder);
    const fpa_options options = {.cache_dir = f.folder, .backward = 1};
    assert_ok(fpa_open_text("sequences.lua", spec, NULL, &options, &f.kernel, &f.error), &f.error);
    for (int i = 0; i < ARRAYS; i++)
        make(&f.a[i], &kinds[i], i + 1);
    for (int64_t i = 0; i < f.a[GATE].rows * f.a[GATE].width; i++)
        f.a[GATE].values[i] = -fabsf(f.a[GATE].values[i]);
    for (int64_t i = 0; i < f.a[S_IN].rows * f.a[S_IN].width; i++)
        f.a[S_IN].values[i] *= 0.01f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < ARRAYS; i++)
        free(f->a[i].values);
    fpa_close(f->kernel);
    scratch_remove(f->folder);
    return 0;
}

/* A call, of tensors of its own. */
typedef struct call {
    DLTensor t[ARRAYS];
    int64_t shape[ARRAYS][4];
    const DLTensor *weights[1];
    DLTensor *d_weights[1];
    DLTensor cu_seqlens, index;
    int64_t count[2];
    fpa_gradient_tensors g;
    fpa_tensors f;
} call;

static void set_tensors(call *c)
{
    DLTensor *t = c->t;
    c->weights[0] = &t[W];
    c->d_weights[0] = &t[D_W];
    c->f = (fpa_tensors){.q = &t[Q],
                         .k = &t[K],
                         .v = &t[V],
                         .o = &t[O],
                         .den = &t[DEN],
                         .log_gate = &t[GATE],
                         .state_in = &t[S_IN],
                         .weights = c->weights};
    c->g = (fpa_gradient_tensors){.q = &t[Q],
                                  .k = &t[K],
                                  .v = &t[V],
                                  .o = &t[O],
                                  .den = &t[DEN],
                                  .log_gate = &t[GATE],
                                  .state_in = &t[S_IN],
                                  .weights = c->weights,
                                  .d_o = &t[D_O],
                                  .d_state_out = &t[D_S_OUT],
                                  .d_q = &t[D_Q],
                                  .d_k = &t[D_K],
                                  .d_v = &t[D_V],
                                  .d_log_gate = &t[D_GATE],
                                  .d_state_in = &t[D_S_IN],
                                  .d_weights = c->d_weights};
}

/* All sequences, packed. */
static void set_packed(fixture *f, call *c, bool wide)
{
    for (int i = 0; i < ARRAYS; i++)
        c->t[i] = f->a[i].tensor;
    set_tensors(c);
    c->count[0] = S + 1;
    c->count[1] = S;
    c->cu_seqlens = (DLTensor){.data = wide ? (void *)wide_offsets : (void *)offsets,
                               .device = {kDLCPU, 0},
                               .ndim = 1,
                               .dtype = {kDLInt, wide ? 64 : 32, 1},
                               .shape = &c->count[0]};
    c->index = (DLTensor){
        .data = slots, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLInt, 32, 1}, .shape = &c->count[1]};
    c->g.cu_seqlens = c->f.cu_seqlens = &c->cu_seqlens;
    c->g.state_index = c->f.state_index = &c->index;
}

/* Sequence s alone: its tokens of the same memory, the state of its slot. */
static void set_alone(fixture *f, call *c, int s)
{
    for (int i = 0; i < ARRAYS; i++) {
        const bool state = i == S_IN || i == D_S_IN || i == D_S_OUT;
        const int64_t row = kinds[i].tokens ? offsets[s] : i == S_IN ? slots[s] : state ? s : 0;
        c->t[i] = f->a[i].tensor;
        memcpy(c->shape[i], f->a[i].shape, sizeof c->shape[i]);
        c->t[i].shape = c->shape[i];
        c->t[i].data = f->a[i].values + (row < 0 ? 0 : row) * f->a[i].width;
        if (kinds[i].tokens)
            c->shape[i][1] = offsets[s + 1] - offsets[s];
        else if (state)
            c->shape[i][0] = 1;
    }
    set_tensors(c);
    if (slots[s] < 0)
        c->g.state_in = c->f.state_in = NULL;
}

static void *memory_of(size_t size)
{
    void *memory = aligned_alloc(64, (size + 64) / 64 * 64);
    assert_non_null(memory);
    return memory;
}

static void forward(fixture *f, call *c)
{
    size_t size;
    assert_int_equal(fpa_workspace_size(f->kernel, FPA_FORM_CHUNKED, &c->f, &size, &f->error), FPA_OK);
    void *memory = memory_of(size);
    assert_ok(fpa_forward(f->kernel, FPA_FORM_CHUNKED, &c->f, memory, size, &f->error), &f->error);
    free(memory);
}

static fpa_status backward(fixture *f, fpa_form form, call *c)
{
    size_t size;
    fpa_status status = fpa_backward_workspace(f->kernel, form, &c->g, &size, &f->error);
    if (status)
        return status;
    void *memory = memory_of(size);
    status = fpa_backward(f->kernel, form, &c->g, memory, size, &f->error);
    free(memory);
    return status;
}

static void run(fixture *f, fpa_form form, call *c)
{
    assert_ok(backward(f, form, c), &f->error);
}

static void forget(fixture *f)
{
    for (int i = D_Q; i < ARRAYS; i++)
        for (int64_t n = 0; n < f->a[i].rows * f->a[i].width; n++)
            f->a[i].values[n] = MARK;
}

static float *copy_of(const array *a)
{
    const size_t size = (size_t)(a->rows * a->width) * sizeof(float);
    float *copy = malloc(size);
    assert_non_null(copy);
    return memcpy(copy, a->values, size);
}

/* Each sequence alone, over what the packed call wrote: nothing changes, and matrices are the sums. */
static void compare_with_calls_of_their_own(fixture *f, fpa_form form)
{
    float *wanted[ARRAYS] = {NULL}, sums[H * ROWS * D] = {0};
    for (int i = D_Q; i < ARRAYS; i++)
        wanted[i] = copy_of(&f->a[i]);
    forget(f);
    for (int s = 0; s < S; s++) {
        call alone;
        set_alone(f, &alone, s);
        run(f, form, &alone);
        for (int i = 0; i < H * ROWS * D; i++)
            sums[i] += f->a[D_W].values[i];
    }
    memcpy(f->a[D_W].values, sums, sizeof sums);
    for (int i = D_Q; i < ARRAYS; i++) {
        assert_memory_equal(f->a[i].values, wanted[i],
                            (size_t)(f->a[i].rows * f->a[i].width) * sizeof(float));
        free(wanted[i]);
    }
}

static void packed_sequences_have_the_bits_of_calls_of_their_own(void **state)
{
    fixture *f = *state;
    call packed;
    for (int form = FPA_FORM_PARALLEL; form <= FPA_FORM_CHUNKED; form++) {
        set_packed(f, &packed, form == FPA_FORM_CHUNKED);
        forward(f, &packed);
        forget(f);
        run(f, (fpa_form)form, &packed);
        for (int i = 0; i < H * D; i++) { /* nobody's tokens */
            assert_true(f->a[D_K].values[2 * H * D + i] == MARK);
            assert_true(f->a[D_K].values[225 * H * D + i] == MARK);
        }
        compare_with_calls_of_their_own(f, (fpa_form)form);
    }
}

static void the_longest_length_may_be_said(void **state)
{
    fixture *f = *state;
    call packed;
    set_packed(f, &packed, false);
    packed.g.max_length = 139;
    forget(f);
    run(f, FPA_FORM_CHUNKED, &packed);
    compare_with_calls_of_their_own(f, FPA_FORM_CHUNKED);
    packed.g.max_length = 138;
    assert_int_equal(backward(f, FPA_FORM_CHUNKED, &packed), FPA_INVALID);
    assert_non_null(strstr(f->error.message, "max_length is 138"));
}

static void refused(fixture *f, call *c, const char *where, const char *message)
{
    if (backward(f, FPA_FORM_AUTO, c) != FPA_INVALID || !strstr(f->error.where, where) ||
        !strstr(f->error.message, message))
        fail_msg("%s: %s", f->error.where, f->error.message);
}

static void what_cannot_be_is_refused(void **state)
{
    fixture *f = *state;
    call c;
    set_packed(f, &c, false);
    c.count[0] = S; /* a sequence less, but as many gradients of states */
    c.count[1] = S - 1;
    refused(f, &c, "d_state_out", "axis 0");
    set_packed(f, &c, false);
    c.g.cu_seqlens = NULL;
    refused(f, &c, "state_index", "");
    set_packed(f, &c, false);
    c.g.state_index = NULL;
    refused(f, &c, "state_in", "");
    set_packed(f, &c, false);
    slots[1] = SLOTS;
    refused(f, &c, "state_index", "is 3, but state_in has 3 slots");
    slots[1] = 2;
    offsets[2] = 2;
    refused(f, &c, "cu_seqlens", "less than");
    offsets[2] = 40;
    c.t[D_K].data = offsets;
    refused(f, &c, "d_k", "");
}

/* The same tensors are those of a layer of one part; its states are one axis. */
static void a_layer_takes_them_too(void **state)
{
    fixture *f = *state;
    const fpa_kernel *const kernels[] = {f->kernel};
    const int heads[] = {H};
    fpa_layer *layer;
    call c;
    size_t size;
    assert_int_equal(fpa_join_layer("one", kernels, heads, 1, &layer, &f->error), FPA_OK);
    set_packed(f, &c, false);
    forget(f);
    for (int i = 0; i < ARRAYS; i++)
        if (i == S_IN || i == D_S_IN || i == D_S_OUT) {
            memcpy(c.shape[i], (int64_t[]){f->a[i].rows, f->a[i].width}, 2 * sizeof(int64_t));
            c.t[i].shape = c.shape[i];
            c.t[i].ndim = 2;
        }
    assert_ok(fpa_layer_backward_workspace(layer, FPA_FORM_CHUNKED, &c.g, &size, &f->error), &f->error);
    void *memory = memory_of(size);
    assert_int_equal(fpa_layer_backward(layer, FPA_FORM_CHUNKED, &c.g, memory, size, &f->error), FPA_OK);
    free(memory);
    fpa_close_layer(layer);
    compare_with_calls_of_their_own(f, FPA_FORM_CHUNKED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_sequences_have_the_bits_of_calls_of_their_own),
        cmocka_unit_test(the_longest_length_may_be_said),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_layer_takes_them_too),
    };
    setenv("FPA_CFLAGS", "-Og", 0);
    return cmocka_run_group_tests_name("backward_sequences", tests, setup, teardown);
}

/* test_backward: fpa_backward as a caller has it: what it takes, what it refuses, and that its bits depend on nothing
 * else. That they are right is verification's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/gen.h"
#include "gen/spec/spec.h"
#include "runtime/api/fpa.h"
#include "claims.h"
#include "openmp_threads.h"
#include "scratch.h"

enum { B = 2, L = 131, HQ = 4, H = 2, D = 6, DV = 5, ROWS = 3, FEATURES = 18, STATE = FEATURES * (DV + 1) };

static const char spec[] =
    "return head { name = 'gated', d = 6, dv = 5, gate = true, normalize = 'one_plus_sum',\n"
    "              terms = term { trainable { name = 'W', rows = 3 }, identity() } },\n"
    "  head { name = 'plain', d = 4, dv = 4, terms = linear {} },\n"
    "  head { name = 'everywhere', d = 4, dv = 4, causal = false, terms = linear {} },\n"
    "  head { name = 'near', d = 4, dv = 4, normalize = 'sum', window = 16, terms = linear {} },\n"
    "  head { name = 'waves', d = 6, dv = 5, gate = true, normalize = 'one_plus_sum', positions = 1, "
    "key_mask = true,\n"
    "         terms = fourier { map = softplus, a = dense { {1}, {1/2}, {1/3}, {1/4}, {1/5}, {1/6} }, "
    "c = false } }\n";

typedef struct array {
    DLTensor tensor;
    int64_t shape[4];
    float *values;
    int64_t count;
} array;

/* Numbers of -0.5 to 0.5, or zeros. */
static void make(array *a, int seed, int axes, const int64_t *shape)
{
    a->count = 1;
    for (int i = 0; i < axes; i++)
        a->count *= a->shape[i] = shape[i];
    a->values = calloc((size_t)a->count + 1, sizeof(float));
    assert_non_null(a->values);
    for (int64_t i = 0; seed && i < a->count; i++)
        a->values[i] = (float)((uint32_t)(i * 2654435761u + (unsigned)seed * 40503u) >> 8) * 0x1p-24f - 0.5f;
    a->tensor = (DLTensor){.data = a->values,
                           .device = {kDLCPU, 0},
                           .ndim = axes,
                           .dtype = {kDLFloat, 32, 1},
                           .shape = a->shape};
}

#define MAKE(a, seed, ...)                                                                                   \
    make(a, seed, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

enum { Q, K, V, O, DEN, GATE, W, S_IN, S_OUT, D_O, D_S_OUT, D_Q, D_K, D_V, D_GATE, D_W, D_S_IN, ARRAYS };

typedef struct fixture {
    char folder[64];
    fpa_kernel *kernel;
    array a[ARRAYS];
    const DLTensor *weights[1];
    DLTensor *d_weights[1];
    fpa_tensors forward;
    fpa_gradient_tensors backward;
    void *workspace;
    size_t size;
    fpa_error error;
} fixture;

static fpa_status open_head(fixture *f, const char *head, const char *target, int backward,
                            fpa_kernel **kernel)
{
    const fpa_options options = {.target = target, .cache_dir = f->folder, .backward = backward};
    return fpa_open_text("backward.lua", spec, head, &options, kernel, &f->error);
}

static void set_tensors(fixture *f)
{
    array *a = f->a;
    f->weights[0] = &a[W].tensor;
    f->d_weights[0] = &a[D_W].tensor;
    f->forward = (fpa_tensors){.q = &a[Q].tensor,
                               .k = &a[K].tensor,
                               .v = &a[V].tensor,
                               .o = &a[O].tensor,
                               .log_gate = &a[GATE].tensor,
                               .state_in = &a[S_IN].tensor,
                               .state_out = &a[S_OUT].tensor,
                               .weights = f->weights,
                               .den = &a[DEN].tensor};
    f->backward = (fpa_gradient_tensors){.q = &a[Q].tensor,
                                         .k = &a[K].tensor,
                                         .v = &a[V].tensor,
                                         .o = &a[O].tensor,
                                         .den = &a[DEN].tensor,
                                         .log_gate = &a[GATE].tensor,
                                         .state_in = &a[S_IN].tensor,
                                         .weights = f->weights,
                                         .d_o = &a[D_O].tensor,
                                         .d_state_out = &a[D_S_OUT].tensor,
                                         .d_q = &a[D_Q].tensor,
                                         .d_k = &a[D_K].tensor,
                                         .d_v = &a[D_V].tensor,
                                         .d_log_gate = &a[D_GATE].tensor,
                                         .d_state_in = &a[D_S_IN].tensor,
                                         .d_weights = f->d_weights};
}

static void make_arrays(fixture *f)
{
    array *a = f->a;
    MAKE(&a[Q], 1, B, L, HQ, D);
    MAKE(&a[K], 2, B, L, H, D);
    MAKE(&a[V], 3, B, L, H, DV);
    MAKE(&a[O], 0, B, L, HQ, DV);
    MAKE(&a[DEN], 0, B, L, HQ);
    MAKE(&a[GATE], 4, B, L, H);
    for (int64_t i = 0; i < a[GATE].count; i++)
        a[GATE].values[i] = -fabsf(a[GATE].values[i]);
    MAKE(&a[W], 5, H, ROWS, D);
    MAKE(&a[S_IN], 6, B, H, STATE);
    for (int64_t i = 0; i < a[S_IN].count; i++)
        a[S_IN].values[i] *= 0.01f;
    MAKE(&a[S_OUT], 0, B, H, STATE);
    MAKE(&a[D_O], 7, B, L, HQ, DV);
    MAKE(&a[D_S_OUT], 8, B, H, STATE);
    MAKE(&a[D_Q], 0, B, L, HQ, D);
    MAKE(&a[D_K], 0, B, L, H, D);
    MAKE(&a[D_V], 0, B, L, H, DV);
    MAKE(&a[D_GATE], 0, B, L, H);
    MAKE(&a[D_W], 0, H, ROWS, D);
    MAKE(&a[D_S_IN], 0, B, H, STATE);
    /* scores that a normaliser stays far from zero with */
    for (int i = 0; i < 3; i++)
        for (int64_t j = 0; i != 2 && j < a[i].count; j++)
            a[i].values[j] = fabsf(a[i].values[j]);
    for (int64_t i = 0; i < a[W].count; i++)
        a[W].values[i] = fabsf(a[W].values[i]);
    set_tensors(f);
}

static void forward(fixture *f)
{
    void *workspace;
    size_t size;
    assert_ok(fpa_workspace_size(f->kernel, FPA_FORM_AUTO, &f->forward, &size, &f->error), &f->error);
    workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    assert_non_null(workspace);
    assert_ok(fpa_forward(f->kernel, FPA_FORM_AUTO, &f->forward, workspace, size, &f->error), &f->error);
    free(workspace);
}

static fpa_status backward(fixture *f, fpa_form form)
{
    fpa_status status = fpa_backward_workspace(f->kernel, form, &f->backward, &f->size, &f->error);
    if (status)
        return status;
    free(f->workspace);
    f->workspace = aligned_alloc(64, (f->size + 64) / 64 * 64);
    assert_non_null(f->workspace);
    return fpa_backward(f->kernel, form, &f->backward, f->workspace, f->size, &f->error);
}

static void run(fixture *f, fpa_form form)
{
    assert_ok(backward(f, form), &f->error);
}

static int setup(void **state)
{
    static fixture f;
    *state = &f;
    scratch_make(f.folder);
    assert_ok(open_head(&f, "gated", NULL, 1, &f.kernel), &f.error);
    make_arrays(&f);
    forward(&f);
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < ARRAYS; i++)
        free(f->a[i].values);
    free(f->workspace);
    fpa_close(f->kernel);
    scratch_remove(f->folder);
    return 0;
}

static int again(void **state)
{
    set_tensors(*state);
    return 0;
}

/* A loss of outputs and of the final state. */
static double loss(fixture *f)
{
    double sum = 0;
    forward(f);
    for (int64_t i = 0; i < f->a[O].count; i++)
        sum += (double)f->a[O].values[i] * f->a[D_O].values[i];
    for (int64_t i = 0; i < f->a[S_OUT].count; i++)
        sum += (double)f->a[S_OUT].values[i] * f->a[D_S_OUT].values[i];
    return sum;
}

/* The derivative along a direction of an operand: by its gradient, and by differences of forward passes. */
static void expect_slope(fixture *f, int of, int gradient)
{
    const float step = 1e-2f;
    float *x = f->a[of].values, *before = malloc((size_t)f->a[of].count * sizeof *before);
    double slope = 0, change = 0;
    assert_non_null(before);
    memcpy(before, x, (size_t)f->a[of].count * sizeof *before);
    for (int side = -1; side <= 1; side += 2) {
        slope = 0;
        for (int64_t i = 0; i < f->a[of].count; i++) {
            const float direction = (float)(i * 2654435761u >> 7 & 255) / 255 - 0.5f;
            x[i] = before[i] + (float)side * step * direction * fabsf(before[i]);
            slope += (double)f->a[gradient].values[i] * direction * fabsf(before[i]);
        }
        change += side * loss(f) / (2 * step);
    }
    memcpy(x, before, (size_t)f->a[of].count * sizeof *before);
    free(before);
    forward(f);
    if (!(fabs(slope - change) <= 2e-3 * (1 + fabs(change))))
        fail_msg("operand %d: the slope is %g, but differences give %g", of, slope, change);
}

static void gradients_are_the_slopes_of_the_forward_pass(void **state)
{
    static const int of[][2] = {{Q, D_Q}, {K, D_K}, {V, D_V}, {GATE, D_GATE}, {W, D_W}, {S_IN, D_S_IN}};
    fixture *f = *state;
    for (int form = FPA_FORM_PARALLEL; form <= FPA_FORM_CHUNKED; form++) {
        run(f, (fpa_form)form);
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            expect_slope(f, of[i][0], of[i][1]);
    }
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    fixture *f = *state;
    float *kept[ARRAYS];
    if (!openmp_threads(2))
        skip();

    run(f, FPA_FORM_CHUNKED);
    for (int i = D_Q; i < ARRAYS; i++) {
        kept[i] = malloc((size_t)f->a[i].count * sizeof(float));
        memcpy(kept[i], f->a[i].values, (size_t)f->a[i].count * sizeof(float));
    }
    for (int threads = 1; threads <= 5; threads += 2) {
        openmp_threads(threads);
        run(f, FPA_FORM_CHUNKED);
        for (int i = D_Q; i < ARRAYS; i++)
            assert_memory_equal(kept[i], f->a[i].values, (size_t)f->a[i].count * sizeof(float));
    }
    openmp_threads(2);
    for (int i = D_Q; i < ARRAYS; i++)
        free(kept[i]);
}

static void what_is_not_wanted_is_not_needed(void **state)
{
    fixture *f = *state;
    fpa_gradient_tensors *t = &f->backward;
    t->d_q = t->d_k = t->d_log_gate = t->d_state_in = NULL;
    t->d_weights = NULL;
    t->d_state_out = NULL;
    f->a[D_V].values[0] = NAN;
    run(f, FPA_FORM_AUTO);
    assert_true(isfinite(f->a[D_V].values[0]));
}

/* No token: the state's gradient goes through, and matrices have none. */
static void no_token_passes_the_state_s_gradient_on(void **state)
{
    static const int of_tokens[] = {Q, K, V, O, DEN, GATE, D_O, D_Q, D_K, D_V, D_GATE};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof of_tokens / sizeof *of_tokens; i++)
        f->a[of_tokens[i]].shape[1] = 0;
    run(f, FPA_FORM_AUTO);
    for (size_t i = 0; i < sizeof of_tokens / sizeof *of_tokens; i++)
        f->a[of_tokens[i]].shape[1] = L;
    assert_memory_equal(f->a[D_S_IN].values, f->a[D_S_OUT].values,
                        (size_t)f->a[D_S_IN].count * sizeof(float));
    for (int64_t i = 0; i < f->a[D_W].count; i++)
        assert_true(f->a[D_W].values[i] == 0);
}

static void refuse(fixture *f, fpa_form form, fpa_status wanted, const char *where, const char *words)
{
    const fpa_status status = backward(f, form);
    if (status != wanted || strcmp(f->error.where, where) != 0 || !strstr(f->error.message, words))
        fail_msg("%d %s: %s", (int)status, f->error.where, f->error.message);
    set_tensors(f);
}

static void calls_that_cannot_be_are_refused(void **state)
{
    fixture *f = *state;
    fpa_gradient_tensors *t = &f->backward;
    t->d_o = NULL;
    refuse(f, FPA_FORM_AUTO, FPA_INVALID, "d_o", "is NULL");
    t->den = NULL;
    refuse(f, FPA_FORM_AUTO, FPA_INVALID, "den", "is NULL, but gated is normalised");
    t->d_q = &f->a[D_K].tensor;
    refuse(f, FPA_FORM_AUTO, FPA_INVALID, "d_q", "axis 2 has 2 elements, but the operands have 4");
    t->d_k = (DLTensor *)(uintptr_t)t->k;
    refuse(f, FPA_FORM_AUTO, FPA_INVALID, "d_k", "overlaps that of k");
    t->d_o = &f->a[D_Q].tensor;
    refuse(f, FPA_FORM_AUTO, FPA_INVALID, "d_o", "axis 3 has 6 elements");
    t->d_state_in = &f->a[D_Q].tensor;
    refuse(f, FPA_FORM_AUTO, FPA_INVALID, "d_state_in", "axes");
    refuse(f, FPA_FORM_RECURRENT, FPA_UNSUPPORTED, "gated", "has no gradients in form 2");
    run(f, FPA_FORM_AUTO);
    assert_int_equal(
        fpa_backward(f->kernel, FPA_FORM_AUTO, &f->backward, f->workspace, f->size - 1, &f->error),
        FPA_INVALID);
    assert_non_null(strstr(f->error.message, "but this call needs"));
    assert_int_equal(fpa_backward(f->kernel, FPA_FORM_AUTO, &f->backward, f->a[Q].values, f->size, &f->error),
                     FPA_INVALID);
}

static void refuse_open(fixture *f, const char *head, const char *target, const char *words)
{
    fpa_kernel *kernel = NULL;
    assert_int_equal(open_head(f, head, target, 1, &kernel), FPA_UNSUPPORTED);
    assert_null(kernel);
    if (!strstr(f->error.message, words))
        fail_msg("%s: %s", f->error.where, f->error.message);
}

static void heads_without_gradients_are_refused_before_anything_runs(void **state)
{
    fixture *f = *state;
    refuse_open(f, "near", NULL, "a window, for which gradients are not implemented yet");
}

/* A head that is called with positions and a mask of keys, of which every third takes no part. */
static void coordinates_that_are_made_have_gradients(void **state)
{
    fixture *f = *state;
    fpa_kernel *const kernel = f->kernel;
    const array own = f->a[W], d_own = f->a[D_W];
    array positions, phase, d_phase;
    unsigned char kept[B * L];
    int64_t shape[] = {B, L};
    DLTensor mask = {
        .data = kept, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLUInt, 8, 1}, .shape = shape};

    MAKE(&positions, 9, B, L, 1);
    MAKE(&phase, 10, H, D); /* a vector of each head: rows of one column */
    MAKE(&d_phase, 0, H, D);
    for (int i = 0; i < B * L; i++) {
        positions.values[i] = (float)(i % L) / 8;
        kept[i] = i % 3 != 1;
    }
    assert_ok(open_head(f, "waves", NULL, 1, &f->kernel), &f->error);
    f->weights[0] = &phase.tensor;
    f->d_weights[0] = &d_phase.tensor;
    f->forward.state_in = f->backward.state_in = f->backward.d_state_out = NULL;
    f->forward.state_out = f->backward.d_state_in = NULL;
    f->forward.positions = f->backward.positions = &positions.tensor;
    f->forward.key_mask = &mask;
    forward(f);
    assert_int_equal(backward(f, FPA_FORM_CHUNKED), FPA_INVALID);
    assert_string_equal(f->error.where, "key_mask");
    f->backward.key_mask = &mask;
    for (int form = FPA_FORM_PARALLEL; form <= FPA_FORM_CHUNKED; form++) {
        run(f, (fpa_form)form);
        expect_slope(f, Q, D_Q);
        expect_slope(f, K, D_K);
        expect_slope(f, V, D_V);
        expect_slope(f, GATE, D_GATE);
        f->a[W] = phase;
        f->a[D_W] = d_phase;
        expect_slope(f, W, D_W);
        f->a[W] = own;
        f->a[D_W] = d_own;
        for (int c = 0; c < H * D; c++)
            assert_true(f->a[D_K].values[H * D + c] == 0); /* of token 1 */
    }
    free(positions.values);
    free(phase.values);
    free(d_phase.values);
    fpa_close(f->kernel);
    f->kernel = kernel;
    set_tensors(f);
    forward(f);
}

/* On C targets; of a GPU's the text is refused, which needs no GPU. */
static void without_a_mask_c_targets_have_gradients(void **state)
{
    fixture *f = *state;
    fpa_head_list list;
    fpa_source source;
    fpa_kernel *kernel = NULL;

    assert_ok(open_head(f, "everywhere", NULL, 1, &kernel), &f->error);
    assert_non_null(strstr(fpa_describe(kernel)->backward_verdict, "gradients: "));
    fpa_close(kernel);
    assert_int_equal(spec_load_text("backward.lua", NULL, spec, strlen(spec), &list, &f->error), FPA_OK);
    for (int i = 0; i < list.count; i++) {
        if (list.heads[i]->causal)
            continue;
        assert_int_equal(source_generate_backward(list.heads[i], "cuda:sm_90a", &source, &f->error),
                         FPA_UNSUPPORTED);
        assert_non_null(strstr(f->error.message, "has no mask (causal = false), for which"));
    }
    head_list_free(&list);
}

static void a_kernel_opened_without_gradients_says_so(void **state)
{
    fixture *f = *state;
    fpa_kernel *kernel = NULL;
    size_t size;
    assert_int_equal(open_head(f, "plain", NULL, 0, &kernel), FPA_OK);
    assert_null(fpa_describe(kernel)->backward_verdict);
    assert_int_equal(fpa_backward_workspace(kernel, FPA_FORM_AUTO, &f->backward, &size, &f->error),
                     FPA_UNSUPPORTED);
    assert_non_null(strstr(f->error.message, "was opened without gradients"));
    fpa_close(kernel);
}

static void gradients_come_from_the_cache_with_their_verdict(void **state)
{
    fixture *f = *state;
    fpa_kernel *kernel = NULL;
    assert_int_equal(open_head(f, "gated", NULL, 1, &kernel), FPA_OK);
    assert_string_equal(fpa_describe(kernel)->backward_verdict, fpa_describe(f->kernel)->backward_verdict);
    assert_int_equal(fpa_describe(kernel)->from_cache, 1);
    fpa_close(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gradients_are_the_slopes_of_the_forward_pass, again),
        cmocka_unit_test_setup(bits_do_not_depend_on_the_number_of_threads, again),
        cmocka_unit_test_setup(what_is_not_wanted_is_not_needed, again),
        cmocka_unit_test_setup(no_token_passes_the_state_s_gradient_on, again),
        cmocka_unit_test_setup(calls_that_cannot_be_are_refused, again),
        cmocka_unit_test_setup(heads_without_gradients_are_refused_before_anything_runs, again),
        cmocka_unit_test_setup(coordinates_that_are_made_have_gradients, again),
        cmocka_unit_test_setup(without_a_mask_c_targets_have_gradients, again),
        cmocka_unit_test_setup(a_kernel_opened_without_gradients_says_so, again),
        cmocka_unit_test_setup(gradients_come_from_the_cache_with_their_verdict, again),
    };

    setenv("FPA_CFLAGS", "-Og", 0);
    return cmocka_run_group_tests_name("backward", tests, setup, teardown);
}

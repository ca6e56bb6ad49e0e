/* Heads with a window through the C API: however a sequence is cut, in whatever forms, with a state and the keys and
 * values of the window handed over, it is one sequence. */
#include "c_hurry.h"
#include "claims.h"
#include "gen/gen.h"
#include "runtime/api/fpa.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 6, DV = 5, HEADS = 2, QUERY_HEADS = 4, WINDOW = 7, TOKENS = 150 };

static const char spec[] =
    "return head { name = 'based', d = 6, dv = 5, scale = 0.75, window = 7, chunk = 32,\n"
    "  normalize = 'sum', terms = taylor { degree = 2 } }\n";

struct fixture {
    fpa_kernel *kernel;
    float q[TOKENS][QUERY_HEADS][D], k[TOKENS][HEADS][D], v[TOKENS][HEADS][DV], o[TOKENS][QUERY_HEADS][DV];
    float expected[TOKENS][QUERY_HEADS][DV];
    float *state;
};

/* ---- the formula ---- */

static double weight_of(const struct fixture *f, int t, int j, int head)
{
    double s = 0;
    for (int c = 0; c < D; c++)
        s += 0.75 * f->q[t][head][c] * f->k[j][head / 2][c];
    return t - j < WINDOW ? exp(s) : 1 + s + s * s / 2;
}

static void fill_expected(struct fixture *f)
{
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < QUERY_HEADS; h++) {
            double sum[DV + 1] = {0};
            for (int j = 0; j <= t; j++) {
                const double weight = weight_of(f, t, j, h);
                for (int c = 0; c < DV; c++)
                    sum[c] += weight * f->v[j][h / 2][c];
                sum[DV] += weight;
            }
            for (int c = 0; c < DV; c++)
                f->expected[t][h][c] = (float)(sum[c] / (sum[DV] + 1e-6));
        }
}

/* Queries of some tokens are large: their exponents are above 100. */
static void fill(float *to, size_t count, bool large)
{
    static uint32_t bits = 1;
    for (size_t i = 0; i < count; i++) {
        bits = bits * 1664525 + 1013904223;
        to[i] = ((float)(bits >> 8) / (float)(1 << 23) - 1) *
                (large && i / (QUERY_HEADS * D) % 16 == 9 ? 100 : 1);
    }
}

static int setup(void **state)
{
    static const fpa_options options = {.cache_dir = ""};
    struct fixture *f = calloc(1, sizeof *f);
    fpa_error error;
    *state = f;
    if (fpa_open_text("based.lua", spec, NULL, &options, &f->kernel, &error))
        return print_error("%s: %s\n", error.where, error.message), -1;
    fill(&f->q[0][0][0], sizeof f->q / sizeof(float), true);
    fill(&f->k[0][0][0], sizeof f->k / sizeof(float), false);
    fill(&f->v[0][0][0], sizeof f->v / sizeof(float), false);
    fill_expected(f);
    f->state = calloc((size_t)(HEADS * fpa_describe(f->kernel)->state_elements), sizeof(float));
    return f->state == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    fpa_close(f->kernel);
    free(f->state);
    free(f);
    return 0;
}

/* ---- calls ---- */

static DLTensor tensor(void *data, int64_t *shape, int axes)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = axes, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

/* Tokens from..end-1 with `recent` before them. Given: f->state, unless `from` is 0 (NULL is as good); `updates`: it is
 * brought up to date. */
static fpa_status run(struct fixture *f, fpa_form form, int from, int end, int recent, bool updates,
                      fpa_error *error)
{
    int64_t queries[] = {1, end - from, QUERY_HEADS, D}, outputs[] = {1, end - from, QUERY_HEADS, DV};
    int64_t keys[] = {1, end - from + recent, HEADS, D}, values[] = {1, end - from + recent, HEADS, DV};
    int64_t states[] = {1, HEADS, fpa_describe(f->kernel)->state_elements};
    DLTensor q = tensor(f->q[from], queries, 4), o = tensor(f->o[from], outputs, 4);
    DLTensor k = tensor(f->k[from - recent], keys, 4), v = tensor(f->v[from - recent], values, 4);
    DLTensor state = tensor(f->state, states, 3);
    const fpa_tensors tensors = {.q = &q,
                                 .k = &k,
                                 .v = &v,
                                 .o = &o,
                                 .recent = recent,
                                 .state_in = from ? &state : NULL,
                                 .state_out = updates ? &state : NULL};
    size_t size;
    fpa_status status = fpa_workspace_size(f->kernel, form, &tensors, &size, error);
    if (status)
        return status;
    void *workspace = aligned_alloc(64, (size + 127) / 64 * 64);
    status = fpa_forward(f->kernel, form, &tensors, workspace, size, error);
    free(workspace);
    return status;
}

static void expect_run(struct fixture *f, fpa_form form, int from, int end, int recent, bool updates)
{
    fpa_error error;
    assert_ok(run(f, form, from, end, recent, updates, &error), &error);
}

static void expect_outputs(struct fixture *f, const char *how)
{
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < QUERY_HEADS; h++)
            for (int c = 0; c < DV; c++)
                if (!(fabsf(f->o[t][h][c] - f->expected[t][h][c]) <= 4e-5f))
                    fail_msg("%s: o[%d][%d][%d] is %g, not %g", how, t, h, c, (double)f->o[t][h][c],
                             (double)f->expected[t][h][c]);
    memset(f->o, 0xff, sizeof f->o);
}

/* Tokens of the window that are there before `from`. */
static int window_before(int from)
{
    return from < WINDOW - 1 ? from : WINDOW - 1;
}

/* ---- claims ---- */

static void every_form_is_the_formula(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(fpa_describe(f->kernel)->window, WINDOW);
    for (int form = FPA_FORM_AUTO; form <= FPA_FORM_RECURRENT; form++) {
        expect_run(f, (fpa_form)form, 0, TOKENS, 0, form % 2 == 0);
        expect_outputs(f, "whole");
    }
}

/* Two runs, of any forms, with the cut anywhere: before the window is full, in it, in a chunk, behind one. */
static void a_sequence_may_be_cut_anywhere(void **state)
{
    struct fixture *f = *state;
    for (int cut = 0; cut <= TOKENS; cut += cut < 3 * WINDOW ? 1 : 13)
        for (int forms = 0; forms < 9; forms++) {
            expect_run(f, (fpa_form)(forms % 3), 0, cut, 0, true);
            expect_run(f, (fpa_form)(forms / 3), cut, TOKENS, window_before(cut), false);
            expect_outputs(f, "cut");
        }
}

/* Prefill of a few tokens, then one token a call: one key leaves the window and enters the state in each. */
static void a_prompt_goes_on_token_by_token(void **state)
{
    struct fixture *f = *state;
    for (int prompt = 0; prompt < 40; prompt += 3) {
        memset(f->state, 0, (size_t)(HEADS * fpa_describe(f->kernel)->state_elements) * sizeof(float));
        expect_run(f, FPA_FORM_AUTO, 0, prompt, 0, true);
        for (int t = prompt; t < TOKENS; t++)
            expect_run(f, FPA_FORM_AUTO, t, t + 1, window_before(t), true);
        expect_outputs(f, "token by token");
    }
}

/* More tokens than the window's may be left out of the state, which is then only read. */
static void a_state_may_lag_behind_the_window(void **state)
{
    enum { KEPT = 60 };
    struct fixture *f = *state;
    for (int form = FPA_FORM_AUTO; form <= FPA_FORM_RECURRENT; form++) {
        expect_run(f, FPA_FORM_CHUNKED, 0, 70, 0, true);
        for (int t = 70; t < TOKENS - 20; t++)
            expect_run(f, (fpa_form)form, t, t + 1, WINDOW - 1 + t - 70, false);
        expect_run(f, (fpa_form)form, TOKENS - 20, TOKENS, WINDOW - 1 + KEPT, form == FPA_FORM_CHUNKED);
        expect_outputs(f, "lagging");
    }
}

/* Two states of the same tokens, one of which was made without queries. */
static void keys_enter_without_queries(void **state)
{
    struct fixture *f = *state;
    int64_t keys[] = {1, 90, HEADS, D}, values[] = {1, 90, HEADS, DV};
    int64_t states[] = {1, HEADS, fpa_describe(f->kernel)->state_elements};
    DLTensor k = tensor(f->k, keys, 4), v = tensor(f->v, values, 4), s = tensor(f->state, states, 3);
    const fpa_tensors tensors = {.k = &k, .v = &v, .state_out = &s};
    expect_run(f, FPA_FORM_AUTO, 0, 90, 0, false);
    for (int form = FPA_FORM_AUTO; form <= FPA_FORM_RECURRENT; form++) {
        fpa_error error;
        size_t size;
        assert_int_equal(fpa_workspace_size(f->kernel, (fpa_form)form, &tensors, &size, &error), FPA_OK);
        void *workspace = aligned_alloc(64, (size + 127) / 64 * 64);
        memset(f->state, 0xff, (size_t)(HEADS * states[2]) * sizeof(float));
        assert_ok(fpa_forward(f->kernel, (fpa_form)form, &tensors, workspace, size, &error), &error);
        free(workspace);
        expect_run(f, FPA_FORM_AUTO, 0, 90, 0, false);
        expect_run(f, FPA_FORM_AUTO, 90, TOKENS, WINDOW - 1, false);
        expect_outputs(f, "without queries");
    }
}

static void wrong_histories_are_refused(void **state)
{
    struct fixture *f = *state;
    fpa_error error;
    assert_int_equal(run(f, FPA_FORM_AUTO, 3, 5, -1, true, &error), FPA_INVALID);
    assert_string_equal(error.where, "recent");
    int64_t queries[] = {1, 2, QUERY_HEADS, D}, outputs[] = {1, 2, QUERY_HEADS, DV},
            keys[] = {1, 5, HEADS, D};
    int64_t values[] = {1, 5, HEADS, DV};
    DLTensor q = tensor(f->q, queries, 4), o = tensor(f->o, outputs, 4), k = tensor(f->k, keys, 4);
    DLTensor v = tensor(f->v, values, 4);
    const fpa_tensors tensors = {.q = &q, .k = &k, .v = &v, .o = &o, .recent = 4};
    size_t size;
    assert_int_equal(fpa_workspace_size(f->kernel, FPA_FORM_AUTO, &tensors, &size, &error), FPA_INVALID);
    assert_string_equal(error.where, "k");
    assert_string_equal(error.message, "axis 1 has 5 tokens, but q's tokens and the recent ones are 6");
}

/* Each is compared with the formula in every form before it opens. */
static void windows_of_other_heads_are_verified(void **state)
{
    static const char *const heads[] = {
        "d = 8, dv = 7, window = 1, normalize = 'max', terms = linear {}, scale = -0.5",
        /* a scale that is in the weights, and no longer in the packed queries */
        "d = 8, window = 12, normalize = 'sum', scale = 0.3, terms = { scaled(1e30, linear {}), scaled(1e30, "
        "term {}) }",
        "d = 12, dv = 17, window = 49, chunk = 50, normalize = 'one_plus_sum', dtype = 'bf16', state_dtype = "
        "'bf16',\n"
        "  scale = 0.25, terms = tspow { d = 12, degree = 2, block = 4 }",
        "d = 16, window = 40, normalize = 'sum', positions = 1, key_mask = true, scale = 0.25,\n"
        "  terms = fourier { map = softplus }",
    };
    static const fpa_options options = {.cache_dir = ""};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char text[512];
        fpa_error error;
        fpa_kernel *kernel = NULL;
        snprintf(text, sizeof text, "return head { name = 'other', %s }\n", heads[i]);
        if (fpa_open_text("other.lua", text, NULL, &options, &kernel, &error))
            fail_msg("%s: %s: %s", heads[i], error.where, error.message);
        fpa_close(kernel);
    }
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_the_formula),
        cmocka_unit_test(a_sequence_may_be_cut_anywhere),
        cmocka_unit_test(a_prompt_goes_on_token_by_token),
        cmocka_unit_test(a_state_may_lag_behind_the_window),
        cmocka_unit_test(keys_enter_without_queries),
        cmocka_unit_test(wrong_histories_are_refused),
        cmocka_unit_test(windows_of_other_heads_are_verified),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

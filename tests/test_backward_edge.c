/* What is not finite at one token changes no bit of a gradient that does not depend on that token, and spoils those that
 * do: emitted C, both forms. */
#include "runtime/api/fpa.h"
#include "base/dtype.h"
#include "claims.h"
#include "dear.h"
#include "random_head.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { L = 151, HQ = 2, MOST = L * HQ * 64 };

static const struct edge_head {
    const char *what, *fields;
    int d, dv;
    bool gate, normalised;
    fpa_dtype dtype;
} heads[] = {
    {"linear", "terms = linear {}", 12, 20, false, false, FPA_F32},
    {"a normaliser", "terms = power { degree = 2 }, normalize = 'sum'", 5, 23, false, true, FPA_F32},
    {"a gate", "terms = inhomogeneous { degree = 2, constant = 3 }, gate = true, normalize = 'max'", 12, 20,
     true, true, FPA_F32},
    {"bf16", "terms = term { dense { { 1, 2, 0, 1 }, { 0, 1, 1, 0 } }, identity() }, gate = true", 4, 16,
     true, false, FPA_BF16},
};

enum field { Q, K, V, D_O, GATE, O, DEN, D_Q, D_K, D_V, D_GATE, FIELDS };

static const char *const names[FIELDS] = {"q", "k", "v", "d_o", "log_gate", "o", "den", "d_q", "d_k", "d_v"};

struct call {
    const struct edge_head *head;
    fpa_kernel *kernel;
    float number[O][MOST];
    union {
        float f32[MOST];
        uint16_t half[MOST];
    } stored[FIELDS], before[FIELDS];
    int64_t shape[FIELDS][4];
    DLTensor tensor[FIELDS];
};

static bool is_wide(const struct call *c, int what)
{
    return what == GATE || what == DEN || what == D_GATE || c->head->dtype == FPA_F32;
}

static bool is_given(const struct call *c, int what)
{
    return what == GATE || what == D_GATE ? c->head->gate : what != DEN || c->head->normalised;
}

/* [1, L, heads, width] */
static void describe(struct call *c, int what)
{
    static const uint8_t codes[FPA_DTYPES] = {kDLFloat, kDLBfloat, kDLFloat};
    const bool number = what == GATE || what == DEN || what == D_GATE;
    const bool values = what == V || what == D_V || what == O || what == D_O;
    const bool keys = what == K || what == V || what == D_K || what == D_V || what == GATE || what == D_GATE;
    int64_t *shape = c->shape[what];
    shape[0] = 1, shape[1] = L, shape[2] = keys ? 1 : HQ;
    shape[3] = number ? 1 : values ? c->head->dv : c->head->d;
    c->tensor[what] = (DLTensor){
        .data = &c->stored[what],
        .device = {kDLCPU, 0},
        .ndim = number ? 3 : 4,
        .dtype = {is_wide(c, what) ? kDLFloat : codes[c->head->dtype], is_wide(c, what) ? 32 : 16, 1},
        .shape = shape};
}

static int64_t token_elements(const struct call *c, int what)
{
    return c->shape[what][2] * c->shape[what][3];
}

static float element(const struct call *c, int what, int64_t i)
{
    return is_wide(c, what) ? c->stored[what].f32[i]
                            : (float)dtype_load(c->head->dtype, &c->stored[what].half[i]);
}

/* One operand's token `edge` becomes `value`. */
static void store(struct call *c, int changed, int64_t edge, float value)
{
    for (int what = 0; what < O; what++)
        for (int64_t i = 0; i < L * token_elements(c, what); i++) {
            const bool here = what == changed && i / token_elements(c, what) == edge;
            const float x = here ? value : c->number[what][i];
            if (is_wide(c, what))
                c->stored[what].f32[i] = x;
            else
                dtype_store(c->head->dtype, &c->stored[what].half[i], x);
        }
}

static DLTensor *given(struct call *c, int what)
{
    return is_given(c, what) ? &c->tensor[what] : NULL;
}

static void forward(struct call *c)
{
    const fpa_tensors tensors = {.q = given(c, Q),
                                 .k = given(c, K),
                                 .v = given(c, V),
                                 .o = given(c, O),
                                 .log_gate = given(c, GATE),
                                 .den = given(c, DEN)};
    fpa_error error = {0};
    size_t size = 0;
    void *workspace = NULL;
    assert_ok(fpa_workspace_size(c->kernel, FPA_FORM_PARALLEL, &tensors, &size, &error) ||
                  posix_memalign(&workspace, 64, size + 1) ||
                  fpa_forward(c->kernel, FPA_FORM_PARALLEL, &tensors, workspace, size, &error),
              &error);
    free(workspace);
}

static void backward(struct call *c, fpa_form form)
{
    const fpa_gradient_tensors tensors = {.q = given(c, Q),
                                          .k = given(c, K),
                                          .v = given(c, V),
                                          .o = given(c, O),
                                          .den = given(c, DEN),
                                          .log_gate = given(c, GATE),
                                          .d_o = given(c, D_O),
                                          .d_q = given(c, D_Q),
                                          .d_k = given(c, D_K),
                                          .d_v = given(c, D_V),
                                          .d_log_gate = given(c, D_GATE)};
    fpa_error error = {0};
    size_t size = 0;
    void *workspace = NULL;
    assert_ok(fpa_backward_workspace(c->kernel, form, &tensors, &size, &error) ||
                  posix_memalign(&workspace, 64, size + 1) ||
                  fpa_backward(c->kernel, form, &tensors, workspace, size, &error),
              &error);
    free(workspace);
}

/* Whether the gradient `of` at token t is made of operand `what` at token `edge`. Of log-gates: what is computed, sums over all that is behind. */
static bool depends(int of, int64_t t, int what, int64_t edge)
{
    if (of == D_GATE)
        return what == K || what == V || what == GATE || t <= edge;
    if (what == GATE)
        return of == D_Q ? t >= edge : t < edge;
    if (of == D_Q)
        return what == K || what == V ? t >= edge : t == edge;
    return what == K || what == V ? t == edge : t <= edge;
}

static void check(struct call *c, fpa_form form, int what, int64_t edge, float value)
{
    store(c, what, edge, value);
    backward(c, form);
    for (int of = D_Q; of < (c->head->gate ? FIELDS : D_GATE); of++) {
        const int64_t each = token_elements(c, of);
        const size_t size = (size_t)each * (is_wide(c, of) ? 4 : 2);
        for (int64_t t = 0; t < L; t++) {
            if (!depends(of, t, what, edge)) {
                if (memcmp((char *)&c->stored[of] + t * size, (char *)&c->before[of] + t * size, size) != 0)
                    fail_msg("%s, form %d: %s of token %lld changes when %s is %g at token %lld",
                             c->head->what, form, of == D_GATE ? "d_log_gate" : names[of], (long long)t,
                             names[what], (double)value, (long long)edge);
            } else if (of != D_GATE && what != GATE && t != edge && isfinite(element(c, of, t * each))) {
                fail_msg("%s, form %d: %s of token %lld is finite, but %s is %g at token %lld", c->head->what,
                         form, names[of], (long long)t, names[what], (double)value, (long long)edge);
            }
        }
    }
}

static void check_forms(struct call *c)
{
    static const int64_t edges[] = {6, 63, 71, 150};
    store(c, Q, L, 0);
    forward(c);
    for (fpa_form form = FPA_FORM_PARALLEL; form <= FPA_FORM_CHUNKED; form++) {
        store(c, Q, L, 0);
        backward(c, form);
        memcpy(c->before, c->stored, sizeof c->before);
        for (size_t e = 0; e < sizeof edges / sizeof *edges; e++)
            for (int what = 0; what < (c->head->gate ? O : GATE); what++) {
                check(c, form, what, edges[e], NAN);
                check(c, form, what, edges[e], what == GATE ? -INFINITY : INFINITY);
            }
    }
}

static void open_call(struct call *c, const struct edge_head *head, const char *target)
{
    char text[512];
    fpa_error error = {0};
    const fpa_options options = {.target = target, .backward = 1};
    memset(c, 0, sizeof *c);
    c->head = head;
    snprintf(text, sizeof text,
             "return head { name = 'edge', d = %d, dv = %d, dtype = '%s', chunk = 64, %s }", head->d,
             head->dv, dtype_name(head->dtype), head->fields);
    assert_ok(fpa_open_text("edge.lua", text, NULL, &options, &c->kernel, &error), &error);
    for (int what = 0; what < FIELDS; what++)
        describe(c, what);
    for (int what = 0; what < O; what++) {
        random_source random = {20261126 + (uint64_t)what};
        for (int64_t i = 0; i < L * token_elements(c, what); i++) {
            const double x = random_normal(&random);
            c->number[what][i] = (float)(what == GATE ? -0.1 * fabs(x) : 0.5 * x);
        }
    }
}

static void check_target(const char *target)
{
    struct call *c = calloc(1, sizeof *c);
    assert_non_null(c);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        open_call(c, &heads[i], target);
        check_forms(c);
        fpa_close(c->kernel);
    }
    free(c);
}

static void what_is_not_finite_reaches_no_other_gradient_on_the_best_target(void **state)
{
    check_target("c");
}

static void what_is_not_finite_reaches_no_other_gradient_on_the_plain_target(void **state)
{
    if (!dear_tests())
        skip();
#ifdef __x86_64__
    check_target("c:avx2");
#else
    skip();
#endif
}

static int compile_fast(void **state)
{
    return setenv("FPA_CFLAGS", "-Og", 0); /* compile time is what these tests cost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_finite_reaches_no_other_gradient_on_the_best_target),
        cmocka_unit_test(what_is_not_finite_reaches_no_other_gradient_on_the_plain_target),
    };
    return cmocka_run_group_tests(tests, compile_fast, NULL);
}

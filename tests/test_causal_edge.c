/* Whatever lies behind a token, NaN and infinities included, changes no bit of its output: emitted C, every form. */
#include "runtime/api/fpa.h"
#include "base/dtype.h"
#include "claims.h"
#include "random_head.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, H = 2, L = 151, MOST = B * L * H * 64 };

/* Fields of a head, and what the test has to know of them. */
struct edge_head {
    const char *what, *fields;
    int d, dv;
    bool gate;
    fpa_dtype dtype;
};

static const struct edge_head heads[] = {
    {"linear", "terms = linear {}", 12, 20, false, FPA_F32},
    {"a narrow v", "terms = power { degree = 2 }", 8, 3, false, FPA_F32},
    {"columns that overlap", "terms = power { degree = 3 }, normalize = 'sum'", 5, 23, false, FPA_F32},
    {"a gate and a normaliser",
     "terms = inhomogeneous { degree = 2, constant = 3 }, gate = true, normalize = 'max'", 12, 20, true,
     FPA_F32},
    {"bf16", "terms = power { degree = 2 }, normalize = 'sum'", 16, 64, false, FPA_BF16},
    {"bf16 with a gate", "terms = power { degree = 2 }, gate = true", 16, 48, true, FPA_BF16},
    {"f16", "terms = power { degree = 2 }", 16, 16, false, FPA_F16},
};

enum operand { Q, K, V, GATE, OPERANDS };

struct call {
    const struct edge_head *head;
    fpa_kernel *kernel;
    fpa_dtype dtype;
    float number[OPERANDS][MOST];
    union {
        float f32[MOST];
        uint16_t half[MOST];
    } stored[OPERANDS], o, before;
};

static int width_of(const struct call *c, enum operand what)
{
    return what == GATE ? 1 : what == V ? c->head->dv : c->head->d;
}

static void fill(struct call *c)
{
    for (int what = 0; what < OPERANDS; what++) {
        random_source random = {20261123 + (uint64_t)what};
        for (int i = 0; i < B * L * H * width_of(c, what); i++) {
            const double x = random_normal(&random);
            c->number[what][i] = (float)(what == GATE ? -0.1 * fabs(x) : 0.5 * x);
        }
    }
}

/* Tokens from `edge` on of one operand become `value`. */
static void store(struct call *c, enum operand changed, int64_t edge, float value)
{
    for (int what = 0; what < OPERANDS; what++)
        for (int64_t i = 0; i < (int64_t)B * L * H * width_of(c, what); i++) {
            const int64_t token = i / (H * width_of(c, what)) % L;
            const float x = what == (int)changed && token >= edge ? value : c->number[what][i];
            if (what == GATE || c->dtype == FPA_F32)
                c->stored[what].f32[i] = x;
            else
                dtype_store(c->dtype, &c->stored[what].half[i], x);
        }
}

static DLTensor tensor(const struct call *c, void *data, int64_t *shape)
{
    static const uint8_t codes[FPA_DTYPES] = {kDLFloat, kDLBfloat, kDLFloat};
    return (DLTensor){.data = data,
                      .device = {kDLCPU, 0},
                      .ndim = 4,
                      .dtype = {codes[c->dtype], c->dtype == FPA_F32 ? 32 : 16, 1},
                      .shape = shape};
}

static void run(struct call *c, fpa_form form)
{
    int64_t qk[4] = {B, L, H, c->head->d}, values[4] = {B, L, H, c->head->dv};
    DLTensor q = tensor(c, &c->stored[Q], qk), k = tensor(c, &c->stored[K], qk),
             v = tensor(c, &c->stored[V], values), o = tensor(c, &c->o, values);
    DLTensor gate = {.data = &c->stored[GATE],
                     .device = {kDLCPU, 0},
                     .ndim = 3,
                     .dtype = {kDLFloat, 32, 1},
                     .shape = values};
    fpa_tensors tensors = {.q = &q, .k = &k, .v = &v, .o = &o, .log_gate = c->head->gate ? &gate : NULL};
    fpa_error error = {0};
    size_t size = 0;
    void *workspace = NULL;
    assert_ok(fpa_workspace_size(c->kernel, form, &tensors, &size, &error) ||
                  posix_memalign(&workspace, 64, size + 1) ||
                  fpa_forward(c->kernel, form, &tensors, workspace, size, &error),
              &error);
    free(workspace);
}

static void check(struct call *c, fpa_form form, enum operand what, int64_t edge, float value)
{
    static const char *const names[OPERANDS] = {"q", "k", "v", "log_gate"};
    const size_t token = (size_t)H * (size_t)c->head->dv * (c->dtype == FPA_F32 ? 4 : 2);
    store(c, what, edge, value);
    run(c, form);
    for (int64_t t = 0; t < (int64_t)B * L; t++) {
        const char *now = (char *)&c->o + (size_t)t * token, *then = (char *)&c->before + (size_t)t * token;
        if (t % L < edge && memcmp(now, then, token) != 0)
            fail_msg("%s, form %d: o of token %lld changes when %s is %g from token %lld on", c->head->what,
                     form, (long long)(t % L), names[what], (double)value, (long long)edge);
    }
}

static void check_forms(struct call *c)
{
    static const int64_t edges[] = {1, 6, 47, 71, 96, 150};
    for (int form = 0; form < 3; form++) {
        store(c, Q, L, 0);
        run(c, form);
        c->before = c->o;
        for (size_t e = 0; e < sizeof edges / sizeof *edges; e++)
            for (int what = 0; what < (c->head->gate ? OPERANDS : GATE); what++) {
                check(c, form, what, edges[e], NAN);
                check(c, form, what, edges[e], what == GATE ? -INFINITY : INFINITY);
            }
    }
}

static void check_target(const char *target)
{
    struct call *c = calloc(1, sizeof *c);
    assert_non_null(c);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char text[512];
        fpa_error error = {0};
        const fpa_options options = {.target = target};
        memset(c, 0, sizeof *c);
        c->head = &heads[i];
        c->dtype = heads[i].dtype;
        snprintf(text, sizeof text,
                 "return head { name = 'edge', d = %d, dv = %d, dtype = '%s', chunk = 64, %s }", heads[i].d,
                 heads[i].dv, dtype_name(heads[i].dtype), heads[i].fields);
        assert_ok(fpa_open_text("edge.lua", text, NULL, &options, &c->kernel, &error), &error);
        fill(c);
        check_forms(c);
        fpa_close(c->kernel);
    }
    free(c);
}

static void the_future_reaches_no_output_on_the_best_target(void **state)
{
    check_target("c");
}

static void the_future_reaches_no_output_on_the_plain_target(void **state)
{
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
        cmocka_unit_test(the_future_reaches_no_output_on_the_best_target),
        cmocka_unit_test(the_future_reaches_no_output_on_the_plain_target),
    };
    return cmocka_run_group_tests(tests, compile_fast, NULL);
}

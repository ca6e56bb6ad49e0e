/* The paper's invariants ("Invariant Properties"): exchange of q and k, of branches and of terms, moving a
 * scalar between projections, linearity in each factor. Each of the reference in double and of emitted kernels in every form.
 *
 * k(x_t, y_j) is read from o: keys y come first, with the rows of 1 as values, then queries x, with values of 0. */
#include "gen/spec/spec.h"
#include "c_hurry.h"
#include "claims.h"
#include "program.h"
#include "random_head.h"
#include "runtime/api/fpa.h"
#include "runtime/reference/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 12, N = 20, LENGTH = 2 * N, REFERENCE = 3, WAYS = 4 }; /* ways: the forms, and the reference */

typedef struct tokens {
    double x[N][D];
} tokens;

static tokens some, others;

typedef struct kernel_matrix {
    double at[N][N]; /* k(x_t, y_j) */
} kernel_matrix;

/* A head of these terms, in its ways. */
typedef struct subject {
    fpa_head_list list;
    fpa_kernel *kernel;
} subject;

/* Numbers that float has exactly, so that the reference and the kernels see the same. */
static int make_tokens(void **state)
{
    random_source random = {20261123};
    c_hurry();
    for (int t = 0; t < N; t++)
        for (int c = 0; c < D; c++) {
            some.x[t][c] = (float)random_normal(&random);
            others.x[t][c] = (float)random_normal(&random);
        }
    return 0;
}

static subject begin(const char *terms)
{
    char text[2048];
    subject s = {0};
    fpa_error error = {0};
    snprintf(text, sizeof text, "return head { name = 'i', d = %d, dv = %d, terms = %s }", D, N, terms);
    if (spec_load_text("invariant.lua", NULL, text, strlen(text), &s.list, &error) ||
        fpa_open_text("invariant.lua", text, NULL, NULL, &s.kernel, &error))
        fail_msg("%s: %s\n%s", error.where, error.message, text);
    return s;
}

static void end(subject *s)
{
    head_list_free(&s->list);
    fpa_close(s->kernel);
}

/* ---- k(x, y) ---- */

/* Keys y, then queries x; what a call does not need is 0. */
static void lay_out(const tokens *x, const tokens *y, double *q, double *k, double *v)
{
    memcpy(k, y->x, sizeof y->x);
    memcpy(q + N * D, x->x, sizeof x->x);
    for (int j = 0; j < N; j++)
        v[j * N + j] = 1;
}

static void run_reference(const subject *s, const double *q, const double *k, const double *v, double *o)
{
    const fpa_problem problem = {.head = s->list.heads[0],
                                 .batch = 1,
                                 .length = LENGTH,
                                 .query_heads = 1,
                                 .heads = 1,
                                 .q = q,
                                 .k = k,
                                 .v = v};
    fpa_error error;
    assert_ok(reference_forward(&problem, o, NULL, &error), &error);
}

static DLTensor tensor(float *data, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static void run_kernel(const subject *s, fpa_form form, const double *q, const double *k, const double *v,
                       double *o)
{
    static float q32[LENGTH * D], k32[LENGTH * D], v32[LENGTH * N], o32[LENGTH * N];
    int64_t keys[4] = {1, LENGTH, 1, D}, values[4] = {1, LENGTH, 1, N};
    for (int i = 0; i < LENGTH * D; i++) {
        q32[i] = (float)q[i];
        k32[i] = (float)k[i];
    }
    for (int i = 0; i < LENGTH * N; i++)
        v32[i] = (float)v[i];
    DLTensor tq = tensor(q32, keys), tk = tensor(k32, keys), tv = tensor(v32, values),
             to = tensor(o32, values);
    fpa_tensors tensors = {.q = &tq, .k = &tk, .v = &tv, .o = &to};
    fpa_error error = {0};
    size_t size = 0;
    void *workspace = NULL;
    assert_ok(fpa_workspace_size(s->kernel, form, &tensors, &size, &error) ||
                  posix_memalign(&workspace, 64, size) ||
                  fpa_forward(s->kernel, form, &tensors, workspace, size, &error),
              &error);
    free(workspace);
    for (int i = 0; i < LENGTH * N; i++)
        o[i] = (double)o32[i];
}

static kernel_matrix matrix_of(const subject *s, int way, const tokens *x, const tokens *y)
{
    double q[LENGTH * D] = {0}, k[LENGTH * D] = {0}, v[LENGTH * N] = {0}, o[LENGTH * N];
    kernel_matrix matrix;
    lay_out(x, y, q, k, v);
    if (way == REFERENCE)
        run_reference(s, q, k, v, o);
    else
        run_kernel(s, (fpa_form)way, q, k, v, o);
    memcpy(matrix.at, o + N * N, sizeof matrix.at);
    return matrix;
}

/* a == factor b + other c, within rounding of the way; c NULL: without it. */
static void assert_sum(const char *what, int way, const kernel_matrix *a, double factor,
                       const kernel_matrix *b, double other, const kernel_matrix *c)
{
    double most = 0, off = 0;
    for (int t = 0; t < N; t++)
        for (int j = 0; j < N; j++) {
            const double sum = factor * b->at[t][j] + (c ? other * c->at[t][j] : 0);
            most = fmax(most, fabs(a->at[t][j]));
            off = fmax(off, fabs(a->at[t][j] - sum));
        }
    if (!(most > 0 && off <= (way == REFERENCE ? 1e-13 : 1e-5) * most))
        fail_msg("%s: off by %g of %g in way %d", what, off, most, way);
}

/* ---- 1: exchange ---- */

#define WIDE "dense(orthogonal { d = 12, rows = 7, seed = 1 })"
#define NARROW "dense(orthogonal { d = 12, rows = 3, seed = 2 })"

static void q_and_k_may_be_exchanged(void **state)
{
    static const char *const heads[] = {
        "power { degree = 3 }",
        "tspow { d = 12, degree = 2, block = 5 }",
        "taylor { degree = 2 }",
        "{ term { " WIDE ", " NARROW ", select { 3, 1 } } }",
        "{ term { weight = -2, " WIDE ", identity() }, term { diagonal { [range(2, 9)] = sqrt2 } } }",
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        subject s = begin(heads[i]);
        for (int way = 0; way < WAYS; way++) {
            const kernel_matrix xy = matrix_of(&s, way, &some, &others),
                                yx = matrix_of(&s, way, &others, &some);
            kernel_matrix turned;
            for (int t = 0; t < N; t++)
                for (int j = 0; j < N; j++)
                    turned.at[t][j] = yx.at[j][t];
            assert_sum(heads[i], way, &xy, 1, &turned, 0, NULL);
        }
        end(&s);
    }
}

/* ---- heads whose kernels are multiples of each other, or sums ---- */

struct relation {
    const char *what, *a;
    double factor; /* a == factor b + other c */
    const char *b;
    double other;
    const char *c; /* NULL: without it */
};

static void check_relations(const struct relation *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        subject a = begin(list[i].a), b = begin(list[i].b), c = {0};
        if (list[i].c)
            c = begin(list[i].c);
        for (int way = 0; way < WAYS; way++) {
            const kernel_matrix first = matrix_of(&a, way, &some, &others);
            const kernel_matrix second = matrix_of(&b, way, &some, &others);
            kernel_matrix third;
            if (list[i].c)
                third = matrix_of(&c, way, &some, &others);
            assert_sum(list[i].what, way, &first, list[i].factor, &second, list[i].other,
                       list[i].c ? &third : NULL);
        }
        end(&a);
        end(&b);
        if (list[i].c)
            end(&c);
    }
}

static void branches_and_terms_may_be_permuted(void **state)
{
    static const struct relation list[] = {
        {"branches", "{ term { " WIDE ", " NARROW ", select { 3, 1 } } }", 1,
         "{ term { select { 3, 1 }, " WIDE ", " NARROW " } }", 0, NULL},
        {"terms", "{ term { " WIDE " }, term { weight = 3, identity(), " NARROW " }, term { weight = -1 } }",
         1, "{ term { weight = -1 }, term { weight = 3, " NARROW ", identity() }, term { " WIDE " } }", 0,
         NULL},
    };
    check_relations(list, sizeof list / sizeof *list);
}

/* ---- 4 and 5 ---- */

/* W times a factor. */
#define SCALED(W, BY)                                                                                        \
    "dense((function(W) for _, r in ipairs(W) do for c = 1, 12 do r[c] = " BY                                \
    " * r[c] end end return W end)(" W "))"
#define ROWS(COUNT, SEED) "orthogonal { d = 12, rows = " COUNT ", seed = " SEED " }"

static void a_scalar_may_move_between_projections(void **state)
{
    static const struct relation list[] = {
        {"moved", "{ term { " SCALED(ROWS("7", "1"), "4") ", " SCALED(ROWS("3", "2"), "0.25") " } }", 1,
         "{ term { " WIDE ", " NARROW " } }", 0, NULL},
        {"moved into the weight", "{ term { weight = 9, " WIDE ", " NARROW " } }", 1,
         "{ term { " SCALED(ROWS("7", "1"), "3") ", " NARROW " } }", 0, NULL},
        {"scaled", "{ term { " SCALED(ROWS("7", "1"), "-3") ", identity() } }", 9,
         "{ term { " WIDE ", identity() } }", 0, NULL},
    };
    check_relations(list, sizeof list / sizeof *list);
}

/* A factor is (W q).(W k), linear in W'W: rows of A above rows of B are the sum of both. */
static void the_kernel_is_linear_in_each_factor(void **state)
{
    static const struct relation list[] = {
        {"rows of a dense factor", "{ term { " WIDE ", " NARROW " } }", 1,
         "{ term { dense(rows(" ROWS("7", "1") ", 1, 3)), " NARROW " } }", 1,
         "{ term { dense(rows(" ROWS("7", "1") ", 4, 7)), " NARROW " } }"},
        {"coordinates",
         "{ term { diagonal { [range(1, 6)] = 1, [range(7, 12)] = 3 }, " WIDE ", " NARROW " } }", 1,
         "{ term { select(range(1, 6)), " WIDE ", " NARROW " } }", 9,
         "{ term { select(range(7, 12)), " WIDE ", " NARROW " } }"},
        {"a factor that another one is like", "{ term { identity(), select(range(1, 4)) } }", 1,
         "{ term { select(range(1, 4)), select(range(1, 4)) } }", 1,
         "{ term { select(range(5, 12)), select(range(1, 4)) } }"},
    };
    check_relations(list, sizeof list / sizeof *list);
}

/* examples/hla.c compares itself with its formula. */
static void second_order_attention_is_two_passes(void **state)
{
    char program[4096];
    const char *command = getenv("FPAC") ? getenv("FPAC") : "build/fpac";
    snprintf(program, sizeof program, "%.*s/examples/hla", (int)(strrchr(command, '/') - command), command);
    program_result result = RUN(program);
    if (result.code)
        fail_msg("%s%s", result.out, result.err);
    assert_non_null(strstr(result.out, "200 tokens and 5 one by one"));
    program_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(q_and_k_may_be_exchanged),
        cmocka_unit_test(branches_and_terms_may_be_permuted),
        cmocka_unit_test(a_scalar_may_move_between_projections),
        cmocka_unit_test(the_kernel_is_linear_in_each_factor),
        cmocka_unit_test(second_order_attention_is_two_passes),
    };
    return cmocka_run_group_tests(tests, make_tokens, NULL);
}

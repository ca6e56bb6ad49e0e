/* Properties of the paper's kernels, on emitted code through the public API. */
#include "runtime/api/fpa.h"
#include "c_hurry.h"
#include "claims.h"
#include "dear.h"
#include "random_head.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 12, DV = 20, B = 2, H = 2, L = 151, SIZE_QK = B * L * H * D, SIZE_V = B * L * H * DV };

static const uint64_t seed = 20260117; /* of every input below */

static float q[SIZE_QK], k[SIZE_QK], v[SIZE_V];

static void fill(float *x, int count, uint64_t stream)
{
    random_source random = {seed + stream};
    for (int i = 0; i < count; i++)
        x[i] = (float)(random_normal(&random) * 0.5);
}

static int make_inputs(void **state)
{
    print_message("properties: seed %llu\n", (unsigned long long)seed);
    c_hurry_a_little();
    fill(q, SIZE_QK, 1);
    fill(k, SIZE_QK, 2);
    fill(v, SIZE_V, 3);
    return 0;
}

/* A head of these terms; `more` are further fields. */
static fpa_kernel *open_head(const char *terms, const char *more)
{
    char text[2048];
    fpa_kernel *kernel = NULL;
    fpa_error error = {0};
    snprintf(text, sizeof text, "return head { name = 'p', d = %d, dv = %d, %s terms = %s }", D, DV, more,
             terms);
    if (fpa_open_text("property.lua", text, NULL, NULL, &kernel, &error))
        fail_msg("%s: %s\n%s", error.where, error.message, text);
    return kernel;
}

static DLTensor tensor(const float *data, int64_t *shape)
{
    return (DLTensor){
        .data = (void *)data, .device = {kDLCPU, 0}, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

/* o of one call; malloc'ed, [B, L, H, DV]. */
static float *run(fpa_kernel *kernel, fpa_form form, const float *qs, const float *ks, const float *vs)
{
    int64_t qk[4] = {B, L, H, D}, values[4] = {B, L, H, DV};
    float *o = malloc(SIZE_V * sizeof *o);
    DLTensor tq = tensor(qs, qk), tk = tensor(ks, qk), tv = tensor(vs, values), to = tensor(o, values);
    fpa_tensors tensors = {.q = &tq, .k = &tk, .v = &tv, .o = &to};
    fpa_error error = {0};
    size_t size = 0;
    void *workspace = NULL;
    assert_non_null(o);
    assert_ok(fpa_workspace_size(kernel, form, &tensors, &size, &error) ||
                  posix_memalign(&workspace, 64, size) ||
                  fpa_forward(kernel, form, &tensors, workspace, size, &error),
              &error);
    free(workspace);
    return o;
}

/* a == factor b within rounding, relative to the largest entry. */
static void assert_close(const char *what, const float *a, const float *b, double factor)
{
    double most = 0, off = 0;
    for (int i = 0; i < SIZE_V; i++) {
        most = fmax(most, fabs(a[i]));
        off = fmax(off, fabs(a[i] - factor * b[i]));
    }
    if (!(off <= 2e-5 * most))
        fail_msg("%s: off by %g of %g", what, off, most);
}

struct pair {
    const char *what, *a, *b;
    double factor; /* kernel a == factor * kernel b */
};

static const struct pair pairs[] = {
    {"tspow equals power at block 1", "tspow { d = 12, degree = 2, block = 1 }", "power { degree = 2 }", 1},
    {"tspow equals power at block 4", "tspow { d = 12, degree = 2, block = 4 }", "power { degree = 2 }", 1},
    {"tspow equals power at a block that does not divide d", "tspow { d = 12, degree = 2, block = 5 }",
     "power { degree = 2 }", 1},
    {"merged equals full", "tspow { d = 12, degree = 3, block = 4, construction = 'merged' }",
     "tspow { d = 12, degree = 3, block = 4, construction = 'full' }", 1},
    {"spow equals power", "spow { d = 12, degree = 3 }", "power { degree = 3 }", 1},
    {"a constant in the kernel", "inhomogeneous { degree = 2, constant = 3 }",
     "{ power { degree = 2 }, linear { weight = 6 }, term { weight = 9 } }", 1},
    {"a rotated W has the same Gram",
     "{ term { dense { { 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, { -4, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } }, "
     "identity() } }",
     "{ term { select { 1, 2 }, identity() } }", 25},
};

/* tests/test_invariants.c asks the same of other heads, and of the formula besides: in make test-all alone. */
static const struct pair twice[] = {
    {"permuting branches changes nothing",
     "{ term { select { 1, 2, 3 }, diagonal { [range(4, 9)] = sqrt2 }, identity() } }",
     "{ term { identity(), select { 1, 2, 3 }, diagonal { [range(4, 9)] = sqrt2 } } }", 1},
    {"permuting terms changes nothing", "{ term { select { 1, 2 }, select { 5, 6 } }, term { identity() } }",
     "{ term { identity() }, term { select { 1, 2 }, select { 5, 6 } } }", 1},
    {"scaling one W by 3 scales the kernel by 9",
     "{ term { diagonal { [range(1, 12)] = 3 }, select { 2, 4, 6, 7 } } }",
     "{ term { identity(), select { 2, 4, 6, 7 } } }", 9},
};

static void compare(const struct pair *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fpa_kernel *a = open_head(list[i].a, ""), *b = open_head(list[i].b, "");
        for (int form = 0; form < 3; form++) {
            float *oa = run(a, form, q, k, v), *ob = run(b, form, q, k, v);
            assert_close(list[i].what, oa, ob, list[i].factor);
            free(oa);
            free(ob);
        }
        fpa_close(a);
        fpa_close(b);
    }
}

static void equal_kernels_give_equal_outputs_in_every_form(void **state)
{
    compare(pairs, sizeof pairs / sizeof *pairs);
    if (dear_tests())
        compare(twice, sizeof twice / sizeof *twice);
}

/* x -> x - 2 u (u.x) for every token: an orthogonal map. */
static void reflect(const float *from, float *to)
{
    for (int t = 0; t < B * L * H; t++) {
        double dot = 0, norm = 0;
        for (int i = 0; i < D; i++) {
            dot += (i + 1) * from[t * D + i];
            norm += (i + 1) * (i + 1);
        }
        for (int i = 0; i < D; i++)
            to[t * D + i] = (float)(from[t * D + i] - 2 * (i + 1) * dot / norm);
    }
}

/* The paper's "Invariant Properties", 3: U of the common isometry group changes nothing. */
static void a_rotation_of_q_and_k_together_leaves_an_isotropic_kernel_alone(void **state)
{
    static float rotated_q[SIZE_QK], rotated_k[SIZE_QK];
    reflect(q, rotated_q);
    reflect(k, rotated_k);
    fpa_kernel *kernel = open_head("tspow { d = 12, degree = 2, block = 4 }", "");
    for (int form = 0; form < 3; form++) {
        float *a = run(kernel, form, q, k, v), *b = run(kernel, form, rotated_q, rotated_k, v);
        assert_close("rotated", a, b, 1);
        free(a);
        free(b);
    }
    fpa_close(kernel);
}

static void output_is_linear_in_v(void **state)
{
    static float other[SIZE_V], sum[SIZE_V];
    fill(other, SIZE_V, 4);
    for (int i = 0; i < SIZE_V; i++)
        sum[i] = 2 * v[i] - 3 * other[i];
    fpa_kernel *kernel = open_head("power { degree = 2 }", "normalize = 'one_plus_sum',");
    for (int form = 0; form < 3; form++) {
        float *a = run(kernel, form, q, k, v), *b = run(kernel, form, q, k, other),
              *c = run(kernel, form, q, k, sum);
        for (int i = 0; i < SIZE_V; i++)
            a[i] = 2 * a[i] - 3 * b[i];
        assert_close("linear", a, c, 1);
        free(a);
        free(b);
        free(c);
    }
    fpa_close(kernel);
}

/* `mask`: further fields. make test: of the chunks every other one, with one mask and without those between. */
static void check_chunks(const char *mask, size_t turn)
{
    static const char *const chunks[] = {"chunk = 1,", "chunk = 47,", "chunk = 48,", "chunk = 150,",
                                         "chunk = 4096,"};
    char more[96];
    snprintf(more, sizeof more, "normalize = 'sum', %s", mask);
    fpa_kernel *plain = open_head("power { degree = 2 }", more);
    float *expected = run(plain, FPA_FORM_PARALLEL, q, k, v);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        if (!dear_tests() && i % 2 != turn)
            continue;
        snprintf(more, sizeof more, "normalize = 'sum', %s %s", mask, chunks[i]);
        fpa_kernel *kernel = open_head("power { degree = 2 }", more);
        float *o = run(kernel, FPA_FORM_CHUNKED, q, k, v);
        assert_close(chunks[i], o, expected, 1);
        free(o);
        fpa_close(kernel);
    }
    free(expected);
    fpa_close(plain);
}

static void the_chunk_changes_nothing_but_rounding(void **state)
{
    check_chunks("", 1);
    check_chunks("causal = false,", 0);
}

/* Token L - 1 - t of every sequence is token t. */
static float *turned(const float *x, int columns)
{
    float *y = malloc((size_t)(B * L * H * columns) * sizeof *y);
    assert_non_null(y);
    for (int t = 0; t < B * L; t++)
        memcpy(y + t * H * columns, x + (t / L * L + L - 1 - t % L) * H * columns,
               (size_t)(H * columns) * sizeof *y);
    return y;
}

static void without_a_mask_the_order_of_keys_does_not_matter(void **state)
{
    fpa_kernel *kernel = open_head("taylor { degree = 2 }", "causal = false, normalize = 'sum', chunk = 48,");
    float *turned_q = turned(q, D), *turned_k = turned(k, D), *turned_v = turned(v, DV);
    for (fpa_form form = FPA_FORM_PARALLEL; form <= FPA_FORM_CHUNKED; form++) {
        float *o = run(kernel, form, q, k, v), *keys = run(kernel, form, q, turned_k, turned_v);
        assert_close("keys in the other order", keys, o, 1);
        float *queries = run(kernel, form, turned_q, k, v), *back = turned(queries, DV);
        assert_close("queries in the other order", back, o, 1);
        free(back);
        free(queries);
        free(keys);
        free(o);
    }
    free(turned_v);
    free(turned_k);
    free(turned_q);
    fpa_close(kernel);
}

static void check_threads(const char *more, fpa_form last, void (*set_threads)(int))
{
    fpa_kernel *kernel = open_head("tspow { d = 12, degree = 3, block = 1 }", more);
    for (fpa_form form = FPA_FORM_PARALLEL; form <= last; form++) {
        set_threads(1);
        float *one = run(kernel, form, q, k, v);
        for (int threads = 2; threads <= 7; threads++) {
            set_threads(threads);
            float *many = run(kernel, form, q, k, v);
            assert_memory_equal(one, many, SIZE_V * sizeof *one);
            free(many);
        }
        free(one);
    }
    fpa_close(kernel);
}

/* Slices are added in their own order, whoever computes them. */
static void the_number_of_threads_changes_no_bit(void **state)
{
    void *openmp = dlopen("libgomp.so.1", RTLD_NOW);
    void (*set_threads)(int) = openmp ? (void (*)(int))dlsym(openmp, "omp_set_num_threads") : NULL;
    if (!set_threads)
        skip();
    check_threads("normalize = 'one_plus_sum',", FPA_FORM_RECURRENT, set_threads);
    check_threads("normalize = 'one_plus_sum', causal = false, chunk = 48,", FPA_FORM_CHUNKED, set_threads);
    dlclose(openmp);
}

/* Tokens first..first + length of all sequences as a call of their own, into the same places of o. */
static void run_part(fpa_kernel *kernel, fpa_form form, int64_t first, int64_t length, const float *gate,
                     float *o)
{
    int64_t qk[4] = {B, length, H, D}, values[4] = {B, length, H, DV}, gates[3] = {B, length, H};
    int64_t qk_strides[4] = {L * H * D, H * D, D, 1}, value_strides[4] = {L * H * DV, H * DV, DV, 1};
    int64_t gate_strides[3] = {L * H, H, 1};
    DLTensor tq = tensor(q + first * H * D, qk), tk = tensor(k + first * H * D, qk);
    DLTensor tv = tensor(v + first * H * DV, values), to = tensor(o + first * H * DV, values);
    DLTensor tg = tensor(gate + first * H, gates);
    tg.ndim = 3;
    tq.strides = tk.strides = qk_strides;
    tv.strides = to.strides = value_strides;
    tg.strides = gate_strides;
    fpa_tensors tensors = {.q = &tq, .k = &tk, .v = &tv, .o = &to, .log_gate = &tg};
    fpa_error error = {0};
    size_t size = 0;
    void *workspace = NULL;
    assert_ok(fpa_workspace_size(kernel, form, &tensors, &size, &error) ||
                  posix_memalign(&workspace, 64, size) ||
                  fpa_forward(kernel, form, &tensors, workspace, size, &error),
              &error);
    free(workspace);
}

/* docs/faq.md: a log-gate of -200 on its first token separates a sequence from what is packed before it. */
static void a_log_gate_of_minus_200_separates_packed_sequences(void **state)
{
    enum { FIRST = 67 }; /* tokens of the first sequence */
    static float gate[B * L * H], packed[SIZE_V], apart[SIZE_V];
    fill(gate, B * L * H, 4);
    for (int i = 0; i < B * L * H; i++)
        gate[i] = i / H % L == FIRST ? -200 : -0.1f * fabsf(gate[i]);
    fpa_kernel *kernel =
        open_head("tspow { d = 12, degree = 2, block = 4 }", "gate = true, normalize = 'sum',");
    for (int form = FPA_FORM_PARALLEL; form <= FPA_FORM_RECURRENT; form++) {
        run_part(kernel, (fpa_form)form, 0, L, gate, packed);
        run_part(kernel, (fpa_form)form, 0, FIRST, gate, apart);
        run_part(kernel, (fpa_form)form, FIRST, L - FIRST, gate, apart);
        assert_close("packed sequences", packed, apart, 1);
    }
    fpa_close(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_kernels_give_equal_outputs_in_every_form),
        cmocka_unit_test(a_rotation_of_q_and_k_together_leaves_an_isotropic_kernel_alone),
        cmocka_unit_test(output_is_linear_in_v),
        cmocka_unit_test(the_chunk_changes_nothing_but_rounding),
        cmocka_unit_test(without_a_mask_the_order_of_keys_does_not_matter),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(a_log_gate_of_minus_200_separates_packed_sequences),
    };
    return cmocka_run_group_tests_name("properties", tests, make_inputs, NULL);
}

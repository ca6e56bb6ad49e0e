/* test_reference_lift: coordinates that are made of q and k, against formulas that know no coordinates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "head/lift.h"
#include "claims.h"
#include "lifted_heads.h"
#include "reference_bench.h"

enum { SEED = 11 };

/* ---- formulas over all pairs ---- */

/* One pair: the query, scaled, with its position; the key; the key/value head. */
typedef struct pair {
    const bench *b;
    double q[WIDTH];
    const double *k, *query_position, *key_position;
    int64_t h;
} pair;

typedef double kernel_formula(const pair *x);

static pair pair_of(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq)
{
    const fpa_head *head = b->problem.head;
    const int n = head->lift->positions;
    pair x = {.b = b, .h = hq / (QUERY_HEADS / HEADS)};
    for (int c = 0; c < WIDTH; c++)
        x.q[c] = head->scale * b->q[((batch * LENGTH + t) * QUERY_HEADS + hq) * WIDTH + c];
    x.k = b->k + ((batch * LENGTH + j) * HEADS + x.h) * WIDTH;
    x.query_position = n ? b->positions + (batch * LENGTH + t) * n : NULL;
    x.key_position = n ? b->positions + (batch * LENGTH + j) * n : NULL;
    return x;
}

static bool is_masked(const bench *b, int64_t batch, int64_t j)
{
    return b->key_mask && b->key_mask[batch * LENGTH + j] == 0;
}

/* Column c of one output; with c = DV the sum of weights. */
static double expected(const bench *b, kernel_formula *kernel, int64_t batch, int64_t t, int64_t hq, int c)
{
    const fpa_head *head = b->problem.head;
    const int64_t h = hq / (QUERY_HEADS / HEADS), last = head->causal ? t : LENGTH - 1;
    double sum = 0;
    for (int64_t j = 0; j <= last; j++) {
        double gate = 0;
        const pair x = pair_of(b, batch, t, j, hq);
        if (is_masked(b, batch, j))
            continue;
        for (int64_t s = j + 1; head->gate && s <= t; s++)
            gate += b->gate[(batch * LENGTH + s) * HEADS + h];
        sum += exp(gate) * kernel(&x) * (c < DV ? b->v[((batch * LENGTH + j) * HEADS + h) * DV + c] : 1);
    }
    return sum;
}

static void expect(bench *b, kernel_formula *kernel)
{
    const fpa_head *head = b->problem.head;
    bench_run(b);
    for (int64_t i = 0; i < b->outputs * DV; i++) {
        const int64_t output = i / DV, hq = output % QUERY_HEADS, t = output / QUERY_HEADS % LENGTH;
        const int64_t batch = output / QUERY_HEADS / LENGTH;
        double o = expected(b, kernel, batch, t, hq, (int)(i % DV));
        if (head->normalize != FPA_NORMALIZE_NONE)
            o /= expected(b, kernel, batch, t, hq, DV) + head->eps;
        if (!(fabs(o - b->o[i]) <= 1e-11 * (fabs(o) + b->magnitude[i])))
            fail_msg("output %lld: %.17g is not %.17g", (long long)i, b->o[i], o);
        assert_true(b->magnitude[i] >= fabs(b->o[i]) * (1 - 1e-12));
    }
}

static void compare(fpa_head *head, kernel_formula *kernel)
{
    bench b;
    bench_setup(&b, head, SEED, false);
    expect(&b, kernel);
    bench_expect_plain(&b, 300);
    bench_free(&b);
    head_free(head);
}

/* ---- maps ---- */

static double elu_plus_one(double x)
{
    return x > 0 ? x + 1 : exp(x);
}

static double elu_formula(const pair *x)
{
    double sum = 0;
    for (int c = 0; c < WIDTH; c++)
        sum += elu_plus_one(x->q[c]) * elu_plus_one(x->k[c]);
    return sum;
}

static void linear_attention_with_elu(void **state)
{
    compare(lifted_elu("causal sum"), elu_formula);
    compare(lifted_elu("sum"), elu_formula);
    compare(lifted_elu("causal gate"), elu_formula);
}

/* Another map of q than of k, of rows in another order, squared. */
static double mixed_formula(const pair *x)
{
    const int rows[] = {3, 0};
    double sum = 0;
    for (int r = 0; r < 2; r++)
        sum += fmax(1.5 * x->q[rows[r]] - 0.25, 0) * 2 * (log(1 + exp(1.5 * x->k[rows[r]] - 0.25)) / 2);
    return sum * sum;
}

static void maps_of_q_and_k_may_differ(void **state)
{
    lifted_text to;
    lifted_begin(&to, 2, "causal");
    lifted_add(&to, "matrices 0\nlift width %d positions 0 key_mask 0 parts 1\n", WIDTH);
    lifted_part(&to, 2, "relu softplus", "0x3p-1 0x0p+0 0x1p-2", "0x1p+1 0x1p-1", "0 0 0", "input 4,1");
    compare(lifted_finish(&to, 2, 2), mixed_formula);
}

/* ---- functions of the position ---- */

static double fourier(const pair *x, double map(double), bool with_one)
{
    const double *a = x->b->weights[0] + x->h * WIDTH * SPACE, *shift = x->b->weights[1] + x->h * WIDTH;
    const double *c = with_one ? NULL : x->b->weights[2] + x->h * WIDTH;
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) {
        double phase = shift[i];
        for (int p = 0; p < SPACE; p++)
            phase += a[i * SPACE + p] * (x->query_position[p] - x->key_position[p]);
        sum += map(x->q[i]) * map(x->k[i]) * (with_one ? 1 + cos(phase) : c[i] * cos(phase));
    }
    return sum;
}

static double softplus(double x)
{
    return log(1 + exp(x));
}

static double seed_formula(const pair *x)
{
    return fourier(x, softplus, false);
}

static double one_plus_cosine(const pair *x)
{
    return fourier(x, exp, true);
}

static void fourier_kernels_of_positions(void **state)
{
    compare(lifted_fourier(false, "causal"), seed_formula);
    compare(lifted_fourier(false, ""), seed_formula);
    compare(lifted_fourier(true, "causal sum"), one_plus_cosine);
    compare(lifted_fourier(true, "sum mask"), one_plus_cosine);
}

/* ---- complex products: TensorSketch of degree 2, by its circular convolution ---- */

static void sketch(const double *x, double y[SKETCH])
{
    double count[SKETCH_DEGREE][SKETCH] = {{0}};
    for (int l = 0; l < SKETCH_DEGREE; l++)
        for (int c = 0; c < WIDTH; c++)
            count[l][lifted_bucket[l][c]] += lifted_sign[l][c] * x[c];
    for (int n = 0; n < SKETCH; n++)
        y[n] = 0;
    for (int i = 0; i < SKETCH; i++)
        for (int j = 0; j < SKETCH; j++)
            y[(i + j) % SKETCH] += count[0][i] * count[1][j];
}

static double sketch_formula(const pair *x)
{
    double query[SKETCH], key[SKETCH], sum = 0;
    sketch(x->q, query);
    sketch(x->k, key);
    for (int n = 0; n < SKETCH; n++)
        sum += query[n] * key[n];
    return sum;
}

static void a_sketch_in_the_frequency_domain(void **state)
{
    compare(lifted_sketch("causal"), sketch_formula);
}

/* (W x + b)^2, b a last column. */
static double constants_formula(const pair *x)
{
    const double *w = x->b->weights[0];
    double sum = 0;
    for (int r = 0; r < 2; r++) {
        double q = w[r * (WIDTH + 1) + WIDTH], k = q;
        for (int c = 0; c < WIDTH; c++) {
            q += w[r * (WIDTH + 1) + c] * x->q[c];
            k += w[r * (WIDTH + 1) + c] * x->k[c];
        }
        sum += q * q * k * k;
    }
    return sum;
}

static void projections_may_add_constants(void **state)
{
    lifted_text to;
    lifted_begin(&to, 2, "causal");
    lifted_add(&to, "matrices 1\ntrainable w 2 %d shared\nlift width %d positions 0 key_mask 0 parts 1\n",
               WIDTH + 1, WIDTH);
    lifted_add(&to, "part real 2 factors 2\nmap identity identity\ninner %s\ngain %s\nposition 0 0 0\n",
               lifted_as_is, lifted_ones);
    lifted_add(&to, "factor matrix 1\nfactor matrix 1\n");
    compare(lifted_finish(&to, 2, 1), constants_formula);
}

/* ---- projections: random features, per head and diagonal ones ---- */

static double favor_formula(const pair *x)
{
    enum { FEATURES = 3 };
    const double *w = x->b->weights[0] + x->h * FEATURES * WIDTH, gain = 0.5, shift = 0.75;
    double sum = 0;
    for (int r = 0; r < FEATURES; r++) {
        double q = -shift, k = -shift;
        for (int c = 0; c < WIDTH; c++) {
            q += w[r * WIDTH + c] * x->q[c] - x->q[c] * x->q[c] / 2;
            k += w[r * WIDTH + c] * x->k[c] - x->k[c] * x->k[c] / 2;
        }
        sum += gain * exp(q) * gain * exp(k);
    }
    return sum;
}

static void positive_random_features(void **state)
{
    lifted_text to;
    lifted_begin(&to, 3, "causal sum");
    lifted_add(&to, "matrices 1\ntrainable w 3 %d per_head\nlift width %d positions 0 key_mask 0 parts 1\n",
               WIDTH, WIDTH);
    lifted_part(&to, 3, "exp exp", "0x1p+0 0x1p-1 0x3p-2", "0x1p-1 0x1p-1", "0 0 0", "matrix 1");
    compare(lifted_finish(&to, 3, 1), favor_formula);
}

/* (D x)_r (M_h x)_r, D a diagonal at run time, M of constants for two heads; a shared dense one multiplies. */
static double product_formula(const pair *x)
{
    static const double m[HEADS][WIDTH][WIDTH] = {{{1, 2, 0, 0}, {0, 1, 0, -1}, {3, 0, 1, 0}, {0, 0, 0, 1}},
                                                  {{0, 0, 1, 0}, {2, 0, 0, 0}, {0, -1, 0, 0}, {0, 0, 0, -2}}};
    const double *diagonal = x->b->weights[0] + x->h * WIDTH, *dense = x->b->weights[2];
    double sum = 0;
    for (int r = 0; r < WIDTH; r++) {
        double q = 0, k = 0, wq = 0, wk = 0;
        for (int c = 0; c < WIDTH; c++) {
            q += m[x->h][r][c] * x->q[c];
            k += m[x->h][r][c] * x->k[c];
            wq += dense[r * WIDTH + c] * x->q[c];
            wk += dense[r * WIDTH + c] * x->k[c];
        }
        sum += diagonal[r] * x->q[r] * q * wq * diagonal[r] * x->k[r] * k * wk;
    }
    return sum;
}

static void products_of_projections_of_each_kind(void **state)
{
    compare(lifted_products("causal gate"), product_formula);
}

/* ---- masks ---- */

/* (1 + q.k)^2: k(q, 0) is not 0, so that keys of zeros are no mask. */
static double with_constant(const pair *x)
{
    double sum = 1;
    for (int c = 0; c < WIDTH; c++)
        sum += x->q[c] * x->k[c];
    return sum * sum;
}

static void masked_keys_contribute_nothing(void **state)
{
    compare(lifted_constant("causal"), with_constant);
    compare(lifted_constant(""), with_constant);
    compare(lifted_constant("causal gate sum"), with_constant);
    compare(lifted_elu("causal sum mask"), elu_formula);
}

/* Nor do NaNs in them; outputs before the first key are 0, with a normaliser that is not. */
static void what_masked_keys_hold_is_not_looked_at(void **state)
{
    fpa_head *head = lifted_constant("causal gate sum");
    bench b;
    bench_setup(&b, head, SEED, false);
    for (int64_t i = 0; i < BATCH * LENGTH * HEADS; i++)
        if (!b.key_mask[i / HEADS]) {
            for (int c = 0; c < WIDTH; c++)
                b.k[i * WIDTH + c] = c % 2 ? NAN : INFINITY;
            for (int c = 0; c < DV; c++)
                b.v[i * DV + c] = NAN;
        }
    expect(&b, with_constant);
    bench_expect_plain(&b, 300);
    for (int64_t i = 0; i < 2 * QUERY_HEADS * DV; i++)
        assert_true(b.o[i] == 0 && b.magnitude[i] == 0);
    bench_free(&b);
    head_free(head);
}

/* ---- narrow coordinates ---- */

/* The largest error of plain scores over their magnitude. */
static double plain_error(bench *b)
{
    float *o = calloc((size_t)(b->outputs * DV), sizeof *o);
    fpa_error error = {0};
    double most = 0;
    assert_non_null(o);
    assert_int_equal(reference_plain(&b->problem, o, &error), FPA_OK);
    for (int64_t i = 0; i < b->outputs * DV; i++)
        most = fmax(most, b->magnitude[i] > 0 ? fabs((double)o[i] - b->o[i]) / b->magnitude[i] : 0);
    free(o);
    return most;
}

/* What is rounded shows, and no more than that: of products in float, coordinates alone. */
static void coordinates_are_rounded_as_they_are_kept(void **state)
{
    static const struct {
        fpa_dtype coordinates;
        double least, most;
    } kinds[] = {{FPA_F32, 0, 0x1p-20}, {FPA_F16, 0x1p-15, 0x1p-10}, {FPA_BF16, 0x1p-12, 0x1p-7}};
    for (int i = 0; i < 3; i++) {
        fpa_head *head = lifted_fourier(false, "causal");
        bench b;
        bench_setup(&b, head, SEED, false);
        bench_run(&b);
        b.problem.coordinates = kinds[i].coordinates;
        const double error = plain_error(&b);
        if (!(error >= kinds[i].least && error <= kinds[i].most))
            fail_msg("coordinate type %d: %g", (int)kinds[i].coordinates, error);
        bench_free(&b);
        head_free(head);
    }
}

/* ---- sizes ---- */

/* A coordinate whose argument cancels is as uncertain as the argument, also where the map is flat beside it. */
static void sizes_are_those_of_the_arguments(void **state)
{
    static const char *const maps[] = {"identity identity", "relu relu", "exp exp"};
    double magnitude[3];
    for (int m = 0; m < 3; m++) {
        lifted_text to;
        lifted_begin(&to, 1, "");
        lifted_add(&to, "matrices 1\ntrainable w 1 %d shared\nlift width %d positions 0 key_mask 0 parts 1\n",
                   WIDTH, WIDTH);
        lifted_part(&to, 1, maps[m], lifted_as_is, lifted_ones, "0 0 0", "matrix 1");
        fpa_head *head = lifted_finish(&to, 1, 1);
        bench b;
        bench_setup(&b, head, SEED, false);
        const double cancels[WIDTH] = {1000, -1000, 0, -1e-9}; /* w x of x = 1 is just below 0 */
        memcpy(b.weights[0], cancels, sizeof cancels);
        for (int64_t i = 0; i < BATCH * LENGTH * QUERY_HEADS * WIDTH; i++)
            b.q[i] = 1;
        for (int64_t i = 0; i < BATCH * LENGTH * HEADS * WIDTH; i++)
            b.k[i] = 1;
        for (int64_t i = 0; i < BATCH * LENGTH * HEADS * DV; i++)
            b.v[i] = 1;
        bench_run(&b);
        magnitude[m] = b.magnitude[0];
        bench_free(&b);
        head_free(head);
    }
    const double row = sqrt(2) * 1000, once = LENGTH * 0.75 * row * row;
    for (int m = 0; m < 3; m++)
        if (!(fabs(magnitude[m] - once) < 1e-6 * once))
            fail_msg("%s: %g is not %g", maps[m], magnitude[m], once);
}

static void the_work_of_a_lift_is_counted(void **state)
{
    fpa_head *plain = power_head(2), *elu = lifted_elu(""), *turned = lifted_fourier(false, "");
    fpa_reference_size size[3];
    fpa_error error = {0};
    assert_int_equal(reference_size(plain, &size[0], &error), FPA_OK);
    assert_int_equal(reference_size(elu, &size[1], &error), FPA_OK);
    assert_int_equal(reference_size(turned, &size[2], &error), FPA_OK);
    assert_true(size[0].token == 0 && size[1].token > 0 && size[2].token > size[1].token);
    assert_true(size[1].features == WIDTH && size[2].features == 2 * WIDTH);
    head_free(plain);
    head_free(elu);
    head_free(turned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_attention_with_elu),
        cmocka_unit_test(maps_of_q_and_k_may_differ),
        cmocka_unit_test(fourier_kernels_of_positions),
        cmocka_unit_test(a_sketch_in_the_frequency_domain),
        cmocka_unit_test(projections_may_add_constants),
        cmocka_unit_test(positive_random_features),
        cmocka_unit_test(products_of_projections_of_each_kind),
        cmocka_unit_test(masked_keys_contribute_nothing),
        cmocka_unit_test(what_masked_keys_hold_is_not_looked_at),
        cmocka_unit_test(coordinates_are_rounded_as_they_are_kept),
        cmocka_unit_test(sizes_are_those_of_the_arguments),
        cmocka_unit_test(the_work_of_a_lift_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

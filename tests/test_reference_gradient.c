/* test_reference_gradient: the reference's gradients against differences of the reference itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "lifted_heads.h"
#include "random_head.h"
#include "reference_bench.h"

enum { SEED = 41, SPAN = 3, QUERIES = BATCH * LENGTH * QUERY_HEADS, KEYS = BATCH * LENGTH * HEADS };

/* Gradients of a bench, and what they are of. */
typedef struct slopes {
    bench b;
    double *d_o;
    fpa_saved backward;
    fpa_gradients exact, sizes, plain;
    double **weights[3];
} slopes;

static double *zeros(int64_t count)
{
    double *x = calloc((size_t)count + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static int64_t entries_of(const fpa_matrix *matrix)
{
    return (int64_t)HEADS * matrix->rows * matrix->cols;
}

static fpa_gradients room_for(const fpa_head *head, double ***weights)
{
    *weights = calloc((size_t)head->matrix_count + 1, sizeof **weights);
    assert_non_null(*weights);
    for (int m = 0; m < head->matrix_count; m++)
        if (head->matrices[m].kind != FPA_MATRIX_CONSTANT)
            (*weights)[m] = zeros(entries_of(&head->matrices[m]));
    return (fpa_gradients){.q = zeros(QUERIES * head_width(head)),
                           .k = zeros(KEYS * head_width(head)),
                           .v = zeros(KEYS * head->dv),
                           .log_gate = zeros(KEYS),
                           .weights = *weights};
}

static void slopes_setup(slopes *s, const fpa_head *head, uint64_t seed, bool positive)
{
    random_source random = {seed};
    fpa_error error = {0};
    bench_setup(&s->b, head, seed, positive);
    s->d_o = zeros(QUERIES * head->dv);
    for (int64_t i = 0; i < QUERIES * head->dv; i++)
        s->d_o[i] = random_normal(&random);
    s->backward = (fpa_saved){.d_o = s->d_o, .span = SPAN};
    s->exact = room_for(head, &s->weights[0]);
    s->sizes = room_for(head, &s->weights[1]);
    s->plain = room_for(head, &s->weights[2]);
    assert_ok(reference_gradient(&s->b.problem, &s->backward, &s->exact, &s->sizes, &error) ||
                  reference_gradient_plain(&s->b.problem, &s->backward, &s->plain, &error),
              &error);
}

static void slopes_free(slopes *s)
{
    const fpa_gradients *all[] = {&s->exact, &s->sizes, &s->plain};
    for (int i = 0; i < 3; i++) {
        for (int m = 0; m < s->b.problem.head->matrix_count; m++)
            free(s->weights[i][m]);
        free(s->weights[i]);
        free(all[i]->q);
        free(all[i]->k);
        free(all[i]->v);
        free(all[i]->log_gate);
        free(all[i]->log_gate_whole);
        free(all[i]->log_gate_carried);
    }
    free(s->d_o);
    bench_free(&s->b);
}

static double loss(slopes *s)
{
    double sum = 0;
    bench_run(&s->b);
    for (int64_t i = 0; i < QUERIES * s->b.problem.head->dv; i++)
        sum += s->d_o[i] * s->b.o[i];
    return sum;
}

/* Of the loss in one number, by four values of it. */
static double difference(slopes *s, double *x)
{
    const double before = *x, step = 1e-4;
    double sum = 0;
    for (int side = -1; side <= 1; side += 2) {
        *x = before + side * step;
        sum += side * 8 * loss(s);
        *x = before + 2 * side * step;
        sum -= side * loss(s);
    }
    *x = before;
    return sum / (12 * step);
}

/* Every third element or so of an operand: in double near the differences, in float near the double, both in relation to
 * the magnitude. */
static void compare(slopes *s, const char *what, double *x, int64_t count, const double *exact,
                    const double *sizes, const double *plain)
{
    const int64_t step = count > 60 ? 7 : 1;
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs(exact[i]) <= sizes[i] * (1 + 1e-12)) ||
            !(fabs(plain[i] - exact[i]) <= 1e-5 * sizes[i] + 1e-20))
            fail_msg("%s %d: %g, in float %g, magnitude %g", what, (int)i, exact[i], plain[i], sizes[i]);
        if (i % step == 0) {
            const double found = difference(s, &x[i]);
            if (!(fabs(exact[i] - found) <= 1e-7 * (1 + sizes[i])))
                fail_msg("%s %d: %.12g, but the difference is %.12g", what, (int)i, exact[i], found);
        }
    }
}

static void check(fpa_head *head, uint64_t seed, bool positive)
{
    slopes s;
    slopes_setup(&s, head, seed, positive);
    compare(&s, "dq", s.b.q, QUERIES * head_width(head), s.exact.q, s.sizes.q, s.plain.q);
    compare(&s, "dk", s.b.k, KEYS * head_width(head), s.exact.k, s.sizes.k, s.plain.k);
    compare(&s, "dv", s.b.v, KEYS * head->dv, s.exact.v, s.sizes.v, s.plain.v);
    if (head->gate)
        compare(&s, "dlog_gate", s.b.gate, KEYS, s.exact.log_gate, s.sizes.log_gate, s.plain.log_gate);
    for (int m = 0; m < head->matrix_count; m++)
        if (s.weights[0][m])
            compare(&s, "dW", s.b.weights[m], entries_of(&head->matrices[m]), s.weights[0][m],
                    s.weights[1][m], s.weights[2][m]);
    slopes_free(&s);
    head_free(head);
}

static void powers_and_constants_with_every_normaliser(void **state)
{
    for (int degree = 0; degree <= 3; degree++)
        for (int kind = 0; kind < FPA_NORMALIZE_KINDS; kind++) {
            fpa_head *head = power_head(degree);
            head->normalize = (fpa_normalize)kind;
            head->eps = 0.25;
            head->scale = 0.5;
            head->gate = degree % 2;
            check(head, SEED + (uint64_t)(4 * degree + kind), true);
        }
}

/* All sums of scores are below eps: the divisor is eps, whatever the scores. */
static void a_normaliser_where_eps_wins(void **state)
{
    fpa_head *head = power_head(2);
    head->normalize = FPA_NORMALIZE_MAX;
    head->eps = 1e6;
    check(head, SEED + 20, false);
}

static void all_keys_without_a_mask(void **state)
{
    fpa_head *head = power_head(2);
    head->causal = false;
    head->normalize = FPA_NORMALIZE_SUM;
    check(head, SEED + 21, true);
}

/* A product of a run-time matrix, a diagonal and the input, and a constant. */
static void run_time_matrices_shared_and_of_each_head(void **state)
{
    for (int per_head = 0; per_head < 2; per_head++) {
        fpa_head *head = bench_head(3);
        head->gate = per_head;
        head->scale = 0.7;
        head->matrix_count = 2;
        head->matrices = arena_array(&head->memory, 2, sizeof *head->matrices);
        head->matrices[0] =
            (fpa_matrix){.kind = FPA_MATRIX_TRAINABLE, .rows = 3, .cols = D, .per_head = per_head};
        head->matrices[1] =
            (fpa_matrix){.kind = FPA_MATRIX_TRAINABLE_DIAGONAL, .rows = D, .cols = D, .per_head = per_head};
        bench_branch(head, 0, 0, 0, 3);
        bench_branch(head, 0, 1, 1, 3);
        bench_branch(head, 0, FPA_INPUT, 0, D);
        bench_branch(head, 1, 1, 0, D);
        head->terms[1].weight = number_ratio(-1, 2);
        check(head, SEED + 30 + (uint64_t)per_head, false);
    }
}

static void random_heads(void **state)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        random_limits limits = random_all;
        fpa_head *head;
        limits.d = D;
        limits.normalize = false;
        head = random_head(seed, &limits);
        assert_non_null(head);
        check(head, SEED + 40 + seed, false);
    }
}

/* What was saved is taken as it is: another o and den give another gradient, the right ones the same. */
static void saved_outputs_are_taken_as_they_are(void **state)
{
    fpa_head *head = power_head(2);
    double den[QUERIES], *k;
    slopes s;
    head->normalize = FPA_NORMALIZE_ONE_PLUS_SUM;
    slopes_setup(&s, head, SEED + 50, true);
    bench_run(&s.b);
    assert_int_equal(reference_normalizer(&s.b.problem, den, NULL, NULL), FPA_OK);
    for (int i = 0; i < QUERIES; i++)
        den[i] -= 1;
    s.backward.o = s.b.o;
    s.backward.den = den;
    k = s.plain.k;
    assert_int_equal(reference_gradient(&s.b.problem, &s.backward, &s.plain, NULL, NULL), FPA_OK);
    for (int i = 0; i < KEYS * D; i++)
        assert_true(fabs(k[i] - s.exact.k[i]) <= 1e-12 * s.sizes.k[i]);
    den[QUERIES - 1] *= 2;
    assert_int_equal(reference_gradient(&s.b.problem, &s.backward, &s.plain, NULL, NULL), FPA_OK);
    assert_true(fabs(k[(KEYS - 1) * D] - s.exact.k[(KEYS - 1) * D]) > 1e-3 * s.sizes.k[(KEYS - 1) * D]);
    slopes_free(&s);
    head_free(head);
}

/* Kernels add eps in float32. A sum that is all but -eps leaves what that rounded, and the magnitude says so. */
static void magnitudes_tell_where_eps_nearly_cancels(void **state)
{
    fpa_head *head = power_head(1);
    double den[QUERIES];
    slopes s;
    head->normalize = FPA_NORMALIZE_SUM;
    head->eps = 1e-3;
    slopes_setup(&s, head, SEED + 60, false);
    bench_run(&s.b);
    for (int i = 0; i < QUERIES; i++)
        den[i] = i % 2 ? -1e-3 * (1 - 1e-4) : 1;
    s.backward.o = s.b.o;
    s.backward.den = den;
    assert_int_equal(reference_gradient(&s.b.problem, &s.backward, &s.exact, &s.sizes, NULL), FPA_OK);
    head->eps = (double)(float)1e-3;
    assert_int_equal(reference_gradient(&s.b.problem, &s.backward, &s.plain, NULL, NULL), FPA_OK);
    for (int i = 0; i < KEYS * D; i++)
        assert_true(fabs(s.plain.k[i] - s.exact.k[i]) <= 0x1p-24 * s.sizes.k[i]);
    slopes_free(&s);
    head_free(head);
}

/* Squares of errors of log-gates over their magnitudes': those of the plain walk, and those that it expects. */
static void add_gate_errors(const slopes *s, double *found, double *expected)
{
    for (int i = 0; i < KEYS; i++) {
        const double size = s->sizes.log_gate[i], exact = s->exact.log_gate[i];
        const double off = s->plain.log_gate[i] - exact, shared = s->plain.log_gate_whole[i] - exact;
        *found += size > 0 ? off * off / (size * size) : 0;
        *expected += size > 0 ? (shared * shared + s->plain.log_gate_carried[i]) / (size * size) : 0;
    }
}

/* One draw's may happen to cancel in the running sum, and are then carried as nothing by all tokens before. */
static void errors_of_a_running_sum_are_on_average_those_that_it_expects(void **state)
{
    enum { DRAWS = 200 };
    static const fpa_dtype types[] = {FPA_F32, FPA_BF16};
    for (int type = 0; type < 2; type++) {
        double found = 0, expected = 0;
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            fpa_head *head = power_head(1);
            slopes s;
            head->gate = true;
            slopes_setup(&s, head, SEED + 100 + draw, true);
            s.b.problem.arithmetic = types[type];
            s.plain.log_gate_whole = zeros(KEYS);
            s.plain.log_gate_carried = zeros(KEYS);
            assert_int_equal(reference_gradient_plain(&s.b.problem, &s.backward, &s.plain, NULL), FPA_OK);
            add_gate_errors(&s, &found, &expected);
            assert_true(types[type] == FPA_BF16 || s.plain.log_gate_carried[0] == 0);
            slopes_free(&s);
            head_free(head);
        }
        assert_true(found > 0 && expected <= 1.5 * found);
        assert_true(types[type] == FPA_F32 || found <= 1.5 * expected);
    }
}

/* Maps, projections, random features, complex products, positions and masks of keys. */
static fpa_head *favor_head(void)
{
    lifted_text to;
    lifted_begin(&to, 3, "causal sum");
    lifted_add(&to, "matrices 1\ntrainable w 3 %d per_head\nlift width %d positions 0 key_mask 0 parts 1\n",
               WIDTH, WIDTH);
    lifted_part(&to, 3, "exp exp", "0x1p+0 0x1p-1 0x3p-2", "0x1p-1 0x1p-1", "0 0 0", "matrix 1");
    return lifted_finish(&to, 3, 1);
}

static fpa_head *maps_head(const char *maps)
{
    lifted_text to;
    lifted_begin(&to, 2, "causal");
    lifted_add(&to, "matrices 1\ntrainable w 2 %d shared\nlift width %d positions 0 key_mask 0 parts 1\n",
               WIDTH + 1, WIDTH);
    lifted_add(
        &to,
        "part real 2 factors 2\nmap %s\ninner 0x3p-1 0x1p-3 0x1p-2\ngain 0x1p+1 -0x1p-1\nposition 0 0 0\n",
        maps);
    lifted_add(&to, "factor matrix 1\nfactor input 4,1\n");
    return lifted_finish(&to, 2, 2);
}

static void coordinates_that_are_made(void **state)
{
    check(lifted_elu("causal sum"), SEED + 60, false);
    check(lifted_elu("gate causal mask"), SEED + 61, false);
    check(lifted_fourier(false, "causal"), SEED + 62, false);
    check(lifted_fourier(true, "sum mask"), SEED + 63, false);
    check(lifted_sketch("causal"), SEED + 64, false);
    check(lifted_products("causal gate"), SEED + 65, false);
    check(lifted_constant("causal sum"), SEED + 66, true);
    check(favor_head(), SEED + 67, false);
    check(maps_head("relu softplus"), SEED + 68, false);
    check(maps_head("silu one"), SEED + 69, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_and_constants_with_every_normaliser),
        cmocka_unit_test(a_normaliser_where_eps_wins),
        cmocka_unit_test(all_keys_without_a_mask),
        cmocka_unit_test(run_time_matrices_shared_and_of_each_head),
        cmocka_unit_test(random_heads),
        cmocka_unit_test(coordinates_that_are_made),
        cmocka_unit_test(saved_outputs_are_taken_as_they_are),
        cmocka_unit_test(magnitudes_tell_where_eps_nearly_cancels),
        cmocka_unit_test(errors_of_a_running_sum_are_on_average_those_that_it_expects),
    };

    return cmocka_run_group_tests_name("reference_gradient", tests, NULL, NULL);
}

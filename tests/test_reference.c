/* test_reference: the reference against formulas that are written out here once more. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "random_head.h"
#include "reference_bench.h"

enum { SEED = 5 };

static double q_dot_k(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq)
{
    const double *q = b->q + ((batch * LENGTH + t) * QUERY_HEADS + hq) * D;
    const double *k = b->k + ((batch * LENGTH + j) * HEADS + hq / 2) * D;
    double sum = 0;
    for (int c = 0; c < D; c++)
        sum += q[c] * k[c];
    return sum;
}

typedef double kernel_formula(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq);

/* o by the textbook: a forward loop over keys. */
static void expect(const bench *b, kernel_formula *kernel)
{
    for (int64_t i = 0; i < BATCH * LENGTH * QUERY_HEADS * DV; i++) {
        int64_t c = i % DV, hq = i / DV % QUERY_HEADS, t = i / DV / QUERY_HEADS % LENGTH;
        int64_t batch = i / DV / QUERY_HEADS / LENGTH, last = b->problem.head->causal ? t : LENGTH - 1;
        double sum = 0;
        for (int64_t j = 0; j <= last; j++)
            sum += kernel(b, batch, t, j, hq) * b->v[((batch * LENGTH + j) * HEADS + hq / 2) * DV + c];
        assert_true(fabs(sum - b->o[i]) <= 1e-12 * (1 + fabs(sum)));
    }
}

static double constant(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq)
{
    (void)b, (void)batch, (void)t, (void)j, (void)hq;
    return 1;
}

static double square(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq)
{
    return pow(q_dot_k(b, batch, t, j, hq), 2);
}

static double cube(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq)
{
    return pow(q_dot_k(b, batch, t, j, hq), 3);
}

static double taylor(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq)
{
    double s = 0.5 * q_dot_k(b, batch, t, j, hq);
    return 1 + s + s * s / 2;
}

static kernel_formula *const powers[] = {constant, q_dot_k, square, cube};

static void a_power_is_the_power_of_the_dot_product(void **state)
{
    for (int degree = 0; degree <= 3; degree++)
        for (int causal = 0; causal < 2; causal++) {
            fpa_head *head = power_head(degree);
            bench b;
            head->causal = causal;
            bench_setup(&b, head, SEED, false);
            bench_run(&b);
            expect(&b, powers[degree]);
            bench_free(&b);
            head_free(head);
        }
}

/* Anchors of 2 with 1 on themselves and 2 on what follows: (q.k)^2. */
static void the_tspow_of_the_appendix_is_the_square(void **state)
{
    fpa_head *head = bench_head(3);
    bench b;
    for (int t = 0; t < 3; t++) {
        int first = 2 * t, width = first + 2 > D ? D - first : 2;
        fpa_branch *rest;
        bench_branch(head, t, FPA_INPUT, first, width);
        rest = bench_branch(head, t, FPA_INPUT, first, D - first);
        rest->gram = arena_array(&head->memory, D, sizeof *rest->gram);
        for (int w = 0; w < D - first; w++)
            rest->gram[w] = number_int(w < width ? 1 : 2);
    }
    bench_setup(&b, head, SEED + 1, false);
    bench_run(&b);
    expect(&b, square);
    bench_free(&b);
    head_free(head);
}

static void terms_add_and_the_scale_counts_once_a_branch(void **state)
{
    fpa_head *head = bench_head(3);
    bench b;
    for (int t = 0; t < 3; t++)
        for (int l = 0; l < t; l++)
            bench_branch(head, t, FPA_INPUT, 0, D);
    head->terms[2].weight = number_ratio(1, 2);
    head->scale = 0.5;
    bench_setup(&b, head, SEED + 2, false);
    bench_run(&b);
    expect(&b, taylor);
    bench_free(&b);
    head_free(head);
}

static double gated(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq)
{
    double decay = 1;
    for (int64_t i = j + 1; i <= t; i++)
        decay *= exp(b->gate[(batch * LENGTH + i) * HEADS + hq / 2]);
    return decay * q_dot_k(b, batch, t, j, hq);
}

static void a_gate_decays_what_came_before_its_token(void **state)
{
    fpa_head *head = power_head(1);
    bench b;
    head->gate = true;
    bench_setup(&b, head, SEED + 3, false);
    bench_run(&b);
    expect(&b, gated);
    bench_free(&b);
    head_free(head);
}

static void a_closed_gate_forgets_everything_and_gives_no_nan(void **state)
{
    fpa_head *head = power_head(1);
    bench b;
    head->gate = true;
    bench_setup(&b, head, SEED + 4, false);
    for (int64_t i = 2 * HEADS; i < 4 * HEADS; i++)
        b.gate[i] = -INFINITY; /* tokens 3 and 4 of batch 1 */
    bench_run(&b);
    expect(&b, gated);
    for (int64_t i = 0; i < b.outputs * DV; i++)
        assert_true(isfinite(b.o[i]) && isfinite(b.magnitude[i]));
    for (int64_t hq = 0; hq < QUERY_HEADS; hq++)
        for (int c = 0; c < DV; c++)
            assert_true(fabs(b.o[(3 * QUERY_HEADS + hq) * DV + c] -
                             q_dot_k(&b, 0, 3, 3, hq) * b.v[(3 * HEADS + hq / 2) * DV + c]) < 1e-13);
    bench_free(&b);
    head_free(head);
}

/* den of an output token, from its own formula. */
static double denominator(const bench *b, int64_t output)
{
    int64_t hq = output % QUERY_HEADS, t = output / QUERY_HEADS % LENGTH,
            batch = output / QUERY_HEADS / LENGTH;
    double sum = 0;
    for (int64_t j = 0; j <= t; j++)
        sum += q_dot_k(b, batch, t, j, hq);
    return sum;
}

static double divisor(fpa_normalize kind, double den)
{
    const double by_kind[FPA_NORMALIZE_KINDS] = {1, den + 0.25, den > 0.25 ? den : 0.25, 1 + den};
    return by_kind[kind];
}

static void each_normaliser_divides_by_its_formula(void **state)
{
    for (int kind = 0; kind < FPA_NORMALIZE_KINDS; kind++) {
        fpa_head *plain = power_head(1), *head = power_head(1);
        double values[BATCH * LENGTH * QUERY_HEADS], conditions[BATCH * LENGTH * QUERY_HEADS];
        bench a, b;
        head->normalize = (fpa_normalize)kind;
        head->eps = 0.25;
        bench_setup(&a, plain, SEED + 5, false);
        bench_setup(&b, head, SEED + 5, false);
        bench_run(&a);
        bench_run(&b);
        assert_int_equal(reference_normalizer(&b.problem, values, conditions, NULL), FPA_OK);
        for (int64_t i = 0; i < b.outputs; i++) {
            double expected = divisor((fpa_normalize)kind, denominator(&b, i));
            assert_true(fabs(values[i] - expected) <= 1e-12 * (1 + fabs(expected)));
            assert_true(kind == FPA_NORMALIZE_NONE ? conditions[i] == 0 : conditions[i] >= 1);
            for (int c = 0; c < DV; c++)
                assert_true(fabs(b.o[i * DV + c] * expected - a.o[i * DV + c]) <=
                            1e-10 * (1 + fabs(a.o[i * DV + c])));
        }
        bench_free(&a);
        bench_free(&b);
        head_free(plain);
        head_free(head);
    }
}

static void a_normaliser_of_zero_is_refused_with_its_token(void **state)
{
    fpa_head *head = power_head(1);
    bench b;
    fpa_error error;
    head->normalize = FPA_NORMALIZE_MAX;
    head->eps = 0;
    bench_setup(&b, head, SEED + 6, true);
    for (int c = 0; c < D; c++)
        b.q[2 * QUERY_HEADS * D + c] = -b.q[2 * QUERY_HEADS * D + c];
    assert_int_equal(reference_forward(&b.problem, b.o, NULL, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "token 3 (batch 1, head 1) is zero"));
    bench_free(&b);
    head_free(head);
}

static void query_heads_read_the_key_head_of_their_group(void **state)
{
    fpa_head *head = power_head(2);
    bench b;
    double *swapped;
    bench_setup(&b, head, SEED + 7, false);
    bench_run(&b);
    swapped = calloc((size_t)b.outputs * DV, sizeof *swapped);
    assert_non_null(swapped);
    /* other values of key head 2 change query heads 3 and 4 only */
    for (int64_t token = 0; token < BATCH * LENGTH; token++)
        b.k[(token * HEADS + 1) * D] += 1;
    assert_int_equal(reference_forward(&b.problem, swapped, NULL, NULL), FPA_OK);
    for (int64_t i = 0; i < b.outputs * DV; i++)
        assert_true((i / DV % QUERY_HEADS < 2) == (swapped[i] == b.o[i]));
    free(swapped);
    bench_free(&b);
    head_free(head);
}

/* A head of one branch over a matrix of 3 rows (a diagonal: D rows). */
static fpa_head *matrix_head(fpa_matrix_kind kind, bool per_head)
{
    fpa_head *head = bench_head(1);
    int rows = kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? D : 3;
    head->matrix_count = 1;
    head->matrices = arena_array(&head->memory, 1, sizeof *head->matrices);
    head->matrices[0] = (fpa_matrix){.kind = kind, .rows = rows, .cols = D, .per_head = per_head};
    if (kind == FPA_MATRIX_CONSTANT)
        head->matrices[0].data = arena_array(&head->memory, (size_t)rows * D, sizeof(double));
    else
        head->matrices[0].name = arena_string(&head->memory, "w");
    bench_branch(head, 0, 0, 0, rows);
    return head;
}

/* The matrix of key head h of a bench, row r, column c, whatever its kind. */
static double weight_of(const bench *b, int64_t h, int r, int c)
{
    const fpa_matrix *matrix = &b->problem.head->matrices[0];
    int64_t slice = matrix->per_head ? h : 0;
    if (matrix->kind == FPA_MATRIX_CONSTANT)
        return matrix->data[r * D + c];
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        return r == c ? b->weights[0][slice * D + c] : 0;
    return b->weights[0][slice * 3 * D + r * D + c];
}

static double projected(const bench *b, int64_t batch, int64_t t, int64_t j, int64_t hq)
{
    const double *q = b->q + ((batch * LENGTH + t) * QUERY_HEADS + hq) * D;
    const double *k = b->k + ((batch * LENGTH + j) * HEADS + hq / 2) * D;
    double sum = 0;
    for (int r = 0; r < b->problem.head->matrices[0].rows; r++) {
        double left = 0, right = 0;
        for (int c = 0; c < D; c++) {
            left += weight_of(b, hq / 2, r, c) * q[c];
            right += weight_of(b, hq / 2, r, c) * k[c];
        }
        sum += left * right;
    }
    return sum;
}

static void matrices_of_every_kind_project_both_sides(void **state)
{
    for (int kind = FPA_MATRIX_CONSTANT; kind <= FPA_MATRIX_TRAINABLE_DIAGONAL; kind++)
        for (int per_head = 0; per_head < 2; per_head++) {
            fpa_head *head = matrix_head((fpa_matrix_kind)kind, per_head && kind != FPA_MATRIX_CONSTANT);
            random_source random = {SEED};
            bench b;
            for (int i = 0; head->matrices[0].data && i < 3 * D; i++)
                head->matrices[0].data[i] = random_normal(&random);
            bench_setup(&b, head, SEED + 8, false);
            bench_run(&b);
            expect(&b, projected);
            bench_free(&b);
            head_free(head);
        }
}

static void outputs_that_nobody_wants_are_left_alone(void **state)
{
    fpa_head *head = power_head(2);
    unsigned char wanted[BATCH * LENGTH * QUERY_HEADS];
    bench b;
    double *partial;
    bench_setup(&b, head, SEED + 11, false);
    bench_run(&b);
    partial = calloc((size_t)b.outputs * DV, sizeof *partial);
    assert_non_null(partial);
    for (int64_t i = 0; i < b.outputs; i++)
        wanted[i] = i % 3 == 0;
    b.problem.wanted = wanted;
    assert_int_equal(reference_forward(&b.problem, partial, NULL, NULL), FPA_OK);
    for (int64_t i = 0; i < b.outputs * DV; i++)
        assert_true(partial[i] == (wanted[i / DV] ? b.o[i] : 0));
    free(partial);
    bench_free(&b);
    head_free(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_power_is_the_power_of_the_dot_product),
        cmocka_unit_test(the_tspow_of_the_appendix_is_the_square),
        cmocka_unit_test(terms_add_and_the_scale_counts_once_a_branch),
        cmocka_unit_test(a_gate_decays_what_came_before_its_token),
        cmocka_unit_test(a_closed_gate_forgets_everything_and_gives_no_nan),
        cmocka_unit_test(each_normaliser_divides_by_its_formula),
        cmocka_unit_test(a_normaliser_of_zero_is_refused_with_its_token),
        cmocka_unit_test(query_heads_read_the_key_head_of_their_group),
        cmocka_unit_test(matrices_of_every_kind_project_both_sides),
        cmocka_unit_test(outputs_that_nobody_wants_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

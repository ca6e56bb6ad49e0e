/* simplify: constant and run-time matrices. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "heads.h"
#include "simplify_checked.h"

/* --- memory that runs out (not under the address sanitizer, which has its own allocator) --- */

#if defined(__SANITIZE_ADDRESS__)
#define CAN_FAIL_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CAN_FAIL_MEMORY 0
#endif
#endif
#ifndef CAN_FAIL_MEMORY
#define CAN_FAIL_MEMORY 1
#endif

#if CAN_FAIL_MEMORY
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void __libc_free(void *pointer);
static long allocations_left = -1; /* -1: no limit */
static long live;                  /* blocks allocated and not freed */

static bool may_allocate(void)
{
    if (allocations_left == 0)
        return false;
    allocations_left -= allocations_left > 0;
    live++;
    return true;
}

void *malloc(size_t size)
{
    return may_allocate() ? __libc_malloc(size) : NULL;
}

void *calloc(size_t count, size_t size)
{
    return may_allocate() ? __libc_calloc(count, size) : NULL;
}

void free(void *pointer)
{
    live -= pointer != NULL;
    __libc_free(pointer);
}
#endif

/* --- constant matrices --- */

/* Orthonormal rows by Gram-Schmidt, twice. */
static void orthogonal_rows(double *w, int rows, int d)
{
    random_rows(w, rows, d);
    for (int r = 0; r < rows; r++)
        for (int pass = 0; pass < 2; pass++) {
            double norm = 0;
            for (int other = 0; other < r; other++) {
                double dot = 0;
                for (int c = 0; c < d; c++)
                    dot += w[r * d + c] * w[other * d + c];
                for (int c = 0; c < d; c++)
                    w[r * d + c] -= dot * w[other * d + c];
            }
            for (int c = 0; c < d; c++)
                norm += w[r * d + c] * w[r * d + c];
            for (int c = 0; c < d; c++)
                w[r * d + c] /= sqrt(norm);
        }
}

/* A head of one term: rows of constant matrices, all of each. */
static fpa_head *dense_head(int d, int count, const int *rows, const double *const *data)
{
    fpa_head *head = new_head(d);
    fpa_branch branches[16];
    for (int i = 0; i < count; i++) {
        int source = add_matrix(head, FPA_MATRIX_CONSTANT, NULL, rows[i], data[i]);
        branches[i] = rows_of(head, source, 0, rows[i], NULL);
    }
    add_term(head, number_int(1), branches, count);
    return head;
}

static void a_matrix_of_lower_rank_gets_as_many_rows(void **state)
{
    double a[6 * 2], b[2 * 8], low[6 * 8], full[3 * 8];
    random_rows(a, 6, 2);
    random_rows(b, 2, 8);
    random_rows(full, 3, 8);
    multiply(a, b, 6, 2, 8, low);
    assert_int_equal(simplified_features(dense_head(8, 2, (int[]){6, 3}, (const double *[]){low, full})),
                     2 * 3);
}

static void a_projector_becomes_orthonormal_rows(void **state)
{
    double u[3 * 8], columns[8 * 3], projector[8 * 8], other[2 * 8];
    orthogonal_rows(u, 3, 8);
    for (int i = 0; i < 24; i++)
        columns[i] = u[i % 3 * 8 + i / 3];
    multiply(columns, u, 8, 3, 8, projector);
    random_rows(other, 2, 8);
    fpa_head *head = dense_head(8, 2, (int[]){8, 2}, (const double *[]){projector, other});
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 3 * 2);
    assert_true(has_text(simple.notes, simple.note_count, "projector"));
    simplified_free(&simple);
    head_free(head);
}

static void an_orthogonal_matrix_is_the_identity_to_the_kernel(void **state)
{
    double w[16 * 16];
    orthogonal_rows(w, 16, 16);
    char *rotated = simplified_text(dense_head(16, 2, (int[]){16, 16}, (const double *[]){w, w}));
    char *power = simplified_text(construct(add_power, 16, 2, 0, 0));
    assert_string_equal(rotated, power);
    free(rotated);
    free(power);
}

/* TSPOW over blocks of rows of an orthogonal matrix: only the merged form has a diagonal Gram. */
static void blocks_of_an_orthogonal_matrix_merge_and_then_are_the_identity(void **state)
{
    double w[16 * 16];
    orthogonal_rows(w, 16, 16);
    fpa_head *head = construct(add_tspow_full, 16, 2, 4, 0);
    int source = add_matrix(head, FPA_MATRIX_CONSTANT, NULL, 16, w);
    for (int t = 0; t < head->term_count; t++)
        for (int b = 0; b < 2; b++) {
            head->terms[t].branches[b].source = source;
            head->terms[t].branches[b].kind = FPA_BRANCH_DENSE;
        }
    char *rotated = simplified_text(head), *power = simplified_text(construct(add_power, 16, 2, 0, 0));
    assert_string_equal(rotated, power);
    free(rotated);
    free(power);
}

static void multiples_and_rotations_of_a_matrix_are_one_form(void **state)
{
    double w[5 * 8], half[5 * 8], turn[5 * 5], turned[5 * 8];
    random_rows(w, 5, 8);
    orthogonal_rows(turn, 5, 5);
    multiply(turn, w, 5, 5, 8, turned);
    for (int i = 0; i < 40; i++)
        half[i] = w[i] / 2;
    fpa_head *head = dense_head(8, 3, (int[]){5, 5, 5}, (const double *[]){w, half, turned});
    head->block = 1;
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 35); /* C(5+2, 3) */
    assert_int_equal(simple.score.dot_count, 1);
    assert_true(number_equal(simple.score.monomials[0].weight, number_ratio(1, 4)));
    assert_int_equal(simple.head->matrix_count, 1);
    simplified_free(&simple);
    head_free(head);
}

static void rows_with_one_entry_are_read_from_the_input(void **state)
{
    const double w[4 * 4] = {0, 0, 1, 0, /**/ 0, 0, 0, 0, /**/ 2, 0, 0, 0, /**/ 0, sqrt(2), 0, 0};
    fpa_head *head = dense_head(4, 1, (int[]){4}, (const double *[]){w});
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 3);
    assert_int_equal(simple.head->matrix_count, 0);
    assert_int_equal(simple.head->terms[0].branches[0].source, FPA_INPUT);
    static const int squares[] = {4, 2, 1};
    for (int w0 = 0; w0 < 3; w0++)
        assert_true(number_equal(simple.head->terms[0].branches[0].gram[w0], number_int(squares[w0])));
    simplified_free(&simple);
    head_free(head);
}

static void a_rank_one_matrix_is_a_scalar_a_token(void **state)
{
    double a[6], b[8], w[6 * 8];
    random_rows(a, 6, 1);
    random_rows(b, 1, 8);
    multiply(a, b, 6, 1, 8, w);
    fpa_head *head = dense_head(8, 2, (int[]){6, 6}, (const double *[]){w, w});
    head->normalize = FPA_NORMALIZE_SUM;
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 1);
    assert_true(has_text(simple.warnings, simple.warning_count, "does not depend on the query"));
    simplified_free(&simple);
    head_free(head);
}

/* --- joint diagonalisation --- */

/* Rows of an orthogonal matrix, each times its own factor: commuting Grams. */
static void scaled_rows(const double *q, int rows, int d, int seed, double *w)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < d; c++)
            w[r * d + c] = (1 + (r * seed + seed) % 7) * q[r * d + c];
}

static void a_commuting_set_shares_its_monomials(void **state)
{
    double q[6 * 8], w[3][6 * 8];
    orthogonal_rows(q, 6, 8);
    for (int i = 0; i < 3; i++)
        scaled_rows(q, 6, 8, i + 2, w[i]);
    fpa_head *head = dense_head(8, 3, (int[]){6, 6, 6}, (const double *[]){w[0], w[1], w[2]});
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(simple.written, 216);
    assert_int_equal(head_features(simple.head), 56); /* C(6+2, 3) */
    assert_true(
        has_text(simple.notes, simple.note_count, "3 branches are diagonalised together over 6 rows"));
    simplified_free(&simple);
    head_free(head);
}

static void any_two_matrices_are_diagonal_together(void **state)
{
    double a[8 * 8], b[8 * 8];
    random_rows(a, 8, 8);
    random_rows(b, 8, 8);
    assert_int_equal(simplified_features(dense_head(8, 2, (int[]){8, 8}, (const double *[]){a, b})), 36);
}

static void a_matrix_and_the_identity_are_diagonal_together(void **state)
{
    double a[8 * 8];
    random_rows(a, 8, 8);
    fpa_head *head = dense_head(8, 1, (int[]){8}, (const double *[]){a});
    fpa_branch pair[2] = {head->terms[0].branches[0], rows_of(head, FPA_INPUT, 0, 8, NULL)};
    add_term(head, number_int(2), pair, 2);
    assert_int_equal(simplified_features(head), 8 + 36);
}

static void matrices_with_nothing_to_share_stay_as_written(void **state)
{
    static const struct {
        int count, rows;
    } cases[] = {{2, 3}, {3, 4}}; /* disjoint row spaces; three that do not commute */
    double w[3][4 * 8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rows = cases[i].rows;
        for (int m = 0; m < 3; m++)
            random_rows(w[m], rows, 8);
        fpa_head *head =
            dense_head(8, cases[i].count, (int[]){rows, rows, rows}, (const double *[]){w[0], w[1], w[2]});
        fpa_simplified simple = simplify_checked(head);
        assert_int_equal(head_features(simple.head), simple.written);
        assert_int_equal(simple.head->matrix_count, cases[i].count);
        simplified_free(&simple);
        head_free(head);
    }
}

/* --- run-time matrices --- */

static void a_run_time_matrix_used_twice_is_a_power(void **state)
{
    fpa_head *head = new_head(16);
    add_matrix(head, FPA_MATRIX_TRAINABLE, "unused", 3, NULL);
    int source = add_matrix(head, FPA_MATRIX_TRAINABLE, "w", 16, NULL);
    fpa_branch pair[2] = {rows_of(head, source, 0, 16, NULL), rows_of(head, source, 0, 16, NULL)};
    add_term(head, number_int(1), pair, 2);
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 144); /* two blocks of 8: 64 + 2 * 40 */
    assert_int_equal(simple.head->matrix_count, 2);
    assert_string_equal(simple.head->matrices[0].name, "unused");
    assert_string_equal(simple.head->matrices[1].name, "w");
    simplified_free(&simple);
    head_free(head);
}

static void different_run_time_matrices_stay_as_written(void **state)
{
    fpa_head *head = new_head(4);
    const double w[4] = {1, 2, 0, 0};
    fpa_branch branches[4];
    for (int i = 0; i < 4; i++) {
        int kind = i == 2 ? FPA_MATRIX_CONSTANT : FPA_MATRIX_TRAINABLE;
        int source = add_matrix(head, kind, i == 2 ? NULL : (const char *[]){"a", "b", "", "c"}[i],
                                1 + (i + 2) % 4, i == 2 ? w : NULL);
        branches[i] = rows_of(head, source, 0, 1 + (i + 2) % 4, NULL);
    }
    add_term(head, number_int(1), branches, 4);
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 3 * 4 * 1 * 2);
    assert_int_equal(simple.head->term_count, 1);
    assert_int_equal(simple.head->matrix_count, 4);
    simplified_free(&simple);
    head_free(head);
}

#if CAN_FAIL_MEMORY
static void simplify_survives_every_failed_allocation(void **state)
{
    double a[6 * 2], b[2 * 8], low[6 * 8], full[3 * 8], square[6 * 8];
    random_rows(a, 6, 2);
    random_rows(b, 2, 8);
    random_rows(full, 3, 8);
    multiply(a, b, 6, 2, 8, low);
    random_rows(square, 6, 8);
    fpa_head *heads[] = {dense_head(8, 3, (int[]){6, 3, 6}, (const double *[]){low, full, low}),
                         construct(add_tspow_merged, 32, 3, 4, 0),
                         dense_head(8, 2, (int[]){6, 3}, (const double *[]){square, full})};
    for (size_t i = 0; i < 3; i++) {
        fpa_status status = FPA_NO_MEMORY;
        for (long n = 0; status == FPA_NO_MEMORY; n++) {
            fpa_simplified simple;
            fpa_error error = {0};
            long before = live;
            allocations_left = n;
            status = simplify(heads[i], &simple, &error);
            allocations_left = -1;
            assert_true(status == FPA_OK || error.code == FPA_NO_MEMORY);
            simplified_free(&simple);
            assert_int_equal(live, before);
            assert_true(status == FPA_NO_MEMORY || n >= 3);
        }
        assert_int_equal(status, FPA_OK);
        head_free(heads[i]);
    }
}
#endif

/* --- random heads --- */

int main(void)
{
    printf("random seed %" PRIu64 "\n", random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_of_lower_rank_gets_as_many_rows),
        cmocka_unit_test(a_projector_becomes_orthonormal_rows),
        cmocka_unit_test(an_orthogonal_matrix_is_the_identity_to_the_kernel),
        cmocka_unit_test(blocks_of_an_orthogonal_matrix_merge_and_then_are_the_identity),
        cmocka_unit_test(multiples_and_rotations_of_a_matrix_are_one_form),
        cmocka_unit_test(rows_with_one_entry_are_read_from_the_input),
        cmocka_unit_test(a_rank_one_matrix_is_a_scalar_a_token),
        cmocka_unit_test(a_commuting_set_shares_its_monomials),
        cmocka_unit_test(any_two_matrices_are_diagonal_together),
        cmocka_unit_test(a_matrix_and_the_identity_are_diagonal_together),
        cmocka_unit_test(matrices_with_nothing_to_share_stay_as_written),
        cmocka_unit_test(a_run_time_matrix_used_twice_is_a_power),
        cmocka_unit_test(different_run_time_matrices_stay_as_written),
#if CAN_FAIL_MEMORY
        cmocka_unit_test(simplify_survives_every_failed_allocation),
#endif
    };
    return cmocka_run_group_tests_name("simplify_matrix", tests, NULL, NULL);
}

/* What simplification refuses, and what it warns of. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "heads.h"
#include "simplify_checked.h"

static void a_kernel_whose_terms_cancel_is_refused(void **state)
{
    fpa_head *head = construct(add_power, 8, 2, 0, 0);
    fpa_simplified simple;
    fpa_error error;
    add_tspow_full(head, 2, 4);
    for (int t = 1; t < head->term_count; t++)
        head->terms[t].weight = number_sub(&head->memory, number_int(0), head->terms[t].weight);
    assert_int_equal(simplify(head, &simple, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "cancel"));
    head_free(head);
}

static void a_negative_weight_under_a_normaliser_is_warned_of(void **state)
{
    for (int normalize = 0; normalize < 2; normalize++) {
        fpa_head *head = construct(add_power, 8, 2, 0, 0);
        head->normalize = normalize ? FPA_NORMALIZE_SUM : FPA_NORMALIZE_NONE;
        head->terms[0].weight = number_int(-1);
        fpa_simplified simple = simplify_checked(head);
        assert_int_equal(has_text(simple.warnings, simple.warning_count, "may vanish"), normalize);
        simplified_free(&simple);
        head_free(head);
    }
}

static void a_normaliser_that_nothing_keeps_from_zero_is_warned_of(void **state)
{
    for (int i = 0; i < 8; i++) {
        fpa_head *head = construct(add_power, 8, 2, 0, 0);
        head->normalize = i & 1 ? FPA_NORMALIZE_SUM : FPA_NORMALIZE_ONE_PLUS_SUM;
        head->eps = i & 2 ? 0 : 1e-6;
        if (i & 4) /* 1 + (q.k)^2 is at least 1 */
            add_term(head, number_int(1), NULL, 0);
        fpa_simplified simple = simplify_checked(head);
        assert_int_equal(has_text(simple.warnings, simple.warning_count, "eps is 0"), i == 3);
        simplified_free(&simple);
        head_free(head);
    }
}

/* A.A - A.(A + change), of constant matrices. */
static void terms_that_nearly_cancel_are_warned_of(void **state)
{
    static const double changes[] = {1e-12, 1e-9, 1e-2, 3};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        fpa_head *head = new_head(4);
        double rows[2][8] = {{1, 2, 3, 4, 2, -1, 5, 1}};
        for (int c = 0; c < 8; c++)
            rows[1][c] = rows[0][c] + changes[i];
        const int a = add_matrix(head, FPA_MATRIX_CONSTANT, NULL, 2, rows[0]),
                  b = add_matrix(head, FPA_MATRIX_CONSTANT, NULL, 2, rows[1]);
        fpa_branch same[2] = {rows_of(head, a, 0, 2, NULL), rows_of(head, a, 0, 2, NULL)},
                   other[2] = {rows_of(head, a, 0, 2, NULL), rows_of(head, b, 0, 2, NULL)};
        add_term(head, number_int(1), same, 2);
        add_term(head, number_int(-1), other, 2);
        fpa_simplified simple = simplify_checked(head);
        assert_int_equal(has_text(simple.warnings, simple.warning_count, "terms cancel"), changes[i] < 1e-6);
        simplified_free(&simple);
        head_free(head);
    }
}

/* Blocks of cubes stay whole: 16^3. */
static void more_features_than_any_kernel_needs_are_warned_of(void **state)
{
    fpa_head *head = construct(add_power, 16, 3, 0, 16);
    fpa_simplified simple = simplify_checked(head);
    assert_true(has_text(simple.warnings, simple.warning_count,
                         "D 4096 is above 816, which suffices for any kernel of these "
                         "degrees on d = 16: take a smaller block"));
    simplified_free(&simple);
    head_free(head);
}

int main(void)
{
    printf("random seed %" PRIu64 "\n", random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_whose_terms_cancel_is_refused),
        cmocka_unit_test(a_negative_weight_under_a_normaliser_is_warned_of),
        cmocka_unit_test(a_normaliser_that_nothing_keeps_from_zero_is_warned_of),
        cmocka_unit_test(terms_that_nearly_cancel_are_warned_of),
        cmocka_unit_test(more_features_than_any_kernel_needs_are_warned_of),
    };
    return cmocka_run_group_tests_name("simplify notes", tests, NULL, NULL);
}

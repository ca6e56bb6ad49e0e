/* simplify: the identities of DESIGN 4 on symbols, on heads built here in C. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads.h"

#include <cmocka.h>

#include "simplify_checked.h"

/* --- powers --- */

static void every_construction_of_a_power_ends_as_the_same_features(void **state)
{
    (void)state;
    static const struct {
        int d, p, block;
    } cases[] = {{64, 2, 8}, {64, 2, 1}, {64, 2, 16}, {60, 2, 8}, {16, 3, 4},
                 {16, 3, 1}, {8, 4, 2},  {7, 3, 2},   {12, 2, 5}, {3, 5, 1}};
    static const construction constructions[] = {add_tspow_full, add_tspow_merged};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t c = 0; c < 2; c++) {
            char *power = simplified_text(construct(add_power, cases[i].d, cases[i].p, 0, 0));
            char *other =
                simplified_text(construct(constructions[c], cases[i].d, cases[i].p, cases[i].block, 0));
            assert_string_equal(power, other);
            free(power);
            free(other);
        }
}

static void symmetric_features_have_the_sizes_of_the_design(void **state)
{
    (void)state;
    static const struct {
        int d, p, block, features, used;
    } cases[] = {
        {64, 2, 1, 2080, 1},     {64, 2, 8, 2304, 8},  {64, 2, 16, 2560, 16},     {64, 2, 64, 4096, 64},
        {64, 2, 0, 2304, 8},     {64, 3, 1, 45760, 1}, {64, 3, 8, 61440, 8},      {64, 3, 16, 81920, 16},
        {64, 3, 64, 262144, 64}, {64, 3, 0, 61440, 8}, {16, 2, 0, 160, 4},        {60, 2, 8, 2032, 8},
        {8, 4, 0, 330, 1},       {4, 1, 0, 4, 1},      {64, 2, 1024, 4096, 1024},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fpa_head *head = construct(add_power, cases[i].d, cases[i].p, 0, cases[i].block);
        fpa_simplified simple = simplify_checked(head);
        assert_int_equal(head_features(simple.head), cases[i].features);
        assert_int_equal(simple.head->block, cases[i].used);
        simplified_free(&simple);
        head_free(head);
    }
}

static void spow_of_degree_3_merges_45760_monomials_into_one_form(void **state)
{
    (void)state;
    fpa_head *head = construct(add_tspow_full, 64, 3, 1, 0);
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head->term_count, 45760);
    assert_int_equal(simple.head->term_count, 120);
    assert_int_equal(simple.score.monomial_count, 1);
    assert_int_equal(simple.score.monomials[0].power[0], 3);
    assert_true(number_is_one(simple.score.monomials[0].weight));
    assert_true(has_text(simple.notes, simple.note_count, "k = (q.k)^3"));
    simplified_free(&simple);
    head_free(head);
}

static void a_degree_above_what_fits_with_block_1_is_refused_with_its_figure(void **state)
{
    (void)state;
    fpa_head *head = construct(add_power, 64, 4, 0, 1);
    fpa_simplified simple;
    fpa_error error;
    assert_int_equal(simplify(head, &simple, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "766480"));
    head_free(head);
}

/* (c + q.k)^2 = c^2 + 2 c q.k + (q.k)^2, from terms of different degrees in any construction. */
static void an_inhomogeneous_square_stays_a_polynomial_in_one_form(void **state)
{
    (void)state;
    fpa_head *head = new_head(64);
    fpa_branch q = rows_of(head, FPA_INPUT, 0, 64, NULL);
    add_tspow_merged(head, 2, 8);
    add_term(head, number_int(6), &q, 1);
    add_term(head, number_int(9), NULL, 0);
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 1 + 64 + 2304);
    assert_int_equal(simple.score.dot_count, 1);
    assert_int_equal(simple.score.monomial_count, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(simple.score.monomials[i].power[0], 2 - i);
    assert_true(has_text(simple.notes, simple.note_count, "k = (q.k)^2 + 6 (q.k) + 9"));
    simplified_free(&simple);
    head_free(head);
}

/* (sum g_i s_i)^2 multiplied out: one form with weights 1, 2, 3, 1, 2, ... again. */
static void weighted_coordinates_merge_into_one_weighted_form(void **state)
{
    (void)state;
    fpa_head *head = new_head(6);
    for (int i = 0; i < 6; i++)
        for (int j = i; j < 6; j++) {
            fpa_branch pair[2] = {rows_of(head, FPA_INPUT, i, i + 1, NULL),
                                  rows_of(head, FPA_INPUT, j, j + 1, NULL)};
            add_term(head, number_ratio((1 + i % 3) * (1 + j % 3) * (i == j ? 1 : 2), 7), pair, 2);
        }
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(simple.score.dot_count, 1);
    assert_int_equal(simple.score.dots[0].kind, FPA_BRANCH_DIAGONAL);
    for (int i = 0; i < 6; i++)
        assert_true(number_equal(simple.score.dots[0].gram[i], number_int(1 + i % 3)));
    assert_true(number_equal(simple.score.monomials[0].weight, number_ratio(1, 7)));
    simplified_free(&simple);
    head_free(head);
}

static void one_wrong_weight_is_not_merged(void **state)
{
    (void)state;
    fpa_head *head = construct(add_tspow_full, 16, 2, 2, 0);
    head->terms[3].weight = number_int(3);
    fpa_simplified simple = simplify_checked(head);
    assert_true(simple.score.dot_count > 1);
    simplified_free(&simple);
    head_free(head);
}

static void the_order_of_terms_and_branches_changes_nothing(void **state)
{
    (void)state;
    fpa_head *head = construct(add_tspow_merged, 16, 3, 4, 0),
             *turned = construct(add_tspow_merged, 16, 3, 4, 0);
    for (int t = 0; t < turned->term_count / 2; t++) {
        fpa_term term = turned->terms[t];
        turned->terms[t] = turned->terms[turned->term_count - 1 - t];
        turned->terms[turned->term_count - 1 - t] = term;
    }
    for (int t = 0; t < turned->term_count; t++) {
        fpa_branch branch = turned->terms[t].branches[0];
        turned->terms[t].branches[0] = turned->terms[t].branches[2];
        turned->terms[t].branches[2] = branch;
    }
    char *text = simplified_text(head), *again = simplified_text(turned);
    assert_string_equal(text, again);
    free(text);
    free(again);
}

/* --- diagonal factors --- */

static fpa_branch diagonal_of(fpa_head *head, int seed)
{
    fpa_number gram[64];
    for (int i = 0; i < head->d; i++)
        gram[i] = number_int(1 + (i + 1) * seed % 67);
    return rows_of(head, FPA_INPUT, 0, head->d, gram);
}

static void different_diagonals_share_their_monomials(void **state)
{
    (void)state;
    fpa_head *head = new_head(64);
    fpa_branch pair[2] = {diagonal_of(head, 3), diagonal_of(head, 5)};
    add_term(head, number_int(1), pair, 2);
    assert_true(simplified_features(head) < 2100);
}

static void proportional_diagonals_are_a_power_of_one_form(void **state)
{
    (void)state;
    fpa_head *head = new_head(64);
    fpa_branch pair[2] = {diagonal_of(head, 3), diagonal_of(head, 3)};
    for (int i = 0; i < 64; i++)
        pair[1].gram[i] = number_mul(pair[0].gram[i], number_double(0.3));
    add_term(head, number_int(1), pair, 2);
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 2304);
    assert_int_equal(simple.score.dot_count, 1);
    simplified_free(&simple);
    head_free(head);
}

/* --- what is refused, said and survived --- */

static void a_kernel_whose_terms_cancel_is_refused(void **state)
{
    (void)state;
    fpa_head *head = construct(add_power, 8, 2, 0, 0);
    fpa_simplified simple;
    fpa_error error;
    add_tspow_full(head, 2, 4);
    for (int t = 1; t < head->term_count; t++)
        head->terms[t].weight = number_sub(number_int(0), head->terms[t].weight);
    assert_int_equal(simplify(head, &simple, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "cancel"));
    head_free(head);
}

static void a_negative_weight_under_a_normaliser_is_warned_of(void **state)
{
    (void)state;
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

static void more_features_than_any_kernel_needs_are_warned_of(void **state)
{
    (void)state;
    fpa_head *head = construct(add_power, 16, 2, 0, 16);
    fpa_simplified simple = simplify_checked(head);
    assert_true(has_text(simple.warnings, simple.warning_count,
                         "D 256 is above 136, which suffices for any kernel of these "
                         "degrees on d = 16: take a smaller block"));
    simplified_free(&simple);
    head_free(head);
}

static void an_identity_that_does_not_hold_is_refused(void **state)
{
    (void)state;
    fpa_head *power = construct(add_power, 8, 2, 0, 0), *wrong = construct(add_tspow_full, 8, 2, 2, 0);
    fpa_error error;
    fpa_simplifier s = {.written = power, .error = &error};
    const size_t offsets[] = {0, 8};
    for (int inexact = 0; inexact < 2; inexact++) {
        fpa_sum a = {.head = power, .offsets = offsets}, b = {.head = wrong, .offsets = offsets};
        wrong->terms[5].weight = number_int(2);
        power->terms[0].weight.den = !inexact;
        assert_int_equal(identity_check(&s, "this", a, b), FPA_OK);
        wrong->terms[5].weight = number_ratio(2000001, 1000000);
        assert_int_equal(identity_check(&s, "this", a, b), FPA_REFUSED);
    }
    arena_free(&s.scratch);
    head_free(power);
    head_free(wrong);
}

static void the_dump_names_terms_score_and_notes(void **state)
{
    (void)state;
    static const char *const parts[] = {"simplified test: D 100 -> 68, block 4",
                                        "term 2: 2 * input[1..4] * input[5..8]\n", "dot s1: input[1..10]\n",
                                        "monomial 1: 1 * s1^2\n", "note: D 100 -> 68"};
    fpa_head *head = construct(add_power, 10, 2, 0, 4);
    fpa_simplified simple = simplify_checked(head);
    char *text = simplified_print(&simple);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("\"%s\" is missing in\n%s", parts[i], text);
    free(text);
    simplified_free(&simple);
    head_free(head);
}

int main(void)
{
    printf("random seed %" PRIu64 "\n", random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_construction_of_a_power_ends_as_the_same_features),
        cmocka_unit_test(symmetric_features_have_the_sizes_of_the_design),
        cmocka_unit_test(spow_of_degree_3_merges_45760_monomials_into_one_form),
        cmocka_unit_test(a_degree_above_what_fits_with_block_1_is_refused_with_its_figure),
        cmocka_unit_test(an_inhomogeneous_square_stays_a_polynomial_in_one_form),
        cmocka_unit_test(weighted_coordinates_merge_into_one_weighted_form),
        cmocka_unit_test(one_wrong_weight_is_not_merged),
        cmocka_unit_test(the_order_of_terms_and_branches_changes_nothing),
        cmocka_unit_test(different_diagonals_share_their_monomials),
        cmocka_unit_test(proportional_diagonals_are_a_power_of_one_form),
        cmocka_unit_test(a_kernel_whose_terms_cancel_is_refused),
        cmocka_unit_test(a_negative_weight_under_a_normaliser_is_warned_of),
        cmocka_unit_test(more_features_than_any_kernel_needs_are_warned_of),
        cmocka_unit_test(an_identity_that_does_not_hold_is_refused),
        cmocka_unit_test(the_dump_names_terms_score_and_notes),
    };
    return cmocka_run_group_tests_name("simplify", tests, NULL, NULL);
}

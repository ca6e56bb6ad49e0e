/* simplify: its identities on symbols, on heads built here in C. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "heads.h"
#include "simplify_checked.h"

/* --- powers --- */

static void every_construction_of_a_power_ends_as_the_same_features(void **state)
{
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
    static const struct {
        int d, p, block, features, used;
    } cases[] = {
        {64, 2, 1, 2080, 1},       {64, 2, 8, 2112, 8},  {64, 2, 16, 2112, 16}, {64, 2, 64, 2112, 64},
        {64, 2, 0, 2112, 8},       {64, 3, 1, 45760, 1}, {64, 3, 8, 61440, 8},  {64, 3, 16, 81920, 16},
        {64, 3, 64, 262144, 64},   {64, 3, 0, 61440, 8}, {16, 2, 0, 144, 8},    {60, 2, 8, 1860, 8},
        {8, 4, 0, 330, 1},         {11, 4, 0, 1001, 1},  {38, 3, 0, 12152, 4},  {4, 1, 0, 4, 1},
        {64, 2, 1024, 2112, 1024}, {64, 2, 2, 2112, 2},
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

/* (a + b)^2 = 2 a b + a^2 + b^2 leaves d (d + 1) / 2 features and one more for each pair of rows that ends
 * as a square: 8 rows are 4 such pairs, 5 rows 3 + 2 = (2 + 1) + 2 are two, 3 rows are one. */
static void squares_are_halved_until_they_have_two_rows(void **state)
{
    static const struct {
        int d, block, features, terms;
    } cases[] = {
        {64, 8, 2080 + 32, 28 + 8 * 7},
        {64, 64, 2080 + 32, 63},
        {60, 8, 1830 + 28 + 2, 28 + 7 * 7 + 3},
        {10, 5, 55 + 4, 1 + 2 * 5},
        {10, 4, 55 + 5, 3 + 7},
        {7, 3, 28 + 2, 3 + 3 + 3 + 1},
        {64, 3, 2080 + 21, 231 + 21 * 3 + 1},
        {64, 2, 2080 + 32, 496 + 32},
        {64, 1, 2080, 2080},
        {2, 8, 4, 1},
        {3, 8, 7, 3},
        {1, 8, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fpa_head *head = construct(add_power, cases[i].d, 2, 0, cases[i].block);
        fpa_simplified simple = simplify_checked(head);
        assert_int_equal(head_features(simple.head), cases[i].features);
        assert_int_equal(simple.head->term_count, cases[i].terms);
        simplified_free(&simple);
        head_free(head);
    }
}

/* 1/3 prod of (W_i q . W_i k)^power[i], W_i a run-time matrix of rows[i] rows. */
static fpa_head *matrix_powers(int count, const int *rows, const int *power, int block)
{
    static const char *const names[] = {"u", "v", "w"};
    fpa_head *head = new_head(64);
    fpa_branch branches[16];
    int degree = 0;
    head->block = block;
    for (int i = 0; i < count; i++)
        add_matrix(head, FPA_MATRIX_TRAINABLE, names[i], rows[i], NULL);
    for (int i = 0; i < count; i++)
        for (int r = 0; r < power[i]; r++)
            branches[degree++] = rows_of(head, i, 0, rows[i], NULL);
    add_term(head, number_ratio(1, 3), branches, degree);
    return head;
}

/* Every product of one factor with every product of the others; 6 rows in blocks of 4 are 4 x 2, 2 x 2
 * and three squares of 2. */
static void halved_squares_multiply_with_other_factors(void **state)
{
    static const struct {
        int count, rows[3], power[3], features, terms;
    } cases[] = {
        {2, {4, 6}, {2, 2}, 12 * 24, 3 * 5},
        {2, {4, 6}, {2, 1}, 12 * 6, 3},
        {2, {4, 6}, {1, 2}, 4 * 24, 5},
        {2, {4, 6}, {2, 3}, 12 * (64 + 16 * 2 + 4 * 4 + 8), 3 * 4},
        {3, {6, 5, 3}, {2, 1, 2}, 24 * 5 * 7, 5 * 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fpa_head *head = matrix_powers(cases[i].count, cases[i].rows, cases[i].power, 4);
        fpa_simplified simple = simplify_checked(head);
        assert_int_equal(head_features(simple.head), cases[i].features);
        assert_int_equal(simple.head->term_count, cases[i].terms);
        assert_int_equal(simple.score.dot_count, cases[i].count);
        simplified_free(&simple);
        head_free(head);
    }
}

/* Features in blocks: as many features and terms as counted (that is what has room), and the same
 * kernel. */
static void expect_the_count_that_is_built(const fpa_head *head, int block)
{
    fpa_head *built = new_head(head->d);
    arena memory = {0};
    fpa_expression e;
    double q[64], k[64];
    built->matrices = head->matrices;
    built->matrix_count = head->matrix_count;
    assert_true(expression_of_terms(&e, &memory, head->terms, head->term_count));
    const fpa_feature_count count = features_count(&e, block), fewest = features_count(&e, 1);
    assert_true(features_build(&e, block, built));
    assert_true(built->term_count == count.terms);
    assert_true(head_features(built) == count.features);
    assert_true(fewest.features <= count.features && count.features <= head_features(head));
    for (int i = 0; i < head->d; i++) {
        q[i] = random_unit();
        k[i] = random_unit();
    }
    sum_value written = kernel_value(head, q, k), features = kernel_value(built, q, k);
    assert_true(fabs(written.value - features.value) <= 1e-12 * written.magnitude);
    arena_free(&memory);
    head_free(built);
}

static void as_many_features_and_terms_are_built_as_counted(void **state)
{
    for (int rows = 1; rows <= 20; rows++)
        for (int block = 1; block <= 9; block++) {
            static const int powers[][2] = {{2, 0}, {3, 0}, {1, 2}, {2, 2}, {2, 3}};
            for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
                if (rows > 6 && powers[i][1] > 2)
                    continue; /* 10^5 terms */
                fpa_head *head = matrix_powers(2, (int[]){rows, rows + 1}, powers[i], block);
                expect_the_count_that_is_built(head, block);
                head_free(head);
            }
        }
}

static void spow_of_degree_3_merges_45760_monomials_into_one_form(void **state)
{
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
    fpa_head *head = construct(add_power, 64, 4, 0, 1);
    fpa_simplified simple;
    fpa_error error;
    assert_int_equal(simplify(head, &simple, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "766480"));
    head_free(head);
}

/* 84^3: what the squares' halves are counts too. */
static void three_squares_with_too_many_terms_are_refused_with_their_figure(void **state)
{
    fpa_head *head = matrix_powers(3, (int[]){64, 64, 64}, (int[]){2, 2, 2}, 8);
    fpa_simplified simple;
    fpa_error error;
    assert_int_equal(simplify(head, &simple, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "block = 8 makes 592704 terms"));
    head_free(head);
}

/* (c + q.k)^2 = c^2 + 2 c q.k + (q.k)^2, from terms of different degrees in any construction. */
static void an_inhomogeneous_square_stays_a_polynomial_in_one_form(void **state)
{
    fpa_head *head = new_head(64);
    fpa_branch q = rows_of(head, FPA_INPUT, 0, 64, NULL);
    add_tspow_merged(head, 2, 8);
    add_term(head, number_int(6), &q, 1);
    add_term(head, number_int(9), NULL, 0);
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 1 + 64 + 2112);
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
    fpa_head *head = construct(add_tspow_full, 16, 2, 2, 0);
    head->terms[3].weight = number_int(3);
    fpa_simplified simple = simplify_checked(head);
    assert_true(simple.score.dot_count > 1);
    simplified_free(&simple);
    head_free(head);
}

static void the_order_of_terms_and_branches_changes_nothing(void **state)
{
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
    fpa_head *head = new_head(64);
    fpa_branch pair[2] = {diagonal_of(head, 3), diagonal_of(head, 5)};
    add_term(head, number_int(1), pair, 2);
    assert_true(simplified_features(head) < 2100);
}

static void proportional_diagonals_are_a_power_of_one_form(void **state)
{
    fpa_head *head = new_head(64);
    fpa_branch pair[2] = {diagonal_of(head, 3), diagonal_of(head, 3)};
    for (int i = 0; i < 64; i++)
        pair[1].gram[i] = number_mul(&head->memory, pair[0].gram[i], number_double(&head->memory, 0.3));
    add_term(head, number_int(1), pair, 2);
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(head_features(simple.head), 2112);
    assert_int_equal(simple.score.dot_count, 1);
    simplified_free(&simple);
    head_free(head);
}

/* --- weights beyond 64 bits --- */

static void a_tiny_linear_term_beside_a_power_is_seen_as_both(void **state)
{
    fpa_head *head = construct(add_tspow_full, 64, 2, 1, 0);
    fpa_branch all = rows_of(head, FPA_INPUT, 0, 64, NULL);
    fpa_number weight = number_double(&head->memory, 1e-9);
    add_term(head, weight, &all, 1);
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(simple.score.dot_count, 1);
    assert_int_equal(simple.score.monomial_count, 2);
    assert_true(number_is_one(simple.score.monomials[0].weight));
    assert_true(number_equal(simple.score.monomials[1].weight, weight));
    assert_int_equal(head_features(simple.head), 2144 + 32); /* linear's 64 beside the power's 2112 */
    assert_true(has_text(simple.notes, simple.note_count, "k = (q.k)^2 + 1e-09 (q.k)"));
    assert_false(has_text(simple.notes, simple.note_count, "double"));
    simplified_free(&simple);
    head_free(head);
}

/* (c s)^2 written out by blocks, c a product of doubles: the terms meet exactly or not at all. */
static void long_weights_cancel_to_the_last_bit(void **state)
{
    fpa_head *head = construct(add_tspow_full, 16, 3, 4, 0);
    fpa_number c = number_pow(&head->memory, number_double(&head->memory, 0.1), 12);
    fpa_branch all = rows_of(head, FPA_INPUT, 0, 16, NULL);
    for (int t = 0; t < head->term_count; t++)
        head->terms[t].weight = number_mul(&head->memory, head->terms[t].weight, c);
    fpa_simplified simple = simplify_checked(head);
    assert_int_equal(simple.score.dot_count, 1);
    assert_int_equal(simple.score.monomial_count, 1);
    assert_true(number_equal(simple.score.monomials[0].weight, c));
    simplified_free(&simple);
    add_term(head, number_sub(&head->memory, number_int(0), c), (fpa_branch[]){all, all, all}, 3);
    fpa_error error;
    assert_int_equal(simplify(head, &simple, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "cancel"));
    head_free(head);
}

static void weights_at_both_ends_of_the_doubles_are_kept_apart(void **state)
{
    fpa_head *head = new_head(8);
    fpa_number gram[8], large = number_double(&head->memory, 1e150),
                        small = number_double(&head->memory, 1e-150);
    for (int i = 0; i < 8; i++)
        gram[i] = i % 2 ? large : small;
    fpa_branch pair[2] = {rows_of(head, FPA_INPUT, 0, 8, gram), rows_of(head, FPA_INPUT, 0, 8, NULL)};
    add_term(head, small, pair, 2);
    add_term(head, number_int(3), pair + 1, 1);
    fpa_simplified simple = simplify_checked(head);
    simplified_free(&simple);
    head_free(head);
}

static void a_denominator_that_the_proof_cannot_see_is_refused(void **state)
{
    fpa_head *head = construct(add_power, 8, 2, 0, 0);
    fpa_simplified simple;
    fpa_error error;
    head->terms[0].weight = number_ratio(1, RESIDUE_PRIME);
    assert_int_equal(simplify(head, &simple, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "2305843009213693951"));
    head_free(head);
}

/* --- what is refused, said and survived --- */

static void an_identity_that_does_not_hold_is_refused(void **state)
{
    fpa_head *power = construct(add_power, 8, 2, 0, 0), *wrong = construct(add_tspow_full, 8, 2, 2, 0);
    fpa_error error;
    fpa_simplifier s = {.written = power, .error = &error};
    const size_t offsets[] = {0, 8};
    fpa_sum a = {.head = power, .offsets = offsets}, b = {.head = wrong, .offsets = offsets};
    wrong->terms[5].weight = number_int(2);
    assert_int_equal(identity_check(&s, "this", a, b), FPA_OK);
    wrong->terms[5].weight = number_ratio(2000001, 1000000);
    assert_int_equal(identity_check(&s, "this", a, b), FPA_REFUSED);
    /* nearer than any double tells */
    wrong->terms[5].weight = number_add(&s.scratch, number_int(2), number_double(&s.scratch, 1e-30));
    assert_true(wrong->terms[5].weight.value == 2);
    assert_int_equal(identity_check(&s, "this", a, b), FPA_REFUSED);
    arena_free(&s.scratch);
    head_free(power);
    head_free(wrong);
}

static void the_dump_names_terms_score_and_notes(void **state)
{
    static const char *const parts[] = {"simplified test: D 100 -> 60, block 4",
                                        "term 1: 2 * input[1..2] * input[3..4]\n",
                                        "term 2: 1 * input[1..2] * input[1..2]\n",
                                        "term 4: 2 * input[1..4] * input[5..8]\n",
                                        "dot s1: input[1..10]\n",
                                        "monomial 1: 1 * s1^2\n",
                                        "note: D 100 -> 60 (10 terms"};
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
        cmocka_unit_test(squares_are_halved_until_they_have_two_rows),
        cmocka_unit_test(halved_squares_multiply_with_other_factors),
        cmocka_unit_test(as_many_features_and_terms_are_built_as_counted),
        cmocka_unit_test(spow_of_degree_3_merges_45760_monomials_into_one_form),
        cmocka_unit_test(a_degree_above_what_fits_with_block_1_is_refused_with_its_figure),
        cmocka_unit_test(three_squares_with_too_many_terms_are_refused_with_their_figure),
        cmocka_unit_test(an_inhomogeneous_square_stays_a_polynomial_in_one_form),
        cmocka_unit_test(weighted_coordinates_merge_into_one_weighted_form),
        cmocka_unit_test(one_wrong_weight_is_not_merged),
        cmocka_unit_test(the_order_of_terms_and_branches_changes_nothing),
        cmocka_unit_test(different_diagonals_share_their_monomials),
        cmocka_unit_test(proportional_diagonals_are_a_power_of_one_form),
        cmocka_unit_test(a_tiny_linear_term_beside_a_power_is_seen_as_both),
        cmocka_unit_test(long_weights_cancel_to_the_last_bit),
        cmocka_unit_test(weights_at_both_ends_of_the_doubles_are_kept_apart),
        cmocka_unit_test(a_denominator_that_the_proof_cannot_see_is_refused),
        cmocka_unit_test(an_identity_that_does_not_hold_is_refused),
        cmocka_unit_test(the_dump_names_terms_score_and_notes),
    };
    return cmocka_run_group_tests_name("simplify", tests, NULL, NULL);
}

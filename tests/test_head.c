/* test_head: the rules of heads, their figures, and lists of heads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "example_head.h"

static void the_example_is_valid(void **state)
{
    fpa_head *head = example_head();
    fpa_error error;
    assert_int_equal(head_validate(head, &error), FPA_OK);
    head_free(head);
}

static void break_name(fpa_head *head)
{
    head->name[0] = '3';
}

static void break_no_name(fpa_head *head)
{
    head->name = NULL;
}

static void break_d(fpa_head *head)
{
    head->d = 1025;
}

static void break_dv(fpa_head *head)
{
    head->dv = 0;
}

static void break_chunk(fpa_head *head)
{
    head->chunk = 65537;
}

static void break_block(fpa_head *head)
{
    head->block = -1;
}

static void break_scale(fpa_head *head)
{
    head->scale = NAN;
}

static void break_eps(fpa_head *head)
{
    head->eps = -1;
}

static void break_gate(fpa_head *head)
{
    head->gate = true;
    head->causal = false;
}

static void break_no_terms(fpa_head *head)
{
    head->term_count = 0;
}

static void break_weight(fpa_head *head)
{
    head->terms[1].weight.value = INFINITY;
}

static void break_branches(fpa_head *head)
{
    head->terms[1].branch_count = HEAD_MAX_BRANCHES + 1;
}

static void break_index(fpa_head *head)
{
    head->terms[0].branches[1].row[2] = 4;
}

static void break_matrix_index(fpa_head *head)
{
    head->terms[1].branches[0].row[1] = 5;
}

static void break_negative_index(fpa_head *head)
{
    head->terms[0].branches[0].row[0] = -1;
}

static void break_twice(fpa_head *head)
{
    head->terms[0].branches[1].row[2] = head->terms[0].branches[1].row[0];
}

static void break_width(fpa_head *head)
{
    head->terms[0].branches[0].width = 0;
}

static void break_source(fpa_head *head)
{
    head->terms[0].branches[0].source = 2;
}

static void break_gram(fpa_head *head)
{
    head->terms[0].branches[1].gram[1] = number_int(-2);
}

static void break_columns(fpa_head *head)
{
    head->matrices[0].cols = 3;
}

static void break_entry(fpa_head *head)
{
    head->matrices[0].data[5] = NAN;
}

static void break_matrix_name(fpa_head *head)
{
    head->matrices[1].name[0] = '-';
}

static void break_same_name(fpa_head *head)
{
    head->matrices[0] = head->matrices[1];
}

static void break_zero(fpa_head *head)
{
    head->terms[0].weight = number_int(0);
    memset(head->matrices[0].data, 0, 8 * sizeof(double));
}

static void break_kind(fpa_head *head)
{
    head->normalize = FPA_NORMALIZE_KINDS;
}

static void break_window(fpa_head *head)
{
    head->window = 513;
    head->normalize = FPA_NORMALIZE_SUM;
}

static void break_window_mask(fpa_head *head)
{
    head->window = 4;
    head->causal = false;
}

static void break_window_sum(fpa_head *head)
{
    head->window = 4;
}

static void break_window_gate(fpa_head *head)
{
    head->window = 4;
    head->normalize = FPA_NORMALIZE_MAX;
    head->gate = true;
}

static const struct {
    void (*change)(fpa_head *);
    const char *message;
} mistakes[] = {
    {break_name, "named \"3xample\""},
    {break_no_name, "has no name"},
    {break_d, "d = 1025 is not allowed (d runs 1..1024)"},
    {break_dv, "dv = 0 is not allowed (dv runs 1..1024)"},
    {break_chunk, "chunk = 65537 is not allowed"},
    {break_block, "block = -1 is not allowed"},
    {break_scale, "scale is"},
    {break_eps, "eps is -1"},
    {break_gate, "a gate needs a causal head"},
    {break_no_terms, "the head has 0 terms"},
    {break_weight, "the weight of term 2 is inf"},
    {break_branches, "term 2 has 17 branches (allowed are 0..16)"},
    {break_index, "branch 2 of term 1 selects index 5, but d = 4 (indices run 1..4)"},
    {break_matrix_index, "branch 1 of term 2 selects index 6, but the matrix's rows = 5"},
    {break_negative_index, "branch 1 of term 1 selects index 0, but d = 4"},
    {break_twice, "branch 2 of term 1 selects index 1 twice"},
    {break_width, "branch 1 of term 1 has width 0"},
    {break_source, "branch 1 of term 1 takes rows of matrix 3, but the head has 2"},
    {break_gram, "row 2 of branch 2 of term 1 is -2"},
    {break_columns, "matrix 1 has 3 columns, but d = 4"},
    {break_entry, "row 2, column 2 of matrix 1 is"},
    {break_matrix_name, "a trainable matrix is named"},
    {break_same_name, "two trainable matrices are named \"w\""},
    {break_zero, "the kernel is zero"},
    {break_kind, "normalize = 4"},
    {break_window, "window = 513 is not allowed (window runs 1..512)"},
    {break_window_mask, "a window needs a causal head"},
    {break_window_sum, "a window needs a normaliser"},
    {break_window_gate, "a head has a window or a gate, not both"},
};

static void a_broken_rule_is_refused_and_named(void **state)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        fpa_head *head = example_head();
        fpa_error error;
        mistakes[i].change(head);
        assert_int_equal(head_validate(head, &error), FPA_INVALID);
        if (!strstr(error.message, mistakes[i].message))
            fail_msg("expected \"%s\" in \"%s\"", mistakes[i].message, error.message);
        assert_string_equal(error.where, "specs/mine.lua:7");
        head_free(head);
    }
}

static void too_many_features_are_refused(void **state)
{
    fpa_head *head = example_head();
    fpa_error error;
    head->d = 1024;
    head->matrix_count = 0;
    head->term_count = 1;
    head->terms[0].branch_count = 4;
    head->terms[0].branches = arena_array(&head->memory, 4, sizeof(fpa_branch));
    for (int l = 0; l < 4; l++) {
        fpa_branch *branch = &head->terms[0].branches[l];
        *branch = (fpa_branch){.kind = FPA_BRANCH_IDENTITY, .source = FPA_INPUT, .width = 1024};
        branch->row = arena_array(&head->memory, 1024, sizeof(int));
        for (int w = 0; w < 1024; w++)
            branch->row[w] = w;
    }
    assert_int_equal(head_validate(head, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "1099511627776 features"));
    head->terms[0].branch_count = 3;
    assert_int_equal(head_validate(head, &error), FPA_OK);
    head_free(head);
}

static void figures_follow_from_the_widths(void **state)
{
    fpa_head *head = example_head();
    assert_int_equal(head_degree(head), 2);
    assert_true(head_features(head) == 2 * 3 + 2 * 2);
    assert_true(head_features_bound(head) == 10); /* C(5, 2) */
    assert_true(head_features_tpow(head) == 16);
    head->terms[1].branch_count = 0; /* the constant */
    assert_true(head_features(head) == 7);
    assert_true(head_features_bound(head) == 11);
    head_free(head);
}

static void a_list_finds_heads_and_names_them(void **state)
{
    fpa_head_list list = {.count = 2, .heads = malloc(2 * sizeof(fpa_head *))};
    const fpa_head *found = NULL;
    fpa_error error;
    assert_non_null(list.heads);
    list.heads[0] = example_head();
    list.heads[1] = example_head();
    list.heads[1]->name = arena_string(&list.heads[1]->memory, "other");
    assert_int_equal(head_list_find(&list, "other", "a.lua", &found, &error), FPA_OK);
    assert_ptr_equal(found, list.heads[1]);
    assert_int_equal(head_list_find(&list, "third", "a.lua", &found, &error), FPA_INVALID);
    assert_string_equal(error.where, "a.lua");
    assert_non_null(strstr(error.message, "example, other"));
    assert_int_equal(head_list_find(&list, NULL, "a.lua", &found, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "2 heads"));
    head_free(list.heads[1]);
    list.count = 1;
    assert_int_equal(head_list_find(&list, NULL, "a.lua", &found, &error), FPA_OK);
    assert_ptr_equal(found, list.heads[0]);
    head_list_free(&list);
    assert_int_equal(list.count, 0);
    assert_int_equal(head_list_find(&list, NULL, "a.lua", &found, &error), FPA_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_valid),
        cmocka_unit_test(a_broken_rule_is_refused_and_named),
        cmocka_unit_test(too_many_features_are_refused),
        cmocka_unit_test(figures_follow_from_the_widths),
        cmocka_unit_test(a_list_finds_heads_and_names_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

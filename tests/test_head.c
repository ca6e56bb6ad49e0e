/* test_head: the rules of heads, their canonical text, its parser and the digest. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gen/head.h"
#include "random_head.h"

#include <cmocka.h> /* last: it defines fail() */

enum { RANDOM_HEADS = 400, SEED = 11 };

/* Two terms over d = 4: 3 (x1 x2).(...) times a diagonal, and a trainable branch. */
static fpa_head *example(void)
{
    fpa_head *head = head_new();

    assert_non_null(head);
    head->name = arena_string(&head->memory, "example");
    head->origin = arena_string(&head->memory, "specs/mine.lua:7");
    head->d = 4;
    head->dv = 3;
    head->matrix_count = 2;
    head->matrices = arena_array(&head->memory, 2, sizeof *head->matrices);
    head->matrices[0] = (fpa_matrix){.kind = FPA_MATRIX_CONSTANT, .rows = 2, .cols = 4};
    head->matrices[0].data = arena_array(&head->memory, 8, sizeof(double));
    head->matrices[0].data[0] = 1.5;
    head->matrices[0].data[7] = -0.1;
    head->matrices[1] = (fpa_matrix){.kind = FPA_MATRIX_TRAINABLE, .rows = 5, .cols = 4, .per_head = true};
    head->matrices[1].name = arena_string(&head->memory, "w");
    head->term_count = 2;
    head->terms = arena_array(&head->memory, 2, sizeof *head->terms);
    for (int t = 0; t < 2; t++) {
        head->terms[t].weight = number_ratio(3 - 4 * t, 1 + t);
        head->terms[t].branch_count = 2;
        head->terms[t].branches = arena_array(&head->memory, 2, sizeof(fpa_branch));
        for (int l = 0; l < 2; l++) {
            fpa_branch *branch = &head->terms[t].branches[l];

            branch->kind = FPA_BRANCH_SELECT;
            branch->source = FPA_INPUT;
            branch->width = 2 + l;
            branch->row = arena_array(&head->memory, 4, sizeof(int));
            for (int w = 0; w < branch->width; w++)
                branch->row[w] = w + t;
        }
    }
    head->terms[0].branches[1].kind = FPA_BRANCH_DIAGONAL;
    head->terms[0].branches[1].gram = arena_array(&head->memory, 4, sizeof(fpa_number));
    for (int w = 0; w < 3; w++)
        head->terms[0].branches[1].gram[w] = number_int(w ? 2 : 1);
    head->terms[1].branches[0].kind = FPA_BRANCH_TRAINABLE;
    head->terms[1].branches[0].source = 1;
    head->terms[1].branches[1].kind = FPA_BRANCH_DENSE;
    head->terms[1].branches[1].source = 0;
    head->terms[1].branches[1].width = 2;
    head->terms[1].branches[1].row[0] = 0;
    head->terms[1].branches[1].row[1] = 1;
    return head;
}

static void the_example_is_valid(void **state)
{
    fpa_head *head = example();
    fpa_error error;

    (void)state;
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

static void break_gram_zero(fpa_head *head)
{
    for (int w = 0; w < 3; w++)
        head->terms[0].branches[1].gram[w] = number_int(0);
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
    {break_gram_zero, "every kernel weight of branch 2 of term 1 is zero"},
    {break_columns, "matrix 1 has 3 columns, but d = 4"},
    {break_entry, "row 2, column 2 of matrix 1 is"},
    {break_matrix_name, "a trainable matrix is named"},
    {break_same_name, "two trainable matrices are named \"w\""},
    {break_zero, "the kernel is zero"},
    {break_kind, "normalize = 4"},
};

static void a_broken_rule_is_refused_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        fpa_head *head = example();
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
    fpa_head *head = example();
    fpa_error error;

    (void)state;
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
    fpa_head *head = example();

    (void)state;
    assert_int_equal(head_degree(head), 2);
    assert_true(head_features(head) == 2 * 3 + 2 * 2);
    assert_true(head_features_minimum(head) == 10); /* C(5, 2) */
    assert_true(head_features_tpow(head) == 16);
    head->terms[1].branch_count = 0; /* the constant */
    assert_true(head_features(head) == 7);
    assert_true(head_features_minimum(head) == 11);
    head_free(head);
}

static void the_text_is_as_documented(void **state)
{
    fpa_head *head = example();
    char *text = head_print(head);

    (void)state;
    assert_non_null(text);
    assert_string_equal(text, "fpac head 1\n"
                              "name example\n"
                              "d 4\n"
                              "dv 3\n"
                              "block 0\n"
                              "chunk 0\n"
                              "causal 1\n"
                              "scale 0x1p+0\n"
                              "normalize none\n"
                              "eps 0x10c6f7a0b5ed8dp-72\n"
                              "gate 0\n"
                              "dtype f32\n"
                              "state_dtype f32\n"
                              "matrices 2\n"
                              "constant 2 4\n"
                              "0x3p-1 0x0p+0 0x0p+0 0x0p+0\n"
                              "0x0p+0 0x0p+0 0x0p+0 -0xccccccccccccdp-55\n"
                              "trainable w 5 4 per_head\n"
                              "terms 2\n"
                              "term 3 branches 2\n"
                              "branch select input 1-2\n"
                              "branch diagonal input 1-3 gram 1*1,2*2\n"
                              "term -1/2 branches 2\n"
                              "branch trainable matrix 2 2-3\n"
                              "branch dense matrix 1 1-2\n"
                              "end\n");
    free(text);
    head_free(head);
}

static void every_random_head_is_valid_and_survives_its_text(void **state)
{
    random_limits limits = random_all;

    (void)state;
    limits.half = true;
    print_message("seeds %d..%d\n", SEED, SEED + RANDOM_HEADS - 1);
    for (int i = 0; i < RANDOM_HEADS; i++) {
        fpa_head *head = random_head(SEED + i, &limits), *copy = NULL;
        fpa_error error = {0};
        char *text, *again;

        assert_non_null(head);
        if (head_validate(head, &error) != FPA_OK)
            fail_msg("seed %d: %s", SEED + i, error.message);
        text = head_print(head);
        assert_non_null(text);
        if (head_parse(text, strlen(text), &copy, &error) != FPA_OK)
            fail_msg("seed %d: %s: %s\n%s", SEED + i, error.where, error.message, text);
        again = head_print(copy);
        assert_string_equal(text, again);
        assert_true(head_features(head) == head_features(copy));
        assert_null(copy->origin);
        free(text);
        free(again);
        head_free(head);
        head_free(copy);
    }
}

static void the_text_does_not_follow_the_locale(void **state)
{
    fpa_head *head = example();
    char *plain = head_print(head), *local;

    (void)state;
    if (setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8")) {
        local = head_print(head);
        assert_string_equal(plain, local);
        free(local);
    }
    setlocale(LC_ALL, "C");
    assert_null(strchr(plain, '.'));
    free(plain);
    head_free(head);
}

static void the_origin_is_not_part_of_the_digest_and_everything_else_is(void **state)
{
    fpa_head *head = example();
    char first[DIGEST_TEXT], second[DIGEST_TEXT];

    (void)state;
    assert_int_equal(head_digest(head, first, NULL), FPA_OK);
    assert_int_equal(strlen(first), 64);
    head->origin = NULL;
    assert_int_equal(head_digest(head, second, NULL), FPA_OK);
    assert_string_equal(first, second);
    head->matrices[0].data[7] = nextafter(head->matrices[0].data[7], 1);
    assert_int_equal(head_digest(head, second, NULL), FPA_OK);
    assert_string_not_equal(first, second);
    head_free(head);
}

static void weights_of_one_written_or_not_are_the_same_head(void **state)
{
    fpa_head *head = example();
    char first[DIGEST_TEXT], second[DIGEST_TEXT];

    (void)state;
    for (int w = 0; w < 3; w++)
        head->terms[0].branches[1].gram[w] = number_int(1);
    assert_int_equal(head_digest(head, first, NULL), FPA_OK);
    head->terms[0].branches[1].gram = NULL;
    assert_int_equal(head_digest(head, second, NULL), FPA_OK);
    assert_string_equal(first, second);
    head_free(head);
}

/* A change of the example's text, and the line that the parser has to name. */
static const struct {
    const char *from, *to, *where;
} damages[] = {
    {"fpac head 1", "fpac head 2", "head text:1"},
    {"name example", "title example", "head text:2"},
    {"d 4\n", "d four\n", "head text:3"},
    {"d 4\n", "d 04\n", "head text:3"},
    {"d 4\n", "d 4 \n", "head text:3"},
    {"d 4\n", "d 99999999999\n", "head text:3"},
    {"causal 1", "causal 2", "head text:7"},
    {"scale 0x1p+0", "scale 0x2p-1", "head text:8"},
    {"scale 0x1p+0", "scale nan", "head text:8"},
    {"normalize none", "normalize mean", "head text:9"},
    {"matrices 2", "matrices 3", "head text:19"},
    {"constant 2 4", "constant 65536 1024", "head text:15"},
    {"0x3p-1 0x0p+0", "0x3p-1  0x0p+0", "head text:16"},
    {"per_head", "perhaps", "head text:18"},
    {"term 3 branches", "term 6/2 branches", "head text:20"},
    {"term 3 branches 2", "term 3 branches 17", "head text:20"},
    {"input 1-2\n", "input 1,2\n", "head text:21"},
    {"input 1-2\n", "input 2-1\n", "head text:21"},
    {"input 1-2\n", "input 1-2,\n", "head text:21"},
    {"input 1-2\n", "matrix 0 1-2\n", "head text:21"},
    {"gram 1*1,2*2", "gram 1*1,2*1,2*1", "head text:22"},
    {"gram 1*1,2*2", "gram 1*1,2*3", "head text:22"},
    {"gram 1*1,2*2", "gram 1*1", "head text:22"},
    {"end\n", "end", "head text:26"},
    {"end\n", "end\nmore\n", "head text:27"},
};

static void damaged_text_is_refused_with_its_line(void **state)
{
    fpa_head *head = example(), *parsed = NULL;
    char *text = head_print(head), damaged[2048];

    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char *at = strstr(text, damages[i].from);
        fpa_error error;

        if (strcmp(damages[i].from, "d 4\n") == 0)
            at = strstr(text, "\nd 4\n") + 1;
        assert_non_null(at);
        snprintf(damaged, sizeof damaged, "%.*s%s%s", (int)(at - text), text, damages[i].to,
                 at + strlen(damages[i].from));
        assert_int_equal(head_parse(damaged, strlen(damaged), &parsed, &error), FPA_INVALID);
        if (strcmp(error.where, damages[i].where) != 0)
            fail_msg("%s -> %s: %s: %s", damages[i].from, damages[i].to, error.where, error.message);
    }
    assert_null(parsed);
    free(text);
    head_free(head);
}

static void a_parsed_head_obeys_the_rules(void **state)
{
    fpa_head *head = example(), *parsed = NULL;
    char *text;
    fpa_error error;

    (void)state;
    head->terms[0].branches[1].row[2] = 9;
    text = head_print(head);
    assert_int_equal(head_parse(text, strlen(text), &parsed, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "selects index 10, but d = 4"));
    free(text);
    head_free(head);
}

/* One random change: a byte, a cut, a doubled or a removed piece. */
static size_t mutate(random_source *random, char *text, size_t size, size_t capacity)
{
    size_t at = random_bits(random) % size, length = 1 + random_bits(random) % 12;

    if (at + length > size)
        length = size - at;
    switch (random_between(random, 0, 4)) {
    case 0:
        text[at] = (char)random_bits(random);
        return size;
    case 1:
        text[at] = "0123456789 -+*/,xp~\n"[random_between(random, 0, 19)];
        return size;
    case 2:
        return at + 1;
    case 3:
        memmove(text + at, text + at + length, size - at - length);
        return size > length ? size - length : size;
    default:
        if (size + length > capacity)
            return size;
        memmove(text + at + length, text + at, size - at);
        return size + length;
    }
}

static void no_mutated_text_breaks_the_parser(void **state)
{
    random_source random = {SEED};
    int accepted = 0, refused = 0;

    (void)state;
    print_message("seed %d\n", SEED);
    for (int i = 0; i < 20000; i++) {
        fpa_head *head = random_head(SEED + i % 50, NULL), *parsed = NULL;
        char *text = head_print(head);
        size_t size = strlen(text), capacity = size + 64;
        char *bytes = malloc(capacity), *exact;
        fpa_error error;

        memcpy(bytes, text, size);
        for (int n = random_between(&random, 1, 3); n > 0; n--)
            size = mutate(&random, bytes, size, capacity);
        exact = malloc(size); /* so that a sanitizer sees a read past the end */
        memcpy(exact, bytes, size);
        if (head_parse(exact, size, &parsed, &error) == FPA_OK) {
            accepted++;
            assert_int_equal(head_validate(parsed, NULL), FPA_OK);
            head_free(parsed);
        } else {
            refused++;
            assert_true(error.message[0]);
        }
        free(exact);
        free(bytes);
        free(text);
        head_free(head);
    }
    assert_true(refused > 10000);
    assert_true(accepted > 0); /* a changed digit can give another valid head */
}

static void a_list_finds_heads_and_names_them(void **state)
{
    fpa_head_list list = {2, malloc(2 * sizeof(fpa_head *))};
    const fpa_head *found = NULL;
    fpa_error error;

    (void)state;
    assert_non_null(list.heads);
    list.heads[0] = example();
    list.heads[1] = example();
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
        cmocka_unit_test(the_text_is_as_documented),
        cmocka_unit_test(every_random_head_is_valid_and_survives_its_text),
        cmocka_unit_test(the_text_does_not_follow_the_locale),
        cmocka_unit_test(the_origin_is_not_part_of_the_digest_and_everything_else_is),
        cmocka_unit_test(weights_of_one_written_or_not_are_the_same_head),
        cmocka_unit_test(damaged_text_is_refused_with_its_line),
        cmocka_unit_test(a_parsed_head_obeys_the_rules),
        cmocka_unit_test(no_mutated_text_breaks_the_parser),
        cmocka_unit_test(a_list_finds_heads_and_names_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_head_text: the canonical text of heads, its parser and the digest. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "example_head.h"
#include "random_head.h"

enum { RANDOM_HEADS = 400, SEED = 11 };

static void the_text_is_as_documented(void **state)
{
    fpa_head *head = example_head();
    char *text = head_print(head);
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
    limits.half = limits.lift = true;
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

static void products_are_written_unless_they_are_plain(void **state)
{
    fpa_head *head = example_head(), *copy = NULL;
    char plain[DIGEST_TEXT], split[DIGEST_TEXT], again[DIGEST_TEXT], *text;
    assert_int_equal(head_digest(head, plain, NULL), FPA_OK);
    head->products = FPA_PRODUCTS_TF32X3;
    assert_int_equal(head_digest(head, split, NULL), FPA_OK);
    assert_string_not_equal(plain, split);
    text = head_print(head);
    assert_non_null(strstr(text, "state_dtype f32\nproducts tf32x3\nmatrices 2\n"));
    assert_int_equal(head_parse(text, strlen(text), &copy, NULL), FPA_OK);
    assert_int_equal(copy->products, FPA_PRODUCTS_TF32X3);
    assert_int_equal(head_digest(copy, again, NULL), FPA_OK);
    assert_string_equal(split, again);
    free(text);
    head_free(copy);
    head_free(head);
}

static void a_window_is_written_where_there_is_one(void **state)
{
    fpa_head *head = example_head(), *copy = NULL;
    char without[DIGEST_TEXT], with[DIGEST_TEXT], *text;
    head->normalize = FPA_NORMALIZE_SUM;
    assert_int_equal(head_digest(head, without, NULL), FPA_OK);
    head->window = 64;
    assert_int_equal(head_digest(head, with, NULL), FPA_OK);
    assert_string_not_equal(without, with);
    text = head_print(head);
    assert_non_null(strstr(text, "state_dtype f32\nwindow 64\nmatrices 2\n"));
    assert_int_equal(head_parse(text, strlen(text), &copy, NULL), FPA_OK);
    assert_int_equal(copy->window, 64);
    free(text);
    head_free(copy);
    head_free(head);
}

static void the_text_does_not_follow_the_locale(void **state)
{
    fpa_head *head = example_head();
    char *plain = head_print(head), *local;
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
    fpa_head *head = example_head();
    char first[DIGEST_TEXT], second[DIGEST_TEXT];
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
    fpa_head *head = example_head();
    char first[DIGEST_TEXT], second[DIGEST_TEXT];
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
    {"matrices 2", "products plain\nmatrices 2", "head text:14"}, /* plain is not written */
    {"matrices 2", "products fp32\nmatrices 2", "head text:14"},
    {"matrices 2", "window 0\nmatrices 2", "head text:14"}, /* none is not written */
    {"normalize none", "normalize sum\nwindow 4", "head text:10"},
    {"matrices 2", "products tf32x3 \nmatrices 2", "head text:14"},
    {"dtype f32\nstate_dtype f32\n", "dtype bf16\nstate_dtype f32\nproducts tf32x3\n", "example"},
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
    fpa_head *head = example_head(), *parsed = NULL;
    char *text = head_print(head), damaged[2048];
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
    fpa_head *head = example_head(), *parsed = NULL;
    char *text;
    fpa_error error;
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
    random_limits limits = random_all;
    int accepted = 0, refused = 0;
    limits.lift = true;
    print_message("seed %d\n", SEED);
    for (int i = 0; i < 20000; i++) {
        fpa_head *head = random_head(SEED + i % 50, &limits), *parsed = NULL;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_as_documented),
        cmocka_unit_test(every_random_head_is_valid_and_survives_its_text),
        cmocka_unit_test(products_are_written_unless_they_are_plain),
        cmocka_unit_test(a_window_is_written_where_there_is_one),
        cmocka_unit_test(the_text_does_not_follow_the_locale),
        cmocka_unit_test(the_origin_is_not_part_of_the_digest_and_everything_else_is),
        cmocka_unit_test(weights_of_one_written_or_not_are_the_same_head),
        cmocka_unit_test(damaged_text_is_refused_with_its_line),
        cmocka_unit_test(a_parsed_head_obeys_the_rules),
        cmocka_unit_test(no_mutated_text_breaks_the_parser),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Orthogonal matrices are drawn when somebody looks at them: nobody sees when, and who wants one head waits for its numbers alone. */
#include "gen/spec/spec.h"
#include "claims.h"

#include <string.h>

static void load(const char *text, const char *wanted, fpa_head_list *list)
{
    fpa_error error;
    if (spec_load_text_head("mine.lua", NULL, text, strlen(text), wanted, list, &error))
        fail_msg("%s: %s\n%s", error.where, error.message, text);
}

/* The head, with what an expression makes of m. */
static void digest_of(const char *expression, char digest[DIGEST_TEXT])
{
    static const char rows[] =
        "local function rows(m) local l = {} for i, row in ipairs(m) do l[i] = row end return l end\n"
        "local function counted(m) assert(#m == 9) return m end\n"
        "local function again(m) m[9] = m[9] return m end\n"
        "local m = orthogonal { rows = 9, d = 16, seed = 7 }\n";
    char text[1024];
    fpa_head_list list;
    snprintf(text, sizeof text,
             "%sreturn head { name = 'x', d = 16, terms = { term { %s, dense(orthogonal { rows = 9, d = 16, "
             "seed = 8 }) }, "
             "term { dense(m) } } }",
             rows, expression);
    load(text, NULL, &list);
    assert_int_equal(list.heads[0]->matrix_count, 2);
    assert_int_equal(head_digest(list.heads[0], digest, NULL), FPA_OK);
    head_list_free(&list);
}

static void numbers_are_the_same_whoever_looks_and_when(void **state)
{
    static const char *const looks[] = {"dense(rows(m))", "dense(counted(m))", "dense(again(m))",
                                        "dense(orthogonal { rows = 9, d = 16, seed = 7 })"};
    char plain[DIGEST_TEXT], looked_at[DIGEST_TEXT];
    digest_of("dense(m)", plain);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        digest_of(looks[i], looked_at);
        assert_string_equal(looked_at, plain);
    }
}

static const char several[] =
    "local function h(name, seed)\n"
    "  return head { name = name, d = 16, terms = term { dense(orthogonal { rows = 9, d = 16, seed = seed }) "
    "} }\n"
    "end\n"
    "local a, b, c = h('a', 1), h('b', 2), h('c', 3)\n"
    "return a, b, layer { name = 'l', heads = { { head = c, count = 2 }, { head = a, count = 1 } } }";

static void who_wants_one_head_gets_it_alone(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    fpa_head_list all, one;
    load(several, NULL, &all);
    assert_int_equal(all.count, 3);
    assert_int_equal(all.layer_count, 1);
    for (int i = 0; i < 3; i++) {
        char expected[DIGEST_TEXT], digest[DIGEST_TEXT];
        load(several, names[i], &one);
        assert_int_equal(one.count, 1);
        assert_int_equal(one.layer_count, 0);
        assert_int_equal(head_digest(all.heads[i], expected, NULL), FPA_OK);
        assert_int_equal(head_digest(one.heads[0], digest, NULL), FPA_OK);
        assert_string_equal(digest, expected);
        head_list_free(&one);
    }
    load(several, "l", &one);
    assert_int_equal(one.count, 3);
    assert_int_equal(one.layer_count, 1);
    head_list_free(&one);
    head_list_free(&all);
}

/* Nothing but numbers is left out. */
static void mistakes_in_other_heads_are_told_all_the_same(void **state)
{
    static const char *const texts[] = {
        "return head { name = 'a', d = 4, terms = linear {} }, head { name = 'b', d = 4, terms = {} }",
        "return head { name = 'a', d = 4, terms = linear {} }, head { name = 'b', d = 4, terms = linear {} "
        "},\n"
        "  head { name = 'b', d = 4, terms = linear {} }",
        "return head { name = 'a', d = 4, terms = linear {} }, 3",
        "return head { name = 'a', d = 4, terms = linear {} },\n"
        "  head { name = 'b', d = 12, terms = term { dense(orthogonal { rows = 9, d = 16, seed = 1 }) } }"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fpa_head_list list;
        fpa_error error;
        assert_int_equal(
            spec_load_text_head("mine.lua", NULL, texts[i], strlen(texts[i]), "a", &list, &error),
            FPA_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_the_same_whoever_looks_and_when),
        cmocka_unit_test(who_wants_one_head_gets_it_alone),
        cmocka_unit_test(mistakes_in_other_heads_are_told_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

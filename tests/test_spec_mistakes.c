/* The likely mistakes of a spec: each gets one line, with its place, and what is allowed. */
#include "gen/spec/spec.h"
#include "gen/gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

typedef struct mistake {
    const char *text;
    int line;
    const char *message; /* how the message begins */
} mistake;

/* A head 'a' of d = 4 with these terms. */
#define HEAD4(terms) "return head { name = 'a', d = 4, terms = " terms " }"
#define FIELD4(field) "return head { name = 'a', d = 4, terms = linear {}, " field " }"

static void check(const mistake *cases, size_t count)
{
    char where[64];
    fpa_head_list list;
    fpa_error error;

    for (size_t i = 0; i < count; i++) {
        error = (fpa_error){0};
        fpa_status status =
            spec_load_text("specs/mine.lua", NULL, cases[i].text, strlen(cases[i].text), &list, &error);
        snprintf(where, sizeof where, "specs/mine.lua:%d", cases[i].line);
        if (status == FPA_OK || strcmp(error.where, where) != 0 ||
            strncmp(error.message, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s\ngave   %s: %s\nwanted %s: %s", cases[i].text, error.where, error.message, where,
                     cases[i].message);
        assert_int_equal(list.count, 0);
        assert_null(list.heads);
    }
}
#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))

static void widths_and_indices_are_checked_against_d(void **state)
{
    static const mistake cases[] = {
        {"local s = select { 1, 65 }\nreturn head { name = 'a', d = 64, terms = term { identity(), s } }", 1,
         "branch 2 of term 1 selects index 65, but d = 64 (indices run 1..64)"},
        {"return head { name = 'a', d = 4,\nterms = { term {}, term { diagonal { [9] = 1 } } } }", 2,
         "branch 1 of term 2 selects index 9, but d = 4 (indices run 1..4)"},
        {HEAD4("term { diagonal { 1, 2, 3, 4, 5 } }"), 1, "branch 1 of term 1 selects index 5, but d = 4"},
        {HEAD4("term {\n dense { { 1, 2, 3 } } }"), 2, "branch 1 of term 1 lists 3 values a row, but d = 4"},
        {HEAD4("term { select { 0 } }"), 1, "select names index 0, but indices run from 1 to d"},
        {HEAD4("term { diagonal { [-1] = 3 } }"), 1, "diagonal names index -1, but indices run from 1 to d"},
        {HEAD4("term { select { 1, range(2, 3), 2 } }"), 1, "select names index 2 twice"},
        {HEAD4("term { select {} }"), 1, "select chooses no index"},
        {HEAD4("term { select { 1, 'x' } }"), 1, "select takes indices and ranges, not 'x'"},
        {HEAD4("term { select { 1.5 } }"), 1, "select takes indices and ranges, not 1.5"},
        {HEAD4("term { select { 1, nil, 2 } }"), 1, "select"},
        {HEAD4("term { diagonal { [range(1, 3)] = 1, [2] = 2 } }"), 1,
         "diagonal gives index 2 twice: its keys overlap"},
        {HEAD4("term { diagonal { [range(2, 3)] = 1, [range(1, 2)] = 2 } }"), 1,
         "diagonal gives index 2 twice"},
        {HEAD4("term { diagonal { 1, 1, 0/0, 1 } }"), 1, "entry 3 of diagonal is not a finite number"},
        {HEAD4("term { diagonal { x = 1 } }"), 1, "diagonal takes [index or range] = value"},
        {HEAD4("term { diagonal {} }"), 1, "diagonal has no entry"},
        {"local r = range(3, 1)", 1, "range(3, 1): indices run from 1 to d"},
        {"local r = range(1, 1e9)", 1, "range(1, 1000000000): indices run from 1 to d"},
        {HEAD4("{ linear {},\n tspow { d = 2, degree = 2, block = 1 } }"), 2,
         "terms for d = 2 stand in the head 'a' of d = 4"},
        {HEAD4("power { degree = 2, d = 5 }"), 1, "terms for d = 5 stand in the head 'a' of d = 4"},
    };
    (void)state;
    CHECK(cases);
}

static void matrices_are_checked(void **state)
{
    static const mistake cases[] = {
        {HEAD4("term { dense { { 1, 2, 3, 4 },\n { 1, 0/0, 3, 4 } } }"), 1,
         "row 2, column 2 of dense is nan"},
        {HEAD4("term { dense { { 1, 2, -math.huge, 4 } } }"), 1, "row 1, column 3 of dense is -inf"},
        {HEAD4("term { dense { { 1, 2, 'x', 4 } } }"), 1, "row 1, column 3 of dense is 'x'"},
        {HEAD4("term { dense { { 1, 2, 3, 4 }, { 1, 2, 3 } } }"), 1,
         "row 2 of dense has 3 numbers, but row 1 has 4"},
        {HEAD4("term { dense { 1, 2, 3, 4 } }"), 1, "row 1 of dense is 1, but a row is a list"},
        {HEAD4("term { dense {} }"), 1, "dense has 0 rows"},
        {HEAD4("term { dense { {} } }"), 1, "dense has rows of 0 numbers"},
        {HEAD4("term { dense(3) }"), 1, "dense takes one table, dense {...}, not 3"},
        {HEAD4("term { dense 'w.npy' }"), 1, "'w.npy' cannot be read: this spec is a text without a folder"},
        {HEAD4("term { dense(orthogonal { d = 4, rows = 5, seed = 1 }) }"), 1,
         "orthogonal has rows = 5, but in d = 4"},
        {HEAD4("term { dense(orthogonal { d = 4 }) }"), 1, "orthogonal needs seed"},
        {HEAD4("term { dense(rows({ { 1, 2, 3, 4 } }, 1, 2)) }"), 1,
         "rows(matrix, first, last): first and last run"},
        {HEAD4("term { trainable { rows = 3 } }"), 1, "trainable needs a name"},
        {HEAD4("term { trainable { name = 'W' } }"), 1, "trainable needs rows, an integer of 1..65536"},
        {HEAD4("term { trainable { name = 'W', rows = 2, diagonal = true } }"), 1,
         "trainable 'W' is a diagonal"},
        {HEAD4("term { trainable { name = 'W', rows = 2 },\n trainable { name = 'W', rows = 3 } }"), 2,
         "trainable 'W' is used twice, but with different rows, diagonal or shared"},
        {HEAD4("term { trainable { name = 'W', rows = 2 }, trainable { name = 'W', rows = 2, shared = true } "
               "}"),
         1, "trainable 'W' is used twice"},
        {HEAD4("term { trainable { name = 'W-1', rows = 2 } }"), 1, "name of trainable is 'W-1'"},
    };
    (void)state;
    CHECK(cases);
}

static void fields_are_checked_and_the_nearest_is_named(void **state)
{
    static const mistake cases[] = {
        {FIELD4("chunck = 3"), 1,
         "head has no field 'chunck'; did you mean 'chunk'? (fields: name, d, dv, terms"},
        {FIELD4("zzz = 3"), 1, "head has no field 'zzz' (fields: name"},
        {FIELD4("chunk = -1"), 1, "chunk of head is -1, but an integer of 1..65536 is allowed"},
        {FIELD4("dv = 2.5"), 1, "dv of head is 2.5, but an integer of 1..1024 is allowed"},
        {FIELD4("dv = '8'"), 1, "dv of head is '8', but an integer"},
        {FIELD4("causal = 1"), 1, "causal of head is 1, but true or false is needed"},
        {FIELD4("scale = 0/0"), 1, "scale of head is nan, but a finite number is needed"},
        {FIELD4("eps = -1"), 1, "eps of head is -1.0, but it must not be negative"},
        {FIELD4("normalize = 'som'"), 1,
         "normalize of head is 'som'; did you mean 'sum'? (allowed: none, sum, max, one_plus_sum)"},
        {FIELD4("normalize = { 'sum', epsilon = 1 }"), 1, "normalize has no field 'epsilon'"},
        {FIELD4("normalize = {}"), 1, "normalize of head is a table without a kind"},
        {FIELD4("dtype = 'fp16'"), 1, "dtype of head is 'fp16'; did you mean 'f16'?"},
        {FIELD4("products = 'tf32'"), 1,
         "products of head is 'tf32'; did you mean 'tf32x3'? (allowed: plain, tf32x3)"},
        {FIELD4("products = 'bf16x3'"), 1, "products of head is 'bf16x3'"},
        {FIELD4("products = 'tf32x3', dtype = 'bf16'"), 1,
         "products = \"tf32x3\" needs dtype = \"f32\": bf16 products are exact enough as they are"},
        {FIELD4("gate = true, causal = false"), 1, "gate = true needs causal = true"},
        {FIELD4("window = 0"), 1, "window of head is 0, but an integer of 1..512 is allowed"},
        {FIELD4("window = 16"), 1, "a window needs a normaliser"},
        {FIELD4("window = 16, normalize = 'sum', causal = false"), 1, "a window needs a causal head"},
        {FIELD4("window = 16, normalize = 'sum', gate = true"), 1, "a head has a window or a gate, not both"},
        {FIELD4("3"), 1, "head has named fields only, but 3 stands without a name"},
        {"return head { d = 4, terms = linear {} }", 1, "head needs a name: name = \"...\""},
        {"return head { name = 'a', terms = linear {} }", 1, "head needs d, an integer of 1..1024"},
        {"return head { name = 'a', d = 4 }", 1, "head 'a' needs terms"},
        {"return head { name = '2nd', d = 4, terms = linear {} }", 1,
         "name of head is '2nd', but a name is letters"},
        {"return head { name = 'a-b', d = 4, terms = linear {} }", 1, "name of head is 'a-b'"},
        {"return head { name = 'n"
         "\\0"
         "', d = 4, terms = linear {} }",
         1, "name of head is "},
        {"return head { name = {}, d = 4, terms = linear {} }", 1, "name of head is a table"},
        {"return head('a')", 1, "head takes one table, head {...}, not 'a'"},
        {"local t = tspow { d = 4, degree = 2, blok = 2 }", 1,
         "tspow has no field 'blok'; did you mean 'block'?"},
        {"return tspow { d = 4, degree = 2, blok = 2 }", 1,
         "tspow has no field 'blok'; did you mean 'block'?"},
        {"local t = tspow { degree = 2, block = 2 }", 1, "tspow needs d, an integer of 1..1024"},
        {"local t = spow { d = 4, degree = 17 }", 1,
         "degree of spow is 17, but an integer of 1..16 is allowed"},
        {"local t = tspow { d = 4, degree = 2, block = 8 }", 1, "block of tspow is larger than d"},
        {"local t = tspow { d = 4, degree = 2, block = 2, construction = 'half' }", 1,
         "construction of tspow is"},
        {"local t = power()", 1, "power takes one table, power {...}, not nothing"},
        {"local t = inhomogeneous { degree = 2 }", 1, "inhomogeneous needs a constant"},
    };
    (void)state;
    CHECK(cases);
}

static void terms_and_weights_are_checked(void **state)
{
    static const mistake cases[] = {
        {HEAD4("{}"), 1, "head 'a' has no terms: its list is empty"},
        {HEAD4("3"), 1, "terms has 3 in it, but it is a list of term {...}"},
        {HEAD4("{ linear {}, identity() }"), 1, "terms has a branch in it"},
        {HEAD4("{ linear {}, blok = 3 }"), 1, "terms has no field 'blok'; did you mean 'block'?"},
        {HEAD4("term { select }"), 1,
         "branch 1 of term is a function, but a branch is made by identity, select"},
        {HEAD4("term { term { identity() } }"), 1, "branch 1 of term is a term"},
        {HEAD4("term { identity(), weigth = 3 }"), 1, "term has no field 'weigth'; did you mean 'weight'?"},
        {HEAD4("term { identity(), weight = '2' }"), 1, "weight is '2', but a finite number is needed"},
        {HEAD4("linear { weight = '2' }"), 1, "weight is '2', but a finite number is needed"},
        {HEAD4("term { identity(), weight = 1/0 }"), 1, "weight is inf, but a finite number is needed"},
        {HEAD4("term { identity(), weight = sqrt2 }"), 1, "weight is the root of 2, but it must be rational"},
        {HEAD4("term { identity(3) }"), 1, "identity() takes nothing"},
        {HEAD4("scaled(2, 3)"), 1, "scaled(weight, terms) takes a term or a list of terms, not 3"},
        {HEAD4("term { "
               "identity(), identity(), identity(), identity(), identity(), identity(), identity(), "
               "identity(), "
               "identity(), identity(), identity(), identity(), identity(), identity(), identity(), "
               "identity(), "
               "identity() }"),
         1, "term has 17 branches (allowed are 0..16)"},
        {"local t = {}\nt[1] = t\n" HEAD4("t"), 3, "lists of terms are nested deeper than 32"},
        {"local t, one = {}, term {}\nfor i = 1, 131073 do t[i] = one end\n" HEAD4("t"), 3,
         "the head 'a' has more than 131072 terms"},
        {"local t = spow { d = 1024, degree = 3 }", 1,
         "tspow of degree 3 with 1024 blocks has more than 131072 terms"},
        {"return head { name = 'a', d = 1024, terms = power { degree = 9 } }", 1,
         "the head has 1237940039285380"},
        {HEAD4("scaled(0, linear {})"), 1, "the kernel is zero"},
        {"local x = sqrt2 + 1", 1, "a sum with a root in it is not kept exact"},
        {"local x = sqrt(-1)", 1, "sqrt(-1): the argument is a rational number >= 0"},
        {"local x = ratio(1, 0)", 1, "ratio(p, q) takes two rational numbers, q not 0"},
        {"local x = sqrt2 / 0", 1, "division by zero"},
        {"local x = ratio(3, 1)\nwhile true do\nx = x * x end", 3, "a number has more than 131072 bits"},
        {"local x, y = (ratio(1, 3) ^ 64) ^ 64, 0\nfor i = 1, 1e6 do y = x - ratio(1, i) end", 2,
         "still running after 100 million instructions"},
        {HEAD4("linear { weight = (ratio(1, 10) ^ 64) ^ 6 }"), 1,
         "the weight of term 1 is ~2^-1275, out of the range of doubles"},
        {HEAD4("term { diagonal { 1, 1e-200, 1, 1 } }"), 1,
         "the kernel weight of row 2 of branch 1 of term 1 is ~2^-1329, out of the range of doubles"},
        {HEAD4("inhomogeneous { degree = 6, constant = -1e150 }"), 1,
         "the weight of term 1 is ~2^2989, out of the range of doubles"},
        {HEAD4("inhomogeneous { degree = 5, constant = -1e150 }"), 1,
         "the weight of term 1 is ~-2^2491, out of the range of doubles"},
        {"local x = sqrt2 * 'y'", 1, "arithmetic with exact numbers takes finite numbers, not 'y'"},
        {"local x = sqrt2 ^ 0.5", 1, "the exponent of an exact number is an integer of -64..64, not 0.5"},
    };
    (void)state;
    CHECK(cases);
}

static void a_file_that_is_no_spec_is_refused(void **state)
{
    static const mistake cases[] = {
        {"", 1, "the file is empty"},
        {" \n\t\r\n", 1, "the file is empty"},
        {"\033LuaS", 1, "the file is compiled Lua (bytecode); a spec is Lua text"},
        {"local a = 1\nlocal s = '\xff'", 2, "byte 0xff is not UTF-8 text"},
        {"-- \xc3\xa9 is fine\n-- \xc3", 2, "byte 0xc3 is not UTF-8 text"},
        {"local h = head { name = 'a', d = 4, terms = linear {} }\n\n", 1, "the file returns no head"},
        {"local a = 1\nreturn 3, 4\n\n", 2, "the file returns 3, but a spec returns head {...}"},
        {"return { x = 3 }", 1, "the file returns a table with named entries"},
        {"return linear {}", 1, "the file returns a term, but a spec returns head"},
        {"local a = head { name = 'a', d = 4, terms = linear {} }\n"
         "local b = head { name = 'a', d = 4, terms = linear {} }\nreturn a, b",
         2, "the name 'a' is used twice (the first head is at specs/mine.lua:1)"},
        {"local a = head { name = 'a', d = 4, terms = linear {} }\nreturn { a, a }", 1,
         "the same head is returned twice"},
        {HEAD4("linaer {}"), 1, "'linaer' is not defined; did you mean 'linear'?"},
        {"local f = io.open('/etc/passwd')", 1, "'io' is not part of the spec language"},
        {"for k in pairs({}) do end", 1, "'pairs' is not part of the spec language"},
        {"return head { name = 'a'\n d = 4 }", 2, "'}' expected (to close '{' at line 1) near 'd'"},
        {"local x = nil + 1", 1, "nil is nothing to compute with: arithmetic takes numbers"},
        {"local h = linear {}\nlocal x = h[1].weight", 2, "a term has no fields and no methods"},
        {"while true do end", 1, "still running after 100 million instructions: an endless loop?"},
        {"local s = 'xx'\nfor i = 1, 30 do s = s .. s end", 2, "needs more than 256 MiB of memory"},
    };
    (void)state;
    CHECK(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths_and_indices_are_checked_against_d),
        cmocka_unit_test(matrices_are_checked),
        cmocka_unit_test(fields_are_checked_and_the_nearest_is_named),
        cmocka_unit_test(terms_and_weights_are_checked),
        cmocka_unit_test(a_file_that_is_no_spec_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The likely mistakes of a spec: each gets one line, with its place, and what is allowed. */
#include "gen/spec/spec.h"
#include "gen/gen.h"
#include "head/layer.h"
#include "claims.h"

#include <stdio.h>
#include <string.h>

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
        assert_int_equal(list.count + list.layer_count, 0);
        assert_null(list.heads);
        assert_null(list.layers);
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
        {HEAD4("term { identity(), select(3) }"), 1,
         "select takes a list of indices or a range: select { 3 }"},
        {HEAD4("term { select { 1, 'x' } }"), 1, "select takes indices and ranges, not 'x'"},
        {HEAD4("term { select('1-3') }"), 1, "select takes a list of indices or a range, not '1-3'"},
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
         "terms for d = 2 are used in the head 'a' of d = 4"},
        {HEAD4("power { degree = 2, d = 5 }"), 1, "terms for d = 5 are used in the head 'a' of d = 4"},
    };
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
    CHECK(cases);
}

static void coordinates_are_checked(void **state)
{
    static const mistake cases[] = {
        {HEAD4("term { coordinates {} }"), 1, "coordinates have 0 factors (allowed are 1..16)"},
        {HEAD4("term { coordinates { 3 } }"), 1,
         "factor 1 of coordinates is 3, but a factor is made by identity, select"},
        {HEAD4("term { coordinates { coordinates { identity() } } }"), 1,
         "factor 1 of coordinates is a branch"},
        {HEAD4("term { coordinates { identity(), mapp = relu } }"), 1,
         "coordinates has no field 'mapp'; did you mean 'map'?"},
        {HEAD4("term { coordinates { identity(), map = 'relu' } }"), 1,
         "map of coordinates is 'relu', but a map is one of identity, relu"},
        {HEAD4("term { coordinates { identity(), map_k = sqrt } }"), 1, "map_k of coordinates is a function"},
        {HEAD4("term { coordinates { identity(), gain = 'x' } }"), 1, "gain of coordinates is 'x'"},
        {HEAD4("term { coordinates { identity(), shift = 1e308 } }"), 1,
         "shift of coordinates is 1e+308, but kernels compute in float32"},
        {HEAD4("term { coordinates { identity(), shift = 1/0 } }"), 1, "shift of coordinates is inf"},
        {HEAD4("term { identity():map() }"), 1, "map needs a map: branch:map(relu)"},
        {HEAD4("term { identity():map { r = relu } }"), 1, "map has no field 'r'"},
        {HEAD4("term { identity():map(relu):map(exp) }"), 1, "map takes identity, select"},
        {HEAD4("term { identity():square() }"), 1, "a branch has no 'square'; it has map"},
        {HEAD4("term { identity(),\n select { 5 }:map(relu) }"), 2,
         "branch 2 of term 1 selects index 5, but d = 4"},
        {HEAD4("term { coordinates { identity(),\n select { 1, 2 } } }"), 2,
         "factor 2 of branch 1 of term 1 has 2 rows, but factor 1 has 4"},
        {HEAD4("term { coordinates {\n dense { { 1, 2, 3 } } } }"), 2,
         "factor 1 of branch 1 of term 1 lists 3 values a row, but d = 4 (or 5: the last one is added)"},
        {HEAD4("{ linear { map = relu }, term {\n dense { { 1, 2, 3, 4, 5 } } } }"), 2,
         "branch 1 of term 2 lists 5 values a row, but d = 4"},
        {HEAD4("term { coordinates { trainable { name = 'w' } } }"), 1, "trainable needs rows"},
        {HEAD4("term { trainable { name = 'w', diagonal = true, bias = true } }"), 1,
         "trainable 'w' is a diagonal"},
        {HEAD4("term { trainable { name = 'w', rows = 2 }:map(relu),\n"
               "trainable { name = 'w', rows = 2, bias = true } }"),
         2, "trainable 'w' is used twice, but once with 4 columns and once with 5"},
    };
    CHECK(cases);
}

#define PAIR "{ dense { { 1, 2, 3, 4 } }, dense { { 1, 2, 3, 4 } } }"

static void complex_and_moving_coordinates_are_checked(void **state)
{
    static const mistake cases[] = {
        {HEAD4("term { coordinates { " PAIR ", identity() } }"), 1,
         "factor 2 of coordinates is real, but factor 1 is complex"},
        {HEAD4("term { coordinates { identity(), " PAIR " } }"), 1,
         "factor 2 of coordinates is complex, but factor 1 is real"},
        {HEAD4("term { coordinates { { identity(), identity() } } }"), 1,
         "factor 1 of coordinates is a table"},
        {HEAD4("term { coordinates { { dense { { 1, 2, 3, 4 } }, dense { { 1, 2, 3, 4, 5 } } } } }"), 1,
         "factor 1 of coordinates has a real part of 1 x 4, but an imaginary one of 1 x 5"},
        {HEAD4("term { coordinates { " PAIR ", map = relu } }"), 1, "complex coordinates have no field map"},
        {HEAD4("term { coordinates { " PAIR ", angle = 'a' } }"), 1,
         "complex coordinates have no field angle"},
        {HEAD4("term { coordinates { identity(), phase = 'b' } }"), 1,
         "coordinates have the field phase, but no angle"},
        {HEAD4("term { coordinates { identity(), angle = 3 } }"), 1,
         "angle of coordinates is 3, but it is trainable {...}"},
        {HEAD4("term { coordinates { identity(), angle = 'a b' } }"), 1, "name of angle is 'a b'"},
        {HEAD4("term {\n coordinates { identity(), angle = 'a' } }"), 2,
         "branch 1 of term 1 has an angle, but the head 'a' has no positions: head { positions = 1 }"},
        {FIELD4("positions = 1"), 1, "positions = 1, but no coordinates of the head 'a' have an angle"},
        {FIELD4("positions = 17"), 1, "positions of head is 17, but an integer of 1..16 is allowed"},
        {FIELD4("key_mask = 1"), 1, "key_mask of head is 1, but true or false is needed"},
        {"return head { name = 'a', d = 4, positions = 2,\n"
         "terms = term { coordinates { identity(), angle = dense { { 1 }, { 2 }, { 3 }, { 4 } } } } }",
         2,
         "the angle of branch 1 of term 1 is 4 x 1, but 4 x 2 is needed: rows of the coordinates x "
         "positions"},
        {"return head { name = 'a', d = 4, positions = 2,\n"
         "terms = term { coordinates { identity(), angle = 'a', amplitude = trainable { name = 'c', rows = 3 "
         "} } } }",
         2, "the amplitude of branch 1 of term 1 is 3 x 1, but 4 x 1 is needed"},
        {"return head { name = 'a', d = 4, positions = 2,\n"
         "terms = term { coordinates { identity(), angle = 'a', phase = 'a' } } }",
         2, "trainable 'a' is used twice, but once with 2 columns and once with 1"},
    };
    CHECK(cases);
}

static void matrices_of_heads_are_checked(void **state)
{
    static const mistake cases[] = {
        {HEAD4("term { dense { heads = {} } }"), 1, "heads of dense must be a list of matrices"},
        {HEAD4("term { dense { { 1, 2, 3, 4 }, heads = { { { 1, 2, 3, 4 } } } } }"), 1,
         "heads of dense must be a list"},
        {HEAD4("term { dense { heads = { 3 } } }"), 1,
         "matrix 1 of heads is 3, but a matrix is a list of rows"},
        {HEAD4("term { dense { heads = { { { 1, 2 } }, { { 1, 2 }, { 3, 4 } } } } }"), 1,
         "matrix 2 of heads is 2 x 2, but matrix 1 is 1 x 2"},
        {HEAD4("term { dense { heads = { { { 1, 2, 3, 4 } } } },\n"
               "dense { heads = { { { 1, 2, 3, 4 } }, { { 5, 6, 7, 8 } } } } }"),
         1,
         "matrix 2 is for 2 heads, another one for 1: all matrices that are given per head must be for the "
         "same number of heads"},
    };
    CHECK(cases);
}

static void sketches_are_checked(void **state)
{
    static const mistake cases[] = {
        {HEAD4("tensorsketch { d = 4, degree = 2, size = 8 }"), 1,
         "tensorsketch needs a seed, or index_hash and bit_hash"},
        {HEAD4("tensorsketch { d = 4, degree = 2, seed = 1 }"), 1,
         "tensorsketch needs size, an integer of 1..16384"},
        {HEAD4("tensorsketch { d = 4, size = 8, seed = 1, constant = -1 }"), 1,
         "tensorsketch of (constant + gamma q.k)^degree: constant >= 0 and gamma > 0"},
        {HEAD4("tensorsketch { d = 4, size = 8, seed = 1, independence = 3 }"), 1,
         "independence of hashes is 3"},
        {HEAD4("countsketch { d = 4, size = 8, index_hash = { { 1, 2, 3, 4 } } }"), 1,
         "countsketch has only one of index_hash and bit_hash, but both are needed"},
        {HEAD4("countsketch { d = 4, size = 4, index_hash = { { 1, 2, 3, 4 } }, bit_hash = { { 1, 1, 1, 1 } "
               "} }"),
         1, "index_hash of countsketch has 4 in it, but indices are 0 to size - 1"},
        {HEAD4("countsketch { d = 4, size = 4, index_hash = { { 1, 2, 3, 0 } }, bit_hash = { { 1, 1, 0, 1 } "
               "} }"),
         1, "bit_hash of countsketch has 0 in it, but signs are 1 and -1"},
        {HEAD4("countsketch { d = 4, size = 4, index_hash = { { 1, 2, 3 } }, bit_hash = { { 1, 1, 1 } } }"),
         1, "index_hash of countsketch has another number of columns than 4, which is d"},
        {HEAD4("countsketch { d = 4, size = 4, constant = 1, index_hash = { { 1, 2, 3, 0 } },\n"
               "bit_hash = { { 1, 1, 1, 1 } } }"),
         1, "index_hash of countsketch has another number of columns than 5, which is d + 1"},
        {HEAD4("countsketch { d = 4, size = 4, heads = 2, index_hash = { { 1, 2, 3, 0 } },\n"
               "bit_hash = { { 1, 1, 1, 1 } } }"),
         1, "index_hash of countsketch is an array of heads x degree x columns, and heads = 2"},
        {HEAD4("product_sketch { d = 4, size = 8 }"), 1, "product_sketch needs seed"},
        {HEAD4("polysketch { d = 4, rows = 4 }"), 1, "polysketch needs a seed, or w1 and w2"},
        {HEAD4("polysketch { d = 4, rows = 4, seed = 1, degree = 3 }"), 1, "degree of polysketch is 3"},
        {HEAD4("favor { d = 4, size = 8 }"), 1, "favor needs a seed, or rows = a matrix"},
        {HEAD4("favor { d = 4, size = 8, rows = { { 1, 2, 3, 4 } } }"), 1,
         "favor has size = 8, but another number of rows"},
        {HEAD4("favor { d = 4, size = 8, seed = 1, gamma = -1 }"), 1,
         "gamma of favor, exp(gamma q.k), is positive"},
        {HEAD4("fourier { form = 'other' }"), 1, "form of fourier is \"seed\""},
        {HEAD4("power { degree = 2, of = identity(), map = relu }"), 1, "power has of = branch and a map"},
        {HEAD4("tensorsketch { d = 3, degree = 2, size = 8, seed = 1 }"), 1,
         "terms for d = 3 are used in the head 'a' of d = 4"},
        {HEAD4("{ linear {}, note = 3 }"), 1, "note of terms is 3, but a text is needed"},
        {"local m = spectrum { size = 8, index = { 8 }, weights = { 1 }, frequencies = { 1 } }", 1,
         "entry 1 of index is 8.0, but an integer of 0..7 is needed"},
        {"local m = spectrum { size = 8, index = { 1 }, weights = { 1, 2 }, frequencies = { 1 } }", 1,
         "spectrum has 2 weights, but 1 indices"},
        {"local m = spectrum { size = 8, index = 1, weights = { 1 }, frequencies = { 1 } }", 1,
         "index of spectrum is 1, but a list of 1 to 1025 numbers is needed"},
        {"local m = gaussian { rows = 2, d = 3 }", 1, "gaussian needs seed"},
    };
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
        {FIELD4("eps = 1"), 1,
         "eps of head is for normalize = \"sum\" or \"max\": leave it out beside \"none\""},
        {FIELD4("normalize = { 'one_plus_sum', eps = 1 }"), 1,
         "eps of head is for normalize = \"sum\" or \"max\": leave it out beside \"one_plus_sum\""},
        {FIELD4("eps = 1e39"), 1, "eps of head is 1e+39, but kernels compute in float32"},
        {FIELD4("normalize = { 'sum', eps = 1e-50 }"), 1,
         "eps of normalize is 1e-50, but kernels compute in"},
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
        {FIELD4("3"), 1, "head has named fields only, but 3 is given without a name"},
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
    };
    CHECK(cases);
}

static void fields_of_families_are_checked(void **state)
{
    static const mistake cases[] = {
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
    CHECK(cases);
}

static void terms_and_weights_are_checked(void **state)
{
    static const mistake cases[] = {
        {HEAD4("{}"), 1, "head 'a' has no terms: its list is empty"},
        {HEAD4("3"), 1, "terms contains 3, but it must be a list of term {...}"},
        {HEAD4("{ linear {}, identity() }"), 1, "terms contains a branch"},
        {HEAD4("{ linear {}, blok = 3 }"), 1, "terms has no field 'blok'; did you mean 'block'?"},
        {HEAD4("term { select }"), 1,
         "branch 1 of term is a function, but a branch is made by identity, select"},
        {HEAD4("term { term { identity() } }"), 1, "branch 1 of term is a term"},
        {HEAD4("term { identity(), weigth = 3 }"), 1, "term has no field 'weigth'; did you mean 'weight'?"},
        {HEAD4("term { identity(), weight = '2' }"), 1, "weight is '2', but a finite number is needed"},
        {HEAD4("linear { weight = '2' }"), 1, "weight is '2', but a finite number is needed"},
        {HEAD4("term { identity(), weight = 1/0 }"), 1, "weight is inf, but a finite number is needed"},
        {HEAD4("term { identity(), weight = sqrt2 }"), 1, "weight is the root of 2, but it must be rational"},
        {HEAD4("term { identity(3) }"), 1, "identity() has no arguments"},
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
        {HEAD4("linear {}, scale = 0"), 1,
         "the kernel is zero: every term has weight 0, a branch of zeros, or branches and the scale 0"},
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
        {"local x = nil + 1", 1, "nil cannot be used in arithmetic, which needs numbers"},
        {"local h = linear {}\nlocal x = h[1].weight", 2, "a term has no fields and no methods"},
        {"while true do end", 1, "still running after 100 million instructions: an endless loop?"},
        {"local s = 'xx'\nfor i = 1, 30 do s = s .. s end", 2, "needs more than 256 MiB of memory"},
    };
    CHECK(cases);
}

/* Two heads, then a layer of these parts. */
#define LAYER4(parts)                                                                                        \
    "local a = head { name = 'a', d = 4, terms = linear {} }\n"                                              \
    "local b = head { name = 'b', d = 4, dv = 3, terms = linear {} }\n"                                      \
    "return layer { name = 'l', heads = " parts " }"

static void layers_are_of_heads_that_go_together(void **state)
{
    static const mistake cases[] = {
        {LAYER4("{ { head = a, count = 1 }, { head = b, count = 1 } }"), 3,
         "part 2 of the layer is b, whose dv is 3, but that of a is 4"},
        {"return layer { name = 'l', heads = {\n"
         "  { head = head { name = 'a', d = 4, terms = linear {} }, count = 1 },\n"
         "  { head = head { name = 'b', d = 4, dtype = 'bf16', terms = linear {} }, count = 1 } } }",
         1, "part 2 of the layer is b, whose dtype is bf16, but that of a is f32"},
        {"local m = { { 1, 0, 0, 0 } }\n"
         "local a = head { name = 'a', d = 4, terms = term { dense { heads = { m, m } } } }\n"
         "return layer { name = 'l', heads = { { head = a, count = 3 } } }",
         3, "part 1 of the layer has 3 heads, but the constants of a are for 2"},
        {LAYER4("{ { head = a, count = 0 } }"), 3, "count of an entry of heads is 0"},
        {LAYER4("{ { head = a } }"), 3, "an entry of heads needs count"},
        {LAYER4("{ { count = 2 } }"), 3, "head of entry 1 of heads is nothing"},
        {LAYER4("{ { head = 'a', count = 2 } }"), 3, "head of entry 1 of heads is 'a'"},
        {LAYER4("{ a }"), 3,
         "entry 1 of heads of layer is a head, but { head = ..., count = ... } is needed"},
        {LAYER4("a"), 3, "heads of layer is a head, but a list"},
        {LAYER4("{}"), 3, "heads of layer has 0 entries, but 1 to 64 are needed"},
        {LAYER4("{ { head = a, count = 1, gate = true } }"), 3, "an entry of heads has no field 'gate'"},
        {"return layer { heads = {} }", 1, "heads of layer has 0 entries"},
        {"local a = head { name = 'a', d = 4, terms = linear {} }\n"
         "return a, layer { name = 'a', heads = { { head = a, count = 1 } } }",
         2, "the name 'a' is used twice (the first is at specs/mine.lua:1)"},
        {"local a = head { name = 'a', d = 4, terms = linear {} }\n"
         "return layer { name = 'b', heads = { { head = a, count = 1 } } },\n"
         "       head { name = 'b', d = 4, terms = linear {} }",
         3, "the name 'b' is used twice (the layer is at specs/mine.lua:2)"},
    };
    CHECK(cases);
}

/* Heads that only a layer returns, in its order, and one that the file returns as well, before or behind it. */
static void a_layers_heads_are_the_files(void **state)
{
    static const char text[] =
        "local function h(name) return head { name = name, d = 4, terms = linear {} } end\n"
        "local a, b, c = h 'a', h 'b', h 'c'\n"
        "return a, layer { name = 'l', heads = { { head = b, count = 2 }, { head = a, count = 1 } } },\n"
        "       layer { name = 'm', heads = { { head = c, count = 3 }, { head = b, count = 4 } } }, b";
    fpa_head_list list;
    fpa_error error = {0};
    assert_int_equal(spec_load_text("specs/mine.lua", NULL, text, strlen(text), &list, &error), FPA_OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.heads[2]->name, "c");
    assert_int_equal(list.layer_count, 2);
    const fpa_layer_spec *m = layer_find(&list, "m");
    assert_non_null(m);
    assert_string_equal(m->origin, "specs/mine.lua:4");
    assert_int_equal(m->part_count, 2);
    assert_int_equal(m->parts[0].head, 2);
    assert_int_equal(m->parts[1].head, 1);
    assert_int_equal(m->parts[1].count, 4);
    assert_null(layer_find(&list, "a"));
    assert_null(layer_find(&list, NULL));
    head_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_of_heads_that_go_together),
        cmocka_unit_test(a_layers_heads_are_the_files),
        cmocka_unit_test(widths_and_indices_are_checked_against_d),
        cmocka_unit_test(matrices_are_checked),
        cmocka_unit_test(coordinates_are_checked),
        cmocka_unit_test(complex_and_moving_coordinates_are_checked),
        cmocka_unit_test(matrices_of_heads_are_checked),
        cmocka_unit_test(sketches_are_checked),
        cmocka_unit_test(fields_are_checked_and_the_nearest_is_named),
        cmocka_unit_test(fields_of_families_are_checked),
        cmocka_unit_test(terms_and_weights_are_checked),
        cmocka_unit_test(a_file_that_is_no_spec_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

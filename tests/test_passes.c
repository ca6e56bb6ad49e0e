/* Gradients that are forward passes of other heads: which heads have them, what these heads are, and such gradients on the
 * CPU, launched by the library's own code, beside those of the formula. */
#include "claims.h"
#include "dear.h"
#include "emulate/backward_edge.h"
#include "emulate/backward.h"
#include "head/form.h"
#include "runtime/cuda/launch_passes.h"
#include "runtime/cuda/module.h"
#include "runtime/verify/trial.h"
#include "share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which heads ---- */

enum { CONTRACTED = -1 }; /* of the head of values, in the place of one of rows */

static const struct asked {
    const char *what, *target, *fields;
    int d, dv;                 /* of the head of rows; 0: none */
    bool own_rows, own_values; /* that pass is the head itself */
} asked[] = {
    {"a power", "cuda:sm_90a", "terms = power { degree = 2 }", CONTRACTED, 0, false, true},
    {"a symmetric power", "cuda:sm_90a", "terms = tspow { d = 64, degree = 2, block = 8 }", CONTRACTED, 0,
     false, true},
    {"a power of few coordinates", "cuda:sm_90a", "d = 24, terms = power { degree = 2 }", 88, 24, false,
     true},
    {"a line", "cuda:sm_90a", "terms = linear {}", 64, 64, true, true},
    {"three times a line", "cuda:sm_90a", "terms = term { identity(), weight = 3 }", 64, 64, false, true},
    {"a line of values of no whole steps", "cuda:sm_90a", "dv = 20, terms = linear {}", 20, 64, false, true},
    {"a normalised line", "cuda:sm_90a", "terms = linear {}, normalize = 'sum'", 0, 0, false, false},
    {"a normalised line of no whole steps", "cuda:sm_90a", "d = 40, terms = linear {}, normalize = 'sum'", 72,
     40, false, false},
    {"a gated, normalised line of no whole steps", "cuda:sm_90a",
     "d = 40, terms = linear {}, gate = true, normalize = 'sum'", 72, 40, false, false},
    {"a gated, normalised line of many values", "cuda:sm_90a",
     "d = 128, dv = 256, terms = linear {}, gate = true, normalize = 'max'", 256, 128, false, false},
    {"a gated line of many values", "cuda:sm_90a", "d = 256, dv = 256, terms = linear {}, gate = true", 256,
     256, false, true},
    {"a gated line in half precision", "cuda:sm_90a", "terms = linear {}, gate = true, dtype = 'f16'", 64, 64,
     false, true},
    {"a sum of powers", "cuda:sm_90a", "terms = { term {}, linear {}, power { degree = 2 } }", CONTRACTED, 0,
     false, false},
    {"a sum of powers of few values", "cuda:sm_90a", "dv = 24, terms = { linear {}, power { degree = 2 } }",
     88, 64, false, false},
    {"a third power, whose derivative has more features", "cuda:sm_90a",
     "d = 12, terms = power { degree = 3 }", 0, 0, false, false},
    {"a third power of some hundred features", "cuda:sm_90a", "d = 16, terms = power { degree = 3 }",
     CONTRACTED, 0, false, false},
    {"a gated, normalised fourth power of few values, whose features are products of products", "cuda:sm_90a",
     "d = 11, dv = 16, terms = inhomogeneous { degree = 4, constant = 1 }, gate = true, normalize = 'sum'",
     CONTRACTED, 0, false, false},
    {"a third power, whose parallel form is for long sequences", "cuda:sm_90a",
     "d = 24, terms = power { degree = 3 }", CONTRACTED, 0, false, false},
    {"a third power of so many features that rows have not many more", "cuda:sm_90a",
     "d = 24, dv = 230, terms = tspow { d = 24, degree = 3, block = 8 }", 256, 24, false, false},
    {"a gated line", "cuda:sm_90a", "terms = linear {}, gate = true", 0, 0, false, false},
    {"a gated line of no whole steps", "cuda:sm_90a", "d = 40, terms = linear {}, gate = true", 64, 40, false,
     true},
    {"a gated, normalised power", "cuda:sm_90a",
     "terms = power { degree = 2 }, gate = true, normalize = 'sum'", CONTRACTED, 0, false, false},
    {"a gated sum of powers", "cuda:sm_90a", "terms = { linear {}, power { degree = 2 } }, gate = true",
     CONTRACTED, 0, false, false},
    {"half precision", "cuda:sm_90a", "terms = linear {}, dtype = 'f16'", 64, 64, true, true},
    {"half precision, divided", "cuda:sm_90a", "terms = linear {}, dtype = 'f16', normalize = 'sum'", 64, 64,
     false, false},
    {"a cube in half precision, divided, whose passes would be of bf16", "cuda:sm_90a",
     "d = 38, dv = 192, terms = power { degree = 3 }, dtype = 'f16', normalize = 'sum'", CONTRACTED, 0, false,
     false},
    {"half precision, divided, of many values", "cuda:sm_90a",
     "dv = 256, terms = linear {}, dtype = 'f16', normalize = 'sum'", 136, 64, false, false},
    {"half precision, divided, of no whole pieces", "cuda:sm_90a",
     "dv = 76, terms = linear {}, dtype = 'f16', normalize = 'sum'", 80, 64, false, false},
    {"a gated line of two parts of values", "cuda:sm_90a",
     "d = 256, dv = 512, terms = linear {}, gate = true", 256, 256, false, true},
    {"a line of two parts of values, the second of fewer", "cuda:sm_90a",
     "d = 256, dv = 301, terms = linear {}", 152, 256, false, true},
    {"a gated, normalised line of parts of values with numbers beside tokens", "cuda:sm_90a",
     "d = 256, dv = 512, terms = linear {}, gate = true, normalize = 'max'", 256, 256, false, false},
    {"a gated, normalised line of three parts, of which one has the sum of scores", "cuda:sm_90a",
     "d = 256, dv = 512, terms = linear {}, gate = true, normalize = 'sum', dtype = 'f16'", 176, 256, false,
     false},
    {"a power in half precision, of values of no whole pieces", "cuda:sm_90a",
     "dv = 82, terms = power { degree = 2 }, dtype = 'f16'", CONTRACTED, 0, false, false},
    {"a gated power in half precision", "cuda:sm_90a",
     "terms = power { degree = 2 }, dtype = 'f16', gate = true", CONTRACTED, 0, false, false},
    {"kernels without warpgroups", "cuda:sm_80", "terms = linear {}", 0, 0, false, false},
    {"kernels of C", "c:avx2", "terms = linear {}", 0, 0, false, false},
    {"a line of a part of the vectors", "cuda:sm_90a", "terms = term { select(range(1, 32)) }", 64, 64, false,
     false},
    {"a line of a small part of the vectors", "cuda:sm_90a", "terms = term { select(range(1, 16)) }", 0, 0,
     false, false},
    {"a line of a part of the vectors beside that of another", "cuda:sm_90a",
     "terms = { term { select(range(1, 32)) }, term { select(range(33, 64)), weight = 3 } }", 64, 64, false,
     false},
    {"a gated line of a part of the vectors", "cuda:sm_90a",
     "terms = term { select(range(1, 32)) }, gate = true", 64, 64, false, true},
    {"two dots", "cuda:sm_90a", "terms = term { select(range(1, 32)), select(range(33, 64)) }", CONTRACTED, 0,
     false, false},
    {"two dots of few rows", "cuda:sm_90a", "terms = term { select(range(1, 8)), select(range(33, 48)) }", 64,
     128, false, false},
    {"gated dots", "cuda:sm_90a", "terms = term { select(range(1, 32)), select(range(33, 64)) }, gate = true",
     CONTRACTED, 0, false, false},
    {"gated, normalised dots of many values in half precision", "cuda:sm_90a",
     "dv = 190, dtype = 'f16', normalize = 'sum', gate = true, terms = term { select(range(1, 32)), "
     "select(range(33, 64)) }",
     CONTRACTED, 0, false, false},
    {"gated dots of few rows by matrices", "cuda:sm_90a",
     "gate = true, terms = term { trainable { name = 'a', rows = 5 }, trainable { name = 'b', rows = 9 } }",
     64, 48, false, false},
    {"products of three dots in half precision", "cuda:sm_90a",
     "dtype = 'f16', terms = term { trainable { name = 'a', rows = 2 }, trainable { name = 'b', rows = 3 }, "
     "trainable "
     "{ name = 'c', rows = 4 } }",
     0, 0, false, false},
    {"two dots by matrices", "cuda:sm_90a",
     "terms = term { trainable { name = 'a', rows = 32 }, trainable { name = 'b', rows = 32 } }", CONTRACTED,
     0, false, false},
    {"three dots and a line", "cuda:sm_90a",
     "terms = { term { trainable { name = 'a', rows = 64 }, select(range(1, 4)), select(range(5, 9)) }, "
     "linear {} }",
     CONTRACTED, 0, false, false},
    {"a learned matrix", "cuda:sm_90a", "terms = term { trainable { name = 'w', rows = 16 } }", 64, 16, false,
     false},
    {"a learned matrix of a gated line, whose kernels need no copies", "cuda:sm_90a",
     "gate = true, terms = term { trainable { name = 'w', rows = 16 } }", 0, 0, false, false},
    {"a constant", "cuda:sm_90a", "terms = term {}", 0, 0, false, false},
    {"a power of several blocks of values", "cuda:sm_90a", "d = 64, dv = 256, terms = power { degree = 2 }",
     CONTRACTED, 0, false, true},
    {"values as wide as they may be", "cuda:sm_90a", "d = 24, dv = 256, terms = power { degree = 2 }", 280,
     24, false, true},
    {"wide vectors", "cuda:sm_90a", "d = 128, dv = 136, terms = linear {}", 136, 128, false, true},
};

static void polynomials_of_one_dot_have_passes(void **state)
{
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const struct asked *a = &asked[i];
        char text[512];
        fpa_head_list list = {.count = 0};
        fpa_passes passes = {0};
        fpa_error error;
        snprintf(
            text, sizeof text,
            "local x = { %s }\nx.name, x.d, x.dv, x.dtype = 'x', x.d or 64, x.dv or 64, x.dtype or 'bf16'\n"
            "return head(x)\n",
            a->fields);
        if (spec_load_text("passes.lua", NULL, text, strlen(text), &list, &error) ||
            source_passes(list.heads[0], a->target, &passes, &error))
            fail_msg("%s: %s: %s", a->what, error.where, error.message);
        const bool contracted = a->d == CONTRACTED;
        const fpa_head *rows = passes.own[PASS_ROWS] ? list.heads[0] : passes.head[PASS_ROWS];
        if (!rows != (a->d <= 0))
            fail_msg("%s: it %s a pass of rows", a->what, rows ? "has" : "has no");
        if (rows) {
            assert_int_equal(rows->d, a->d);
            assert_int_equal(rows->dv, a->dv);
            assert_int_equal(rows->normalize, FPA_NORMALIZE_NONE);
        }
        if (passes.own[PASS_ROWS] != a->own_rows || passes.own[PASS_VALUES] != a->own_values)
            fail_msg("%s: the head is its own pass where it is not, or the other way round", a->what);
        assert_true(!passes.head[PASS_VALUES] == !((contracted || rows) && !a->own_values));
        head_free(passes.head[PASS_ROWS]);
        head_free(passes.head[PASS_VALUES]);
        head_list_free(&list);
    }
}

/* Contractions of pairs and passes of rows in chunks meet where they multiply alike, not where kernels of the contraction do. */
static void few_values_are_contracted_in_the_parallel_form_for_longer(void **state)
{
    static const char text[] =
        "return head { name = 'x', d = 109, dv = 28, dtype = 'bf16', normalize = 'sum', "
        "terms = inhomogeneous { degree = 2, constant = 1 } }\n";
    enum {
        CHUNKED = 2 * (4 * 110 * 32 * 109 + 2 * 6159 * 32) * 6 / 5,
        PAIR = 2 * (2 * 109 + 32) + 32
    }; /* d_v beside d_k */
    fpa_head_list list = {.count = 0};
    fpa_source source = {0};
    fpa_error error;
    assert_ok(spec_load_text("few.lua", NULL, text, sizeof text - 1, &list, &error) ||
                  source_generate_backward(list.heads[0], "cuda:sm_90a", &source, &error),
              &error);
    assert_int_equal(source.facts.crossover, (CHUNKED + PAIR - 1) / PAIR);
    source_free(&source);
    head_list_free(&list);
}

/* A dot of 35 rows has features of 40 and reads 48, of which passes are given zeros, whoever draws their operands. */
static void rows_behind_a_dot_are_zero(void **state)
{
    static const char text[] =
        "return head { name = 'x', d = 64, dv = 64, dtype = 'bf16', "
        "terms = term { trainable { name = 'a', rows = 32 }, trainable { name = 'b', rows = 35 } } }\n";
    enum { D = 80, BEHIND = 72, TOKENS = 5 };
    const fpa_shape shape = {1, TOKENS, 1, 1, .layout = 0};
    fpa_head_list list = {.count = 0};
    fpa_passes passes = {0};
    fpa_source source = {0};
    fpa_trial trial = {0};
    fpa_error error;
    assert_ok(
        spec_load_text("zeros.lua", NULL, text, sizeof text - 1, &list, &error) ||
            source_passes(list.heads[0], "cuda:sm_90a", &passes, &error) ||
            source_generate_pass(passes.head[PASS_VALUES], "cuda:sm_90a", PASS_VALUES, &source, &error) ||
            trial_make(&trial, passes.head[PASS_VALUES], &source.facts, shape, 1, &error),
        &error);
    assert_int_equal(passes.head[PASS_VALUES]->d, D);
    assert_int_equal(passes.head[PASS_VALUES]->terms[0].branches[1].width, 40);
    for (int i = 0; i < TOKENS * D; i++) {
        assert_int_equal(trial.q[i] == 0, i % D >= BEHIND);
        assert_int_equal(trial.k[i] == 0, i % D >= BEHIND);
    }
    trial_free(&trial);
    source_free(&source);
    head_free(passes.head[PASS_VALUES]);
    head_list_free(&list);
}

/* Two terms whose rows overlap have four monomials, of which two and two differ in one factor: x a b + y a b is (x + y) a b, whose rows are x's and y's. */
static void monomials_that_differ_in_one_factor_are_one(void **state)
{
    static const char text[] =
        "return head { name = 'x', d = 64, dv = 64, dtype = 'bf16', terms = {\n"
        "  term { select(range(1, 30)), trainable { name = 'a', rows = 7 }, select(range(61, 63)) },\n"
        "  term { select(range(21, 40)), trainable { name = 'c', rows = 5 }, select(range(57, 59)) } } }\n";
    enum { PRODUCTS = 2, ROWS = 32 }; /* 30, of whole blocks */
    fpa_head_list list = {.count = 0};
    fpa_passes passes = {0};
    fpa_error error;
    assert_ok(spec_load_text("differ.lua", NULL, text, sizeof text - 1, &list, &error) ||
                  source_passes(list.heads[0], "cuda:sm_90a", &passes, &error),
              &error);
    const fpa_head *values = passes.head[PASS_VALUES];
    assert_non_null(values);
    assert_int_equal(values->term_count, PRODUCTS);
    const fpa_branch *branches = values->terms[0].branches;
    assert_true(branches[0].width == ROWS || branches[1].width == ROWS);
    head_free(passes.head[PASS_ROWS]);
    head_free(passes.head[PASS_VALUES]);
    head_list_free(&list);
}

/* Sums of 3 + 3 and 1 + 5 blocks fit beside two tiles and 192 values, and all rows follow each other; those of 6 + 5 more do not fit. */
static void monomials_are_taken_at_a_time_while_their_sums_fit(void **state)
{
    static const struct {
        const char *more, *sets, *last, *written; /* tiles of a group, where suffixes are few blocks */
    } expected[] = {{"", " SETS = 1,", "SLABS = 2, STEPS = 8, BLOCKS = 12,", " WRITTEN = 1,"},
                    {", term { trainable { name = 'c', rows = 48 }, select(range(26, 64)) }", " SETS = 2,",
                     "STEPS = 6, BLOCKS = 11,", " WRITTEN = 1,"},
                    {", term { select(range(26, 30)), trainable { name = 'd', rows = 144 } }", " SETS = 2,",
                     "STEPS = 10, BLOCKS = 19,", " WRITTEN = 0,"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char text[512];
        fpa_head_list list = {.count = 0};
        fpa_passes passes = {0};
        fpa_source source = {0};
        fpa_error error;
        const int size =
            snprintf(text, sizeof text,
                     "return head { name = 'x', d = 64, dv = 192, dtype = 'bf16', gate = true, terms = {\n"
                     "  term { trainable { name = 'a', rows = 24 }, select(range(1, 20)) },\n"
                     "  term { trainable { name = 'b', rows = 40 }, select(range(21, 25)) }%s } }\n",
                     expected[i].more);
        assert_ok(
            spec_load_text("sets.lua", NULL, text, (size_t)size, &list, &error) ||
                source_passes(list.heads[0], "cuda:sm_90a", &passes, &error) ||
                source_generate_pass(passes.head[PASS_VALUES], "cuda:sm_90a", PASS_VALUES, &source, &error),
            &error);
        assert_non_null(strstr(source.code, expected[i].sets));
        assert_non_null(strstr(source.code, expected[i].last));
        assert_non_null(strstr(source.code, expected[i].written));
        source_free(&source);
        head_free(passes.head[PASS_ROWS]);
        head_free(passes.head[PASS_VALUES]);
        head_list_free(&list);
    }
}

/* ---- on the CPU ---- */

static const char *const emulated[] = {
    "plain",       "square",         "line",           "lines",         "taylor",        "linear",
    "gatednorm",   "gated",          "broad",          "ragged",        "squares",       "powers",
    "fading",      "fadinghalf",     "fadingsome",     "turned",        "fadingsum",     "weighed",
    "weighedsum",  "passedrows",     "squareofrows",   "halfsquare",    "widenorm",      "numbers",
    "broadsquare", "broadfading",    "sums",           "fewsums",       "fadingtaylor",  "fadingcube",
    "cubeofpairs", "halfcube",       "cubicsum",       "fadingpower",   "pairs",         "halfpairs",
    "products",    "halfproducts",   "widepairs",      "broadpairs",    "broadproducts", "fadingproducts",
    "features",    "fadingfeatures", "halffeatures",   "sumoffeatures", "half",          "parted",
    "cubic",       "halflines",      "raggedfeatures", "fadingodd",     "parts",         "gatedparts",
    "raggedparts", "halfparts",      "normparts",      "oddmoved",      "halfnumbers",   "halfopen",
    "halfclosed",  "fadingsums",     "hedgehog",       "random",        "factors"};

enum {
    EMULATED = sizeof emulated / sizeof *emulated,
    SHORT = 90 /* tokens, of many columns */,
    LONGER = 400,
    MANY = 132 /* multiprocessors: walks are cut into segments */,
    SEVERAL = 1600 /* states are left within */
};

/* FPA_TEST_HEAD: one alone, by its name. */
static bool is_run(const char *name)
{
    static const char *const fixed[] = {"line",   "taylor",  "linear",    "gatednorm",
                                        "ragged", "squares", "gatedparts"};
    const char *only = getenv("FPA_TEST_HEAD");
    return only ? strcmp(only, name) == 0
                : dear_tests() || is_one_of(fixed, sizeof fixed / sizeof *fixed, name);
}

static void passes_are_the_gradients_of_the_formula(void **state)
{
    static backward_job jobs[EMULATED];
    static const char *const cut[] = {"turned",      "fadinghalf", "widenorm",    "halflines",
                                      "raggedparts", "normparts",  "halfnumbers", "halfopen"};
    static const char *const longer[] = {
        "pairs",     "halfpairs",  "products",     "halfproducts",
        "widepairs", "broadpairs", "broadproducts"}; /* than chunks of passes */
    static const char *const copied[] = {
        "broadsquare",  "broadfading", "sums",        "fewsums",
        "fadingtaylor", "fadingcube",  "cubeofpairs", /* contractions that read states of several blocks of columns */
        "gatedparts",   "halfparts"};                 /* states that are kept */
    const backward_fixture *f = *state;
    uint64_t launched = 0, passed = 0;
    share taken = {0};
    int count = 0, chosen = 0, wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < EMULATED; i++) {
        const int head = backward_head_named(f, emulated[i]);
        if (is_run(emulated[i]) && share_take(&taken, chosen++)) {
            jobs[count] = (backward_job){.fixture = f, .head = head, .number = i, .passes = true};
            jobs[count].pass_limit = i % 2 ? 1 : 0; /* sequences one at a time */
            jobs[count].half = 2 - count % 2;
            jobs[count].multiprocessors = is_one_of(cut, sizeof cut / sizeof *cut, emulated[i]) ? MANY : 0;
            jobs[count].check = dear_tests() || strcmp(emulated[i], "gatednorm") == 0 ||
                                        strcmp(emulated[i], "turned") == 0 ||
                                        strcmp(emulated[i], "fading") == 0
                                    ? backward_edge_check
                                    : NULL;
            jobs[count].longest = strncmp(emulated[i], "fading", 6) == 0 ||
                                          is_one_of(cut, sizeof cut / sizeof *cut, emulated[i])
                                      ? SEVERAL
                                  : is_one_of(copied, sizeof copied / sizeof *copied, emulated[i]) ? LONGER
                                  : is_one_of(longer, sizeof longer / sizeof *longer, emulated[i]) ? LONGER
                                  : f->list.heads[head]->dv > 128                                  ? SHORT
                                  : backward_source(f, head)->facts.chunk >= 384                   ? LONGER
                                                                                                   : 0;
            jobs[count++].code = backward_source(f, head)->code;
        }
    }
    dear_report("heads", count, EMULATED);
    share_report(&taken, "heads", chosen);
    backward_run(count, jobs);
    for (int i = 0; i < count; i++) {
        backward_report(&jobs[i], "as forward passes");
        wrong += jobs[i].status != FPA_OK || !strstr(jobs[i].text, "as forward passes");
        launched |= jobs[i].launched;
        passed |= jobs[i].passed;
    }
    assert_int_equal(wrong, 0);
    if (getenv("FPA_TEST_HEAD") || share_is_part())
        return;
    assert_true(launched >> CUDA_BACKWARD_GATHER & 1);
    assert_true(launched >> CUDA_BACKWARD_SCATTER & 1);
    assert_true(passed >> CUDA_CLUSTER_SCAN & 1);
    assert_true(passed >> CUDA_CHUNK_CONTRACTION & 1);
}

/* Calls that no pass is made for. */
static void other_calls_have_no_passes(void **state)
{
    static struct fpa_cuda_module cuda, coordinates = {.geometry.backward_both = 1},
                                        pairs = {.geometry.pass_parallel = 1},
                                        features = {.geometry.pass_features = 8};
    static const fpa_module pass, none = {.handle = &cuda};
    const fpa_module module = {.passes = {&pass, &pass}, .handle = &cuda};
    const fpa_module of_pairs = {.passes = {&pass, &pass}, .handle = &pairs};
    const fpa_module of_features = {.passes = {&pass, &pass}, .handle = &features};
    const fpa_module of_coordinates = {.passes = {&pass, &pass}, .handle = &coordinates};
    static const float number;
    const struct fpa_backward_launch plain = {.forward = {.heads = 2, .query_heads = 2}};
    struct fpa_backward_launch a = plain;
    assert_true(cuda_takes_passes(&module, FORM_CHUNKED, &a));
    assert_false(cuda_takes_passes(&none, FORM_CHUNKED, &a));
    assert_true(cuda_takes_passes(&of_coordinates, FORM_CHUNKED, &a));
    assert_true(cuda_takes_passes(&of_pairs, FORM_PARALLEL, &a));
    assert_false(cuda_takes_passes(&of_pairs, FORM_CHUNKED, &a));
    a.forward.length = 64;
    assert_false(cuda_takes_passes(&of_features, FORM_CHUNKED, &a));
    a.forward.length = 65;
    assert_true(cuda_takes_passes(&of_features, FORM_PARALLEL, &a));
    a.forward.query_heads = 4;
    assert_true(cuda_takes_passes(&module, FORM_CHUNKED, &a));
    assert_false(cuda_takes_passes(&of_coordinates, FORM_CHUNKED, &a));
    a = plain, a.forward.state_in = &number;
    assert_false(cuda_takes_passes(&module, FORM_CHUNKED, &a));
    a = plain, a.d_state_out = &number;
    assert_false(cuda_takes_passes(&module, FORM_CHUNKED, &a));
    a = plain, a.d_state_in = (void *)(uintptr_t)&number;
    assert_false(cuda_takes_passes(&module, FORM_CHUNKED, &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polynomials_of_one_dot_have_passes),
        cmocka_unit_test(few_values_are_contracted_in_the_parallel_form_for_longer),
        cmocka_unit_test(rows_behind_a_dot_are_zero),
        cmocka_unit_test(monomials_that_differ_in_one_factor_are_one),
        cmocka_unit_test(monomials_are_taken_at_a_time_while_their_sums_fit),
        cmocka_unit_test(passes_are_the_gradients_of_the_formula),
        cmocka_unit_test(other_calls_have_no_passes),
    };
    return cmocka_run_group_tests_name("passes", tests, backward_setup, backward_teardown);
}

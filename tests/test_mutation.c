/* Verification must be able to fail: emitted kernels with one mistake each are refused (DESIGN 8). */
#include "runtime/verify/verify.h"
#include "gen/gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char spec[] =
    "return head { name = 'small', d = 16, dv = 16, chunk = 64, gate = true, normalize = 'sum',\n"
    "  terms = tspow { d = 16, degree = 2, block = 4 } }\n";

/* Replace the count-th occurrence (from 1) of `from` by `to`. */
struct mutation {
    const char *what;
    const char *from, *to;
    int count;
};

static const struct mutation mutations[] = {
    {"one wrong weight", "weigh(key, 2.0f)", "weigh(key, 1.0f)", 3},
    {"a weight on both sides", "~key & (vi)splat(1.0f)", "~key & (vi)splat(weight)", 1},
    {"one wrong row in one feature", "set4(p + 5 * T, a * get4(x + 1", "set4(p + 5 * T, a * get4(x + 2", 1},
    {"a missing tile of the state", "        tile(c, t);\n",
     "        if (t != tiles + 1)\n            tile(c, t);\n", 1},
    {"a missing tile of the recurrent form", "        token_tile(c, p, t->feature, t->features);\n",
     "        if (t != tiles + 1)\n            token_tile(c, p, t->feature, t->features);\n", 1},
    {"features of another tile", "{48, 48, 0, features_1}", "{48, 48, 0, features_0}", 1},
    {"a key that its own query misses", "m + 6 < n ? m + 6 : n", "m + 5 < n ? m + 5 : n", 1},
    {"a mask that hides the own token", "& (age == 0)", "& (age == -1)", 1},
    {"a mask that shows the next token", "(vi)splat(1.0f) & (age == 0)",
     "(vi)splat(1.0f) & ((age == 0) | (age == -1))", 1},
    {"a gate applied to its own token", "g->suffix[t] = (float)product;\n        product *= exact[t];",
     "product *= exact[t];\n        g->suffix[t] = (float)product;", 1},
    {"a state that does not decay", "const float decay = b ? 1.0f : c->decay;", "const float decay = 1.0f;",
     1},
    {"a recurrent state that does not decay", "c.decay = (float)exp(", "c.decay = 1 + 0 * (float)exp(", 1},
    {"a denominator without the state", "out[VALUES + t] *= decay", "out[VALUES + t] *= 0", 1},
    {"a chunk that forgets its first panel", "for (int j = 0; j < block; j++)",
     "for (int j = 1; j < block; j++)", 1},
    {"an initial state that is ignored", "if (!a->state_in)", "if (!a->state_in || a->length)", 1},
    {"a last token that is not written", "for (int t = 0; t < tokens; t++)\n        store_token",
     "for (int t = 0; t + (token > 0 && tokens < T) < tokens; t++)\n        store_token", 1},
    {"an output one element too long",
     "static void store_token(const float *restrict o, float den, stored *restrict to)\n{",
     "static void store_token(const float *restrict o, float den, stored *restrict to)\n{\n    to[DV] = 1;",
     1},
    {"recent tokens without the query's own", "end = a->recent + 1; end > 0", "end = a->recent; end > 0", 1},
    {"recent tokens that do not fade", "w->gates->suffix[j] * between", "1.0f * between", 1},
    {"a state that does not fade behind recent tokens", "to[e] = decay * to[e]", "to[e] = to[e]", 1},
    {"a denominator without recent tokens", "*den + out[VALUES + 1 + g]", "*den", 1},
    {"a state that a recall changes", "h * group + g, queries, mine, w->o, s, 0, rank",
     "h * group + g, queries, mine, w->o, s, 1, rank", 1},
    {"keys without queries that are lost", "} while ((g += QUERY_LANES) < group);",
     "} while ((g += QUERY_LANES) < group && g);\n        if (!group)\n            memset(s, 0, "
     "sizeof(float) * STATE);",
     1},
    {"the wrong key head of a group", "u.h = u.query_head / group_of(a)", "u.h = u.query_head % a->heads", 1},
};

/* The same in pairs of bf16: what is particular to them. */
static const char pair_spec[] = "return head { name = 'small', d = 16, dv = 16, chunk = 64, gate = true, "
                                "normalize = 'sum', dtype = 'bf16',\n"
                                "  terms = tspow { d = 16, degree = 2, block = 4 } }\n";

static const struct mutation pair_mutations[] = {
    {"halves of pairs in the wrong order", "(vs){0, 16, 1, 17,", "(vs){16, 0, 1, 17,", 1},
    {"a last key without its pair", "n = (keys + 1) / 2", "n = keys / 2", 1},
    {"a last token without its pair", "(tokens + 1) / 2, n", "tokens / 2, n", 1},
    {"a state's copy without its last rows", "DV, n, DV, mine->rows)", "DV, n - 4, DV, mine->rows)", 1},
    {"a dot of one row twice", "get16(x + 1 * T)));", "get16(x + 0 * T)));", 1},
    {"sums that do not decay", "narrow(get16(key_decay + t), get16(key_decay + t + VL))",
     "0x3f803f80 - (vi){0}", 1},
    {"a key that its own query misses", "(m + 24 + 1) / 2", "(m + 24 - 1) / 2", 1},
    {"a first half of features for both", "pair(get16(from + i), r + 1 < rows ? get16(from + stride + i)",
     "pair(get16(from + i), r + 1 < rows ? get16(from + i)", 1},
};

static char *replace(const char *text, const struct mutation *m)
{
    const char *at = text;
    for (int i = 0; i < m->count; i++) {
        at = strstr(i ? at + 1 : at, m->from);
        if (!at)
            fail_msg("%s: the emitted code has no '%s'", m->what, m->from);
    }
    char *result = NULL;
    if (asprintf(&result, "%.*s%s%s", (int)(at - text), text, m->to, at + strlen(m->from)) < 0)
        fail_msg("out of memory");
    return result;
}

struct fixture {
    fpa_head_list list;
    fpa_source source;
};

#define PAIR_TARGET "c:avx512bf16"

/* The mutations name vectors of 4 floats, which every machine has. */
static const char *narrow_target(void)
{
    return target_runs(target_find("c:neon")) ? "c:neon" : "c:sse2";
}

static int make_fixture(const char *text, const char *target, struct fixture *f)
{
    fpa_error error = {0};
    setenv("FPA_CFLAGS", "-O1", 0);
    if (spec_load_text("mutation.lua", NULL, text, strlen(text), &f->list, &error) ||
        source_generate(f->list.heads[0], target, &f->source, &error))
        return fprintf(stderr, "%s: %s\n", error.where, error.message), -1;
    return 0;
}

static int setup(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(spec, narrow_target(), &f);
}

static int setup_pairs(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(pair_spec, PAIR_TARGET, &f);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    source_free(&f->source);
    head_list_free(&f->list);
    return 0;
}

/* Compile and verify a text under the fixture's facts. */
static fpa_status verdict_of(const struct fixture *f, char *code, fpa_verdict *verdict, fpa_error *error)
{
    fpa_source mutant = f->source;
    fpa_object object = {0};
    fpa_module module = {0};
    mutant.code = code;
    fpa_status status = backend_c.compile(NULL, &mutant, &object, error);
    if (!status)
        status = backend_c.load(NULL, &object, "small", &module, error);
    if (status)
        fail_msg("%s: %s", error->where, error->message);
    status = verify_module(f->list.heads[0], &f->source.facts, &module, verdict, error);
    backend_c.unload(&module);
    free(object.bytes);
    return status;
}

static void the_kernel_as_emitted_is_accepted(void **state)
{
    fpa_verdict verdict;
    fpa_error error = {0};
    struct fixture *f = *state;
    if (verdict_of(f, f->source.code, &verdict, &error))
        fail_msg("%s: %s", error.where, error.message);
}

static void refuse_all(const struct fixture *f, const struct mutation *list, size_t count)
{
    int survived = 0;
    for (size_t i = 0; i < count; i++) {
        fpa_verdict verdict;
        fpa_error error = {0};
        char *code = replace(f->source.code, &list[i]);
        fpa_status status = verdict_of(f, code, &verdict, &error);
        print_message("%-42s %s\n", list[i].what, status ? error.message : "ACCEPTED");
        survived += status != FPA_REFUSED;
        free(code);
    }
    assert_int_equal(survived, 0);
}

static void every_mutant_is_refused(void **state)
{
    refuse_all(*state, mutations, sizeof mutations / sizeof *mutations);
}

static void every_mutant_in_pairs_is_refused(void **state)
{
    if (!target_runs(target_find(PAIR_TARGET))) {
        print_message("this machine has no AVX512_BF16\n");
        skip();
    }
    the_kernel_as_emitted_is_accepted(state);
    refuse_all(*state, pair_mutations, sizeof pair_mutations / sizeof *pair_mutations);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_as_emitted_is_accepted),
        cmocka_unit_test(every_mutant_is_refused),
    };
    const struct CMUnitTest in_pairs[] = {
        cmocka_unit_test(every_mutant_in_pairs_is_refused),
    };
    int failed = cmocka_run_group_tests_name("mutation", tests, setup, teardown);
    return failed + cmocka_run_group_tests_name("mutation in pairs", in_pairs, setup_pairs, teardown);
}

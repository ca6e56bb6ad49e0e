/* Verification must be able to fail: emitted kernels with one mistake each are refused.
 *
 * make test: one of each refusal; make test-all: all. */
#include "claims.h"
#include "dear.h"
#include "runtime/builder.h"
#include "runtime/verify/verify.h"
#include "gen/gen.h"
#include "faults_c.h"
#include "openmp_threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char spec[] =
    "return head { name = 'small', d = 16, dv = 16, chunk = 64, gate = true, normalize = 'sum',\n"
    "  terms = tspow { d = 16, degree = 2, block = 4 } }\n";

static const char pair_spec[] = "return head { name = 'small', d = 16, dv = 24, chunk = 64, gate = true, "
                                "normalize = 'sum', dtype = 'bf16',\n"
                                "  terms = tspow { d = 16, degree = 2, block = 4 } }\n";

static const char word_spec[] =
    "return head { name = 'small', d = 65, dv = 24, dtype = 'bf16', gate = true, terms = linear {} }\n";

static const char even_word_spec[] =
    "return head { name = 'small', d = 64, dv = 24, dtype = 'bf16', terms = linear {} }\n";

static const char half_spec[] =
    "return head { name = 'small', d = 16, dv = 24, gate = true, terms = linear {} }\n";

static const char open_pair_spec[] =
    "return head { name = 'small', d = 16, dv = 24, causal = false, normalize = 'sum', dtype = 'bf16',\n"
    "  terms = taylor { d = 16, degree = 2 } }\n";

static const char window_spec[] =
    "return head { name = 'small', d = 16, dv = 16, chunk = 64, normalize = 'sum', window = 20,\n"
    "  key_mask = true, terms = term { identity():map(elu_plus_one) } }\n";

static const char open_spec[] =
    "return head { name = 'small', d = 16, dv = 16, chunk = 64, causal = false, normalize = 'sum',\n"
    "  terms = tspow { d = 16, degree = 2, block = 4 } }\n";

static const char lift_spec[] =
    "return head { name = 'small', d = 4, dv = 4, chunk = 64, positions = 2, key_mask = true, terms = {\n"
    "  term { coordinates { identity(), trainable { name = 'g', diagonal = true }, map_q = silu, map_k = "
    "softplus,\n"
    "                       angle = 'a', phase = 'b', amplitude = 'c' } },\n"
    "  term { coordinates { { dense { { 1, 0, 2, 0 } }, dense { { 0, 1, 1, 0 } } },\n"
    "                       { dense { { 1, 1, 0, 1 } }, dense { { 0, 1, 0, -1 } } } } },\n"
    "  term { coordinates { dense { { 1, 1, 0, 0 }, { 0, 0, 1, -1 } }, map = elu_plus_one, square = 0.5 } "
    "},\n"
    "  term {} } }\n";

struct fixture {
    const char *target;
    fpa_head_list list;
    fpa_source source;
};

#define PAIR_TARGET "c:avx512bf16"
#define HALF_TARGET "c:avx512"

/* Vectors of 4 floats, which every machine has. */
static const char *narrow_target(void)
{
    return target_runs(target_find("c:neon")) ? "c:neon" : "c:sse2";
}

static int make_fixture(const char *text, const char *target, struct fixture *f)
{
    fpa_error error = {0};
    f->target = target;
    setenv("FPA_CFLAGS", "-O0", 0); /* compile time is what these tests cost */
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

/* Heads are walked in turn where a thread has several of them: one has all. */
static int setup_abreast(void **state)
{
    openmp_threads(1);
    return setup(state);
}

static int setup_window(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(window_spec, narrow_target(), &f);
}

static int setup_open(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(open_spec, narrow_target(), &f);
}

static int setup_lift(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(lift_spec, narrow_target(), &f);
}

static int setup_pairs(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(pair_spec, PAIR_TARGET, &f);
}

static int setup_words(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(word_spec, PAIR_TARGET, &f);
}

static int setup_even_words(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(even_word_spec, PAIR_TARGET, &f);
}

static int setup_halves(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(half_spec, HALF_TARGET, &f);
}

static int setup_values(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(half_spec, narrow_target(), &f);
}

static int setup_open_pairs(void **state)
{
    static struct fixture f;
    *state = &f;
    return make_fixture(open_pair_spec, PAIR_TARGET, &f);
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
    fpa_status status = builder_c.compile(NULL, &mutant, &object, error);
    if (!status)
        status = backend_c.load(NULL, &object, "small", &module, error);
    assert_ok(status, error);
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
    assert_ok(verdict_of(f, f->source.code, &verdict, &error), &error);
}

static void refuse_all(const struct fixture *f, const struct fault *list, size_t count)
{
    int survived = 0, refused = 0;
    for (size_t i = 0; i < count; i++) {
        fpa_verdict verdict;
        fpa_error error = {0};
        if (!fault_is_fixed(list, i))
            continue;
        char *code = fault_make_in(&list[i], f->list.heads[0], f->target, f->source.code);
        fpa_status status = verdict_of(f, code, &verdict, &error);
        survived += !fault_refused(&list[i], "", status, error.message);
        refused++;
        free(code);
    }
    dear_report("faults", refused, (int)count);
    assert_int_equal(survived, 0);
}

static void every_fault_is_refused_in_its_words(void **state)
{
    refuse_all(*state, c_faults, sizeof c_faults / sizeof *c_faults);
}

static void every_fault_of_heads_in_turn_is_refused_in_its_words(void **state)
{
    the_kernel_as_emitted_is_accepted(state);
    refuse_all(*state, abreast_faults, sizeof abreast_faults / sizeof *abreast_faults);
}

static void every_fault_of_a_window_is_refused_in_its_words(void **state)
{
    refuse_all(*state, window_faults, sizeof window_faults / sizeof *window_faults);
}

static void every_fault_without_a_mask_is_refused_in_its_words(void **state)
{
    the_kernel_as_emitted_is_accepted(state);
    refuse_all(*state, open_faults, sizeof open_faults / sizeof *open_faults);
}

static void every_fault_of_a_lift_is_refused_in_its_words(void **state)
{
    the_kernel_as_emitted_is_accepted(state);
    refuse_all(*state, lift_faults, sizeof lift_faults / sizeof *lift_faults);
}

static void refuse_all_here(void **state, const struct fault *list, size_t count)
{
    const struct fixture *f = *state;
    if (!target_runs(target_find(f->target))) {
        print_message("this machine cannot run %s\n", f->target);
        skip();
    }
    the_kernel_as_emitted_is_accepted(state);
    refuse_all(*state, list, count);
}

static void every_fault_in_pairs_is_refused_in_its_words(void **state)
{
    refuse_all_here(state, pair_faults, sizeof pair_faults / sizeof *pair_faults);
}

static void every_fault_of_words_is_refused_in_its_words(void **state)
{
    refuse_all_here(state, word_faults, sizeof word_faults / sizeof *word_faults);
}

static void every_fault_of_words_alone_is_refused_in_its_words(void **state)
{
    refuse_all_here(state, even_word_faults, sizeof even_word_faults / sizeof *even_word_faults);
}

static void every_fault_of_halves_of_vectors_is_refused_in_its_words(void **state)
{
    refuse_all_here(state, half_faults, sizeof half_faults / sizeof *half_faults);
}

static void every_fault_of_values_where_they_lie_is_refused_in_its_words(void **state)
{
    refuse_all(*state, value_faults, sizeof value_faults / sizeof *value_faults);
}

static void every_fault_in_pairs_without_a_mask_is_refused_in_its_words(void **state)
{
    refuse_all_here(state, open_pair_faults, sizeof open_pair_faults / sizeof *open_pair_faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_as_emitted_is_accepted),
        cmocka_unit_test(every_fault_is_refused_in_its_words),
    };
    const struct CMUnitTest of_windows[] = {
        cmocka_unit_test(the_kernel_as_emitted_is_accepted),
        cmocka_unit_test(every_fault_of_a_window_is_refused_in_its_words),
    };
    const struct CMUnitTest open[] = {
        cmocka_unit_test(every_fault_without_a_mask_is_refused_in_its_words),
    };
    const struct CMUnitTest lifted[] = {
        cmocka_unit_test(every_fault_of_a_lift_is_refused_in_its_words),
    };
    const struct CMUnitTest in_pairs[] = {
        cmocka_unit_test(every_fault_in_pairs_is_refused_in_its_words),
    };
    const struct CMUnitTest of_words[] = {
        cmocka_unit_test(every_fault_of_words_is_refused_in_its_words),
    };
    const struct CMUnitTest of_even_words[] = {
        cmocka_unit_test(every_fault_of_words_alone_is_refused_in_its_words),
    };
    const struct CMUnitTest of_halves[] = {
        cmocka_unit_test(every_fault_of_halves_of_vectors_is_refused_in_its_words),
    };
    const struct CMUnitTest of_values[] = {
        cmocka_unit_test(every_fault_of_values_where_they_lie_is_refused_in_its_words),
    };
    const struct CMUnitTest in_open_pairs[] = {
        cmocka_unit_test(every_fault_in_pairs_without_a_mask_is_refused_in_its_words),
    };
    const struct CMUnitTest abreast[] = {
        cmocka_unit_test(every_fault_of_heads_in_turn_is_refused_in_its_words),
    };
    int failed = cmocka_run_group_tests_name("mutation", tests, setup, teardown);
    failed += cmocka_run_group_tests_name("mutation of windows", of_windows, setup_window, teardown);
    failed += cmocka_run_group_tests_name("mutation without a mask", open, setup_open, teardown);
    failed += cmocka_run_group_tests_name("mutation of a lift", lifted, setup_lift, teardown);
    failed += cmocka_run_group_tests_name("mutation in pairs", in_pairs, setup_pairs, teardown);
    failed += cmocka_run_group_tests_name("mutation of words", of_words, setup_words, teardown);
    failed +=
        cmocka_run_group_tests_name("mutation of words alone", of_even_words, setup_even_words, teardown);
    failed += cmocka_run_group_tests_name("mutation of halves of vectors", of_halves, setup_halves, teardown);
    failed +=
        cmocka_run_group_tests_name("mutation of values where they lie", of_values, setup_values, teardown);
    failed += cmocka_run_group_tests_name("mutation in pairs without a mask", in_open_pairs, setup_open_pairs,
                                          teardown);
    return failed +
           cmocka_run_group_tests_name("mutation of heads in turn", abreast, setup_abreast, teardown);
}

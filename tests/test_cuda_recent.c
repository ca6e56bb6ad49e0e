/* Decoding with recent tokens beside the state: on the CPU, and where there is a GPU there too. */
#include "c_hurry.h"
#include "claims.h"
#include "gen/plan/cuda/cuda.h"
#include "recent.h"

#include <string.h>

static const char specs[] =
    "return {\n"
    "  head { name = 'plain', d = 32, dv = 32, scale = 0.25, terms = tspow { d = 32, degree = 2, block = 8 } "
    "},\n"
    "  head { name = 'gated', d = 24, dv = 40, scale = 0.25, gate = true, normalize = 'sum',\n"
    "         terms = tspow { d = 24, degree = 2, block = 8 } },\n"
    "  head { name = 'bfloat', d = 32, dv = 64, scale = 0.25, dtype = 'bf16', state_dtype = 'bf16',\n"
    "         gate = true, terms = tspow { d = 32, degree = 2, block = 8 } },\n"
    "  head { name = 'linear', d = 16, dv = 10, scale = 0.25, gate = true, terms = linear {} },\n"
    "  head { name = 'sums', d = 16, dv = 72, scale = 0.25, normalize = 'one_plus_sum',\n"
    "         terms = taylor { degree = 2 } },\n"
    "}\n";

/* tolerance: of the largest difference to one forward over all tokens, over the largest result */
static const struct {
    const char *name;
    double tolerance;
} heads[] = {{"plain", 2e-5}, {"gated", 1e-4}, {"bfloat", 4e-2}, {"linear", 2e-5}, {"sums", 1e-4}};

enum { HEADS = sizeof heads / sizeof *heads };

static int setup(void **state)
{
    static recent_fixture f = {.file = "recent.lua", .specs = specs, .count = HEADS};
    *state = &f;
    for (int i = 0; i < HEADS; i++)
        f.names[i] = heads[i].name;
    return recent_open(&f);
}

/* ---- the same as one forward ---- */

/* `once`: the recurrent form over all tokens, on the CPU. */
static void expect_same(const gpu_problem *decoded, const gpu_problem *once, int head, int64_t most,
                        const char *folding)
{
    static const int outputs[] = {OUT_O, OUT_STATE};
    for (int i = 0; i < 2; i++) {
        double error = operand_distance(&decoded->operand[outputs[i]], &once->operand[outputs[i]]);
        if (!(error <= heads[head].tolerance))
            fail_msg("%s, %lld tokens at most, put into the state by the %s form: %s differs by %g, but %g "
                     "is allowed",
                     heads[head].name, (long long)most, folding, i ? "the final state" : "o", error,
                     heads[head].tolerance);
    }
}

static void compare(const recent_fixture *f, fpa_kernel *const *kernels, const test_gpu *gpu)
{
    static const fpa_form forms[] = {FPA_FORM_AUTO, FPA_FORM_RECURRENT, FPA_FORM_PARALLEL};
    static const char *const names[] = {"automatic", "recurrent", "parallel"};
    static const int64_t most[] = {1, 3, 8, 40};
    const problem_shape shape = {.batch = 2, .length = 43, .query_heads = 6, .heads = 3};
    for (int i = 0; i < HEADS; i++) {
        const fpa_description *is = fpa_describe(kernels[i]);
        gpu_problem once, decoded;
        problem_make(&once, is, &shape, 5, NULL);
        problem_run(&once, f->c[i], FPA_FORM_RECURRENT);
        problem_make(&decoded, is, &shape, 5, gpu);
        for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
            decode_with_recent(&decoded, kernels[i], most[m], forms[m % 3]);
            expect_same(&decoded, &once, i, most[m], names[m % 3]);
        }
        problem_free(&once);
        problem_free(&decoded);
    }
}

static void decoding_with_recent_tokens_is_one_forward(void **state)
{
    const recent_fixture *f = *state;
    compare(f, f->c, NULL);
}

static void decoding_with_recent_tokens_is_one_forward_on_a_gpu(void **state)
{
    const recent_fixture *f = *state;
    if (!f->ready)
        skip();
    compare(f, f->cuda, &f->gpu);
}

/* Many query heads a key head, more recent tokens than a block packs at a time, few and many blocks a head.
 */
static void shapes_of_all_kinds_agree_on_a_gpu(void **state)
{
    static const problem_shape shapes[] = {{1, 150, 7, 1}, {40, 9, 16, 16}, {3, 20, 10, 2}};
    const recent_fixture *f = *state;
    if (!f->ready)
        skip();
    for (int i = 0; i < HEADS; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            gpu_problem once, decoded;
            problem_make(&once, fpa_describe(f->c[i]), &shapes[s], 6, NULL);
            problem_run(&once, f->c[i], FPA_FORM_RECURRENT);
            problem_make(&decoded, fpa_describe(f->cuda[i]), &shapes[s], 6, &f->gpu);
            decode_with_recent(&decoded, f->cuda[i], shapes[s].length, FPA_FORM_AUTO);
            expect_same(&decoded, &once, i, shapes[s].length, "automatic");
            problem_free(&once);
            problem_free(&decoded);
        }
}

/* ---- what is refused ---- */

/* A call with 3 recent tokens, spoilt by `spoil`; the message has to name `where` and hold `words`. */
static void expect_refusal(const recent_fixture *f, fpa_form form, void (*spoil)(gpu_problem *),
                           const char *where, const char *words)
{
    const problem_shape shape = {.batch = 1, .length = 4, .query_heads = 3, .heads = 3};
    gpu_problem p;
    fpa_error error = {0};
    size_t size;
    problem_make(&p, fpa_describe(f->c[1]), &shape, 1, NULL);
    p.operand[IN_Q].shape[1] = p.operand[OUT_O].shape[1] = 1;
    p.tensors.recent = 3;
    p.tensors.state_out = NULL;
    spoil(&p);
    assert_int_equal(fpa_workspace_size(f->c[1], form, &p.tensors, &size, &error), FPA_INVALID);
    assert_string_equal(error.where, where);
    if (!strstr(error.message, words))
        fail_msg("%s: %s", error.where, error.message);
    problem_free(&p);
}

static void nothing(gpu_problem *p)
{
}

static void a_final_state(gpu_problem *p)
{
    p->tensors.state_out = &p->operand[OUT_STATE].tensor;
}

static void a_token_less(gpu_problem *p)
{
    p->operand[IN_K].shape[1] = 3;
}

static void a_gate_less(gpu_problem *p)
{
    p->operand[IN_GATE].shape[1] = 3;
}

static void two_queries(gpu_problem *p)
{
    p->operand[IN_Q].shape[1] = 2;
}

static void fewer_than_none(gpu_problem *p)
{
    p->tensors.recent = -1;
}

static void no_query(gpu_problem *p)
{
    p->tensors.q = NULL;
    p->tensors.o = NULL;
}

static void mistakes_are_named(void **state)
{
    const recent_fixture *f = *state;
    expect_refusal(f, FPA_FORM_AUTO, a_final_state, "state_out", "with recent = 3 the state is not changed");
    expect_refusal(f, FPA_FORM_AUTO, a_token_less, "k",
                   "has 3 tokens, but q's token and the recent ones are 4");
    expect_refusal(f, FPA_FORM_AUTO, a_gate_less, "log_gate", "has 3 tokens");
    expect_refusal(f, FPA_FORM_AUTO, two_queries, "q", "has 2 tokens, but with recent tokens q has 1");
    expect_refusal(f, FPA_FORM_AUTO, fewer_than_none, "recent", "is -1");
    expect_refusal(f, FPA_FORM_AUTO, no_query, "q", "NULL");
    expect_refusal(f, FPA_FORM_CHUNKED, nothing, "recent", "only the recurrent form (2) supports");
}

int main(void)
{
    c_hurry_a_little();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_with_recent_tokens_is_one_forward),
        cmocka_unit_test(decoding_with_recent_tokens_is_one_forward_on_a_gpu),
        cmocka_unit_test(shapes_of_all_kinds_agree_on_a_gpu),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests_name("recent tokens", tests, setup, recent_close);
}

/* Heads with a window in calls that hand over a state and what it lacks: on the CPU, and where there is a GPU there too. */
#include "c_hurry.h"
#include "claims.h"
#include "recent.h"

#include <string.h>

static const char specs[] =
    "return {\n"
    "  head { name = 'based', d = 16, dv = 24, window = 20, scale = 1 / 4, normalize = 'sum', chunk = 64,\n"
    "         terms = taylor { degree = 2 } },\n"
    "  head { name = 'bfloat', d = 12, dv = 40, window = 85, scale = 1 / 4, normalize = 'one_plus_sum',\n"
    "         dtype = 'bf16', terms = taylor { degree = 2 } },\n"
    "  head { name = 'lifted', d = 24, dv = 10, window = 7, scale = 1 / 3, normalize = { 'max', eps = 1e-4 "
    "},\n"
    "         terms = term { identity():map(elu_plus_one) } },\n"
    "}\n";

/* tolerance: of the largest difference to one forward over all tokens, over the largest result */
static const struct {
    const char *name;
    int window;
    double tolerance;
} heads[] = {{"based", 20, 1e-4}, {"bfloat", 85, 4e-2}, {"lifted", 7, 1e-4}};

enum { HEADS = sizeof heads / sizeof *heads };

static int setup(void **state)
{
    static recent_fixture f = {.file = "window.lua", .specs = specs, .count = HEADS};
    *state = &f;
    for (int i = 0; i < HEADS; i++)
        f.names[i] = heads[i].name;
    return recent_open(&f);
}

static void expect_same(const gpu_problem *cut, const gpu_problem *once, int head, int64_t piece, bool lags)
{
    static const int outputs[] = {OUT_O, OUT_STATE};
    for (int i = 0; i < 2; i++) {
        double error = operand_distance(&cut->operand[outputs[i]], &once->operand[outputs[i]]);
        if (!(error <= heads[head].tolerance))
            fail_msg("%s, %lld tokens a call%s: %s differs by %g, but %g is allowed", heads[head].name,
                     (long long)piece, lags ? ", a state of every second" : "", i ? "the final state" : "o",
                     error, heads[head].tolerance);
    }
}

/* `once`: the recurrent form over all tokens, on the CPU. */
static void compare(const recent_fixture *f, fpa_kernel *const *kernels, const test_gpu *gpu)
{
    static const int64_t pieces[] = {1, 19, 20, 64, 101, 300};
    const problem_shape shape = {.batch = 2, .length = 300, .query_heads = 6, .heads = 3};
    for (int i = 0; i < HEADS; i++) {
        gpu_problem once, cut;
        problem_make(&once, fpa_describe(f->c[i]), &shape, 5, NULL);
        problem_run(&once, f->c[i], FPA_FORM_RECURRENT);
        problem_make(&cut, fpa_describe(kernels[i]), &shape, 5, gpu);
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
            for (int lags = 0; lags < 2; lags++) {
                run_with_window(&cut, kernels[i], heads[i].window, pieces[p], lags);
                expect_same(&cut, &once, i, pieces[p], lags);
            }
        problem_free(&once);
        problem_free(&cut);
    }
}

static void a_sequence_in_pieces_is_one_forward(void **state)
{
    const recent_fixture *f = *state;
    compare(f, f->c, NULL);
}

static void a_sequence_in_pieces_is_one_forward_on_a_gpu(void **state)
{
    const recent_fixture *f = *state;
    if (!f->ready)
        skip();
    compare(f, f->cuda, &f->gpu);
}

int main(void)
{
    c_hurry_a_little();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_in_pieces_is_one_forward),
        cmocka_unit_test(a_sequence_in_pieces_is_one_forward_on_a_gpu),
    };
    return cmocka_run_group_tests_name("windows on a GPU", tests, setup, recent_close);
}

/* fpac run: arrays in, arrays out, and a state handed over. */
#include "command_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

#include "read_array.h" /* it includes cmocka.h */

/* count numbers that are small and different. */
static void write_numbers(const char *path, int axes, const int64_t *shape)
{
    fpa_array array = {.axes = axes, .count = 1};
    fpa_error error = {0};
    for (int i = 0; i < axes; i++)
        array.count *= array.shape[i] = shape[i];
    array.data = malloc((size_t)array.count * sizeof *array.data + 1);
    assert_non_null(array.data);
    for (int64_t i = 0; i < array.count; i++)
        array.data[i] = (float)((i * 37 + 11) % 101) / 101 - 0.5f;
    if (npy_write(path, &array, &error))
        fail_msg("%s: %s", error.where, error.message);
    npy_free(&array);
}

/* ---- run ---- */

/* q, k, v of 2 sequences, 9 tokens, 2 heads, width 4. */
typedef struct arrays {
    char q[PATH], k[PATH], v[PATH], o[PATH], state[PATH];
} arrays;

/* fpac run with these, and other options. */
#define APPLY(here, paths, ...)                                                                              \
    RUN("fpac", "run", (here).spec, "--q", (paths).q, "--k", (paths).k, "--v", (paths).v, "-o",              \
        (paths).o __VA_OPT__(, ) __VA_ARGS__)

static void arrays_make(const place *here, arrays *paths)
{
    const int64_t shape[4] = {2, 9, 2, 4};
    place_file(here, "q.npy", paths->q);
    place_file(here, "k.npy", paths->k);
    place_file(here, "v.npy", paths->v);
    place_file(here, "o.npy", paths->o);
    place_file(here, "state.npy", paths->state);
    write_numbers(paths->q, 4, shape);
    write_numbers(paths->k, 4, shape);
    write_numbers(paths->v, 4, shape);
}

/* o_t = sum over j <= t of (q_t.k_j)^2 v_j, written out. */
static void check_square(const arrays *paths)
{
    fpa_array q = read_array(paths->q), k = read_array(paths->k), v = read_array(paths->v);
    fpa_array o = read_array(paths->o);
    assert_int_equal(o.count, q.count);
    for (int64_t i = 0; i < o.count; i++) {
        int64_t e = i % 4, head = i / 4 % 2, t = i / 8 % 9, b = i / 72;
        double sum = 0;
        for (int64_t j = 0; j <= t; j++) {
            double dot = 0;
            int64_t at = (b * 9 + j) * 8 + head * 4;
            for (int64_t x = 0; x < 4; x++)
                dot += (double)q.data[(b * 9 + t) * 8 + head * 4 + x] * (double)k.data[at + x];
            sum += dot * dot * (double)v.data[at + e];
        }
        assert_float_equal((float)sum, o.data[i], 1e-5f);
    }
    npy_free(&q);
    npy_free(&k);
    npy_free(&v);
    npy_free(&o);
}

static void check_every_form(const char *target)
{
    static const char *const forms[] = {"auto", "parallel", "chunked", "recurrent"};
    place here;
    arrays paths;
    place_begin(&here, two_heads_spec);
    arrays_make(&here, &paths);
    for (int i = 0; i < 4; i++) {
        unlink(paths.o);
        expect(APPLY(here, paths, "--head", "two", "--form", forms[i], "--target", target), 0, NULL, NULL);
        check_square(&paths);
    }
    scratch_remove(here.folder);
}

static void run_computes_the_formula_in_every_form(void **state)
{
    (void)state;
    check_every_form("c");
}

static bool is_bf16(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return (bits & 0xffff) == 0;
}

static bool all_are_bf16(const char *path)
{
    fpa_array o = read_array(path);
    bool all = o.count > 0;
    for (int64_t i = 0; i < o.count; i++)
        all = all && is_bf16(o.data[i]);
    npy_free(&o);
    return all;
}

static void commands_take_another_dtype_than_the_heads(void **state)
{
    place here;
    arrays paths;
    char head[PATH];
    (void)state;
    place_begin(&here, tiny_spec);
    arrays_make(&here, &paths);
    expect(APPLY(here, paths), 0, NULL, NULL);
    assert_false(all_are_bf16(paths.o));
    expect(APPLY(here, paths, "--dtype", "bf16"), 0, NULL, NULL);
    assert_true(all_are_bf16(paths.o));
    expect(APPLY(here, paths, "--dtype", "f64"), 1, NULL, "f64 is no dtype");
    expect(RUN("fpac", "explain", here.spec, "--dtype", "bf16", "--dump", "head"), 0, "dtype bf16", NULL);
    expect(RUN("fpac", "verify", here.spec, "--dtype", "bf16"), 0, "verified", NULL);
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:sse2", "--dtype", "bf16"), 0, NULL,
           NULL);
    place_file(&here, "tiny.head", head);
    expect(RUN("/usr/bin/env", "grep", "-x", "dtype bf16", head), 0, NULL, NULL);
    scratch_remove(here.folder);
}

static void run_needs_to_know_which_of_several_heads(void **state)
{
    place here;
    arrays paths;
    (void)state;
    place_begin(&here, two_heads_spec);
    arrays_make(&here, &paths);
    expect(APPLY(here, paths), 1, NULL, "name one of: ");
    expect(APPLY(here, paths, "--head", "three"), 1, NULL, "there is no head \"three\"");
    scratch_remove(here.folder);
}

static void run_computes_on_a_gpu(void **state)
{
    (void)state;
    if (!gpu_is_here())
        skip();
    check_every_form("cuda");
}

static void bench_on_a_gpu_tells_shares(void **state)
{
    static const char *const words[] = {"\"share_of_copy\": 0.", "\"dtype\": \"bf16\"",
                                        "\"operand_sets\": ", "\"form\": \"recurrent\""};
    place here;
    (void)state;
    if (!gpu_is_here())
        skip();
    place_begin(&here, tiny_spec);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--dtype", "bf16", "--length", "1",
                   "--heads", "64", "--graph", "--json"),
               0, words[i], NULL);
    expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--length", "512"), 0, "of copy", NULL);
    expect(RUN("fpac", "verify", here.spec, "--target", "cuda", "--time"), 0, "verified", NULL);
    expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--length", "512", "--repeats", "2",
               "--candidates"),
           0, "regret of tiny: ", NULL);
    scratch_remove(here.folder);
}

static void a_state_written_is_a_state_read(void **state)
{
    place here;
    arrays paths;
    (void)state;
    place_begin(&here, tiny_spec);
    arrays_make(&here, &paths);
    expect(APPLY(here, paths, "--state-out", paths.state), 0, NULL, NULL);
    fpa_array written = read_array(paths.state);
    assert_int_equal(written.axes, 4);
    assert_int_equal(written.shape[2], 12);
    npy_free(&written);
    expect(APPLY(here, paths, "--state-in", paths.state), 0, NULL, NULL);
    scratch_remove(here.folder);
}

static void run_refuses_wrong_files_and_writes_nothing(void **state)
{
    place here;
    arrays paths;
    char narrow[PATH], flat[PATH], text[PATH], missing[PATH];
    const int64_t narrow_shape[4] = {2, 9, 2, 3}, flat_shape[3] = {2, 9, 4};
    (void)state;
    place_begin(&here, tiny_spec);
    arrays_make(&here, &paths);
    place_file(&here, "narrow.npy", narrow);
    place_file(&here, "flat.npy", flat);
    place_file(&here, "text.npy", text);
    place_file(&here, "missing.npy", missing);
    write_numbers(narrow, 4, narrow_shape);
    write_numbers(flat, 3, flat_shape);
    text_write(text, "not an array");
    const char *const wrong[] = {narrow, flat, text, missing};
    for (int i = 0; i < 4; i++) {
        expect(RUN("fpac", "run", here.spec, "--q", paths.q, "--k", wrong[i], "--v", paths.v, "-o", paths.o),
               1, NULL, wrong[i]);
        expect(RUN("fpac", "run", here.spec, "--q", wrong[i], "--k", paths.k, "--v", paths.v, "-o", paths.o),
               1, NULL, wrong[i]);
        assert_int_not_equal(access(paths.o, F_OK), 0);
    }
    expect(APPLY(here, paths, "--log-gate", paths.v), 1, NULL, "gate");
    expect(APPLY(here, paths, "--weights", "w=w.npy"), 1, NULL, "--weights: w=w.npy");
    scratch_remove(here.folder);
}

static void trainable_weights_are_named(void **state)
{
    place here;
    arrays paths;
    char weight[PATH], option[PATH + 8];
    const int64_t shape[2] = {3, 4};
    (void)state;
    place_begin(&here, "local w = trainable { name = 'w', rows = 3, shared = true }\n"
                       "return head { name = 'own', d = 4, dv = 4, terms = { term { w, w } } }\n");
    arrays_make(&here, &paths);
    place_file(&here, "w.npy", weight);
    write_numbers(weight, 2, shape);
    snprintf(option, sizeof option, "w=%s", weight);
    expect(APPLY(here, paths), 1, NULL, "w is missing");
    expect(APPLY(here, paths, "--weights", "w="), 1, NULL, "--weights: w= names no file");
    expect(APPLY(here, paths, "--weights", option, "--weights", option), 1, NULL, "w is given twice");
    expect(APPLY(here, paths, "--weights", option), 0, NULL, NULL);
    scratch_remove(here.folder);
}

static void gates_that_overflow_are_found_by_a_check(void **state)
{
    place here;
    arrays paths;
    char gate[PATH];
    fpa_array gates = {.axes = 3, .shape = {2, 9, 2}, .count = 36, .data = calloc(36, sizeof(float))};
    fpa_error error;
    (void)state;
    place_begin(&here, "return head { name = 'gated', d = 4, dv = 4, gate = true, terms = linear() }\n");
    arrays_make(&here, &paths);
    place_file(&here, "gate.npy", gate);
    assert_int_equal(npy_write(gate, &gates, &error), FPA_OK);
    expect(APPLY(here, paths, "--log-gate", gate, "--check-finite", "--state-out", paths.state), 0, NULL,
           NULL);
    for (int i = 0; i < 36; i++)
        gates.data[i] = 50;
    assert_int_equal(npy_write(gate, &gates, &error), FPA_OK);
    expect(APPLY(here, paths, "--log-gate", gate), 0, NULL, NULL); /* numbers are the caller's business */
    unlink(paths.o);
    expect(APPLY(here, paths, "--log-gate", gate, "--check-finite"), 1, NULL, "o: [0, ");
    expect(APPLY(here, paths, "--log-gate", gate, "--check-finite"), 1, NULL, "positive log-gates");
    assert_int_not_equal(access(paths.o, F_OK), 0);
    gates.data[21] = INFINITY; /* [1, 1, 1] */
    assert_int_equal(npy_write(gate, &gates, &error), FPA_OK);
    expect(APPLY(here, paths, "--log-gate", gate, "--check-finite"), 1, NULL, "(log_gate): [1, 1, 1] is inf");
    npy_free(&gates);
    scratch_remove(here.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_computes_the_formula_in_every_form),
        cmocka_unit_test(commands_take_another_dtype_than_the_heads),
        cmocka_unit_test(run_needs_to_know_which_of_several_heads),
        cmocka_unit_test(run_computes_on_a_gpu),
        cmocka_unit_test(bench_on_a_gpu_tells_shares),
        cmocka_unit_test(a_state_written_is_a_state_read),
        cmocka_unit_test(run_refuses_wrong_files_and_writes_nothing),
        cmocka_unit_test(trainable_weights_are_named),
        cmocka_unit_test(gates_that_overflow_are_found_by_a_check),
    };
    return cmocka_run_group_tests_name("command, run", tests, NULL, NULL);
}

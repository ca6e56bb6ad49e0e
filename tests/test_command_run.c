/* fpac run: arrays in, arrays out, and a state handed over. */
#include "c_hurry.h"
#include "claims.h"
#include "base/dtype.h"
#include "command_place.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read_array.h"

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
    write_numbers(paths->q, 4, shape, small_number, 11);
    write_numbers(paths->k, 4, shape, small_number, 11);
    write_numbers(paths->v, 4, shape, small_number, 11);
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
    place_begin(&here, tiny_spec);
    arrays_make(&here, &paths);
    expect(APPLY(here, paths), 0, NULL, NULL);
    assert_false(all_are_bf16(paths.o));
    expect(APPLY(here, paths, "--dtype", "bf16"), 0, NULL, NULL);
    assert_true(all_are_bf16(paths.o));
    expect(APPLY(here, paths, "--dtype", "f64"), 2, NULL, "f64 is no dtype");
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
    place_begin(&here, two_heads_spec);
    arrays_make(&here, &paths);
    expect(APPLY(here, paths), 1, NULL, "name one of: ");
    expect(APPLY(here, paths, "--head", "three"), 1, NULL, "there is no head \"three\"");
    scratch_remove(here.folder);
}

static void run_computes_on_a_gpu(void **state)
{
    if (!gpu_is_here())
        skip();
    check_every_form("cuda");
}

static void bench_on_a_gpu_tells_shares(void **state)
{
    static const char *const words[] = {"\"share_of_copy\": 0.", "\"dtype\": \"bf16\"",
                                        "\"operand_sets\": ", "\"form\": \"recurrent\""};
    place here;
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
    place_begin(&here, tiny_spec);
    arrays_make(&here, &paths);
    place_file(&here, "narrow.npy", narrow);
    place_file(&here, "flat.npy", flat);
    place_file(&here, "text.npy", text);
    place_file(&here, "missing.npy", missing);
    write_numbers(narrow, 4, narrow_shape, small_number, 11);
    write_numbers(flat, 3, flat_shape, small_number, 11);
    text_write(text, "not an array");
    const char *const wrong[] = {narrow, flat, text, missing};
    for (int i = 0; i < 4; i++) {
        expect(RUN("fpac", "run", here.spec, "--q", paths.q, "--k", wrong[i], "--v", paths.v, "-o", paths.o),
               1, NULL, wrong[i]);
        expect(RUN("fpac", "run", here.spec, "--q", wrong[i], "--k", paths.k, "--v", paths.v, "-o", paths.o),
               1, NULL, wrong[i]);
        assert_int_not_equal(access(paths.o, F_OK), 0);
    }
    expect(APPLY(here, paths, "--log-gate", paths.v), 2, NULL, "--log-gate: is given, but tiny has no gate");
    expect(APPLY(here, paths, "--weights", "w=w.npy"), 2, NULL, "--weights: w=w.npy");
    scratch_remove(here.folder);
}

static float no_number(int64_t i, int seed)
{
    return -NAN;
}

static void trainable_weights_are_named(void **state)
{
    place here;
    arrays paths;
    char weight[PATH], option[PATH + 8];
    const int64_t shape[2] = {3, 4};
    place_begin(&here, "local w = trainable { name = 'w', rows = 3, shared = true }\n"
                       "return head { name = 'own', d = 4, dv = 4, terms = { term { w, w } } }\n");
    arrays_make(&here, &paths);
    place_file(&here, "w.npy", weight);
    write_numbers(weight, 2, shape, small_number, 11);
    snprintf(option, sizeof option, "w=%s", weight);
    expect(APPLY(here, paths), 2, NULL, "w is missing");
    expect(APPLY(here, paths, "--weights", "w="), 2, NULL, "--weights: w= names no file");
    expect(APPLY(here, paths, "--weights", option, "--weights", option), 2, NULL, "w is given twice");
    expect(APPLY(here, paths, "--weights", option), 0, NULL, NULL);
    write_numbers(weight, 2, shape, no_number, 11);
    program_result checked = APPLY(here, paths, "--weights", option, "--check-finite");
    assert_non_null(strstr(checked.err, "): [0, 0] is nan"));
    expect(checked, 1, NULL, "w.npy (--weights w=");
    write_numbers(weight, 1, shape, small_number, 11);
    expect(APPLY(here, paths, "--weights", option), 1, NULL, "w.npy (--weights w=");
    scratch_remove(here.folder);
}

static void a_form_that_is_not_there_is_told_with_the_reason(void **state)
{
    place here;
    arrays paths;
    place_begin(&here, "return head { name = 'all', d = 4, dv = 4, causal = false, terms = linear() }\n");
    arrays_make(&here, &paths);
    expect(APPLY(here, paths), 0, NULL, NULL);
    expect(APPLY(here, paths, "--form", "chunked"), 0, NULL, NULL);
    expect(
        APPLY(here, paths, "--form", "recurrent"), 1, NULL,
        "all: has no recurrent form (2): it is not causal (causal = false), so each token needs later keys, "
        "which the state does not contain; it has: parallel (0) chunked (1)");
    scratch_remove(here.folder);
}

/* The files of q, k and v in another type or order. */
static void rewrite(const char *path, const char *type, const char *order, const void *bytes, size_t size)
{
    char header[256];
    const int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (2, 9, 2, 4), }\n",
                 type, order);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fputc(length, file);
    fputc(0, file);
    fwrite(header, 1, (size_t)length, file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void float16_and_fortran_order_are_taken(void **state)
{
    enum { COUNT = 2 * 9 * 2 * 4 };
    place here;
    arrays paths;
    uint16_t halves[COUNT];
    float turned[COUNT];
    place_begin(&here, two_heads_spec);
    arrays_make(&here, &paths);
    fpa_array v = read_array(paths.v), q = read_array(paths.q);
    for (int i = 0; i < COUNT; i++) { /* [b][t][h][e] of C order lies at b + 2 t + 18 h + 36 e */
        turned[i / 72 + 2 * (i / 8 % 9) + 18 * (i / 4 % 2) + 36 * (i % 4)] = v.data[i];
        halves[i] = f16_from_float(q.data[i]);
    }
    rewrite(paths.v, "<f4", "True", turned, sizeof turned);
    expect(APPLY(here, paths, "--head", "two"), 0, NULL, "v.npy: is in Fortran order; it was copied");
    check_square(&paths);
    rewrite(paths.q, "<f2", "False", halves, sizeof halves);
    expect(APPLY(here, paths, "--head", "two", "--check-finite"), 0, NULL, NULL);
    fpa_array o = read_array(paths.o);
    assert_int_equal(o.item, 2);
    npy_free(&o);
    for (int i = 0; i < COUNT; i++)
        halves[i] = f16_from_float(3000);
    rewrite(paths.q, "<f2", "False", halves, sizeof halves);
    expect(APPLY(here, paths, "--head", "two"), 0, NULL, "numbers are beyond float16's 65504");
    npy_free(&v);
    npy_free(&q);
    scratch_remove(here.folder);
}

static void the_first_number_that_is_none_is_found(void **state)
{
    place here;
    arrays paths;
    fpa_error error;
    place_begin(&here, tiny_spec);
    arrays_make(&here, &paths);
    fpa_array k = read_array(paths.k);
    k.data[72 + 8 * 3 + 4 + 2] = NAN; /* [1, 3, 1, 2] */
    k.data[72 + 8 * 4] = NAN;
    assert_int_equal(npy_write(paths.k, &k, &error), FPA_OK);
    npy_free(&k);
    expect(APPLY(here, paths, "--check-finite"), 1, NULL, "k.npy (k): [1, 3, 1, 2] is nan");
    scratch_remove(here.folder);
}

/* What verify has compiled is not compiled again; --verbose says what happens. */
static void verify_fills_the_cache_of_run(void **state)
{
    place here;
    arrays paths;
    char cache[PATH];
    place_begin(&here, tiny_spec);
    arrays_make(&here, &paths);
    place_file(&here, "cache", cache);
    const char *const before = getenv("FPA_CACHE_DIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("FPA_CACHE_DIR", cache, 1);
    expect(RUN("fpac", "verify", here.spec, "--verbose"), 0,
           "kept in the cache, where fpac run finds it: ", "tiny: compiled for ");
    program_result result = APPLY(here, paths, "--verbose");
    assert_null(strstr(result.err, "compil"));
    assert_non_null(strstr(result.err, "tiny: parallel form, for 9 tokens"));
    expect(result, 0, NULL, "tiny: taken from the cache, ");
    setenv("FPA_CACHE_DIR", "/dev/null/cache", 1);
    expect(APPLY(here, paths), 0, NULL,
           "cache: warning: not used, so that every open compiles: /dev/null/cache");
    expect(APPLY(here, paths, "--verbose", "--form", "chunked"), 0, NULL,
           "tiny: chunked form, as --form says");
    setenv("FPA_CACHE_DIR", cache, 1);
    expect(RUN("fpac", "bench", here.spec, "--length", "4294967296", "--batch", "1048576"), 1, NULL,
           "fpac: memory: an array of 18014398509481984 numbers cannot be allocated");
    if (kept)
        setenv("FPA_CACHE_DIR", kept, 1);
    else
        unsetenv("FPA_CACHE_DIR");
    free(kept);
    scratch_remove(here.folder);
}

static void gates_that_overflow_are_found_by_a_check(void **state)
{
    place here;
    arrays paths;
    char gate[PATH];
    fpa_array gates = {.axes = 3, .shape = {2, 9, 2}, .count = 36, .data = calloc(36, sizeof(float))};
    fpa_error error;
    place_begin(&here, "return head { name = 'gated', d = 4, dv = 4, gate = true, terms = linear() }\n");
    arrays_make(&here, &paths);
    place_file(&here, "gate.npy", gate);
    assert_int_equal(npy_write(gate, &gates, &error), FPA_OK);
    expect(APPLY(here, paths, "--log-gate", gate, "--check-finite", "--state-out", paths.state), 0, NULL,
           NULL);
    for (int i = 0; i < 36; i++)
        gates.data[i] = 50;
    assert_int_equal(npy_write(gate, &gates, &error), FPA_OK);
    expect(APPLY(here, paths, "--log-gate", gate), 0, NULL, /* numbers are the caller's business */
           "gate.npy: 36 of 36 log-gates are positive, the first at [0, 0, 0]");
    expect(APPLY(here, paths), 2, NULL, "--log-gate: is needed: gated is gated");
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
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_computes_the_formula_in_every_form),
        cmocka_unit_test(commands_take_another_dtype_than_the_heads),
        cmocka_unit_test(run_needs_to_know_which_of_several_heads),
        cmocka_unit_test(run_computes_on_a_gpu),
        cmocka_unit_test(bench_on_a_gpu_tells_shares),
        cmocka_unit_test(a_state_written_is_a_state_read),
        cmocka_unit_test(run_refuses_wrong_files_and_writes_nothing),
        cmocka_unit_test(trainable_weights_are_named),
        cmocka_unit_test(a_form_that_is_not_there_is_told_with_the_reason),
        cmocka_unit_test(float16_and_fortran_order_are_taken),
        cmocka_unit_test(the_first_number_that_is_none_is_found),
        cmocka_unit_test(verify_fills_the_cache_of_run),
        cmocka_unit_test(gates_that_overflow_are_found_by_a_check),
    };
    return cmocka_run_group_tests_name("command, run", tests, NULL, NULL);
}

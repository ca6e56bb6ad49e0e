/* The command line: exit codes, messages, files, --json. Drives the program itself. */
#include "../gen/npy.h"
#include "program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

enum { PATH = 256 };

static const char tiny[] =
    "return head { name = 'tiny', d = 4, dv = 4, terms = tspow { d = 4, degree = 2, block = 2 } }\n";

static const char two_heads[] = "return {\n"
                                "  head { name = 'one', d = 4, dv = 4, terms = linear {} },\n"
                                "  head { name = 'two', d = 4, dv = 4, terms = power { degree = 2 } },\n"
                                "}\n";

/* A folder of one test with a spec in it. */
typedef struct place {
    char folder[64];
    char spec[PATH];
} place;

static void place_make(place *here, const char *spec)
{
    scratch_make(here->folder);
    snprintf(here->spec, sizeof here->spec, "%s/spec.lua", here->folder);
    text_write(here->spec, spec);
}

static void place_path(const place *here, const char *name, char path[PATH])
{
    snprintf(path, PATH, "%s/%s", here->folder, name);
}

static void expect(program_result result, int code, const char *out, const char *err)
{
    if (result.code != code)
        fail_msg("exit code %d, but %d is expected; stderr: %s", result.code, code, result.err);
    if (out && !strstr(result.out, out))
        fail_msg("stdout lacks '%s': %s", out, result.out);
    if (err && !strstr(result.err, err))
        fail_msg("stderr lacks '%s': %s", err, result.err);
    program_free(&result);
}

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

static fpa_array read_numbers(const char *path)
{
    fpa_array array = {0};
    fpa_error error = {0};
    if (npy_read(path, &array, &error))
        fail_msg("%s: %s", error.where, error.message);
    return array;
}

/* ---- the line ---- */

static void help_exits_with_0_and_usage_errors_with_2(void **state)
{
    static const char *const commands[] = {"explain", "gen",  "verify",  "run",
                                           "bench",   "list", "prelude", "cache"};
    (void)state;
    expect(RUN("fpac", "--help"), 0, "usage: fpac", NULL);
    expect(RUN("fpac", "--version"), 0, "fpac ", NULL);
    expect(RUN("fpac"), 2, NULL, "usage: fpac");
    expect(RUN("fpac", "explane"), 2, NULL, "fpac: explane: no such command");
    for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++) {
        expect(RUN("fpac", commands[i], "--help"), 0, "usage: fpac", NULL);
        expect(RUN("fpac", commands[i], "--nonsense"), 2, NULL, "fpac: --nonsense: no such option");
    }
}

static void every_wrong_line_is_told_with_its_word(void **state)
{
    static const struct {
        const char *arguments[8], *message;
    } lines[] = {
        {{"fpac", "explain"}, "explain: too few operands"},
        {{"fpac", "explain", "a.lua", "b.lua"}, "b.lua: one operand too many"},
        {{"fpac", "explain", "a.lua", "--head"}, "--head: needs a value"},
        {{"fpac", "explain", "a.lua", "--json=yes"}, "--json=yes: takes no value"},
        {{"fpac", "explain", "a.lua", "--dump", "soup"}, "soup is no stage"},
        {{"fpac", "bench", "a.lua", "--length", "0"}, "--length: needs a whole number from 1"},
        {{"fpac", "bench", "a.lua", "--length", "12x"}, "--length: needs a whole number from 1"},
        {{"fpac", "gen", "a.lua"}, "-o: is needed"},
        {{"fpac", "run", "a.lua", "--q", "q.npy"}, "--k: is needed"},
        {{"fpac", "verify"}, "verify: too few operands"},
        {{"fpac", "bench", "a.lua", "--device", "-1"}, "--device: needs a whole number from 0"},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
        expect(program_run(lines[i].arguments), 2, NULL, lines[i].message);
}

static void a_spec_that_fails_exits_with_1_and_its_line(void **state)
{
    place here;
    (void)state;
    place_make(&here, "local x = 1\nreturn head { name = 'bad', d = 4, dv = 4, termz = linear {} }\n");
    expect(RUN("fpac", "explain", here.spec), 1, NULL, "spec.lua:2: ");
    expect(RUN("fpac", "verify", here.spec), 1, NULL, "spec.lua:2: ");
    expect(RUN("fpac", "list", here.spec), 1, NULL, "spec.lua:2: ");
    expect(RUN("fpac", "explain", "no/such/spec.lua"), 1, NULL, "fpac: no/such/spec.lua: ");
    scratch_remove(here.folder);
}

static void a_missing_head_is_told_with_those_there_are(void **state)
{
    place here;
    (void)state;
    place_make(&here, two_heads);
    program_result result = RUN("fpac", "explain", here.spec, "--head", "three");
    assert_non_null(strstr(result.err, "one"));
    assert_non_null(strstr(result.err, "two"));
    expect(result, 1, NULL, "three");
    expect(RUN("fpac", "explain", here.spec, "--head", "two"), 0, "head two", NULL);
    scratch_remove(here.folder);
}

static void an_unknown_target_is_told_with_those_there_are(void **state)
{
    place here;
    (void)state;
    place_make(&here, tiny);
    expect(RUN("fpac", "explain", here.spec, "--target", "c:mmx"), 1, NULL, "c:avx2");
    expect(RUN("fpac", "verify", here.spec, "--target", "c:mmx"), 1, NULL, "c:avx2");
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:avx2,mmx"), 1, NULL, "c:avx512");
    scratch_remove(here.folder);
}

/* ---- explain, list, prelude, cache ---- */

static void explain_shows_what_a_person_asks_for(void **state)
{
    static const char *const words[] = {"head tiny",       "d = 4",    "exact minimum", "TPOW",
                                        "crossover",       "parallel", "chunked",       "recurrent",
                                        "simplifications", "plan"};
    place here;
    (void)state;
    place_make(&here, tiny);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        expect(RUN("fpac", "explain", here.spec), 0, words[i], NULL);
    expect(RUN("fpac", "explain", here.spec, "--json"), 0, "\"features\": 12", NULL);
    scratch_remove(here.folder);
}

static void every_stage_can_be_dumped_and_is_the_same_twice(void **state)
{
    static const char *const stages[] = {"head", "simplified", "plan", "source"};
    place here;
    (void)state;
    place_make(&here, tiny);
    for (unsigned i = 0; i < sizeof stages / sizeof *stages; i++) {
        program_result first = RUN("fpac", "explain", here.spec, "--target", "c:avx2", "--dump", stages[i]);
        program_result second = RUN("fpac", "explain", here.spec, "--target", "c:avx2", "--dump", stages[i]);
        assert_string_equal(first.out, second.out);
        assert_true(strlen(first.out) > 20);
        program_free(&second);
        expect(first, 0, NULL, NULL);
    }
    scratch_remove(here.folder);
}

static void list_names_heads_and_targets(void **state)
{
    place here;
    (void)state;
    place_make(&here, two_heads);
    expect(RUN("fpac", "list", here.spec), 0, "two", NULL);
    expect(RUN("fpac", "list", here.spec, "--json"), 0, "\"head\": \"two\"", NULL);
    expect(RUN("fpac", "list"), 0, "c:avx512", NULL);
    expect(RUN("fpac", "list", "--json"), 0, "\"best\": true", NULL);
    scratch_remove(here.folder);
}

static void prelude_defines_the_vocabulary(void **state)
{
    (void)state;
    expect(RUN("fpac", "prelude"), 0, "tspow", NULL);
}

static void cache_counts_and_clears(void **state)
{
    place here;
    char cache[PATH], command[3 * PATH];
    (void)state;
    place_make(&here, tiny);
    place_path(&here, "cache", cache);
    const char *command_path = getenv("FPAC") ? getenv("FPAC") : "build/fpac";
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s bench %s --length 8", cache, command_path,
             here.spec);
    expect(RUN("/bin/sh", "-c", command), 0, "tiny", NULL);
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s cache --json", cache, command_path);
    expect(RUN("/bin/sh", "-c", command), 0, "\"entries\": 1", NULL);
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s cache --clear", cache, command_path);
    expect(RUN("/bin/sh", "-c", command), 0, "removed 1 entry", NULL);
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s cache --json", cache, command_path);
    expect(RUN("/bin/sh", "-c", command), 0, "\"entries\": 0", NULL);
    scratch_remove(here.folder);
}

static void a_full_standard_output_is_an_error(void **state)
{
    char command[PATH];
    (void)state;
    if (access("/dev/full", W_OK))
        skip();
    snprintf(command, sizeof command, "%s prelude >/dev/full",
             getenv("FPAC") ? getenv("FPAC") : "build/fpac");
    expect(RUN("/bin/sh", "-c", command), 1, NULL, "standard output");
}

/* ---- verify, bench ---- */

static void verify_shows_every_form_and_exits_with_0(void **state)
{
    place here;
    (void)state;
    place_make(&here, two_heads);
    program_result result = RUN("fpac", "verify", here.spec, "--jobs", "2");
    int rows = 0;
    for (const char *at = result.out; (at = strstr(at, "  verified\n")); at++)
        rows++;
    assert_int_equal(rows, 6);
    expect(result, 0, "recurrent", NULL);
    expect(RUN("fpac", "verify", here.spec, "--head", "two", "--time", "--json"), 0,
           "\"ns_per_token_and_head\":", NULL);
    scratch_remove(here.folder);
}

static void bench_reports_the_form_asked_for(void **state)
{
    place here;
    (void)state;
    place_make(&here, tiny);
    expect(RUN("fpac", "bench", here.spec, "--length", "64", "--form", "chunked", "--threads", "1",
               "--repeats", "3"),
           0, "chunked", NULL);
    expect(RUN("fpac", "bench", here.spec, "--length", "64", "--form", "recurrent", "--json"), 0,
           "\"form\": \"recurrent\"", NULL);
    expect(RUN("fpac", "bench", here.spec, "--form", "diagonal"), 1, NULL, "diagonal is no form");
    scratch_remove(here.folder);
}

/* ---- gen ---- */

static void gen_writes_files_that_compile_alone(void **state)
{
    place here;
    char code[PATH], header[PATH], manifest[PATH], object[PATH];
    (void)state;
    place_make(&here, tiny);
    place_path(&here, "tiny.c", code);
    place_path(&here, "tiny.h", header);
    place_path(&here, "manifest.fpa", manifest);
    place_path(&here, "tiny.o", object);
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:sse2"), 0, NULL, NULL);
    assert_int_equal(access(header, R_OK), 0);
    assert_int_equal(access(manifest, R_OK), 0);
    expect(
        RUN("/usr/bin/env", "cc", "-O1", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-c", code, "-o", object),
        0, NULL, NULL);
    scratch_remove(here.folder);
}

static void gen_with_objects_writes_shared_libraries(void **state)
{
    place here;
    char text[PATH];
    (void)state;
    place_make(&here, tiny);
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:sse2", "--object"), 0, NULL, NULL);
    place_path(&here, "tiny.sse2.so", text);
    assert_int_equal(access(text, R_OK), 0);
    scratch_remove(here.folder);
}

/* The exemplars in generated/ are what this build writes; the remedy is in the message. */
static void generated_exemplars_are_current(void **state)
{
    char folder[64], out[PATH];
    const char *command = getenv("FPAC") ? getenv("FPAC") : "build/fpac";
    (void)state;
    scratch_make(folder);
    snprintf(out, sizeof out, "%s/exemplars", folder);
    expect(RUN("tools/generated.sh", command, out), 0, NULL, NULL);
    program_result result = RUN("/usr/bin/diff", "-r", out, "generated/exemplars");
    if (result.code)
        fail_msg("generated/exemplars is stale; run: make generated\n%.400s", result.out);
    program_free(&result);
    scratch_remove(folder);
}

/* ---- CUDA targets, without a GPU ---- */

/* Whether `fpac list` says that of a CUDA target: nothing of the kind is tried a second time here. */
static bool list_says(const char *what)
{
    program_result result = RUN("fpac", "list");
    bool said = strstr(result.out, what) != NULL;
    assert_non_null(strstr(result.out, "cuda:sm_90"));
    program_free(&result);
    return said;
}

static bool nvrtc_is_here(void)
{
    return list_says("compiles it;");
}

static bool gpu_is_here(void)
{
    return list_says("; runs here");
}

/* The command on a machine without a driver, whatever this one has. */
#define RUN_WITHOUT_GPU(...)                                                                                 \
    RUN("/usr/bin/env", "FPA_LIBCUDA=/no/such/libcuda.so", getenv("FPAC") ? getenv("FPAC") : "build/fpac",   \
        __VA_ARGS__)

static void expect_file(const place *here, const char *name, const char *begin)
{
    char path[PATH];
    size_t size;
    place_path(here, name, path);
    char *text = text_read(path, &size);
    if (!text)
        fail_msg("%s was not written", path);
    if (size < strlen(begin) || memcmp(text, begin, strlen(begin)))
        fail_msg("%s does not begin with '%s'", path, begin);
    free(text);
}

static void list_tells_what_cuda_targets_need(void **state)
{
    (void)state;
    expect(RUN_WITHOUT_GPU("list"), 0, "cuda:sm_90", NULL);
    expect(RUN_WITHOUT_GPU("list"), 0, "no GPU here", NULL);
    expect(RUN_WITHOUT_GPU("list"), 0, "GPU: no NVIDIA driver", NULL);
    expect(RUN_WITHOUT_GPU("list", "--json"), 0, "\"shared_memory\": ", NULL);
    expect(RUN("/usr/bin/env", "FPA_LIBNVRTC=/no/such/libnvrtc.so",
               getenv("FPAC") ? getenv("FPAC") : "build/fpac", "list"),
           0, "no NVRTC here", NULL);
}

static void explain_plans_for_a_gpu_that_is_not_here(void **state)
{
    static const char *const names[] = {"sm_90", "cuda:sm_90"};
    static const char *const stages[] = {"plan", "source"};
    place here;
    (void)state;
    place_make(&here, tiny);
    for (int i = 0; i < 2; i++) {
        expect(RUN_WITHOUT_GPU("explain", here.spec, "--target", names[i]), 0, "on cuda:sm_90", NULL);
        program_result first = RUN("fpac", "explain", here.spec, "--target", names[0], "--dump", stages[i]);
        program_result second = RUN("fpac", "explain", here.spec, "--target", names[1], "--dump", stages[i]);
        assert_string_equal(first.out, second.out);
        program_free(&second);
        expect(first, 0, i ? "tiny_attend" : "cuda:sm_90", NULL);
    }
    scratch_remove(here.folder);
}

static void gen_writes_cubins_without_a_gpu(void **state)
{
    place here;
    (void)state;
    if (!nvrtc_is_here())
        skip();
    place_make(&here, tiny);
    expect(RUN_WITHOUT_GPU("gen", here.spec, "-o", here.folder, "--target", "sm_90"), 0, NULL, NULL);
    expect_file(&here, "tiny.cu", "/");
    expect_file(&here, "tiny.sm_90.cubin", "\177ELF");
    expect_file(&here, "manifest.fpa", "");
    expect(
        RUN_WITHOUT_GPU("gen", here.spec, "-o", here.folder, "--target", "c:sse2,sm_80,cuda:sm_90", "--ptx"),
        0, NULL, NULL);
    expect_file(&here, "tiny.sse2.c", "/");
    expect_file(&here, "tiny.sm_80.cu", "/");
    expect_file(&here, "tiny.sm_80.cubin", "\177ELF");
    expect_file(&here, "tiny.sm_90.cubin", "\177ELF");
    expect_file(&here, "tiny.sm_90.ptx", "//");
    scratch_remove(here.folder);
}

static void gen_for_a_gpu_says_what_is_missing(void **state)
{
    place here;
    (void)state;
    place_make(&here, tiny);
    expect(RUN("/usr/bin/env", "FPA_LIBNVRTC=/no/such/libnvrtc.so",
               getenv("FPAC") ? getenv("FPAC") : "build/fpac", "gen", here.spec, "-o", here.folder,
               "--target", "sm_90"),
           1, NULL, "NVRTC");
    expect(RUN_WITHOUT_GPU("gen", here.spec, "-o", here.folder, "--target", "cuda"), 1, NULL,
           "names no architecture");
    expect(RUN_WITHOUT_GPU("explain", here.spec, "--target", "cuda"), 1, NULL, "name one: sm_90");
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "sm_91"), 1, NULL, "cuda:sm_90");
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:sse2", "--ptx"), 1, NULL, "--ptx");
    scratch_remove(here.folder);
}

static void what_needs_a_gpu_says_so_before_it_reads_a_file(void **state)
{
    static const char *const targets[] = {"cuda", "cuda:sm_90", "sm_90"};
    place here;
    char output[PATH];
    (void)state;
    place_make(&here, tiny);
    place_path(&here, "o.npy", output);
    for (int i = 0; i < 3; i++) {
        expect(RUN_WITHOUT_GPU("verify", here.spec, "--target", targets[i]), 1, NULL, "no NVIDIA driver");
        expect(RUN_WITHOUT_GPU("bench", here.spec, "--target", targets[i]), 1, NULL, "no NVIDIA driver");
        expect(RUN_WITHOUT_GPU("run", here.spec, "--target", targets[i], "--q", "no.npy", "--k", "no.npy",
                               "--v", "no.npy", "-o", output),
               1, NULL, "no NVIDIA driver");
    }
    scratch_remove(here.folder);
}

static void options_that_the_target_cannot_have_are_refused(void **state)
{
    place here;
    (void)state;
    place_make(&here, tiny);
    expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--threads", "2"), 1, NULL, "--threads");
    expect(RUN("fpac", "bench", here.spec, "--graph"), 1, NULL, "--graph");
    expect(RUN("fpac", "bench", here.spec, "--device", "1"), 1, NULL, "--device");
    expect(RUN("fpac", "verify", here.spec, "--device", "1"), 1, NULL, "--device");
    expect(RUN("fpac", "bench", here.spec, "--dtype", "f64"), 1, NULL, "f64 is no dtype");
    expect(RUN("fpac", "bench", here.spec, "--length", "8", "--dtype", "bf16", "--json"), 0,
           "\"dtype\": \"bf16\"", NULL);
    scratch_remove(here.folder);
}

/* ---- run ---- */

/* q, k, v of 2 sequences, 9 tokens, 2 heads, width 4. */
typedef struct arrays {
    char q[PATH], k[PATH], v[PATH], o[PATH], state[PATH];
} arrays;

static void arrays_make(const place *here, arrays *paths)
{
    const int64_t shape[4] = {2, 9, 2, 4};
    place_path(here, "q.npy", paths->q);
    place_path(here, "k.npy", paths->k);
    place_path(here, "v.npy", paths->v);
    place_path(here, "o.npy", paths->o);
    place_path(here, "state.npy", paths->state);
    write_numbers(paths->q, 4, shape);
    write_numbers(paths->k, 4, shape);
    write_numbers(paths->v, 4, shape);
}

/* o_t = sum over j <= t of (q_t.k_j)^2 v_j, written out. */
static void check_square(const arrays *paths)
{
    fpa_array q = read_numbers(paths->q), k = read_numbers(paths->k), v = read_numbers(paths->v);
    fpa_array o = read_numbers(paths->o);
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
    place_make(&here, two_heads);
    arrays_make(&here, &paths);
    for (int i = 0; i < 4; i++) {
        unlink(paths.o);
        expect(RUN("fpac", "run", here.spec, "--head", "two", "--q", paths.q, "--k", paths.k, "--v", paths.v,
                   "--form", forms[i], "--target", target, "-o", paths.o),
               0, NULL, NULL);
        check_square(&paths);
    }
    scratch_remove(here.folder);
}

static void run_computes_the_formula_in_every_form(void **state)
{
    (void)state;
    check_every_form("c");
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
    place_make(&here, tiny);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--dtype", "bf16", "--length", "1",
                   "--heads", "64", "--graph", "--json"),
               0, words[i], NULL);
    expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--length", "512"), 0, "of copy", NULL);
    expect(RUN("fpac", "verify", here.spec, "--target", "cuda", "--time"), 0, "verified", NULL);
    scratch_remove(here.folder);
}

static void a_state_written_is_a_state_read(void **state)
{
    place here;
    arrays paths;
    (void)state;
    place_make(&here, tiny);
    arrays_make(&here, &paths);
    expect(RUN("fpac", "run", here.spec, "--q", paths.q, "--k", paths.k, "--v", paths.v, "--state-out",
               paths.state, "-o", paths.o),
           0, NULL, NULL);
    fpa_array written = read_numbers(paths.state);
    assert_int_equal(written.axes, 4);
    assert_int_equal(written.shape[2], 12);
    npy_free(&written);
    expect(RUN("fpac", "run", here.spec, "--q", paths.q, "--k", paths.k, "--v", paths.v, "--state-in",
               paths.state, "-o", paths.o),
           0, NULL, NULL);
    scratch_remove(here.folder);
}

static void run_refuses_wrong_files_and_writes_nothing(void **state)
{
    place here;
    arrays paths;
    char narrow[PATH], flat[PATH], text[PATH], missing[PATH];
    const int64_t narrow_shape[4] = {2, 9, 2, 3}, flat_shape[3] = {2, 9, 4};
    (void)state;
    place_make(&here, tiny);
    arrays_make(&here, &paths);
    place_path(&here, "narrow.npy", narrow);
    place_path(&here, "flat.npy", flat);
    place_path(&here, "text.npy", text);
    place_path(&here, "missing.npy", missing);
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
    expect(RUN("fpac", "run", here.spec, "--q", paths.q, "--k", paths.k, "--v", paths.v, "--log-gate",
               paths.v, "-o", paths.o),
           1, NULL, "gate");
    expect(RUN("fpac", "run", here.spec, "--q", paths.q, "--k", paths.k, "--v", paths.v, "--weights",
               "w=w.npy", "-o", paths.o),
           1, NULL, "--weights: w=w.npy");
    scratch_remove(here.folder);
}

static void trainable_weights_are_named(void **state)
{
    place here;
    arrays paths;
    char weight[PATH], option[PATH + 8];
    const int64_t shape[2] = {3, 4};
    (void)state;
    place_make(&here, "local w = trainable { name = 'w', rows = 3, shared = true }\n"
                      "return head { name = 'own', d = 4, dv = 4, terms = { term { w, w } } }\n");
    arrays_make(&here, &paths);
    place_path(&here, "w.npy", weight);
    write_numbers(weight, 2, shape);
    snprintf(option, sizeof option, "w=%s", weight);
    expect(RUN("fpac", "run", here.spec, "--q", paths.q, "--k", paths.k, "--v", paths.v, "-o", paths.o), 1,
           NULL, "w is missing");
    expect(RUN("fpac", "run", here.spec, "--q", paths.q, "--k", paths.k, "--v", paths.v, "--weights", option,
               "--weights", option, "-o", paths.o),
           1, NULL, "w is given twice");
    expect(RUN("fpac", "run", here.spec, "--q", paths.q, "--k", paths.k, "--v", paths.v, "--weights", option,
               "-o", paths.o),
           0, NULL, NULL);
    scratch_remove(here.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_exits_with_0_and_usage_errors_with_2),
        cmocka_unit_test(every_wrong_line_is_told_with_its_word),
        cmocka_unit_test(a_spec_that_fails_exits_with_1_and_its_line),
        cmocka_unit_test(a_missing_head_is_told_with_those_there_are),
        cmocka_unit_test(an_unknown_target_is_told_with_those_there_are),
        cmocka_unit_test(explain_shows_what_a_person_asks_for),
        cmocka_unit_test(every_stage_can_be_dumped_and_is_the_same_twice),
        cmocka_unit_test(list_names_heads_and_targets),
        cmocka_unit_test(prelude_defines_the_vocabulary),
        cmocka_unit_test(cache_counts_and_clears),
        cmocka_unit_test(a_full_standard_output_is_an_error),
        cmocka_unit_test(verify_shows_every_form_and_exits_with_0),
        cmocka_unit_test(bench_reports_the_form_asked_for),
        cmocka_unit_test(gen_writes_files_that_compile_alone),
        cmocka_unit_test(gen_with_objects_writes_shared_libraries),
        cmocka_unit_test(generated_exemplars_are_current),
        cmocka_unit_test(list_tells_what_cuda_targets_need),
        cmocka_unit_test(explain_plans_for_a_gpu_that_is_not_here),
        cmocka_unit_test(gen_writes_cubins_without_a_gpu),
        cmocka_unit_test(gen_for_a_gpu_says_what_is_missing),
        cmocka_unit_test(what_needs_a_gpu_says_so_before_it_reads_a_file),
        cmocka_unit_test(options_that_the_target_cannot_have_are_refused),
        cmocka_unit_test(run_computes_the_formula_in_every_form),
        cmocka_unit_test(run_computes_on_a_gpu),
        cmocka_unit_test(bench_on_a_gpu_tells_shares),
        cmocka_unit_test(a_state_written_is_a_state_read),
        cmocka_unit_test(run_refuses_wrong_files_and_writes_nothing),
        cmocka_unit_test(trainable_weights_are_named),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}

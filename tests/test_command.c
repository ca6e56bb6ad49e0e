/* The command line: exit codes, messages, files. Drives the program itself. */
#include "c_hurry.h"
#include "claims.h"
#include "command_place.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the line ---- */

static void help_exits_with_0_and_usage_errors_with_2(void **state)
{
    static const char *const commands[] = {"new",   "design", "explain", "gen",  "verify",  "run",
                                           "bench", "plot",   "report",  "list", "prelude", "cache"};
    expect(RUN("fpac", "--help"), 0, "usage: fpac", NULL);
    expect(RUN("fpac", "--version"), 0, "fpac ", NULL);
    expect(RUN("fpac"), 2, NULL, "usage: fpac");
    expect(RUN("fpac", "explane"), 2, NULL, "fpac: explane: no such command; did you mean explain?");
    expect(RUN("fpac", "soup"), 2, NULL, "fpac: soup: no such command\n");
    for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++) {
        expect(RUN("fpac", commands[i], "--help"), 0, "usage: fpac", NULL);
        expect(RUN("fpac", "help", commands[i]), 0, "--verbose", NULL);
        expect(RUN("fpac", commands[i], "--help"), 0, "--verbose", NULL);
        expect(RUN("fpac", commands[i], "--nonsense"), 2, NULL, "fpac: --nonsense: no such option");
    }
}

/* Of commands that open no kernel, too. */
static void verbose_says_what_was_found_and_written(void **state)
{
    place here;
    char tsv[PATH], svg[PATH], page[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "lines.tsv", tsv);
    place_file(&here, "lines.svg", svg);
    place_file(&here, "tiny.html", page);
    expect(RUN("fpac", "list", here.spec, "--verbose"), 0, "tiny", "spec.lua: 1 heads");
    expect(RUN("fpac", "list", "--verbose"), 0, NULL, "fpac: C compiler: /");
    expect(RUN("fpac", "cache", "--verbose"), 0, NULL, "fpac: the folder is that of FPA_CACHE_DIR");
    expect(RUN("fpac", "prelude", "--verbose"), 0, NULL, "which this program carries");
    expect(RUN("fpac", "new", "mine", "--no-sample", "-o", here.folder, "--verbose"), 0, NULL, "mine.lua: ");
    expect(RUN("fpac", "bench", here.spec, "--length", "8", "--tsv", tsv), 0, NULL, NULL);
    expect(RUN("fpac", "plot", tsv, "-o", svg, "--verbose"), 0, NULL, "lines.tsv: 1 measurements");
    expect(RUN("fpac", "report", here.spec, "-o", page, "--verbose"), 0, NULL, "tiny.html: the page of tiny");
    scratch_remove(here.folder);
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
        {{"fpac", "explain", "a.lua", "--batch", "2"}, "--batch: needs --length, which is not given"},
        {{"fpac", "explain", "a.lua", "--form", "chunked"}, "--form: needs --length, which is not given"},
        {{"fpac", "explain", "a.lua", "--jsn"}, "--jsn: no such option; did you mean --json?"},
        {{"fpac", "bench", "a.lua", "--lenght=12"}, "did you mean --length?"},
        {{"fpac", "verify", "--json", "--jobs", "none", "a.lua"},
         "{\"error\": {\"code\": \"invalid\", \"where\": \"--jobs\", \"message\": \"needs a whole number"},
        {{"fpac", "new"}, "new: too few operands"},
        {{"fpac", "report"}, "report: too few operands"},
        {{"fpac", "report", "a.lua"}, "-o: is needed"},
        {{"fpac", "bench", "a.lua", "--device", "-1"}, "--device: needs a whole number from 0"},
        {{"fpac", "new", "a", "--family", "soup"}, "--family: soup is no family"},
        {{"fpac", "design", "--d", "8", "--state", "soup"}, "--state: soup is no size"},
        {{"fpac", "design", "--d=8", "--state=1MiB", "--normalize", "sun"}, "did you mean sum?"},
        {{"fpac", "cache", "--limit", "soup"}, "--limit: soup is no size"},
        {{"fpac", "plot", "a.tsv", "-o", "a.svg", "--kind", "pie"}, "--kind: pie is not a kind"},
        {{"fpac", "verify", "a.lua", "--target", "mmx"}, "--target: mmx is no target; there are c "},
        {{"fpac", "bench", "a.lua", "--form", "soup"}, "--form: soup is no form"},
        {{"fpac", "bench", "a.lua", "--graph"}, "--graph: replays a CUDA graph"},
        {{"fpac", "report", "a.lua", "-o", "a.html", "--target", "sm_90"},
         "--target: names the kernels for the CPU"},
    };
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
        expect(program_run(lines[i].arguments), 2, NULL, lines[i].message);
}

/* Told once, however many specs there are; an option that the head does not take is as wrong as one that there is not. */
static void a_wrong_word_exits_with_2_before_any_spec(void **state)
{
    place here;
    char o[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "o.npy", o);
    program_result verified = RUN("fpac", "verify", here.spec, here.spec, "--dtype", "soup");
    assert_null(strstr(strstr(verified.err, "soup is no dtype") + 1, "soup is no dtype"));
    expect(verified, 2, NULL, "fpac: --dtype: soup is no dtype");
    expect(RUN("fpac", "gen", here.spec, here.spec, "-o", here.folder, "--dtype", "soup"), 2, NULL,
           "fpac: --dtype: soup is no dtype");
    expect(RUN("fpac", "explain", here.spec, "--target", "sm_90a", "--mechanism", "fused_row"), 2, NULL,
           "fpac: --mechanism: fused_row is no mechanism; did you mean fused_rows?");
    expect(RUN("fpac", "explain", here.spec, "--mechanism", "fused_rows", "--target", "c:avx2"), 2, NULL,
           "fpac: --mechanism: is for CUDA targets");
    expect(RUN("fpac", "explain", here.spec, "--target", "sm_90", "--length", "9", "--gpu", "soup"), 2, NULL,
           "fpac: --gpu: soup is no GPU");
    scratch_remove(here.folder);
}

static void a_spec_that_fails_exits_with_1_and_its_line(void **state)
{
    place here;
    place_begin(&here, "local x = 1\nreturn head { name = 'bad', d = 4, dv = 4, termz = linear {} }\n");
    expect(RUN("fpac", "explain", here.spec), 1, NULL, "spec.lua:2: ");
    expect(RUN("fpac", "verify", here.spec), 1, NULL, "spec.lua:2: ");
    expect(RUN("fpac", "list", here.spec), 1, NULL, "spec.lua:2: ");
    expect(RUN("fpac", "explain", "no/such/spec.lua"), 1, NULL, "fpac: no/such/spec.lua: ");
    scratch_remove(here.folder);
}

static void errors_are_json_after_json(void **state)
{
    place here;
    place_begin(&here, "return head { name = 'bad', d = 4, dv = 4, termz = linear {} }\n");
    expect(RUN("fpac", "explain", "--json", here.spec), 1, NULL,
           "{\"error\": {\"code\": \"invalid\", \"where\": \"");
    expect(RUN("fpac", "list", "--json", here.spec), 1, "[]", "did you mean 'terms'");
    expect(RUN("fpac", "verify", "--json", here.spec), 1, NULL, "\"message\": \"");
    expect(RUN("fpac", "explian", here.spec, "--json"), 2, NULL,
           "{\"error\": {\"code\": \"invalid\", \"where\": \"explian\", \"message\": \"no such command; did "
           "you mean explain?\"}}");
    scratch_remove(here.folder);
}

/* A name that moves the cursor, ends the line, and is no UTF-8; and one that may stay. */
static void names_of_files_do_not_reach_the_terminal_raw(void **state)
{
    static const char shown[] = "a\\x1b[31m\\nb\\x7f\\xff\xc3\xa9.lua";
    place here;
    char raw[PATH];
    expect(RUN("fpac", "explain", "a\x1b[31m\nb\x7f\xff\xc3\xa9.lua"), 1, NULL, shown);
    expect(RUN("fpac", "a\x1b[31m\nb\x7f\xff\xc3\xa9.lua"), 2, NULL, shown);
    expect(RUN("fpac", "explain", "x.lua", "a\x1b[31m\nb\x7f\xff\xc3\xa9.lua"), 2, NULL, shown);
    expect(RUN("fpac", "gen", "-o", "/dev/null/a\x1b[31m\nb\x7f\xff\xc3\xa9.lua", "specs/toy\x1b.lua"), 1,
           NULL, "toy\\x1b.lua");
    place_begin(&here, tiny_spec);
    place_file(&here, "a\x1b[31m\x7f\xff\xc3\xa9.lua", raw);
    assert_int_equal(rename(here.spec, raw), 0);
    expect(RUN("fpac", "list", "--json", raw), 0, "a\\u001b[31m\\u007f\\ufffd\xc3\xa9.lua\"", NULL);
    expect(RUN("fpac", "explain", raw), 0, "a\\x1b[31m\\x7f\\xff\xc3\xa9.lua", NULL);
    scratch_remove(here.folder);
}

static void a_missing_head_is_told_with_those_there_are(void **state)
{
    place here;
    place_begin(&here, two_heads_spec);
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
    place_begin(&here, tiny_spec);
    expect(RUN("fpac", "explain", here.spec, "--target", "c:mmx"), 2, NULL, "c:avx2");
    expect(RUN("fpac", "verify", here.spec, "--target", "c:mmx"), 2, NULL, "c:avx2");
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:avx2,mmx"), 2, NULL, "c:avx512");
    scratch_remove(here.folder);
}

/* ---- explain, list, prelude, cache ---- */

static void explain_shows_what_a_person_asks_for(void **state)
{
    static const char *const words[] = {"head tiny",       "d = 4",    "exact minimum", "TPOW",
                                        "crossover",       "parallel", "chunked",       "recurrent",
                                        "simplifications", "plan"};
    place here;
    place_begin(&here, tiny_spec);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        expect(RUN("fpac", "explain", here.spec), 0, words[i], NULL);
    expect(RUN("fpac", "explain", here.spec, "--json"), 0, "\"features\": 12", NULL);
    scratch_remove(here.folder);
}

static void explain_lists_candidates_of_a_call(void **state)
{
    static const char *const words[] = {"chunked form, batch 1, 16 heads, 65536 tokens",
                                        "chunk_state_small, overlapped, 64 blocks",
                                        "chunk_state, 57 segments",
                                        "fused_chunk",
                                        "the module has no such kernel",
                                        "blocks by threads and shared memory"};
#define EXPLAIN(...)                                                                                         \
    RUN("fpac", "explain", "specs/storage.lua", "--head", "tspow2_d64_bf16", "--target", "sm_90a",           \
        __VA_ARGS__)
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        expect(EXPLAIN("--length", "65536", "--heads", "16"), 0, words[i], NULL);
    expect(EXPLAIN("--length", "1", "--form", "recurrent"), 0, "* decode_resident  8 blocks a head", NULL);
    expect(EXPLAIN("--length", "1", "--form", "recurrent"), 0, " clusters of 8 blocks", NULL);
    expect(EXPLAIN("--length", "65536", "--heads", "16"), 0, "fused_packed does not suit head", NULL);
    expect(EXPLAIN("--length", "4096", "--json"), 0, "\"not_chosen\"", NULL);
    expect(EXPLAIN("--length", "4096", "--json"), 0, "\"fastest\": true", NULL);
    expect(EXPLAIN("--length", "4096", "--form", "soup"), 2, NULL, "soup");
    expect(RUN("fpac", "explain", "specs/linear.lua", "--head", "linear_d64", "--target", "c:avx2",
               "--length", "512"),
           0, "* c_chunked", NULL);
    program_result without = EXPLAIN("--json");
    assert_null(strstr(without.out, "candidates"));
    program_free(&without);
#undef EXPLAIN
}

/* 16 x 5 + 48 + 1 features of the rows as they are, fewer than the 1225 monomials of these degrees. */
static void explain_knows_one_minimum(void **state)
{
    static const char spec[] = "return head { name = \"low\", d = 48, terms = {\n"
                               "  term { select(range(1, 16)), dense(orthogonal { rows = 5, d = 48, seed = 7 "
                               "}), weight = ratio(1, 3) },\n"
                               "  term { identity(), weight = 0.5 }, term {} } }\n";
    place here;
    place_begin(&here, spec);
    expect(RUN("fpac", "explain", here.spec), 0, "D 129 -> 129 (3 terms, block 1; exact minimum 129)", NULL);
    expect(RUN("fpac", "explain", here.spec), 0, "  exact minimum            129   D is 1.000 x this", NULL);
    expect(RUN("fpac", "explain", here.spec, "--json"), 0, "\"features_minimum\": 129", NULL);
    scratch_remove(here.folder);
}

static void a_weight_beyond_float32_is_refused_with_its_size(void **state)
{
    place here;
    place_begin(
        &here,
        "return head { name = \"large\", d = 4, terms = inhomogeneous { degree = 2, constant = -1e150 } }");
    expect(RUN("fpac", "explain", here.spec), 1, NULL,
           "its largest weight, with scales, is about 2^997, but kernels compute in float32");
    scratch_remove(here.folder);
}

static void every_stage_can_be_dumped_and_is_the_same_twice(void **state)
{
    static const char *const stages[] = {"head", "simplified", "plan", "source"};
    place here;
    place_begin(&here, tiny_spec);
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
    place_begin(&here, two_heads_spec);
    expect(RUN("fpac", "list", here.spec), 0, "two", NULL);
    expect(RUN("fpac", "list", here.spec, "--json"), 0, "\"head\": \"two\"", NULL);
    expect(RUN("fpac", "list", "specs/tspow.lua"), 0, "D       2304 ->     2112  state  528.0 KiB", NULL);
    expect(RUN("fpac", "list", "specs/gated.lua", "--json"), 0, "\"state_bytes\": 549120", NULL);
    expect(RUN("fpac", "list"), 0, "c:avx512", NULL);
    expect(RUN("fpac", "list", "--json"), 0, "\"best\": true", NULL);
    scratch_remove(here.folder);
}

static void prelude_defines_the_vocabulary(void **state)
{
    expect(RUN("fpac", "prelude"), 0, "tspow", NULL);
}

static void cache_counts_and_clears(void **state)
{
    place here;
    char cache[PATH], command[3 * PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "cache", cache);
    const char *command_path = getenv("FPAC") ? getenv("FPAC") : "build/fpac";
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s bench %s --length 8", cache, command_path,
             here.spec);
    expect(RUN("/bin/sh", "-c", command), 0, "tiny", NULL);
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s cache --json", cache, command_path);
    expect(RUN("/bin/sh", "-c", command), 0, "\"entries\": 1", NULL);
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s cache --limit 1.5GiB", cache, command_path);
    expect(RUN("/bin/sh", "-c", command), 0, "of at most 1.5 GiB", NULL);
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s cache --json", cache, command_path);
    expect(RUN("/bin/sh", "-c", command), 0, "\"limit\": 1610612736", NULL);
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s cache --limit much", cache, command_path);
    expect(RUN("/bin/sh", "-c", command), 2, NULL, "--limit: much is no size");
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s cache --clear", cache, command_path);
    expect(RUN("/bin/sh", "-c", command), 0, "removed 1 entry", NULL);
    snprintf(command, sizeof command, "FPA_CACHE_DIR=%s %s cache --json", cache, command_path);
    expect(RUN("/bin/sh", "-c", command), 0, "\"entries\": 0", NULL);
    scratch_remove(here.folder);
}

static void a_full_standard_output_is_an_error(void **state)
{
    char command[PATH];
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
    place_begin(&here, two_heads_spec);
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

/* Forms of a C kernel: the one that AUTO is, is marked. */
static void bench_times_candidates_and_tells_the_regret(void **state)
{
    place here;
    char lines[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "candidates.tsv", lines);
#define BENCH(...)                                                                                           \
    RUN("fpac", "bench", here.spec, "--candidates", "--length", "64", "--threads", "1", "--repeats", "2",    \
        __VA_ARGS__)
    expect(BENCH("--tsv", lines), 0, "regret of tiny: ", NULL);
    expect(BENCH("--tsv", lines, "--json"), 0, "\"regret\": ", NULL);
    expect(BENCH("--form", "recurrent"), 0, "* ", NULL);
    program_result both = RUN("/usr/bin/env", "grep", "-c", "^tiny", lines);
    assert_string_equal(both.out, "4\n"); /* parallel and chunked, twice */
    program_free(&both);
    expect(BENCH("--tsv", here.spec), 1, NULL, "is no list of candidates");
    expect(BENCH("--recent", "4"), 2, NULL, "--recent");
#undef BENCH
    scratch_remove(here.folder);
}

static void bench_reports_the_form_asked_for(void **state)
{
    place here;
    place_begin(&here, tiny_spec);
    expect(RUN("fpac", "bench", here.spec, "--length", "64", "--form", "chunked", "--threads", "1",
               "--repeats", "3"),
           0, "chunked", NULL);
    expect(RUN("fpac", "bench", here.spec, "--length", "64", "--form", "recurrent", "--json"), 0,
           "\"form\": \"recurrent\"", NULL);
    expect(RUN("fpac", "bench", here.spec, "--form", "diagonal"), 2, NULL,
           "diagonal is no form; there are auto");
    expect(RUN("fpac", "bench", here.spec, "--form", "chunkd"), 2, NULL,
           "did you mean chunked? (there are auto");
    scratch_remove(here.folder);
}

/* ---- gen ---- */

static void gen_writes_files_that_compile_alone(void **state)
{
    place here;
    char code[PATH], header[PATH], manifest[PATH], object[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "tiny.c", code);
    place_file(&here, "tiny.h", header);
    place_file(&here, "manifest.fpa", manifest);
    place_file(&here, "tiny.o", object);
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:sse2"), 0, NULL, NULL);
    assert_int_equal(access(header, R_OK), 0);
    assert_int_equal(access(manifest, R_OK), 0);
    expect(
        RUN("/usr/bin/env", "cc", "-O1", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-c", code, "-o", object),
        0, NULL, NULL);
    scratch_remove(here.folder);
}

/* The weights of one head are beyond float32: the others are there, and the exit code tells. */
static void one_head_that_fails_does_not_stop_the_others(void **state)
{
    static const char spec[] =
        "return {\n"
        "  head { name = 'one', d = 4, dv = 4, terms = linear {} },\n"
        "  head { name = 'huge', d = 4, terms = inhomogeneous { degree = 2, constant = -1e150 } },\n"
        "  head { name = 'two', d = 4, dv = 4, terms = power { degree = 2 } },\n"
        "}\n";
    place here;
    char one[PATH], two[PATH], huge[PATH], manifest[PATH];
    place_begin(&here, spec);
    place_file(&here, "one.c", one);
    place_file(&here, "two.c", two);
    place_file(&here, "huge.c", huge);
    place_file(&here, "manifest.fpa", manifest);
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:sse2"), 1, NULL,
           "compute in float32");
    assert_true(!access(one, R_OK) && !access(two, R_OK) && access(huge, F_OK));
    expect(RUN("/usr/bin/env", "grep", "-c", "huge", manifest), 1, "0", NULL);
    expect(RUN("fpac", "verify", here.spec, "--json"), 1, "\"verdict\": \"unsupported\"",
           "compute in float32");
    program_result result = RUN("fpac", "verify", "no/such.lua", here.spec);
    assert_non_null(strstr(result.out, "one      "));
    assert_non_null(strstr(result.out, "two      "));
    expect(result, 1, NULL, "no/such.lua");
    expect(RUN("fpac", "gen", "no/such.lua", here.spec, "-o", here.folder, "--head", "two"), 1, NULL,
           "no/such.lua");
    expect(RUN("fpac", "bench", here.spec, "--length", "8"), 1, "\ntwo  ", "compute in float32");
    expect(RUN("fpac", "explain", here.spec), 1, "head two (", "compute in float32");
    scratch_remove(here.folder);
}

static void gen_with_objects_writes_shared_libraries(void **state)
{
    place here;
    char text[PATH];
    place_begin(&here, tiny_spec);
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:sse2", "--object"), 0, NULL, NULL);
    place_file(&here, "tiny.sse2.so", text);
    assert_int_equal(access(text, R_OK), 0);
    scratch_remove(here.folder);
}

/* The exemplars in generated/ are what this build writes; the remedy is in the message. */
static void generated_exemplars_are_current(void **state)
{
    char folder[64], out[PATH];
    const char *command = getenv("FPAC") ? getenv("FPAC") : "build/fpac";
    scratch_make(folder);
    snprintf(out, sizeof out, "%s/exemplars", folder);
    expect(RUN("tools/generated.sh", command, out), 0, NULL, NULL);
    program_result result = RUN("/usr/bin/diff", "-r", out, "generated/exemplars");
    if (result.code)
        fail_msg("generated/exemplars is stale; run: make generated\n%.400s", result.out);
    program_free(&result);
    scratch_remove(folder);
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_exits_with_0_and_usage_errors_with_2),
        cmocka_unit_test(verbose_says_what_was_found_and_written),
        cmocka_unit_test(every_wrong_line_is_told_with_its_word),
        cmocka_unit_test(a_wrong_word_exits_with_2_before_any_spec),
        cmocka_unit_test(a_spec_that_fails_exits_with_1_and_its_line),
        cmocka_unit_test(errors_are_json_after_json),
        cmocka_unit_test(names_of_files_do_not_reach_the_terminal_raw),
        cmocka_unit_test(a_missing_head_is_told_with_those_there_are),
        cmocka_unit_test(an_unknown_target_is_told_with_those_there_are),
        cmocka_unit_test(explain_shows_what_a_person_asks_for),
        cmocka_unit_test(explain_lists_candidates_of_a_call),
        cmocka_unit_test(explain_knows_one_minimum),
        cmocka_unit_test(a_weight_beyond_float32_is_refused_with_its_size),
        cmocka_unit_test(every_stage_can_be_dumped_and_is_the_same_twice),
        cmocka_unit_test(list_names_heads_and_targets),
        cmocka_unit_test(prelude_defines_the_vocabulary),
        cmocka_unit_test(cache_counts_and_clears),
        cmocka_unit_test(a_full_standard_output_is_an_error),
        cmocka_unit_test(verify_shows_every_form_and_exits_with_0),
        cmocka_unit_test(bench_times_candidates_and_tells_the_regret),
        cmocka_unit_test(bench_reports_the_form_asked_for),
        cmocka_unit_test(gen_writes_files_that_compile_alone),
        cmocka_unit_test(one_head_that_fails_does_not_stop_the_others),
        cmocka_unit_test(gen_with_objects_writes_shared_libraries),
        cmocka_unit_test(generated_exemplars_are_current),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}

/* The parity cases of tests/parity through `fpac run`, in every form that each allows.
 *
 * FPA_TEST_TARGET runs them on another target than the best C one ("cuda"), FPA_TEST_DTYPE as heads
 * of bf16 or f16; the tolerance then has the roundings of that type added (parity_rounding.h). */
#include "c_hurry.h"
#include "claims.h"
#include "dear.h"
#include "gen/gen.h"
#include "gen/spec/spec.h"
#include "parity_cases.h"
#include "parity_rounding.h"
#include "program.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mask_file.h"
#include "read_array.h"

enum { PATH = 256, MANY_ARGUMENTS = 64, TOKENS = 1 /* axis of q, k, v, o and log_g */ };

/* ---- the case's files ---- */

static void array_path(const parity_case *which, const char *array, char path[PATH])
{
    snprintf(path, PATH, "tests/parity/%s/%s.npy", which->name, array);
}

static bool case_has(const parity_case *which, const char *array)
{
    char path[PATH];
    array_path(which, array, path);
    return access(path, R_OK) == 0;
}

static void write_array(const char *path, const fpa_array *array)
{
    fpa_error error = {0};
    assert_ok(npy_write(path, array, &error), &error);
}

/* The number behind "key": in case.json, or fallback. */
static double case_number(const parity_case *which, const char *key, double fallback)
{
    char path[PATH], quoted[64];
    snprintf(path, sizeof path, "tests/parity/%s/case.json", which->name);
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    char *text = text_read(path, NULL);
    assert_non_null(text);
    const char *at = strstr(text, quoted);
    double value = at ? strtod(at + strlen(quoted), NULL) : fallback;
    free(text);
    return value;
}

static bool is_causal(const parity_case *which)
{
    char path[PATH];
    snprintf(path, sizeof path, "tests/parity/%s/case.json", which->name);
    char *text = text_read(path, NULL);
    assert_non_null(text);
    bool causal = strstr(text, "\"causal\": true") != NULL;
    free(text);
    return causal;
}

/* ---- the head, and what its storage type costs ---- */

/* FPA_TEST_DTYPE, or NULL: as the specs have it. */
static const char *other_dtype(void)
{
    const char *name = getenv("FPA_TEST_DTYPE");
    if (!name || !*name || strcmp(name, "f32") == 0)
        return NULL;
    if (strcmp(name, "bf16") != 0 && strcmp(name, "f16") != 0)
        fail_msg("FPA_TEST_DTYPE is %s: it has to be f32, bf16 or f16", name);
    return name;
}

static void copy_array(const parity_case *which, const char *array, const char *folder)
{
    char path[PATH], to[PATH];
    if (!case_has(which, array))
        return;
    array_path(which, array, path);
    snprintf(to, sizeof to, "%s/%s.npy", folder, array);
    fpa_array copy;
    fpa_error error = {0};
    if (npy_read_numbers(path, &copy, &error)) /* hashes are integers */
        fail_msg("%s: %s", error.where, error.message);
    write_array(to, &copy);
    npy_free(&copy);
}

/* The case's spec: its own file, or a copy with another dtype. */
static void spec_path(const parity_case *which, const char *folder, char path[PATH])
{
    static const char opening[] = "return head {";
    snprintf(path, PATH, "tests/parity/%s/spec.lua", which->name);
    if (!other_dtype())
        return;
    char *text = text_read(path, NULL), *changed = NULL;
    assert_non_null(text);
    const char *at = strstr(text, opening);
    assert_non_null(at);
    assert_true(asprintf(&changed, "%.*s%s dtype = \"%s\",%s", (int)(at - text), text, opening, other_dtype(),
                         at + strlen(opening)) > 0);
    snprintf(path, PATH, "%s/spec.lua", folder);
    text_write(path, changed);
    copy_array(which, "w1", folder); /* a spec finds its arrays beside itself */
    copy_array(which, "w2", folder);
    copy_array(which, "index_hash", folder);
    copy_array(which, "bit_hash", folder);
    free(changed);
    free(text);
}

/* ---- slices ---- */

/* Elements before and behind one axis. */
static int64_t product(const int64_t *shape, int count)
{
    int64_t result = 1;
    for (int i = 0; i < count; i++)
        result *= shape[i];
    return result;
}

/* Indices first..end-1 of an axis, contiguous. */
static fpa_array take_slice(const fpa_array *array, int axis, int64_t first, int64_t end)
{
    fpa_array slice = *array;
    slice.shape[axis] = end - first;
    slice.count = product(slice.shape, slice.axes);
    slice.data = malloc((size_t)slice.count * sizeof *slice.data + 1);
    assert_non_null(slice.data);
    int64_t outer = product(array->shape, axis),
            inner = product(array->shape + axis + 1, array->axes - axis - 1);
    for (int64_t i = 0; i < outer; i++)
        memcpy(slice.data + i * (end - first) * inner, array->data + (i * array->shape[axis] + first) * inner,
               (size_t)((end - first) * inner) * sizeof *slice.data);
    return slice;
}

/* Square roots of one branch's Gram, [H, d], as the diagonal branch takes them. */
static void write_roots(const char *from, int branch, const char *to)
{
    fpa_array grams = read_array(from), slice = take_slice(&grams, 1, branch, branch + 1);
    slice.axes = 2;
    slice.shape[1] = grams.shape[2];
    for (int64_t i = 0; i < slice.count; i++)
        slice.data[i] = sqrtf(slice.data[i]);
    write_array(to, &slice);
    npy_free(&slice);
    npy_free(&grams);
}

static void write_tokens(const char *from, int64_t first, int64_t end, const char *to)
{
    fpa_array array = read_array(from);
    fpa_array slice = take_slice(&array, TOKENS, first, end < 0 ? array.shape[TOKENS] : end);
    write_array(to, &slice);
    npy_free(&slice);
    npy_free(&array);
}

/* ---- one run ---- */

typedef struct command_line {
    int count;
    const char *argument[MANY_ARGUMENTS];
    char text[MANY_ARGUMENTS][2 * PATH]; /* storage of the arguments */
} command_line;

static void add_word(command_line *line, const char *word)
{
    assert_true(line->count + 1 < MANY_ARGUMENTS);
    snprintf(line->text[line->count], sizeof line->text[0], "%s", word);
    line->argument[line->count] = line->text[line->count];
    line->argument[++line->count] = NULL;
}

static void add(command_line *line, const char *option, const char *value)
{
    add_word(line, option);
    add_word(line, value);
}

/* The file of a run-time matrix. */
static void weight_path(const parity_case *which, const weight_source *weight, const char *folder,
                        char path[PATH])
{
    array_path(which, weight->array, path);
    if (weight->slice < 0)
        return;
    char roots[PATH];
    snprintf(roots, sizeof roots, "%s/%s.npy", folder, weight->name);
    write_roots(path, weight->slice, roots);
    snprintf(path, PATH, "%s", roots);
}

static void add_weights(const parity_case *which, const char *folder, command_line *line)
{
    for (const weight_source *weight = which->weights; weight->name; weight++) {
        char path[PATH], value[2 * PATH];
        weight_path(which, weight, folder, path);
        snprintf(value, sizeof value, "%s=%s", weight->name, path);
        add(line, "--weights", value);
    }
}

/* The keys that are kept: what the case's mask has not. */
static void add_mask(const parity_case *which, const char *folder, command_line *line)
{
    char path[PATH], kept[PATH];
    fpa_array mask;
    fpa_error error = {0};
    array_path(which, "key_mask", path);
    if (!case_has(which, "key_mask"))
        return;
    assert_ok(npy_read_mask(path, &mask, &error), &error);
    snprintf(kept, sizeof kept, "%s/key_keep.npy", folder);
    write_kept(kept, &mask);
    npy_free(&mask);
    add(line, "--key-mask", kept);
}

/* Tokens first..end-1 of the case (end < 0: all that follow). */
static void add_arrays(const parity_case *which, const char *folder, int64_t first, int64_t end,
                       command_line *line)
{
    static const char *const options[][2] = {
        {"--q", "q"}, {"--k", "k"}, {"--v", "v"}, {"--log-gate", "log_g"}, {"--positions", "positions"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        char path[PATH], part[PATH];
        array_path(which, options[i][1], path);
        if (!case_has(which, options[i][1]))
            continue;
        if (first > 0 || end >= 0) {
            snprintf(part, sizeof part, "%s/%s.npy", folder, options[i][1]);
            write_tokens(path, first, end, part);
            add(line, options[i][0], part);
        } else {
            add(line, options[i][0], path);
        }
    }
}

/* fpac run with these tokens; o and the state go to folder/<out>.npy, folder/state_<out>.npy. */
static void run_tokens(const parity_case *which, const char *folder, const char *form, int64_t first,
                       int64_t end, const char *state_in, const char *out)
{
    command_line line = {0};
    char path[PATH];
    add(&line, "fpac", "run");
    spec_path(which, folder, path);
    add_word(&line, path);
    add(&line, "--form", form);
    if (getenv("FPA_TEST_TARGET"))
        add(&line, "--target", getenv("FPA_TEST_TARGET"));
    add_arrays(which, folder, first, end, &line);
    add_mask(which, folder, &line);
    add_weights(which, folder, &line);
    if (state_in)
        add(&line, "--state-in", state_in);
    snprintf(path, sizeof path, "%s/state_%s.npy", folder, out);
    add(&line, "--state-out", path);
    snprintf(path, sizeof path, "%s/%s.npy", folder, out);
    add(&line, "-o", path);
    program_result result = program_run(line.argument);
    if (result.code)
        fail_msg("%s, %s: exit code %d: %s", which->name, form, result.code, result.err);
    program_free(&result);
}

static double largest(const float *x, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)x[i]));
    return most;
}

/* max |x - y| / max |y|; not a number counts as infinitely wrong. */
static double distance(const float *x, const float *y, int64_t count, double scale)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)x[i] - (double)y[i]);
        most = difference >= 0 ? fmax(most, difference) : INFINITY;
    }
    return most / scale;
}

/* The array in a file against tokens first.. of the expected one (first 0 when it is a state). */
static void compare(const parity_case *which, const char *form, const char *got_path,
                    const char *expected_path, int axis, int64_t first, double tolerance)
{
    fpa_array got = read_array(got_path), whole = read_array(expected_path);
    fpa_array expected = take_slice(&whole, axis, first, first + got.shape[axis]);
    assert_int_equal(got.count, expected.count);
    double error = distance(got.data, expected.data, got.count, largest(whole.data, whole.count));
    if (!(error <= tolerance))
        fail_msg("%s, %s: error %g, but %g is allowed", which->name, form, error, tolerance);
    npy_free(&expected);
    npy_free(&whole);
    npy_free(&got);
}

/* How far results and final states may be from the peer's, over the largest of these. */
typedef struct allowance {
    double o, state;
} allowance;

static allowance allowance_of(const parity_case *which, const char *folder)
{
    double own = case_number(which, "tolerance_float32", 0);
    if (!other_dtype())
        return (allowance){own, own};
    char path[PATH], case_folder[PATH], files[8][PATH];
    fpa_head_list list = {0};
    fpa_error error = {0};
    parity_files paths = {.folder = case_folder};
    snprintf(case_folder, sizeof case_folder, "tests/parity/%s", which->name);
    spec_path(which, folder, path);
    assert_ok(spec_load(path, &list, &error), &error);
    for (int i = 0; which->weights[i].name; i++) {
        weight_path(which, &which->weights[i], folder, files[i]);
        paths.weight_names[i] = which->weights[i].name;
        paths.weights[i] = files[i];
    }
    parity_errors plain = parity_rounding(list.heads[0], &paths);
    head_list_free(&list);
    return (allowance){own + 4 * plain.o, own + 4 * plain.state};
}

/* ---- the tests ---- */

/* What a head has, a line for each field: the words of its canonical text that are no numbers. */
static char *fields_of(const parity_case *which)
{
    char path[PATH], *fields = NULL;
    size_t size;
    fpa_head_list list = {0};
    fpa_error error = {0};
    snprintf(path, sizeof path, "tests/parity/%s/spec.lua", which->name);
    assert_ok(spec_load(path, &list, &error), &error);
    char *text = head_print(list.heads[0]), *rest = NULL;
    FILE *out = open_memstream(&fields, &size);
    assert_non_null(out);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *more = NULL;
        if (strncmp(line, "name ", 5) == 0)
            continue;
        for (char *word = strtok_r(line, " ", &more); word; word = strtok_r(NULL, " ", &more))
            if (!strpbrk(word, "0123456789"))
                fprintf(out, "%s ", word);
        fprintf(out, "\n");
    }
    fclose(out);
    free(text);
    head_list_free(&list);
    return fields;
}

static void the_fixed_cases_have_each_field_that_any_case_has(void **state)
{
    char *fixed = NULL;
    size_t size;
    FILE *out = open_memstream(&fixed, &size);
    assert_non_null(out);
    fprintf(out, "\n");
    for (int i = 0; i < CASES; i++)
        if (!cases[i].more) {
            char *fields = fields_of(&cases[i]);
            fputs(fields, out);
            free(fields);
        }
    fclose(out);
    for (int i = 0; i < CASES; i++) {
        char *fields = fields_of(&cases[i]), *rest = NULL;
        for (char *line = strtok_r(fields, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            char whole[1024];
            snprintf(whole, sizeof whole, "\n%s\n", line);
            if (!strstr(fixed, whole))
                fail_msg("no case that make test runs has '%s' as %s has it", line, cases[i].name);
        }
        free(fields);
    }
    free(fixed);
}

static void run_whole(const parity_case *which, const char *folder, const char *form, allowance allowed)
{
    char got[PATH], expected[PATH], state[PATH];
    array_path(which, "initial_state", state);
    run_tokens(which, folder, form, 0, -1, case_has(which, "initial_state") ? state : NULL, "o");
    snprintf(got, sizeof got, "%s/o.npy", folder);
    array_path(which, "o", expected);
    compare(which, form, got, expected, TOKENS, 0, allowed.o);
    if (case_has(which, "final_state")) {
        snprintf(got, sizeof got, "%s/state_o.npy", folder);
        array_path(which, "final_state", expected);
        compare(which, form, got, expected, 2, 0, allowed.state);
    }
}

static void run_split(const parity_case *which, const char *folder, const char *form, int64_t split,
                      allowance allowed)
{
    char got[PATH], expected[PATH], state[PATH];
    array_path(which, "o", expected);
    run_tokens(which, folder, form, 0, split, NULL, "head");
    snprintf(got, sizeof got, "%s/head.npy", folder);
    compare(which, form, got, expected, TOKENS, 0, allowed.o);
    snprintf(state, sizeof state, "%s/state_head.npy", folder);
    run_tokens(which, folder, form, split, -1, state, "tail");
    snprintf(got, sizeof got, "%s/tail.npy", folder);
    compare(which, form, got, expected, TOKENS, split, allowed.o);
}

/* A state that one call leaves and the next is given: make test has it in the two forms that auto takes, by turns of the cases. */
static bool is_split(const parity_case *which, int form)
{
    return dear_tests() || form == 1 + (which - cases) % 2;
}

static void a_case_matches_its_peer_in_every_form(void **state)
{
    static const char *const forms[] = {"parallel", "chunked", "recurrent", "auto"};
    const parity_case *which = *state;
    char folder[64];
    int64_t split = (int64_t)case_number(which, "split", 0);
    bool causal = is_causal(which);
    scratch_make(folder);
    allowance allowed = allowance_of(which, folder);
    for (int i = 0; i < 4; i++) {
        const bool wanted = i < 3 || which == cases || dear_tests(); /* auto is one of the other forms */
        if ((!causal && i == 2) || !wanted)
            continue; /* a step knows no later key */
        run_whole(which, folder, forms[i], allowed);
        if (split > 0 && is_split(which, i))
            run_split(which, folder, forms[i], split, allowed);
    }
    scratch_remove(folder);
}

int main(void)
{
    struct CMUnitTest tests[CASES + 1] = {
        cmocka_unit_test(the_fixed_cases_have_each_field_that_any_case_has)};
    int count = 1;
    c_hurry_a_little();
    for (int i = 0; i < CASES; i++)
        if (dear_tests() || !cases[i].more)
            tests[count++] = (struct CMUnitTest){cases[i].name, a_case_matches_its_peer_in_every_form, NULL,
                                                 NULL, (void *)(uintptr_t)&cases[i]};
    dear_report("cases", count - 1, CASES);
    return _cmocka_run_group_tests("parity", tests, (size_t)count, NULL, NULL);
}

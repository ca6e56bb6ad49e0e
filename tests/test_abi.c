/* What docs/abi.md promises: the layout of fpa.h, the functions that the libraries export, and that
 * libfpa-run has neither Lua nor the generator. */
#include "c_hurry.h"
#include "claims.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/launch.h"
#include "program.h"

/* build, build/asan ...: where the command under test is. */
static void built(const char *name, char *path, size_t size)
{
    const char *command = getenv("FPAC") ? getenv("FPAC") : "build/fpac";
    snprintf(path, size, "%.*s/%s", (int)(strrchr(command, '/') - command), command, name);
}

/* Layout */

typedef struct place_of {
    const char *name;
    size_t now, recorded; /* an offset, a size or a number */
} place_of;

#define AT(type, field, recorded)                                                                            \
    {                                                                                                        \
#type "." #field, offsetof(type, field), recorded                                                    \
    }
#define SIZE(type, recorded)                                                                                 \
    {                                                                                                        \
        "sizeof " #type, sizeof(type), recorded                                                              \
    }
#define NUMBER(name, recorded)                                                                               \
    {                                                                                                        \
#name, (size_t)(name), (size_t)(recorded)                                                            \
    }

/* As they are for SOVERSION 0. */
static const place_of soversion_0[] = {
    AT(fpa_options, target, 0),
    AT(fpa_options, device, 8),
    AT(fpa_options, cache_dir, 16),
    AT(fpa_options, compiler, 24),
    AT(fpa_options, log, 32),
    AT(fpa_options, log_user, 40),
    AT(fpa_options, backward, 48),
    SIZE(fpa_options, 56),
    AT(fpa_tensors, q, 0),
    AT(fpa_tensors, k, 8),
    AT(fpa_tensors, v, 16),
    AT(fpa_tensors, o, 24),
    AT(fpa_tensors, log_gate, 32),
    AT(fpa_tensors, state_in, 40),
    AT(fpa_tensors, state_out, 48),
    AT(fpa_tensors, weights, 56),
    AT(fpa_tensors, stream, 64),
    AT(fpa_tensors, recent, 72),
    AT(fpa_tensors, positions, 80),
    AT(fpa_tensors, key_mask, 88),
    AT(fpa_tensors, den, 96),
    AT(fpa_tensors, cu_seqlens, 104),
    AT(fpa_tensors, max_length, 112),
    AT(fpa_tensors, state_index, 120),
    AT(fpa_tensors, state_out_index, 128),
    SIZE(fpa_tensors, 136),
    AT(fpa_accepted, count, 0),
    AT(fpa_accepted, k, 8),
    AT(fpa_accepted, v, 16),
    AT(fpa_accepted, log_gate, 24),
    AT(fpa_accepted, positions, 32),
    AT(fpa_accepted, key_mask, 40),
    SIZE(fpa_accepted, 48),
    AT(fpa_gradient_tensors, q, 0),
    AT(fpa_gradient_tensors, k, 8),
    AT(fpa_gradient_tensors, v, 16),
    AT(fpa_gradient_tensors, log_gate, 24),
    AT(fpa_gradient_tensors, state_in, 32),
    AT(fpa_gradient_tensors, weights, 40),
    AT(fpa_gradient_tensors, o, 48),
    AT(fpa_gradient_tensors, den, 56),
    AT(fpa_gradient_tensors, d_o, 64),
    AT(fpa_gradient_tensors, d_state_out, 72),
    AT(fpa_gradient_tensors, d_q, 80),
    AT(fpa_gradient_tensors, d_k, 88),
    AT(fpa_gradient_tensors, d_v, 96),
    AT(fpa_gradient_tensors, d_log_gate, 104),
    AT(fpa_gradient_tensors, d_state_in, 112),
    AT(fpa_gradient_tensors, d_weights, 120),
    AT(fpa_gradient_tensors, stream, 128),
    AT(fpa_gradient_tensors, cu_seqlens, 136),
    AT(fpa_gradient_tensors, max_length, 144),
    AT(fpa_gradient_tensors, state_index, 152),
    AT(fpa_gradient_tensors, positions, 160),
    AT(fpa_gradient_tensors, key_mask, 168),
    SIZE(fpa_gradient_tensors, 176),
    AT(fpa_error, code, 0),
    AT(fpa_error, where, 4),
    AT(fpa_error, message, 260),
    SIZE(fpa_error, 1284),
    AT(fpa_object_call, read, 0),
    AT(fpa_object_call, stream, 8),
    AT(fpa_object_call, release, 16),
    AT(fpa_object_call, acquire, 24),
    AT(fpa_object_call, kernel, 32),
    AT(fpa_object_call, layer, 40),
    AT(fpa_object_call, form, 48),
    AT(fpa_object_call, tensors, 56),
    AT(fpa_object_call, workspace_size, 64),
    AT(fpa_object_call, error, 72),
    SIZE(fpa_object_call, 80),
    AT(fpa_description, name, 0), /* without a size: it may grow */
    AT(fpa_description, target, 8),
    AT(fpa_description, dtype, 16),
    AT(fpa_description, state_dtype, 24),
    AT(fpa_description, arithmetic, 32),
    AT(fpa_description, device, 40),
    AT(fpa_description, d, 44),
    AT(fpa_description, dv, 48),
    AT(fpa_description, causal, 52),
    AT(fpa_description, gate, 56),
    AT(fpa_description, normalized, 60),
    AT(fpa_description, features, 64),
    AT(fpa_description, state_elements, 72),
    AT(fpa_description, chunk, 80),
    AT(fpa_description, block, 84),
    AT(fpa_description, crossover, 88),
    AT(fpa_description, flop, 96),
    AT(fpa_description, weight_count, 120),
    AT(fpa_description, weight_names, 128),
    AT(fpa_description, verdict, 136),
    AT(fpa_description, from_cache, 144),
    AT(fpa_description, positions, 148),
    AT(fpa_description, key_mask, 152),
    AT(fpa_description, heads, 156),
    AT(fpa_description, window, 160),
    AT(fpa_description, backward_verdict, 168),
    AT(fpa_description, weight_shapes, 176),
    AT(fpa_description, weight_kinds, 184),
    AT(fpa_weight_shape, rows, 0),
    AT(fpa_weight_shape, columns, 4),
    AT(fpa_weight_shape, per_head, 8),
    SIZE(fpa_weight_shape, 12),
    AT(fpa_layer_part, head, 0),
    AT(fpa_layer_part, first, 8),
    AT(fpa_layer_part, heads, 12),
    AT(fpa_layer_part, state_offset, 16),
    AT(fpa_layer_part, first_weight, 24),
    SIZE(fpa_layer_part, 32),           /* of an array */
    AT(fpa_layer_description, name, 0), /* without a size: it may grow */
    AT(fpa_layer_description, target, 8),
    AT(fpa_layer_description, dtype, 16),
    AT(fpa_layer_description, state_dtype, 24),
    AT(fpa_layer_description, device, 32),
    AT(fpa_layer_description, d, 36),
    AT(fpa_layer_description, dv, 40),
    AT(fpa_layer_description, heads, 44),
    AT(fpa_layer_description, gate, 48),
    AT(fpa_layer_description, normalized, 52),
    AT(fpa_layer_description, key_mask, 56),
    AT(fpa_layer_description, positions, 60),
    AT(fpa_layer_description, window, 64),
    AT(fpa_layer_description, backward, 68),
    AT(fpa_layer_description, state_elements, 72),
    AT(fpa_layer_description, weight_count, 80),
    AT(fpa_layer_description, weight_names, 88),
    AT(fpa_layer_description, part_count, 96),
    AT(fpa_layer_description, parts, 104),
    NUMBER(FPA_FORM_AUTO, -1),
    NUMBER(FPA_FORM_PARALLEL, 0),
    NUMBER(FPA_FORM_CHUNKED, 1),
    NUMBER(FPA_FORM_RECURRENT, 2),
    NUMBER(FPA_OBJECTS_CHANGED, -1),
    NUMBER(FPA_OK, 0),
    NUMBER(FPA_INVALID, 1),
    NUMBER(FPA_UNSUPPORTED, 2),
    NUMBER(FPA_NO_MEMORY, 3),
    NUMBER(FPA_IO, 4),
    NUMBER(FPA_COMPILE, 5),
    NUMBER(FPA_LOAD, 6),
    NUMBER(FPA_REFUSED, 7),
    NUMBER(FPA_DEVICE, 8),
};

/* What modules of bundles are called with, as it is for this first line of a manifest. */
static const char bundle_format[] = "fpac-bundle 10";
static const place_of bundle_10[] = {
    AT(struct fpa_launch, batch, 0),
    AT(struct fpa_launch, length, 8),
    AT(struct fpa_launch, query_heads, 16),
    AT(struct fpa_launch, heads, 24),
    AT(struct fpa_launch, q, 32),
    AT(struct fpa_launch, k, 40),
    AT(struct fpa_launch, v, 48),
    AT(struct fpa_launch, o, 56),
    AT(struct fpa_launch, q_stride, 64),
    AT(struct fpa_launch, k_stride, 88),
    AT(struct fpa_launch, v_stride, 112),
    AT(struct fpa_launch, o_stride, 136),
    AT(struct fpa_launch, log_gate, 160),
    AT(struct fpa_launch, gate_stride, 168),
    AT(struct fpa_launch, positions, 192),
    AT(struct fpa_launch, position_stride, 200),
    AT(struct fpa_launch, key_mask, 224),
    AT(struct fpa_launch, key_mask_stride, 232),
    AT(struct fpa_launch, state_in, 248),
    AT(struct fpa_launch, state_in_stride, 256),
    AT(struct fpa_launch, state_out, 272),
    AT(struct fpa_launch, state_out_stride, 280),
    AT(struct fpa_launch, weights, 296),
    AT(struct fpa_launch, workspace, 304),
    AT(struct fpa_launch, workspace_size, 312),
    AT(struct fpa_launch, recent, 320),
    AT(struct fpa_launch, den, 328),
    AT(struct fpa_launch, den_stride, 336),
    AT(struct fpa_launch, cu_seqlens, 360),
    AT(struct fpa_launch, cu_seqlens_bytes, 368),
    AT(struct fpa_launch, total, 376),
    AT(struct fpa_launch, state_in_index, 384),
    AT(struct fpa_launch, state_out_index, 392),
    AT(struct fpa_launch, state_in_slots, 400),
    AT(struct fpa_launch, state_out_slots, 408),
    SIZE(struct fpa_launch, 416),
    AT(struct fpa_backward_launch, forward, 0),
    AT(struct fpa_backward_launch, d_o, 416),
    AT(struct fpa_backward_launch, d_o_stride, 424),
    AT(struct fpa_backward_launch, d_state_out, 448),
    AT(struct fpa_backward_launch, d_state_out_stride, 456),
    AT(struct fpa_backward_launch, d_q, 472),
    AT(struct fpa_backward_launch, d_k, 480),
    AT(struct fpa_backward_launch, d_v, 488),
    AT(struct fpa_backward_launch, d_q_stride, 496),
    AT(struct fpa_backward_launch, d_k_stride, 520),
    AT(struct fpa_backward_launch, d_v_stride, 544),
    AT(struct fpa_backward_launch, d_log_gate, 568),
    AT(struct fpa_backward_launch, d_log_gate_stride, 576),
    AT(struct fpa_backward_launch, d_state_in, 600),
    AT(struct fpa_backward_launch, d_state_in_stride, 608),
    AT(struct fpa_backward_launch, d_weights, 624),
    SIZE(struct fpa_backward_launch, 632),
};

static int compare(const place_of table[], size_t count, const char *remedy)
{
    int wrong = 0;
    for (size_t i = 0; i < count; i++)
        if (table[i].now != table[i].recorded) {
            print_error("%s is %lld and was %lld: %s\n", table[i].name, (long long)table[i].now,
                        (long long)table[i].recorded, remedy);
            wrong++;
        }
    return wrong;
}

static void the_layout_of_fpa_h_is_that_of_its_soname(void **state)
{
    char path[256];
    if (sizeof(void *) != 8)
        skip();
    built("libfpa.so.0", path, sizeof path);
    assert_int_equal(access(path, F_OK), 0); /* another SOVERSION has another table */
    assert_int_equal(compare(soversion_0, sizeof soversion_0 / sizeof *soversion_0,
                             "docs/abi.md says whether SOVERSION has to be raised; then record it here"),
                     0);
}

static void a_launch_is_that_of_the_format_of_bundles(void **state)
{
    char *manifest = text_read("generated/exemplars/linear_d64/manifest.fpa", NULL);
    if (sizeof(void *) != 8)
        skip();
    assert_non_null(manifest);
    assert_int_equal(strncmp(manifest, bundle_format, strlen(bundle_format)), 0);
    free(manifest);
    assert_int_equal(
        compare(bundle_10, sizeof bundle_10 / sizeof *bundle_10,
                "raise the number of fpac-bundle in runtime/store/manifest.c; then record both here"),
        0);
}

static void the_version_is_that_of_the_file_version(void **state)
{
    size_t size;
    char *version = text_read("VERSION", &size);
    assert_non_null(version);
    version[strcspn(version, "\n")] = '\0';
    assert_string_equal(fpa_version(), version);
    free(version);
}

/* Symbols */

enum { NAMES = 64 };

/* Names, in the order of strcmp. */
typedef struct names {
    int count;
    char name[NAMES][64];
} names;

static int by_name(const void *one, const void *other)
{
    return strcmp(one, other);
}

static void add_name(names *list, const char *name, size_t length)
{
    assert_true(list->count < NAMES);
    snprintf(list->name[list->count++], sizeof *list->name, "%.*s", (int)length, name);
    qsort(list->name, (size_t)list->count, sizeof *list->name, by_name);
}

/* Adds the functions that a header gives to others. */
static void declared(const char *header, names *list)
{
    char *text = text_read(header, NULL), *rest = text;
    assert_non_null(text);
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (*line == '#' || (!strstr(line, "FPA_API ") && !strstr(line, "visibility(\"default\")")))
            continue;
        const char *open = NULL, *at = line;
        while ((at = strstr(at, "fpa_"))) {
            size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
            if (at[length] == '(')
                add_name(list, open = at, length);
            at += length;
        }
        assert_non_null(open);
    }
    free(text);
}

/* The third and last word of each line of nm; of a sanitizer's names ("__") there are more. */
static void exported(const char *library, names *list)
{
    char path[256];
    built(library, path, sizeof path);
    bool shared = strstr(library, ".so") != NULL;
    program_result nm = RUN("/usr/bin/env", "nm", shared ? "-D" : "-g", "--defined-only", path);
    char *rest = nm.out;
    assert_int_equal(nm.code, 0);
    for (char *line; (line = strsep(&rest, "\n"));) {
        const char *name = strrchr(line, ' ');
        if (name && strncmp(name, " __", 3) != 0)
            add_name(list, name + 1, strlen(name + 1));
    }
    program_free(&nm);
}

static bool generates(const char *name)
{
    return !strcmp(name, "fpa_open") || !strcmp(name, "fpa_open_text") || !strcmp(name, "fpa_open_layer") ||
           !strcmp(name, "fpa_open_layer_text");
}

/* without: leave out what only libfpa has. */
static void expect_exports(const char *library, bool without)
{
    names ours = {0}, theirs = {0}, wanted = {0};
    declared("runtime/api/fpa.h", &ours);
    declared("base/fpa_error.h", &ours);
    for (int i = 0; i < ours.count; i++)
        if (!without || !generates(ours.name[i]))
            add_name(&wanted, ours.name[i], strlen(ours.name[i]));
    exported(library, &theirs);
    assert_true(wanted.count >= 9);
    for (int i = 0; i < wanted.count && i < theirs.count; i++)
        if (strcmp(wanted.name[i], theirs.name[i]) != 0)
            fail_msg("%s exports %s where the header has %s", library, theirs.name[i], wanted.name[i]);
    if (wanted.count != theirs.count)
        fail_msg("%s exports %d names, the headers declare %d", library, theirs.count, wanted.count);
}

static void libfpa_exports_what_its_header_declares(void **state)
{
    expect_exports("libfpa.so", false);
    expect_exports("libfpa.a", false);
}

static void libfpa_run_exports_all_but_what_generates(void **state)
{
    expect_exports("libfpa-run.so", true);
    expect_exports("libfpa-run.a", true);
}

/* Names of all kinds: defined, undefined, hidden. */
static void expect_no_generator(const char *library)
{
    static const char *const words[] = {" lua",      " spec_",     " source_generate", " plan_",
                                        " simplify", " template_", " fpa_embedded_",   " generator_digest"};
    char path[256];
    built(library, path, sizeof path);
    program_result nm = RUN("/usr/bin/env", "nm", path);
    assert_int_equal(nm.code, 0);
    assert_non_null(strstr(nm.out, " fpa_open_bundle\n"));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(nm.out, words[i]))
            fail_msg("%s has a name that begins with%s", library, words[i]);
    program_free(&nm);
}

static void libfpa_run_has_neither_lua_nor_the_generator(void **state)
{
    char path[256];
    expect_no_generator("libfpa-run.so");
    expect_no_generator("libfpa-run.a");
    built("libfpa-run.so", path, sizeof path);
    program_result needs = RUN("/usr/bin/env", "readelf", "-d", path);
    assert_int_equal(needs.code, 0);
    assert_non_null(strstr(needs.out, "[libfpa-run.so.0]"));
    assert_null(strstr(needs.out, "lua"));
    program_free(&needs);
}

/* examples/bundle is linked to libfpa-run alone. */
static void a_program_of_libfpa_run_runs_what_fpac_gen_wrote(void **state)
{
    char folder[64], program[256];
    scratch_make(folder);
    built("examples/bundle", program, sizeof program);
    program_result written = RUN("fpac", "gen", "specs/linear.lua", "--head", "linear_d64", "--target", "c",
                                 "--object", "-o", folder);
    assert_int_equal(written.code, 0);
    program_result ran = RUN(program, folder, "linear_d64");
    assert_int_equal(ran.code, 0);
    assert_non_null(strstr(ran.out, "linear_d64 for c:"));
    assert_non_null(strstr(ran.out, "o[last token][0] = "));
    program_free(&ran);
    program_free(&written);
    scratch_remove(folder);
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_of_fpa_h_is_that_of_its_soname),
        cmocka_unit_test(a_launch_is_that_of_the_format_of_bundles),
        cmocka_unit_test(the_version_is_that_of_the_file_version),
        cmocka_unit_test(libfpa_exports_what_its_header_declares),
        cmocka_unit_test(libfpa_run_exports_all_but_what_generates),
        cmocka_unit_test(libfpa_run_has_neither_lua_nor_the_generator),
        cmocka_unit_test(a_program_of_libfpa_run_runs_what_fpac_gen_wrote),
    };
    return cmocka_run_group_tests_name("abi", tests, NULL, NULL);
}

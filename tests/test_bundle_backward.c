/* Bundles with gradients: what is written, opened and verified, and what is refused. */
#include "dear.h"
#include "gpu_gradients.h"
#include "program.h"

#include "bundle_fixture.h"

static const char *const best[] = {"c"};

/* ---- calls ---- */

enum { GRADIENTS = 3 };

/* Gradients of the toy's q, k and v, for d_o of v's numbers. */
typedef struct toy_gradients {
    float d[GRADIENTS][TOY_ELEMENTS];
} toy_gradients;

static fpa_status toy_backward(const fpa_kernel *kernel, fpa_form form, toy_gradients *result,
                               fpa_error *error)
{
    toy_call call;
    DLTensor gradients[GRADIENTS];
    size_t size;
    toy_fill(&call);
    for (int i = 0; i < GRADIENTS; i++)
        gradients[i] = toy_tensor(result->d[i], 4, call.shape);
    const fpa_gradient_tensors tensors = {.q = call.operands.q,
                                          .k = call.operands.k,
                                          .v = call.operands.v,
                                          .o = call.operands.o,
                                          .d_o = call.operands.v,
                                          .d_q = &gradients[0],
                                          .d_k = &gradients[1],
                                          .d_v = &gradients[2]};
    fpa_status status = toy_forward(kernel, form, &call.operands, error);
    if (!status)
        status = fpa_backward_workspace(kernel, form, &tensors, &size, error);
    if (status)
        return status;
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    status = fpa_backward(kernel, form, &tensors, workspace, size, error);
    free(workspace);
    return status;
}

/* d_v of token j is the sum over later tokens t of (q_t . k_j)^2 d_o_t. */
static bool toy_values_are_right(const toy_gradients *result)
{
    const int step = TOY_HEADS * TOY_WIDTH;
    toy_call call;
    toy_fill(&call);
    for (int i = 0; i < TOY_BATCH * TOY_TOKENS * TOY_HEADS; i++) {
        double sum[TOY_WIDTH] = {0};
        for (int t = i / TOY_HEADS % TOY_TOKENS, at = i * TOY_WIDTH; t < TOY_TOKENS; t++, at += step) {
            double dot = 0;
            for (int c = 0; c < TOY_WIDTH; c++)
                dot += (double)call.q[at + c] * (double)call.k[i * TOY_WIDTH + c];
            for (int c = 0; c < TOY_WIDTH; c++)
                sum[c] += dot * dot * (double)call.v[at + c];
        }
        for (int c = 0; c < TOY_WIDTH; c++)
            if (!(fabs((double)result->d[2][i * TOY_WIDTH + c] - sum[c]) < 1e-4))
                return false;
    }
    return true;
}

static fpa_status open_spec(const fixture *f, fpa_kernel **kernel, fpa_error *error)
{
    const fpa_options options = {.cache_dir = f->cache, .backward = 1};
    return fpa_open_text("toy.lua", TOY_SPEC, NULL, &options, kernel, error);
}

/* ---- what is written ---- */

static void gradients_are_files_of_their_own(void **state)
{
    fixture *f = *state;
    fpa_error error;
    char object[64];
    static const char *const targets[] = {"c:sse2", "c:neon"};
    static const char *const names[] = {"toy.sse2.backward.c", "toy.sse2.backward.h", "toy.neon.backward.c",
                                        "toy.neon.backward.h"};
    assert_int_equal(bundle_write(f->heads.heads, 1, f->bundle, targets, 2, (bundle_parts){.backward = true},
                                  &f->options, &error),
                     FPA_OK);
    for (int i = 0; i < 4; i++)
        assert_true(has_file(f, names[i]));
    assert_int_equal(scratch_count(f->bundle, NULL), 2 + 4 + 4);
    write_gradients(f, 1, best, 1);
    assert_true(has_file(f, "toy.backward.c") && has_file(f, "toy.backward.h"));
    snprintf(object, sizeof object, "toy.%s.backward.so", strchr(target_best()->name, ':') + 1);
    assert_true(has_file(f, object));
    assert_non_null(strstr(f->log.text, "toy: verified: gradients: "));
}

/* Its file is C that needs nothing of fpac's. */
static void a_program_links_both_passes(void **state)
{
    static const char text[] =
        "#include \"toy.h\"\n"
        "#include \"toy.backward.h\"\n"
        "int main(void) { struct fpa_backward_launch a = {{.heads = 1, .query_heads = 1}};\n"
        "    return toy_backward(2, &a) == 2 && toy_forward(3, &a.forward) != 0 &&\n"
        "           toy_workspace(0, &a.forward) + toy_backward_workspace(0, &a) ? 0 : 1; }\n";
    fixture *f = *state;
    fpa_error error;
    char source[256], command[1024];
    assert_int_equal(bundle_write(f->heads.heads, 1, f->bundle, best, 1, (bundle_parts){.backward = true},
                                  &f->options, &error),
                     FPA_OK);
    snprintf(source, sizeof source, "%s/main.c", f->bundle);
    scratch_write(source, text, sizeof text - 1);
    snprintf(command, sizeof command,
             "cd %s && cc -std=gnu11 -O0 -march=native -fopenmp -Wall -Werror main.c toy.c toy.backward.c -o "
             "both -lm && "
             "./both",
             f->bundle);
    assert_int_equal(system(command), 0);
}

static void a_head_without_gradients_is_not_written(void **state)
{
    static const char near[] = "return head { name = 'near', d = 4, dv = 4, normalize = 'sum', window = 8, "
                               "terms = linear {} },\n" TOY_HEAD("toy");
    fixture *f = *state;
    fpa_head_list list;
    fpa_error error;
    size_t size;
    assert_int_equal(spec_load_text("text.lua", NULL, near, sizeof near - 1, &list, &error), FPA_OK);
    assert_int_equal(bundle_write(list.heads, 2, f->bundle, best, 1, (bundle_parts){.backward = true},
                                  &f->options, &error),
                     FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "a window, for which gradients are not implemented yet"));
    char *text = read_manifest(f, &size);
    assert_non_null(strstr(text, "entries 1\nentry toy "));
    assert_false(has_file(f, "near.c"));
    free(text);
    head_list_free(&list);
}

/* ---- what is opened ---- */

static void gradients_of_a_bundle_are_those_of_the_spec(void **state)
{
    static toy_gradients ours, theirs;
    fixture *f = *state;
    fpa_error error;
    fpa_kernel *spec;
    write_gradients(f, 2, best, 1);
    f->options.compiler = "/nowhere/cc";
    f->options.backward = 1;
    fpa_kernel *kernel = open_bundle(f, "toy");
    assert_non_null(strstr(fpa_describe(kernel)->backward_verdict, "gradients: "));
    assert_true(toy_works(kernel));
    assert_int_equal(open_spec(f, &spec, &error), FPA_OK);
    for (fpa_form form = FPA_FORM_AUTO; form <= FPA_FORM_CHUNKED; form++) {
        assert_int_equal(toy_backward(kernel, form, &ours, &error), FPA_OK);
        assert_int_equal(toy_backward(spec, form, &theirs, &error), FPA_OK);
        assert_memory_equal(&ours, &theirs, sizeof ours);
        assert_true(toy_values_are_right(&ours));
    }
    fpa_close(kernel);
    fpa_close(spec);
}

static void gates_normalisers_and_matrices_have_their_gradients(void **state)
{
    const bundle_parts parts = {.objects = true, .backward = true};
    fixture *f = *state;
    fpa_head_list list;
    fpa_error error;
    fpa_kernel *spec;
    f->options.backward = 1;
    assert_int_equal(spec_load_text("graded.lua", NULL, GRADED_HEAD, strlen(GRADED_HEAD), &list, &error),
                     FPA_OK);
    assert_int_equal(bundle_write(list.heads, 1, f->bundle, best, 1, parts, &f->options, &error), FPA_OK);
    assert_int_equal(fpa_open_text("graded.lua", GRADED_HEAD, NULL, &f->options, &spec, &error), FPA_OK);
    fpa_kernel *kernel = open_bundle(f, NULL);
    for (fpa_form form = FPA_FORM_PARALLEL; form <= FPA_FORM_CHUNKED; form++)
        assert_true(gradients_distance(kernel, NULL, spec, form) == 0);
    fpa_close(kernel);
    fpa_close(spec);
    head_list_free(&list);
}

static void gradients_are_verified_once_on_a_machine(void **state)
{
    fixture *f = *state;
    write_gradients(f, 1, best, 1);
    fpa_close(open_bundle(f, NULL)); /* has the verdict of the forward pass */
    f->options.backward = 1;
    f->log = (scratch_log){0};
    fpa_kernel *first = open_bundle(f, NULL);
    assert_int_equal(f->log.lines, 1);
    assert_non_null(strstr(f->log.text, "toy: verified: gradients: "));
    fpa_kernel *second = open_bundle(f, NULL);
    assert_int_equal(f->log.lines, 1);
    assert_string_equal(fpa_describe(first)->backward_verdict, fpa_describe(second)->backward_verdict);
    f->options.cache_dir = ""; /* nowhere to keep the verdicts: both are verified again */
    fpa_kernel *third = open_bundle(f, NULL);
    assert_int_equal(f->log.lines, 3);
    fpa_close(first);
    fpa_close(second);
    fpa_close(third);
}

/* The name of the best target's object of a pass. */
static void object_name(char name[64], const char *infix)
{
    snprintf(name, 64, "toy.%s%s.so", strchr(target_best()->name, ':') + 1, infix);
}

static void what_is_not_wanted_is_not_read(void **state)
{
    static toy_gradients none;
    fixture *f = *state;
    char object[64], path[256];
    fpa_error error;
    write_gradients(f, 1, best, 1);
    object_name(object, ".backward");
    snprintf(path, sizeof path, "%s/%s", f->bundle, object);
    assert_int_equal(unlink(path), 0);
    fpa_kernel *kernel = open_bundle(f, NULL);
    assert_null(fpa_describe(kernel)->backward_verdict);
    assert_int_equal(toy_backward(kernel, FPA_FORM_AUTO, &none, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "opened without gradients: open it with backward = 1"));
    fpa_close(kernel);
}

static void a_bundle_without_gradients_says_how_it_gets_them(void **state)
{
    fixture *f = *state;
    write_best(f, 1);
    f->options.backward = 1;
    expect_refused(f, NULL, FPA_UNSUPPORTED, "bundle", "toy was written without gradients for ");
    expect_refused(f, NULL, FPA_UNSUPPORTED, "bundle", "fpac gen --backward --object --target ");
}

/* Where gradients are wanted, entries without them do not count. */
static void the_best_target_with_gradients_is_taken(void **state)
{
    const char *const wide = target_best() == target_find("c:avx2") ? "c:avx512" : "c:avx2";
    const char *const with[] = {"c:sse2", wide}, *const without[] = {target_best()->name, wide};
    fixture *f = *state;
    fpa_error error;
    if (target_best() == target_find("c:sse2") || !target_runs(target_find("c:sse2")))
        skip();
    write_gradients(f, 1, with, 2);
    assert_int_equal(write_bundle(f, 1, without, 2, true, &error), FPA_OK);
    fpa_kernel *kernel = open_bundle(f, NULL);
    assert_string_equal(fpa_describe(kernel)->target, target_best()->name);
    fpa_close(kernel);
    f->options.backward = 1;
    kernel = open_bundle(f, NULL);
    assert_string_equal(fpa_describe(kernel)->target, "c:sse2");
    fpa_close(kernel);
    f->options.target = target_best()->name;
    expect_refused(f, NULL, FPA_UNSUPPORTED, "bundle", "without gradients");
}

/* examples/gradient_descent is linked to libfpa-run alone, and runs where no compiler is found. Its loss falls. */
static void a_matrix_is_learned_from_a_bundle(void **state)
{
    fixture *f = *state;
    char program[256], cache[128];
    const char *command = getenv("FPAC") ? getenv("FPAC") : "build/fpac";
    snprintf(program, sizeof program, "%.*s/examples/gradient_descent",
             (int)(strrchr(command, '/') - command), command);
    snprintf(cache, sizeof cache, "FPA_CACHE_DIR=%s", f->cache);
    program_result written = RUN("fpac", "gen", "specs/trainable.lua", "--head", "trainable_shared",
                                 "--target", "c", "--object", "--backward", "-o", f->bundle);
    if (written.code)
        fail_msg("%s", written.err);
    program_result ran =
        RUN("/usr/bin/env", "-i", "PATH=/nowhere", "OMP_WAIT_POLICY=passive", cache, program, f->bundle);
    if (ran.code)
        fail_msg("%s%s", ran.out, ran.err);
    double before = INFINITY;
    int shown = 0;
    for (const char *at = ran.out; (at = strstr(at, ": loss ")); shown++) {
        const double loss = strtod(at += strlen(": loss "), NULL);
        if (!(loss < before))
            fail_msg("the loss does not fall: %s", ran.out);
        before = loss;
    }
    assert_int_equal(shown, 6);
    assert_true(before < 0.01);
    program_free(&written);
    program_free(&ran);
}

/* ---- what is damaged ---- */

static void read_object(const fixture *f, const char *name, fpa_file *file)
{
    char path[256];
    fpa_error error;
    snprintf(path, sizeof path, "%s/%s", f->bundle, name);
    assert_int_equal(file_read(path, file, &error), FPA_OK);
}

static void write_object(const fixture *f, const char *name, const void *bytes, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->bundle, name);
    scratch_write(path, bytes, size);
}

static void every_changed_byte_and_missing_end_is_noticed(void **state)
{
    fixture *f = *state;
    char object[64], path[256];
    fpa_file file;
    write_gradients(f, 1, best, 1);
    f->options.backward = 1;
    object_name(object, ".backward");
    read_object(f, object, &file);
    for (size_t at = 0; at < file.size; at += 997) {
        file.bytes[at] ^= 4;
        write_object(f, object, file.bytes, file.size);
        expect_refused(f, NULL, FPA_LOAD, object, "SHA-256");
        file.bytes[at] ^= 4;
    }
    for (size_t size = 0; size < file.size; size += file.size / 7 + 1) {
        write_object(f, object, file.bytes, size);
        expect_refused(f, NULL, FPA_LOAD, object, "SHA-256");
    }
    write_object(f, object, file.bytes, file.size);
    fpa_close(open_bundle(f, NULL));
    snprintf(path, sizeof path, "%s/%s", f->bundle, object);
    assert_int_equal(unlink(path), 0);
    expect_refused(f, NULL, FPA_IO, object, "cannot be opened");
    free(file.bytes);
}

/* These bytes as an object, with a manifest that knows them. */
static void list_object(const fixture *f, const char *word, const char *name, const void *bytes, size_t size)
{
    char line[128], digest[DIGEST_TEXT];
    size_t length;
    char *manifest = read_manifest(f, &length);
    write_object(f, name, bytes, size);
    manifest_digest(bytes, size, digest);
    snprintf(line, sizeof line, "\n%s %s ", word, name);
    char *at = strstr(manifest, line);
    assert_non_null(at);
    memcpy(at + strlen(line), digest, DIGEST_TEXT - 1);
    sign_manifest(manifest);
    write_manifest(f, manifest);
    free(manifest);
}

/* What digests do not see: files that end too soon, or that are the module of the other pass. */
static void modules_that_are_none_of_gradients_are_refused(void **state)
{
    fixture *f = *state;
    char forward[64], backward[64];
    fpa_file pass, gradients;
    write_gradients(f, 1, best, 1);
    f->options.backward = 1;
    object_name(forward, "");
    object_name(backward, ".backward");
    read_object(f, forward, &pass);
    read_object(f, backward, &gradients);
    list_object(f, "backward_object", backward, gradients.bytes, gradients.size / 2);
    expect_refused(f, NULL, FPA_LOAD, "toy", "not a complete shared object");
    list_object(f, "backward_object", backward, "", 0);
    expect_refused(f, NULL, FPA_LOAD, "toy", "not a complete shared object");
    list_object(f, "backward_object", backward, pass.bytes, pass.size);
    expect_refused(f, NULL, FPA_LOAD, "toy", "is one of a forward pass, not of gradients");
    list_object(f, "backward_object", backward, gradients.bytes, gradients.size);
    fpa_close(open_bundle(f, NULL));
    list_object(f, "object", forward, gradients.bytes, gradients.size);
    expect_refused(f, NULL, FPA_LOAD, "toy", "is one of gradients, not of a forward pass");
    free(pass.bytes);
    free(gradients.bytes);
}

/* Of a head with the same name, widths and features. */
static void gradients_of_another_head_are_refused_by_verification(void **state)
{
    static const char other[] =
        "return head { name = 'toy', d = 4, dv = 4, chunk = 4, scale = 2, terms = power { degree = 2 } }";
    const bundle_parts parts = {.objects = true, .backward = true};
    fixture *f = *state;
    fpa_head_list list;
    fpa_error error;
    fpa_file gradients;
    char object[64];
    assert_int_equal(spec_load_text("text.lua", NULL, other, sizeof other - 1, &list, &error), FPA_OK);
    assert_int_equal(bundle_write(list.heads, 1, f->bundle, best, 1, parts, &f->options, &error), FPA_OK);
    object_name(object, ".backward");
    read_object(f, object, &gradients);
    write_gradients(f, 1, best, 1);
    list_object(f, "backward_object", object, gradients.bytes, gradients.size);
    fpa_close(open_bundle(f, NULL));
    f->options.backward = 1;
    expect_refused(f, NULL, FPA_REFUSED, "toy", "");
    free(gradients.bytes);
    head_list_free(&list);
}

static void every_mistake_in_the_manifest_is_refused(void **state)
{
    static const struct {
        const char *from, *to, *where;
    } cases[] = {
        {"\nbackward toy", "\nbackward tow", "manifest.fpa:23"},
        {"\nbackward toy c:", "\nbackward toy d:", "manifest.fpa:23"},
        {"\nbackward toy", "\nbackwart toy", "manifest.fpa:23"},
        {"\nbackward_code toy", "\nbackward_cod toy", "manifest.fpa:39"},
        {"\nbackward_code toy", "\nbackward_code /toy", "manifest.fpa:39"},
        {"\nbackward_header toy", "\nheader toy", "manifest.fpa:40"},
        {"\nbackward_object toy", "\nobject toy", "manifest.fpa:41"},
    };
    fixture *f = *state;
    fpa_manifest manifest;
    fpa_error error;
    size_t size;
    char text[8192];
    write_gradients(f, 1, best, 1);
    char *whole = read_manifest(f, &size);
    assert_true(size < sizeof text - 64);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(whole, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, cases[i].to,
                 at + strlen(cases[i].from));
        write_manifest(f, text);
        expect_refused(f, NULL, FPA_INVALID, cases[i].where, "expected");
    }
    for (size_t at = 0; at < size; at++) { /* make test: one bit of each byte */
        snprintf(text, at + 1, "%s", whole);
        assert_int_equal(manifest_parse("manifest", text, at, &manifest, &error), FPA_INVALID);
        for (int bit = dear_tests() ? 0 : (int)(at % 8); bit < 8; bit += dear_tests() ? 1 : 8) {
            whole[at] = (char)(whole[at] ^ 1 << bit);
            assert_int_equal(manifest_parse("manifest", whole, size, &manifest, &error), FPA_INVALID);
            whole[at] = (char)(whole[at] ^ 1 << bit);
        }
    }
    assert_int_equal(manifest_parse("manifest", whole, size, &manifest, &error), FPA_OK);
    assert_true(manifest.entries[0].backward);
    char *again = manifest_print(&manifest);
    assert_string_equal(whole, again);
    manifest_free(&manifest);
    free(again);
    free(whole);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    toy_hurry();
    const struct CMUnitTest tests[] = {
        CLAIM(gradients_are_files_of_their_own),
        CLAIM(a_program_links_both_passes),
        CLAIM(a_head_without_gradients_is_not_written),
        CLAIM(gradients_of_a_bundle_are_those_of_the_spec),
        CLAIM(gates_normalisers_and_matrices_have_their_gradients),
        CLAIM(gradients_are_verified_once_on_a_machine),
        CLAIM(what_is_not_wanted_is_not_read),
        CLAIM(a_bundle_without_gradients_says_how_it_gets_them),
        CLAIM(the_best_target_with_gradients_is_taken),
        CLAIM(a_matrix_is_learned_from_a_bundle),
        CLAIM(every_changed_byte_and_missing_end_is_noticed),
        CLAIM(modules_that_are_none_of_gradients_are_refused),
        CLAIM(gradients_of_another_head_are_refused_by_verification),
        CLAIM(every_mistake_in_the_manifest_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

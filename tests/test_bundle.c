#include "bundle_fixture.h"

static void without_objects_a_bundle_is_text(void **state)
{
    fixture *f = *state;
    fpa_error error;
    static const char *const target[] = {"c:avx2"};
    static const char *const names[] = {"manifest.fpa", "toy.head", "toy.c",   "toy.h",
                                        "second.head",  "second.c", "second.h"};
    assert_int_equal(write_bundle(f, 2, target, 1, false, &error), FPA_OK);
    for (int i = 0; i < 7; i++)
        assert_true(has_file(f, names[i]));
    assert_int_equal(scratch_count(f->bundle, NULL), 7);
    expect_refused(f, "toy", FPA_UNSUPPORTED, "bundle", "fpac gen --object");
}

static void several_targets_get_files_of_their_own(void **state)
{
    fixture *f = *state;
    fpa_error error;
    static const char *const targets[] = {"c:sse2", "c:neon"};
    static const char *const names[] = {"toy.sse2.c", "toy.sse2.h", "toy.neon.c",
                                        "toy.neon.h", "toy.head",   "manifest.fpa"};
    assert_int_equal(write_bundle(f, 1, targets, 2, false, &error), FPA_OK);
    for (int i = 0; i < 6; i++)
        assert_true(has_file(f, names[i]));
    assert_int_equal(scratch_count(f->bundle, NULL), 6);
}

static void writing_twice_gives_the_same_bytes(void **state)
{
    fixture *f = *state;
    size_t size, again_size;
    write_best(f, 2);
    char *first = read_manifest(f, &size);
    write_best(f, 2);
    char *again = read_manifest(f, &again_size);
    assert_string_equal(first, again); /* it has the digests of all other files */
    free(first);
    free(again);
}

static void a_bundle_opens_without_compiler_and_spec(void **state)
{
    fixture *f = *state;
    write_best(f, 2);
    f->options.compiler = "/nowhere/cc";
    fpa_kernel *kernel = open_bundle(f, "second");
    const fpa_description *second = fpa_describe(kernel);
    assert_string_equal(second->name, "second");
    assert_string_equal(second->target, target_best()->name);
    assert_int_equal(second->from_cache, 1);
    assert_true(second->features >= 10);
    assert_true(toy_works(kernel));
    fpa_close(kernel);
}

static void a_bundle_is_verified_once_on_a_machine(void **state)
{
    fixture *f = *state;
    write_best(f, 1);
    f->log = (scratch_log){0};
    fpa_kernel *first = open_bundle(f, NULL);
    assert_int_equal(f->log.lines, 1);
    assert_non_null(strstr(f->log.text, "toy: verified"));
    fpa_kernel *second = open_bundle(f, NULL);
    assert_int_equal(f->log.lines, 1);
    assert_string_equal(fpa_describe(first)->verdict, fpa_describe(second)->verdict);
    f->options.cache_dir = ""; /* nowhere to keep the verdict: verified again */
    fpa_kernel *third = open_bundle(f, NULL);
    assert_int_equal(f->log.lines, 2);
    fpa_close(first);
    fpa_close(second);
    fpa_close(third);
}

static void the_best_target_that_runs_here_is_taken(void **state)
{
    fixture *f = *state;
    fpa_error error;
    const char *targets[16];
    int count = 0;
    for (int i = 0; i < target_count() && count < 16; i++)
        if (target_runs(target_at(i))) /* none of a GPU */
            targets[count++] = target_at(i)->name;
    assert_int_equal(write_bundle(f, 1, targets, count, true, &error), FPA_OK);
    fpa_kernel *kernel = open_bundle(f, NULL);
    assert_string_equal(fpa_describe(kernel)->target, target_best()->name);
    fpa_close(kernel);
    for (int i = 0; i < count; i++) {
        f->options.target = targets[i];
        kernel = open_bundle(f, NULL);
        assert_string_equal(fpa_describe(kernel)->target, targets[i]);
        assert_true(toy_works(kernel));
        fpa_close(kernel);
    }
    f->options.target = target_runs(target_find("c:neon")) ? "c:avx2" : "c:neon";
    expect_refused(f, NULL, FPA_UNSUPPORTED, f->options.target, "cannot run on this machine");
}

static void heads_are_named_in_messages(void **state)
{
    fixture *f = *state;
    write_best(f, 2);
    expect_refused(f, "tow", FPA_INVALID, "bundle", "toy, second");
    expect_refused(f, NULL, FPA_INVALID, "bundle", "toy, second");
}

static void every_changed_file_is_noticed(void **state)
{
    fixture *f = *state;
    char object[64], path[256];
    fpa_error error;
    write_best(f, 1);
    snprintf(object, sizeof object, "toy.%s.so", strchr(target_best()->name, ':') + 1);
    const char *const names[] = {"toy.head", object};
    for (int i = 0; i < 2; i++) {
        fpa_file file;
        snprintf(path, sizeof path, "%s/%s", f->bundle, names[i]);
        assert_int_equal(file_read(path, &file, &error), FPA_OK);
        file.bytes[file.size / 2] ^= 1;
        scratch_write(path, file.bytes, file.size);
        expect_refused(f, NULL, FPA_LOAD, names[i], "SHA-256");
        file.bytes[file.size / 2] ^= 1;
        scratch_write(path, file.bytes, file.size);
        free(file.bytes);
        fpa_close(open_bundle(f, NULL));
        assert_int_equal(unlink(path), 0);
        expect_refused(f, NULL, FPA_IO, names[i], "cannot be opened");
        write_best(f, 1);
    }
}

/* A head that fits the file's digest, but another head's object. */
static void an_object_of_another_head_is_refused_by_verification(void **state)
{
    fixture *f = *state;
    static const char cubes[] =
        "return head { name = 'toy', d = 4, dv = 4, chunk = 4, scale = 2, terms = power { degree = 2 } }";
    fpa_head_list list;
    fpa_error error;
    size_t size;
    char path[256], digest[DIGEST_TEXT];
    write_best(f, 1);
    assert_int_equal(spec_load_text("text.lua", NULL, cubes, sizeof cubes - 1, &list, &error), FPA_OK);
    char *text = head_print(list.heads[0]), *manifest = read_manifest(f, &size);
    snprintf(path, sizeof path, "%s/toy.head", f->bundle);
    scratch_write(path, text, strlen(text));
    manifest_digest(text, strlen(text), digest);
    memcpy(strstr(manifest, "toy.head ") + strlen("toy.head "), digest, 64);
    sign_manifest(manifest);
    write_manifest(f, manifest);
    expect_refused(f, NULL, FPA_REFUSED, "", "");
    free(text);
    free(manifest);
    head_list_free(&list);
}

static void a_missing_bundle_is_told(void **state)
{
    fixture *f = *state;
    expect_refused(f, NULL, FPA_IO, "manifest.fpa", "No such file");
}

static void replace(char *text, size_t room, const char *from, const char *to)
{
    char rest[8192];
    char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(rest, sizeof rest, "%s%s", to, at + strlen(from));
    snprintf(at, room - (size_t)(at - text), "%s", rest);
}

static void every_mistake_in_a_manifest_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *from, *to, *where;
    } cases[] = {
        {"fpac-bundle 10", "fpac-bundle 9", "manifest.fpa:1"},
        {"fpac-bundle 10", "", "manifest.fpa:1"},
        {"entries 1", "entries 2", ":"},
        {"entries 1", "entries 999999999", "manifest.fpa:2"},
        {"entries 1", "entries -1", "manifest.fpa:2"},
        {"entries 1", "entries 01", "manifest.fpa:2"},
        {"entries 1", "entries 0", "manifest.fpa:3"},
        {"entry toy", "entry ../toy", "manifest.fpa:3"},
        {"entry toy", "entry", "manifest.fpa:3"},
        {"arithmetic f32", "arithmetic f64", "manifest.fpa:4"},
        {"arithmetic f32", "arithmetic 0", "manifest.fpa:4"},
        {"features ", "feature ", "manifest.fpa:5"},
        {"features ", "features x", "manifest.fpa:5"},
        {"features ", "features 9999999999999999999", "manifest.fpa:5"},
        {"forms ", "forms 99999999999", "manifest.fpa:13"},
        {"flop_parallel 0x", "flop_parallel nan0x", "manifest.fpa:15"},
        {"toy.head", "/etc/passwd", "manifest.fpa:19"},
        {"toy.head", ".toy.head", "manifest.fpa:19"},
        {"toy.c ", "toy.c f", "manifest.fpa:20"},
        {"code toy.c ", "cod toy.c ", "manifest.fpa:20"},
        {"header toy.h ", "heade toy.h ", "manifest.fpa:21"},
        {"header toy.h ", "header /toy.h ", "manifest.fpa:21"},
        {"header toy.h ", "object toy.h ", "manifest.fpa:22"},
        {"header toy.h ", "ptx toy.h ", "manifest.fpa:22"},
        {"end\n", "end", ":"},
        {"end\n", "end\nend\n", ":"},
        {"end\n", "", ":"},
    };
    fixture *f = *state;
    size_t size;
    char text[8192];
    write_best(f, 1);
    char *whole = read_manifest(f, &size);
    assert_true(size < sizeof text / 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strcpy(text, whole);
        replace(text, sizeof text, cases[i].from, cases[i].to);
        write_manifest(f, text);
        expect_refused(f, NULL, FPA_INVALID, cases[i].where, "expected");
    }
    for (size_t end = 0; end < size; end++) {
        snprintf(text, end + 1, "%s", whole);
        write_manifest(f, text);
        expect_refused(f, NULL, FPA_INVALID, "manifest.fpa", "");
    }
    write_manifest(f, whole);
    fpa_close(open_bundle(f, NULL));
    free(whole);
}

static void every_flipped_bit_of_a_manifest_is_noticed(void **state)
{
    fixture *f = *state;
    fpa_error error;
    size_t size;
    write_best(f, 1);
    fpa_close(open_bundle(f, NULL));
    char *text = read_manifest(f, &size);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            fpa_manifest manifest;
            text[i] = (char)(text[i] ^ 1 << bit);
            assert_int_equal(manifest_parse("manifest", text, size, &manifest, &error), FPA_INVALID);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    char *fact = strstr(text, "\nblock ");
    assert_non_null(fact);
    fact[7] = fact[7] == '1' ? '2' : '1';
    write_manifest(f, text);
    expect_refused(f, NULL, FPA_INVALID, "manifest.fpa", "changed after it was written");
    sign_manifest(text);
    write_manifest(f, text);
    f->log = (scratch_log){0};
    fpa_close(open_bundle(f, NULL));
    assert_non_null(strstr(f->log.text, "verified")); /* another fact: no verdict of before holds */
    free(text);
}

static void a_manifest_is_read_as_it_was_printed(void **state)
{
    fixture *f = *state;
    fpa_manifest manifest;
    fpa_error error;
    size_t size;
    write_best(f, 2);
    char *text = read_manifest(f, &size);
    assert_int_equal(manifest_parse("manifest", text, size, &manifest, &error), FPA_OK);
    assert_int_equal(manifest.count, 2);
    char *again = manifest_print(&manifest);
    assert_string_equal(text, again);
    manifest_free(&manifest);
    free(text);
    free(again);
}

static void a_failure_leaves_nothing(void **state)
{
    fixture *f = *state;
    fpa_error error;
    static const char *const best[] = {"c"}, *const wrong[] = {"c", "c:avx1024"},
                             *const twice[] = {"c:sse2", "c:sse2"};
    f->options.compiler = "/nowhere/cc";
    assert_int_equal(write_bundle(f, 1, best, 1, true, &error), FPA_COMPILE);
    assert_int_not_equal(access(f->bundle, F_OK), 0); /* no source either */
    assert_int_equal(write_bundle(f, 1, wrong, 2, false, &error), FPA_UNSUPPORTED);
    assert_int_equal(write_bundle(f, 1, twice, 2, false, &error), FPA_INVALID);
    assert_false(has_file(f, MANIFEST_NAME));
    snprintf(f->bundle, sizeof f->bundle, "/dev/null/bundle");
    assert_int_equal(write_bundle(f, 1, best, 1, false, &error), FPA_IO);
}

static void two_heads_of_one_name_are_refused(void **state)
{
    fixture *f = *state;
    fpa_error error;
    static const char *const best[] = {"c"};
    fpa_head *const twice[] = {f->heads.heads[0], f->heads.heads[0]};
    assert_int_equal(bundle_write(twice, 2, f->bundle, best, 1, (bundle_parts){0}, &f->options, &error),
                     FPA_INVALID);
    assert_non_null(strstr(error.message, "toy"));
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    toy_hurry();
    const struct CMUnitTest tests[] = {
        CLAIM(without_objects_a_bundle_is_text),
        CLAIM(several_targets_get_files_of_their_own),
        CLAIM(writing_twice_gives_the_same_bytes),
        CLAIM(a_bundle_opens_without_compiler_and_spec),
        CLAIM(a_bundle_is_verified_once_on_a_machine),
        CLAIM(the_best_target_that_runs_here_is_taken),
        CLAIM(heads_are_named_in_messages),
        CLAIM(every_changed_file_is_noticed),
        CLAIM(an_object_of_another_head_is_refused_by_verification),
        CLAIM(a_missing_bundle_is_told),
        CLAIM(every_mistake_in_a_manifest_is_refused_with_its_line),
        CLAIM(every_flipped_bit_of_a_manifest_is_noticed),
        CLAIM(a_manifest_is_read_as_it_was_printed),
        CLAIM(a_failure_leaves_nothing),
        CLAIM(two_heads_of_one_name_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

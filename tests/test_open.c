#include "runtime/store/cache.h"

#include <signal.h>
#include <unistd.h>

#include "open_fixture.h"

static void a_spec_becomes_a_kernel_that_computes_the_formula(void **state)
{
    fixture *f = *state;
    fpa_kernel *kernel = open_toy(f);
    const fpa_description *toy = fpa_describe(kernel);
    assert_string_equal(toy->name, "toy");
    assert_string_equal(toy->target, target_best()->name);
    assert_string_equal(toy->dtype, "f32");
    assert_int_equal(toy->d, 4);
    assert_int_equal(toy->dv, 4);
    assert_true(toy->causal && !toy->gate && !toy->normalized);
    assert_true(toy->features >= 10 && toy->features <= 16);
    assert_int_equal(toy->state_elements, toy->features * 4);
    assert_int_equal(toy->weight_count, 0);
    assert_int_equal(toy->from_cache, 0);
    assert_true(strlen(toy->verdict) > 10);
    assert_true(toy_works(kernel));
    fpa_close(kernel);
    fpa_close(NULL);
}

static void a_second_opening_starts_no_compiler(void **state)
{
    fixture *f = *state;
    fpa_kernel *first = open_toy(f);
    assert_int_equal(compilations(f), 1);
    fpa_kernel *second = open_toy(f);
    assert_int_equal(compilations(f), 1);
    assert_int_equal(fpa_describe(second)->from_cache, 1);
    assert_string_equal(fpa_describe(second)->verdict, fpa_describe(first)->verdict);
    fpa_close(first);
    assert_true(toy_works(second));
    fpa_close(second);
    assert_int_equal(scratch_count(f->cache, NULL), 1);
}

static void without_a_cache_every_opening_compiles(void **state)
{
    fixture *f = *state;
    f->options.cache_dir = "";
    assert_false(comes_from_cache(f));
    assert_false(comes_from_cache(f));
    assert_int_equal(compilations(f), 2);
    assert_int_equal(scratch_count(f->cache, NULL), -1);
}

static void a_cache_that_cannot_be_used_costs_only_time(void **state)
{
    fixture *f = *state;
    f->options.cache_dir = "/dev/null/cache";
    assert_false(comes_from_cache(f));
    assert_non_null(
        strstr(f->log.text, "cache: warning: not used, so that every open compiles: /dev/null/cache"));
}

static void what_decides_the_bytes_decides_the_entry(void **state)
{
    fixture *f = *state;
    const char *before = getenv("FPA_CFLAGS");
    char *kept = before ? strdup(before) : NULL, flags[512];
    assert_false(comes_from_cache(f));
    snprintf(flags, sizeof flags, "%s -DOTHER", before ? before : "");
    setenv("FPA_CFLAGS", flags, 1);
    assert_false(comes_from_cache(f));
    if (kept)
        setenv("FPA_CFLAGS", kept, 1);
    else
        unsetenv("FPA_CFLAGS");
    free(kept);
    scratch_write(f->specs, "return " TOY_HEAD("other"), strlen("return " TOY_HEAD("other")));
    assert_false(comes_from_cache(f));
    assert_int_equal(scratch_count(f->cache, ".fpa"), 3);
}

/* The only entry's name, without its folder. */
static void entry_name(const fixture *f, char name[128])
{
    DIR *list = opendir(f->cache);
    assert_non_null(list);
    for (struct dirent *item = readdir(list); item; item = readdir(list))
        if (strlen(item->d_name) > 64)
            snprintf(name, 128, "%.127s", item->d_name);
    closedir(list);
}

static void a_damaged_entry_is_built_again_with_one_warning(void **state)
{
    fixture *f = *state;
    char name[128], path[256];
    fpa_file file;
    fpa_error error;
    assert_false(comes_from_cache(f));
    entry_name(f, name);
    snprintf(path, sizeof path, "%s/%s", f->cache, name);
    assert_int_equal(file_read(path, &file, &error), FPA_OK);
    file.bytes[file.size / 2] ^= 1;
    scratch_write(path, file.bytes, file.size);
    free(file.bytes);
    f->log = (scratch_log){0};
    assert_false(comes_from_cache(f));
    assert_non_null(strstr(f->log.text, "is damaged"));
    assert_null(strstr(strstr(f->log.text, "is damaged") + 1, "is damaged"));
    assert_true(comes_from_cache(f));
}

/* Bytes that are no module, with facts; and the module's own bytes, without. */
static void an_entry_that_does_not_load_is_built_again(void **state)
{
    fixture *f = *state;
    char name[128], key[KEY_TEXT];
    fpa_error error;
    fpa_cache cache;
    fpa_object object, nonsense = {(unsigned char *)"nonsense", 8};
    char *kept;
    bool found;
    assert_false(comes_from_cache(f));
    entry_name(f, name);
    snprintf(key, sizeof key, "%.64s", name);
    assert_int_equal(cache_open(&f->options, &cache, &error), FPA_OK);
    assert_int_equal(cache_load(&cache, &f->options, key, &found, &object, &kept, &error), FPA_OK);
    assert_true(found);
    const fpa_object *objects[] = {&nonsense, &object, &object};
    const char *texts[] = {kept, "passed", strchr(kept, '\n') + 1};
    for (int i = 0; i < 3; i++) {
        f->log = (scratch_log){0};
        assert_int_equal(cache_store(&cache, key, objects[i], texts[i], &error), FPA_OK);
        assert_false(comes_from_cache(f));
        assert_non_null(strstr(f->log.text, "built again"));
        assert_true(comes_from_cache(f));
    }
    free(object.bytes);
    free(kept);
    cache_close(&cache);
}

static fpa_status open_text(fixture *f, const char *text, const char *head, fpa_error *error)
{
    fpa_kernel *kernel = (fpa_kernel *)f; /* a failure has to overwrite it */
    fpa_status status = fpa_open_text("text.lua", text, head, &f->options, &kernel, error);
    assert_int_equal(status == FPA_OK, kernel != NULL);
    fpa_close(kernel);
    return status;
}

static void spec_text_is_opened_like_a_file(void **state)
{
    fixture *f = *state;
    fpa_error error;
    assert_false(comes_from_cache(f));
    assert_int_equal(open_text(f, TOY_SPEC, "toy", &error), FPA_OK);
}

static void mistakes_are_told_with_their_place(void **state)
{
    fixture *f = *state;
    fpa_error error;
    static const char two[] = "return {\n" TOY_HEAD("first") ",\n" TOY_HEAD("second") "}\n";
    static const struct {
        const char *text, *head;
        fpa_status status;
        const char *where, *message;
    } cases[] = {
        {TOY_SPEC, "tow", FPA_INVALID, "text.lua", "toy"},
        {two, NULL, FPA_INVALID, "text.lua", "first, second"},
        {"\n\nreturn head { nme = 1 }", NULL, FPA_INVALID, "text.lua:3", "name"},
        {"return 7", NULL, FPA_INVALID, "text.lua", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(open_text(f, cases[i].text, cases[i].head, &error), cases[i].status);
        if (!strstr(error.where, cases[i].where) || !strstr(error.message, cases[i].message))
            fail_msg("%s: %s", error.where, error.message);
    }
    assert_int_equal(open_text(f, two, "second", &error), FPA_OK);
    fpa_kernel *kernel;
    assert_int_equal(fpa_open("/nowhere/spec.lua", NULL, &f->options, &kernel, &error), FPA_IO);
    assert_null(kernel);
}

static void a_target_that_cannot_run_is_refused_before_any_work(void **state)
{
    fixture *f = *state;
    fpa_error error;
    f->options.target = "c:avx1024";
    assert_int_equal(open_text(f, TOY_SPEC, NULL, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "c:avx512"));
    for (int i = 0; i < target_count(); i++)
        if (!target_runs(target_at(i)) && target_at(i)->backend == BACKEND_C) {
            f->options.target = target_at(i)->name;
            assert_int_equal(open_text(f, TOY_SPEC, NULL, &error), FPA_UNSUPPORTED);
            assert_string_equal(error.where, target_at(i)->name);
        }
    assert_int_equal(compilations(f), 0);
}

/* main() hides the driver, should there be one. */
static void a_gpu_that_is_not_there_is_told_before_any_work(void **state)
{
    static const char *const targets[] = {"cuda", "cuda:sm_90", "sm_80"};
    fixture *f = *state;
    fpa_error error;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        f->options.target = targets[i];
        assert_int_equal(open_text(f, TOY_SPEC, NULL, &error), FPA_DEVICE);
        assert_int_equal(error.code, FPA_DEVICE);
        assert_non_null(strstr(error.message, "FPA_LIBCUDA"));
    }
    assert_int_equal(scratch_count(f->cache, NULL), -1);
}

static void every_target_of_this_machine_opens(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < target_count(); i++)
        if (target_runs(target_at(i))) {
            f->options.target = target_at(i)->name;
            fpa_kernel *kernel = open_toy(f);
            assert_string_equal(fpa_describe(kernel)->target, target_at(i)->name);
            assert_true(toy_works(kernel));
            fpa_close(kernel);
        }
}

static void a_compiler_that_fails_is_reported_and_nothing_is_stored(void **state)
{
    fixture *f = *state;
    fpa_error error;
    static const char script[] = "#!/bin/sh\necho no more disk >&2\nexit 1\n";
    scratch_write(f->compiler, script, strlen(script));
    assert_int_equal(open_text(f, TOY_SPEC, NULL, &error), FPA_COMPILE);
    assert_non_null(strstr(error.message, "no more disk"));
    assert_int_equal(scratch_count(f->cache, NULL), 0);
    void (*before)(int) = signal(SIGCHLD, SIG_IGN); /* the exit code is lost */
    fpa_status status = open_text(f, TOY_SPEC, NULL, &error);
    signal(SIGCHLD, before);
    assert_int_equal(status, FPA_COMPILE);
    assert_non_null(strstr(error.where, "/cc"));
    assert_non_null(strstr(error.message, "no more disk"));
}

static void a_host_that_ignores_its_children_still_opens(void **state)
{
    fixture *f = *state;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    fpa_kernel *kernel = open_toy(f);
    signal(SIGCHLD, before);
    assert_true(toy_works(kernel));
    fpa_close(kernel);
}

static void a_compiler_in_a_folder_that_is_gone_is_told(void **state)
{
    fixture *f = *state;
    fpa_error error;
    char gone[128], *back = getcwd(NULL, 0);
    snprintf(gone, sizeof gone, "%s/gone", f->folder);
    f->options.compiler = "./cc";
    assert_int_equal(mkdir(gone, 0700), 0);
    assert_int_equal(chdir(gone), 0);
    assert_int_equal(rmdir(gone), 0);
    fpa_status status = open_text(f, TOY_SPEC, NULL, &error);
    assert_int_equal(chdir(back), 0);
    free(back);
    assert_int_equal(status, FPA_COMPILE);
    assert_non_null(strstr(error.message, "the working folder: No such file"));
}

int main(void)
{
    toy_hurry();
    setenv("FPA_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    const struct CMUnitTest tests[] = {
        CLAIM(a_spec_becomes_a_kernel_that_computes_the_formula),
        CLAIM(a_second_opening_starts_no_compiler),
        CLAIM(without_a_cache_every_opening_compiles),
        CLAIM(a_cache_that_cannot_be_used_costs_only_time),
        CLAIM(what_decides_the_bytes_decides_the_entry),
        CLAIM(a_damaged_entry_is_built_again_with_one_warning),
        CLAIM(an_entry_that_does_not_load_is_built_again),
        CLAIM(spec_text_is_opened_like_a_file),
        CLAIM(mistakes_are_told_with_their_place),
        CLAIM(a_target_that_cannot_run_is_refused_before_any_work),
        CLAIM(a_gpu_that_is_not_there_is_told_before_any_work),
        CLAIM(every_target_of_this_machine_opens),
        CLAIM(a_compiler_that_fails_is_reported_and_nothing_is_stored),
        CLAIM(a_host_that_ignores_its_children_still_opens),
        CLAIM(a_compiler_in_a_folder_that_is_gone_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

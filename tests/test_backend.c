#include "runtime/backend.h"
#include "runtime/builder.h"
#include "claims.h"
#include "scratch.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT "__attribute__((visibility(\"default\"))) "

/* A module by hand: workspace answers form + ANSWER, forward returns form. */
static const char plain[] =
    "#include <stddef.h>\n"
    "struct fpa_launch;\n" EXPORT "size_t toy_workspace(int form, const struct fpa_launch *l)\n"
    "{ (void)l; return (size_t)(form + ANSWER); }\n" EXPORT
    "int toy_forward(int form, const struct fpa_launch *l)\n"
    "{ (void)l; return form; }\n";

typedef struct fixture {
    char folder[64]; /* TMPDIR */
    fpa_options options;
    scratch_log log;
} fixture;

static int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    scratch_make(f->folder);
    setenv("TMPDIR", f->folder, 1);
    unsetenv("FPA_CC");
    unsetenv("FPA_CFLAGS");
    unsetenv("FPA_CC_AARCH64");
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    f->options = (fpa_options){.log = scratch_record, .log_user = &f->log};
    *state = f;
    return 0;
}

/* Whatever happened, no compilation leaves a file. */
static int drop_fixture(void **state)
{
    fixture *f = *state;
    int left = scratch_count(f->folder, NULL);
    scratch_remove(f->folder);
    free(f);
    return left;
}

static fpa_source source_of(const char *code, const char *target)
{
    fpa_source source = {.code = strdup(code), .header = NULL};
    strcpy(source.facts.name, "toy");
    strcpy(source.facts.target, target);
    return source;
}

static fpa_status compile(const fixture *f, const char *code, const char *target, fpa_object *object,
                          fpa_error *error)
{
    fpa_source source = source_of(code, target);
    fpa_status status = builder_c.compile(&f->options, &source, object, error);
    free(source.code);
    return status;
}

static fpa_object compile_answer(const fixture *f, int answer)
{
    char code[1024];
    fpa_object object;
    fpa_error error = {0};
    snprintf(code, sizeof code, "#define ANSWER %d\n%s", answer, plain);
    assert_ok(compile(f, code, "c", &object, &error), &error);
    return object;
}

static fpa_module load_answer(const fixture *f, int answer)
{
    fpa_error error = {0};
    fpa_module module;
    fpa_object object = compile_answer(f, answer);
    assert_ok(backend_c.load(&f->options, &object, "toy", &module, &error), &error);
    free(object.bytes);
    return module;
}

static void names_lead_to_their_back_end(void **state)
{
    assert_ptr_equal(backend_find("c"), &backend_c);
    assert_ptr_equal(backend_find("c:avx2"), &backend_c);
    assert_ptr_equal(backend_find("cuda"), &backend_cuda);
    assert_ptr_equal(backend_find("cuda:sm_90"), &backend_cuda);
    assert_ptr_equal(backend_find("sm_90"), &backend_cuda);
    static const char *const wrong[] = {"", "cc", "cuda ", ":", "c2:avx2", "sm_9"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(backend_find(wrong[i]));
}

static void an_unknown_target_is_refused_with_the_ones_there_are(void **state)
{
    const fpa_backend *backend;
    const fpa_target *target;
    fpa_error error;
    assert_int_equal(backend_target("c:avx1024", &backend, &target, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "c:sse2, c:avx2, c:avx512, c:avx512bf16, c:neon, cuda:sm_80"));
    assert_int_equal(backend_choose(NULL, "cpu", &backend, &target, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "c:sse2, c:avx2, c:avx512, c:avx512bf16, c:neon, cuda:sm_80"));
    assert_int_equal(backend_target("c:neon", &backend, &target, &error), FPA_OK);
    assert_string_equal(target->name, "c:neon");
}

static void the_c_back_end_chooses_what_runs_here(void **state)
{
    const fpa_backend *backend;
    const fpa_target *target;
    fpa_error error;
    assert_int_equal(backend_choose(NULL, "c", &backend, &target, &error), FPA_OK);
    assert_ptr_equal(backend, &backend_c);
    assert_ptr_equal(target, target_best());
    for (int i = 0; i < target_count(); i++) {
        if (target_at(i)->backend != BACKEND_C)
            continue;
        fpa_status status = backend_choose(NULL, target_at(i)->name, &backend, &target, &error);
        assert_int_equal(status, target_runs(target_at(i)) ? FPA_OK : FPA_UNSUPPORTED);
    }
    assert_int_equal(backend_c.choose(NULL, "cuda:sm_90", &target, &error), FPA_UNSUPPORTED);
}

static void a_source_is_compiled_loaded_called_and_unloaded(void **state)
{
    fixture *f = *state;
    fpa_error error;
    fpa_module module = load_answer(f, 40);
    assert_ptr_equal(module.backend, &backend_c);
    assert_int_equal(module.device, 0);
    assert_int_equal(module.workspace(&module, 2, NULL, NULL), 42);
    assert_int_equal(module.forward(&module, 0, NULL, NULL, NULL, &error), FPA_OK);
    assert_int_equal(module.forward(&module, 1, NULL, NULL, NULL, &error), FPA_INVALID);
    assert_string_equal(error.where, "workspace");
    assert_int_equal(module.forward(&module, 2, NULL, NULL, NULL, &error), FPA_LOAD);
    assert_non_null(strstr(error.message, "returned the unknown code 2"));
    backend_c.unload(&module);
    assert_null(module.handle);
    assert_int_equal(f->log.lines, 0);
}

static void the_bytes_do_not_depend_on_the_folder(void **state)
{
    fixture *f = *state;
    char other[128];
    fpa_object first = compile_answer(f, 1);
    snprintf(other, sizeof other, "%s/another_folder", f->folder);
    assert_int_equal(mkdir(other, 0700), 0);
    setenv("TMPDIR", other, 1);
    fpa_object second = compile_answer(f, 1);
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
    free(first.bytes);
    free(second.bytes);
}

static void modules_of_one_name_are_each_their_own(void **state)
{
    fixture *f = *state;
    fpa_module first = load_answer(f, 10), second = load_answer(f, 20);
    assert_int_equal(first.workspace(&first, 0, NULL, NULL), 10);
    assert_int_equal(second.workspace(&second, 0, NULL, NULL), 20);
    backend_c.unload(&first);
    fpa_module third = load_answer(f, 30);
    assert_int_equal(second.workspace(&second, 0, NULL, NULL), 20);
    assert_int_equal(third.workspace(&third, 0, NULL, NULL), 30);
    backend_c.unload(&second);
    backend_c.unload(&third);
}

/* Somebody loads from a memory file and closes it: its number, and so its name, is used again. */
static void code_still_loaded_under_a_reused_number_is_not_taken_for_ours(void **state)
{
    fixture *f = *state;
    char path[64];
    fpa_object stale = compile_answer(f, 1);
    int fd = memfd_create("stale", MFD_CLOEXEC);
    assert_true(file_write_all(fd, stale.bytes, stale.size));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    void *old = dlopen(path, RTLD_NOW);
    assert_non_null(old);
    close(fd);
    fpa_module module = load_answer(f, 2);
    assert_int_equal(module.workspace(&module, 0, NULL, NULL), 2);
    backend_c.unload(&module);
    dlclose(old);
    free(stale.bytes);
}

/* This program is not linked against OpenMP: only the module brings it in. */
static void threads_of_an_unloaded_module_sleep_on(void **state)
{
    fixture *f = *state;
    static const char parallel[] =
        "#include <stddef.h>\n"
        "struct fpa_launch;\n" EXPORT "size_t toy_workspace(int form, const struct fpa_launch *l)\n"
        "{ (void)form, (void)l; return 0; }\n"
        "extern int omp_get_max_threads(void);\n" EXPORT
        "int toy_forward(int form, const struct fpa_launch *l)\n"
        "{ int sum = 0; (void)l;\n"
        "#pragma omp parallel for num_threads(4) reduction(+ : sum)\n"
        "  for (int i = 0; i < 100; i++) sum += form;\n"
        "  return omp_get_max_threads() > 0 && sum == 100 * form ? 0 : 2; }\n";
    const struct timespec pause = {0, 50 * 1000 * 1000};
    for (int round = 0; round < 3; round++) {
        fpa_object object;
        fpa_module module;
        fpa_error error;
        assert_int_equal(compile(f, parallel, "c", &object, &error), FPA_OK);
        assert_int_equal(backend_c.load(&f->options, &object, "toy", &module, &error), FPA_OK);
        assert_int_equal(module.forward(&module, 1, NULL, NULL, NULL, &error), FPA_OK);
        backend_c.unload(&module);
        free(object.bytes);
        nanosleep(&pause, NULL);
    }
}

static void a_compilers_complaint_is_passed_on_in_one_line(void **state)
{
    fixture *f = *state;
    fpa_object object;
    fpa_error error;
    assert_int_equal(compile(f, "int toy(void)\n{\n    return nobody_knows_this;\n}\n", "c", &object, &error),
                     FPA_COMPILE);
    assert_non_null(strstr(error.message, "nobody_knows_this"));
    assert_non_null(strstr(error.message, "toy.c:3"));
    assert_null(strchr(error.message, '\n'));
    assert_null(object.bytes);
}

static void a_warning_is_logged(void **state)
{
    fixture *f = *state;
    fpa_object object;
    fpa_error error;
    assert_int_equal(compile(f, "static int nobody_calls_this(void) { return 1; }\n", "c", &object, &error),
                     FPA_OK);
    assert_int_equal(f->log.lines, 1);
    assert_non_null(strstr(f->log.text, "nobody_calls_this"));
    free(object.bytes);
}

static void bytes_that_are_no_module_are_refused(void **state)
{
    fixture *f = *state;
    fpa_error error;
    fpa_module module;
    fpa_object object = compile_answer(f, 1);
    const fpa_object cases[] = {
        {(unsigned char *)"", 0},
        {(unsigned char *)"not a shared object at all, but long enough for a header of one......", 64},
        {object.bytes, object.size / 2},
        {object.bytes, 20},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(backend_c.load(&f->options, &cases[i], "toy", &module, &error), FPA_LOAD);
        assert_null(module.handle);
    }
    object.bytes[18] ^= 0xff; /* e_machine: whole, but for a machine that is not ours */
    assert_int_equal(backend_c.load(&f->options, &object, "toy", &module, &error), FPA_LOAD);
    assert_null(module.handle);
    free(object.bytes);
}

static void a_module_of_another_head_is_refused(void **state)
{
    fixture *f = *state;
    fpa_error error;
    fpa_module module;
    fpa_object object = compile_answer(f, 1);
    assert_int_equal(backend_c.load(&f->options, &object, "tow", &module, &error), FPA_LOAD);
    assert_non_null(strstr(error.message, "tow_workspace"));
    free(object.bytes);
}

static void without_a_compiler_the_message_names_debians_package(void **state)
{
    fixture *f = *state;
    fpa_object object;
    fpa_error error;
    setenv("PATH", f->folder, 1);
    assert_int_equal(compile(f, plain, "c", &object, &error), FPA_COMPILE);
    assert_non_null(strstr(error.message, "apt install gcc"));
    assert_int_equal(
        compile(f, plain, target_runs(target_find("c:neon")) ? "c:avx2" : "c:neon", &object, &error),
        FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "apt install gcc-"));
}

static void a_named_compiler_has_to_exist(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"no-such-compiler", "/nowhere/cc", "./nowhere/cc", "/tmp",
                                        "gcc -m32"};
    fpa_object object;
    fpa_error error;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        f->options.compiler = names[i];
        assert_int_equal(compile(f, plain, "c", &object, &error), FPA_COMPILE);
        assert_string_equal(error.where, "options.compiler");
        assert_non_null(strstr(error.message, names[i]));
        f->options.compiler = NULL;
        setenv("FPA_CC", names[i], 1);
        assert_int_equal(compile(f, plain, "c", &object, &error), FPA_COMPILE);
        assert_string_equal(error.where, "FPA_CC");
        unsetenv("FPA_CC");
    }
}

static char *identity_of(const fixture *f, const char *target)
{
    char *identity = NULL;
    fpa_error error;
    assert_int_equal(builder_c.identity(&f->options, target, &identity, &error), FPA_OK);
    return identity;
}

static void the_identity_covers_compiler_flags_and_target(void **state)
{
    fixture *f = *state;
    char own[128];
    char *identities[5];
    snprintf(own, sizeof own, "%s/cc", f->folder);
    identities[0] = identity_of(f, "c:sse2");
    identities[1] = identity_of(f, "c:avx2");
    setenv("FPA_CFLAGS", "-O0  -g", 1);
    identities[2] = identity_of(f, "c:sse2");
    unsetenv("FPA_CFLAGS");
    scratch_write(own, "#!/bin/sh\n", 10);
    assert_int_equal(chmod(own, 0755), 0);
    f->options.compiler = own;
    identities[3] = identity_of(f, "c:sse2");
    scratch_write(own, "#!/bin/sh \n", 11);
    identities[4] = identity_of(f, "c:sse2");
    assert_non_null(strstr(identities[2], "argument -O0\nargument -g\n"));
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(identities[i], identities[j]);
    f->options.compiler = NULL;
    char *again = identity_of(f, "c:sse2");
    assert_string_equal(again, identities[0]);
    free(again);
    for (int i = 0; i < 5; i++)
        free(identities[i]);
    unlink(own);
}

static void the_device_is_told_the_same_way_twice(void **state)
{
    char *first, *second;
    fpa_error error;
    assert_int_equal(backend_c.device(NULL, &first, &error), FPA_OK);
    assert_int_equal(backend_c.device(NULL, &second, &error), FPA_OK);
    assert_string_equal(first, second);
    assert_non_null(strstr(first, "best c:"));
    free(first);
    free(second);
}

static void every_c_target_compiles_where_a_compiler_is_at_hand(void **state)
{
    fixture *f = *state;
    char code[1024];
    snprintf(code, sizeof code, "#define ANSWER 1\n%s", plain);
    for (int i = 0; i < target_count(); i++) {
        fpa_object object;
        fpa_error error;
        if (target_at(i)->backend != BACKEND_C)
            continue; /* another back end's */
        fpa_status status = compile(f, code, target_at(i)->name, &object, &error);
        if (status == FPA_UNSUPPORTED && !target_runs(target_at(i)))
            continue; /* no cross compiler here */
        assert_int_equal(status, FPA_OK);
        assert_memory_equal(object.bytes, "\177ELF", 4);
        free(object.bytes);
    }
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(names_lead_to_their_back_end),
        CLAIM(an_unknown_target_is_refused_with_the_ones_there_are),
        CLAIM(the_c_back_end_chooses_what_runs_here),
        CLAIM(a_source_is_compiled_loaded_called_and_unloaded),
        CLAIM(the_bytes_do_not_depend_on_the_folder),
        CLAIM(modules_of_one_name_are_each_their_own),
        CLAIM(code_still_loaded_under_a_reused_number_is_not_taken_for_ours),
        CLAIM(threads_of_an_unloaded_module_sleep_on),
        CLAIM(a_compilers_complaint_is_passed_on_in_one_line),
        CLAIM(a_warning_is_logged),
        CLAIM(bytes_that_are_no_module_are_refused),
        CLAIM(a_module_of_another_head_is_refused),
        CLAIM(without_a_compiler_the_message_names_debians_package),
        CLAIM(a_named_compiler_has_to_exist),
        CLAIM(the_identity_covers_compiler_flags_and_target),
        CLAIM(the_device_is_told_the_same_way_twice),
        CLAIM(every_c_target_compiles_where_a_compiler_is_at_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

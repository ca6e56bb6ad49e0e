/* Bundles with entries for GPUs, on machines with and without one: main() hides the driver. */
#include "runtime/cuda/image.h"
#include "runtime/cuda/nvrtc.h"
#include "driver/fake_libcuda.h"
#include "bundle_fixture.h"
#include "nvrtc_hurry.h"
#include "program.h"

#include <dlfcn.h>
#include <sys/wait.h>

/* The manifest of a bundle of C objects, its entry renamed for each of these targets. */
static void pretend_targets(fixture *f, const char *const *targets, int count)
{
    fpa_manifest manifest;
    fpa_error error;
    size_t size;
    write_best(f, 1);
    char *text = read_manifest(f, &size);
    assert_int_equal(manifest_parse("manifest", text, size, &manifest, &error), FPA_OK);
    fpa_bundle_entry *entries = calloc((size_t)count, sizeof *entries);
    for (int i = 0; i < count; i++) {
        fpa_bundle_file *object = &entries[i].files[MANIFEST_OBJECT];
        entries[i] = manifest.entries[0];
        snprintf(entries[i].facts.target, sizeof entries->facts.target, "%s", targets[i]);
        snprintf(object->name, sizeof object->name, "toy.%s.cubin", strchr(targets[i], ':') + 1);
    }
    char *other = manifest_print(&(fpa_manifest){.count = count, .entries = entries});
    write_manifest(f, other);
    manifest_free(&manifest);
    free(text);
    free(other);
    free(entries);
}

static void a_bundle_without_the_target_names_those_that_it_has(void **state)
{
    static const char *const targets[] = {"cuda:sm_80", "cuda:sm_90"};
    fixture *f = *state;
    pretend_targets(f, targets, 2);
    expect_refused(f, NULL, FPA_UNSUPPORTED, "bundle", "it has: cuda:sm_80, cuda:sm_90;");
    f->options.target = "cuda";
    expect_refused(f, NULL, FPA_DEVICE, "", "FPA_LIBCUDA");
}

/* A process finds its driver and its NVRTC once, so that what needs others runs in a child. */
static bool holds_with(const char *variable, const char *value, bool (*claim)(fixture *f), fixture *f)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv(variable, value, 1);
        _exit(claim(f) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

static bool ends_in(fixture *f, const char *target, fpa_status wanted, const char *where, const char *message)
{
    fpa_error error = {0};
    fpa_kernel *kernel;
    f->options.target = target;
    fpa_status status = fpa_open_bundle(f->bundle, NULL, &f->options, &kernel, &error);
    bool fine = status == wanted && strstr(error.where, where) && strstr(error.message, message);
    if (!fine)
        print_error("%s: status %d: %s: %s\n", target, (int)status, error.where, error.message);
    return fine;
}

/* No object's file is there: the error says which one was chosen. */
static bool chooses(fixture *f, const char *target, const char *file)
{
    return ends_in(f, target, FPA_IO, file, "");
}

static bool the_fake_gpu_gets_sm_90(fixture *f)
{
    return chooses(f, "cuda", "toy.sm_90.cubin") && chooses(f, "cuda:sm_90", "toy.sm_90.cubin") &&
           chooses(f, "sm_90", "toy.sm_90.cubin") &&
           ends_in(f, "cuda:sm_80", FPA_UNSUPPORTED, "cuda:sm_80", "does not run on");
}

static bool the_fake_gpu_of_8_9_gets_sm_86(fixture *f)
{
    struct fake_state *fake = dlsym(dlopen(getenv("FPA_LIBCUDA"), RTLD_NOW), "fake_state");
    fake->capability = 89;
    return chooses(f, "cuda", "toy.sm_86.cubin") && chooses(f, "cuda:sm_80", "toy.sm_80.cubin") &&
           ends_in(f, "cuda:sm_89", FPA_UNSUPPORTED, "bundle",
                   "it has: cuda:sm_80, cuda:sm_86, cuda:sm_90,") &&
           ends_in(f, "cuda:sm_100", FPA_UNSUPPORTED, "cuda:sm_100", "does not run on");
}

static bool the_fake_gpu_gets_sm_90a(fixture *f)
{
    return chooses(f, "cuda", "toy.sm_90a.cubin") && chooses(f, "cuda:sm_90", "toy.sm_90.cubin");
}

static void the_newest_object_that_the_gpu_runs_is_taken(void **state)
{
    static const char *const targets[] = {"cuda:sm_80", "cuda:sm_86", "cuda:sm_90", "cuda:sm_100"};
    static const char *const warpgroups[2][2] = {{"cuda:sm_90", "cuda:sm_90a"},
                                                 {"cuda:sm_90a", "cuda:sm_90"}};
    fixture *f = *state;
    char library[128];
    snprintf(library, sizeof library, "%s/libcuda.so.1", f->folder);
    program_result result =
        RUN("/usr/bin/env", "cc", "-I.", "-shared", "-fPIC", "-o", library, "tests/driver/fake_libcuda.c");
    assert_int_equal(result.code, 0);
    program_free(&result);
    pretend_targets(f, targets, 4);
    assert_true(holds_with("FPA_LIBCUDA", library, the_fake_gpu_gets_sm_90, f));
    assert_true(holds_with("FPA_LIBCUDA", library, the_fake_gpu_of_8_9_gets_sm_86, f));
    for (int i = 0; i < 2; i++) { /* whichever comes first */
        pretend_targets(f, warpgroups[i], 2);
        assert_true(holds_with("FPA_LIBCUDA", library, the_fake_gpu_gets_sm_90a, f));
    }
}

static bool has_nvrtc(void)
{
    const char *version;
    fpa_error error;
    return nvrtc_find(&version, &error) == FPA_OK;
}

static void cuda_targets_get_sources_and_cubins_verified_elsewhere(void **state)
{
    static const char *const targets[] = {"sm_80", "cuda:sm_90"};
    static const char *const names[] = {"toy.sm_80.cu",    "toy.sm_90.cu", "toy.sm_80.cubin",
                                        "toy.sm_90.cubin", "toy.head",     "manifest.fpa"};
    fixture *f = *state;
    fpa_error error = {0};
    fpa_manifest manifest;
    size_t size;
    if (!has_nvrtc())
        skip();
    assert_ok(write_bundle(f, 1, targets, 2, false, &error), &error);
    for (int i = 0; i < 6; i++)
        assert_true(has_file(f, names[i]));
    assert_int_equal(scratch_count(f->bundle, NULL), 6);
    assert_non_null(strstr(f->log.text, "toy: cuda:sm_80 does not run here ("));
    assert_non_null(strstr(f->log.text, "toy: cuda:sm_90 does not run here ("));
    assert_null(strstr(f->log.text, "toy: verified"));
    char *text = read_manifest(f, &size);
    assert_int_equal(manifest_parse("manifest", text, size, &manifest, &error), FPA_OK);
    assert_string_equal(manifest.entries[0].facts.target, "cuda:sm_80");
    assert_string_equal(manifest.entries[1].facts.target, "cuda:sm_90");
    assert_int_equal(manifest.entries[1].files[MANIFEST_HEADER].name[0], 0);
    manifest_free(&manifest);
    free(text);
}

static void read_file(const fixture *f, const char *name, fpa_file *file)
{
    char path[256];
    fpa_error error;
    snprintf(path, sizeof path, "%s/%s", f->bundle, name);
    assert_int_equal(file_read(path, file, &error), FPA_OK);
}

static void ptx_is_written_when_asked_for(void **state)
{
    static const char *const targets[] = {"cuda:sm_80"};
    static const char *const names[] = {"toy.cu", "toy.sm_80.cubin", "toy.sm_80.ptx", "toy.head",
                                        "manifest.fpa"};
    fixture *f = *state;
    fpa_error error = {0};
    fpa_file file;
    if (!has_nvrtc())
        skip();
    if (bundle_write(f->heads.heads, 1, f->bundle, targets, 1, (bundle_parts){.objects = true, .ptx = true},
                     &f->options, &error))
        fail_msg("%s: %s", error.where, error.message);
    for (int i = 0; i < 5; i++)
        assert_true(has_file(f, names[i]));
    assert_int_equal(scratch_count(f->bundle, NULL), 5);
    read_file(f, "toy.sm_80.ptx", &file);
    assert_non_null(memmem(file.bytes, file.size, ".target sm_80", strlen(".target sm_80")));
    assert_null(memchr(file.bytes, 0, file.size));
    free(file.bytes);
    f->options.target = "cuda:sm_80";
    expect_refused(f, NULL, FPA_DEVICE, "", "FPA_LIBCUDA");
}

/* Each of its kernels, in a module of their own. */
static void gradients_are_cubins_of_their_own(void **state)
{
    static const char *const targets[] = {"cuda:sm_80"};
    static const char *const names[] = {"toy.backward.cu", "toy.sm_80.backward.cubin",
                                        "toy.sm_80.backward.ptx"};
    static const char *const kernels[] = {"backward_state", "backward_queries", "backward_keys"};
    const bundle_parts parts = {.ptx = true, .backward = true};
    fixture *f = *state;
    fpa_error error = {0};
    fpa_file cubin, ptx, code;
    if (!has_nvrtc())
        skip();
    assert_ok(bundle_write(f->heads.heads, 1, f->bundle, targets, 1, parts, &f->options, &error), &error);
    assert_int_equal(scratch_count(f->bundle, NULL), 1 + 1 + 3 + 3);
    read_file(f, names[0], &code);
    read_file(f, names[1], &cubin);
    read_file(f, names[2], &ptx);
    assert_non_null(strstr((const char *)code.bytes, "--target cuda:sm_80 --backward -o DIR"));
    for (int i = 0; i < 3; i++) {
        char symbol[64], entry[96];
        snprintf(symbol, sizeof symbol, "toy_%s", kernels[i]);
        snprintf(entry, sizeof entry, ".entry %s(", symbol);
        assert_true(image_names(&(fpa_object){cubin.bytes, cubin.size}, symbol));
        assert_non_null(strstr((const char *)ptx.bytes, entry));
    }
    free(code.bytes);
    free(cubin.bytes);
    free(ptx.bytes);
    f->options.target = "cuda:sm_80";
    f->options.backward = 1;
    expect_refused(f, NULL, FPA_DEVICE, "", "FPA_LIBCUDA");
}

/* The C entries do not mind their neighbours. */
static void one_bundle_serves_cpus_and_gpus(void **state)
{
    static const char *const targets[] = {"c", "cuda:sm_80"};
    fixture *f = *state;
    fpa_error error = {0};
    if (!has_nvrtc())
        skip();
    assert_ok(write_bundle(f, 1, targets, 2, true, &error), &error);
    fpa_kernel *kernel = open_bundle(f, "toy");
    assert_string_equal(fpa_describe(kernel)->target, target_best()->name);
    assert_true(toy_works(kernel));
    fpa_close(kernel);
}

static bool no_nvrtc_is_told(fixture *f)
{
    static const char *const targets[] = {"cuda:sm_90"};
    fpa_error error = {0};
    fpa_status status = write_bundle(f, 1, targets, 1, false, &error);
    bool fine = status == FPA_COMPILE && !has_file(f, MANIFEST_NAME) &&
                (strstr(error.message, "FPA_LIBNVRTC") || strstr(error.where, "FPA_LIBNVRTC"));
    if (!fine)
        print_error("status %d: %s: %s\n", (int)status, error.where, error.message);
    return fine;
}

/* The first claim: no NVRTC was looked for in this process yet. */
static void without_nvrtc_a_cuda_bundle_is_not_written(void **state)
{
    assert_true(holds_with("FPA_LIBNVRTC", "/nowhere/libnvrtc.so", no_nvrtc_is_told, *state));
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    nvrtc_hurry();
    toy_hurry();
    setenv("FPA_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    const struct CMUnitTest tests[] = {
        CLAIM(without_nvrtc_a_cuda_bundle_is_not_written),
        CLAIM(the_newest_object_that_the_gpu_runs_is_taken),
        CLAIM(a_bundle_without_the_target_names_those_that_it_has),
        CLAIM(cuda_targets_get_sources_and_cubins_verified_elsewhere),
        CLAIM(ptx_is_written_when_asked_for),
        CLAIM(gradients_are_cubins_of_their_own),
        CLAIM(one_bundle_serves_cpus_and_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

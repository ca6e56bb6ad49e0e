/* Bundles with gradients on a GPU: opened and verified where neither NVRTC nor a C compiler is found, in processes of
 * their own; damaged gradients are refused. Every test is skipped where there is no GPU. */
#include "command/bundle.h"
#include "claims.h"
#include "gpu_gradients.h"
#include "runtime/store/manifest.h"
#include "scratch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a child ended; what is none of these is a mistake of the test, or a signal. */
typedef enum outcome {
    DONE = 0,     /* written; or opened, with the C kernel's gradients, and verified now */
    KEPT = 1,     /* the same, by verdicts of before */
    REFUSED = 10, /* with a message */
    WRONG = 20,   /* opened, but its gradients are others */
    NO_GPU = 30,
    BROKEN = 255,
} outcome;

typedef struct fixture {
    char folder[64], bundle[96], cache[96];
    bool ready; /* there is a GPU, and the bundle is written */
} fixture;

/* ---- children ---- */

static outcome tell(const fpa_error *error, outcome ended)
{
    fprintf(stderr, "%s: %s\n", error->where, error->message);
    return ended;
}

/* For the GPU that is here and for C, verified on both. */
static outcome write_bundle(const char *bundle)
{
    const char *const targets[] = {"cuda", float_target()};
    const bundle_parts parts = {.objects = true, .backward = true};
    const fpa_options options = {.cache_dir = ""};
    fpa_head_list list;
    fpa_error error;
    test_gpu gpu;
    if (!gpu_open(&gpu, 0))
        return NO_GPU;
    if (spec_load_text("graded.lua", NULL, GRADED_HEAD, strlen(GRADED_HEAD), &list, &error) ||
        bundle_write(list.heads, 1, bundle, targets, 2, parts, &options, &error))
        return tell(&error, BROKEN);
    head_list_free(&list);
    gpu_close(&gpu);
    return DONE;
}

static outcome compute(const fpa_kernel *kernel, const test_gpu *gpu, const fpa_kernel *c,
                       const scratch_log *log)
{
    for (fpa_form form = FPA_FORM_PARALLEL; form <= FPA_FORM_CHUNKED; form++) {
        const double distance = gradients_distance(kernel, gpu, c, form);
        if (!(distance < 1e-3)) {
            fprintf(stderr, "form %d: gradients differ by %g\n", (int)form, distance);
            return WRONG;
        }
    }
    return log->lines ? DONE : KEPT;
}

/* Nothing that compiles is found. */
static outcome use_bundle(const char *bundle, const char *cache)
{
    static scratch_log log;
    const fpa_options cuda = {.target = "cuda",
                              .cache_dir = cache,
                              .log = scratch_record,
                              .log_user = &log,
                              .backward = 1},
                      host = {.target = float_target(), .cache_dir = cache, .backward = 1};
    fpa_kernel *kernel, *c;
    fpa_error error;
    test_gpu gpu;
    setenv("PATH", "/nowhere", 1);
    setenv("FPA_LIBNVRTC", "/nowhere/libnvrtc.so", 1);
    if (fpa_open_bundle(bundle, NULL, &host, &c, &error))
        return tell(&error, BROKEN);
    if (!gpu_open(&gpu, 0))
        return NO_GPU;
    if (fpa_open_bundle(bundle, NULL, &cuda, &kernel, &error))
        return tell(&error, REFUSED);
    if (!fpa_describe(kernel)->backward_verdict)
        return BROKEN;
    return compute(kernel, &gpu, c, &log); /* its end closes all that is open */
}

static int run_child_of_main(char **arguments)
{
    return (int)(strcmp(arguments[0], "--write") == 0 ? write_bundle(arguments[1])
                                                      : use_bundle(arguments[1], arguments[2]));
}

/* The exit status, 1000 and the number of a signal. */
static int child(const fixture *f, const char *what)
{
    enum { SECONDS = 300 };
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(SECONDS); /* damaged code may never end */
        execl("/proc/self/exe", "test_cuda_bundle", what, f->bundle, f->cache, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* ---- the bundle ---- */

static fpa_manifest read_manifest(const fixture *f, char path[160])
{
    fpa_file text;
    fpa_manifest manifest;
    fpa_error error;
    snprintf(path, 160, "%s/" MANIFEST_NAME, f->bundle);
    assert_int_equal(file_read(path, &text, &error), FPA_OK);
    assert_int_equal(manifest_parse(path, (const char *)text.bytes, text.size, &manifest, &error), FPA_OK);
    free(text.bytes);
    return manifest;
}

static int make_fixture(void **state)
{
    static fixture f;
    *state = &f;
    scratch_make(f.folder);
    snprintf(f.bundle, sizeof f.bundle, "%s/bundle", f.folder);
    snprintf(f.cache, sizeof f.cache, "%s/cache", f.folder);
    const int ended = child(&f, "--write");
    f.ready = ended == DONE;
    return f.ready || ended == NO_GPU ? 0 : -1;
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    scratch_remove(f->folder);
    return 0;
}

/* An object of the first entry, the GPU's. */
static fpa_file read_object(const fixture *f, manifest_file which, char path[256])
{
    char manifest_path[160];
    fpa_file file;
    fpa_error error;
    if (!f->ready)
        skip();
    fpa_manifest manifest = read_manifest(f, manifest_path);
    snprintf(path, 256, "%s/%s", f->bundle, manifest.entries[0].files[which].name);
    manifest_free(&manifest);
    assert_int_equal(file_read(path, &file, &error), FPA_OK);
    return file;
}

/* These bytes as the GPU's gradients, in the manifest too when it is `signed_`. */
static void place_gradients(const fixture *f, const char *path, const unsigned char *bytes, size_t size,
                            bool signed_)
{
    char manifest_path[160];
    scratch_write(path, bytes, size);
    if (!signed_)
        return;
    fpa_manifest manifest = read_manifest(f, manifest_path);
    manifest_digest(bytes, size, manifest.entries[0].files[MANIFEST_BACKWARD_OBJECT].digest);
    char *text = manifest_print(&manifest);
    assert_non_null(text);
    scratch_write(manifest_path, text, strlen(text));
    manifest_free(&manifest);
    free(text);
}

/* ---- claims ---- */

static void gradients_run_where_nothing_compiles(void **state)
{
    const fixture *f = *state;
    if (!f->ready)
        skip();
    assert_int_equal(child(f, "--use"), DONE);
    assert_int_equal(child(f, "--use"), KEPT); /* verified once on a machine */
}

static void what_is_no_module_of_gradients_is_refused(void **state)
{
    const fixture *f = *state;
    char path[256], forward_path[256];
    fpa_file forward = read_object(f, MANIFEST_OBJECT, forward_path);
    fpa_file gradients = read_object(f, MANIFEST_BACKWARD_OBJECT, path);
    gradients.bytes[gradients.size / 2] ^= 1;
    place_gradients(f, path, gradients.bytes, gradients.size, false);
    assert_int_equal(child(f, "--use"), REFUSED); /* its digest */
    gradients.bytes[gradients.size / 2] ^= 1;
    place_gradients(f, path, gradients.bytes, gradients.size / 2, true);
    assert_int_equal(child(f, "--use"), REFUSED); /* not a complete cubin */
    place_gradients(f, path, forward.bytes, forward.size, true);
    assert_int_equal(child(f, "--use"), REFUSED); /* of the other pass */
    place_gradients(f, path, gradients.bytes, gradients.size, true);
    assert_int_equal(child(f, "--use"), KEPT);
    free(forward.bytes);
    free(gradients.bytes);
}

/* With digests of their own damaged cubins are left to the driver and the verification. */
static void damaged_gradients_are_refused_or_right(void **state)
{
    enum { PLACES = 16 };
    const fixture *f = *state;
    char path[256];
    int refused = 0, right = 0, others = 0;
    fpa_file gradients = read_object(f, MANIFEST_BACKWARD_OBJECT, path);
    for (size_t i = 0; i < PLACES; i++) {
        const size_t at = gradients.size * (2 * i + 1) / (2 * PLACES);
        gradients.bytes[at] ^= (unsigned char)(1 << i % 8);
        place_gradients(f, path, gradients.bytes, gradients.size, true);
        gradients.bytes[at] ^= (unsigned char)(1 << i % 8);
        const int ended = child(f, "--use");
        if (ended == WRONG || ended == NO_GPU)
            fail_msg("byte %zu of %zu: verified, and its gradients are wrong (%d)", at, gradients.size,
                     ended);
        refused += ended == REFUSED;
        right += ended == DONE;
        others += ended != REFUSED && ended != DONE;
    }
    print_message("%d damaged cubins of gradients: %d refused, %d right, %d ended the process\n", PLACES,
                  refused, right, others);
    place_gradients(f, path, gradients.bytes, gradients.size, true);
    assert_int_equal(child(f, "--use"), KEPT); /* and the GPU is well */
    free(gradients.bytes);
}

int main(int count, char **arguments)
{
    if (count == 4 && arguments[1][0] == '-')
        return run_child_of_main(arguments + 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_run_where_nothing_compiles),
        cmocka_unit_test(what_is_no_module_of_gradients_is_refused),
        cmocka_unit_test(damaged_gradients_are_refused_or_right),
    };
    return cmocka_run_group_tests_name("bundles on a GPU", tests, make_fixture, drop_fixture);
}

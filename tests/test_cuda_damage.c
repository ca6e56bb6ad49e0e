/* Damaged cubins on a GPU, each tried in a process of its own: what the bundle's digest does not know is never loaded;
 * and were the digest that of the damaged bytes, the verification is left, which lets only right numbers through.
 * Every test is skipped where there is no GPU. */
#include "command/bundle.h"
#include "claims.h"
#include "gpu_problem.h"
#include "runtime/store/manifest.h"
#include "scratch.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char spec[] =
    "return head { name = 'damaged', d = 8, dv = 8, scale = 0.25, terms = power { degree = 2 } }";

/* How a child ended. What is not an outcome of these is a mistake of the test. */
typedef enum outcome {
    DONE = 0,       /* opened, and computed what the C kernel computes; or did what it was asked to */
    REFUSED = 10,   /* with a message, by the loader, the driver or the verification */
    UNKNOWN = 11,   /* refused for its digest, before anything is loaded */
    WRONG = 20,     /* opened, but its numbers are others */
    NO_GPU = 30,    /* there is none */
    BROKEN = 255,   /* a call of the driver failed behind the verification */
    HANGS = 256,    /* no end in time: damaged code may be a loop */
    CRASHED = 1000, /* and the signal; a driver that reads damaged bytes may do that */
} outcome;

typedef struct fixture {
    char folder[64], bundle[96], object[160];
    bool ready; /* there is a GPU, and the bundle is written */
} fixture;

/* ---- children ---- */

static outcome tell(const fpa_error *error)
{
    fprintf(stderr, "%s: %s\n", error->where, error->message);
    return BROKEN;
}

/* A bundle for the GPU that is here, verified on it. */
static outcome write_bundle(const char *bundle, const char *cache)
{
    static const char *const targets[] = {"cuda"};
    const fpa_options options = {.cache_dir = cache};
    fpa_head_list list;
    fpa_error error;
    test_gpu gpu;
    if (!gpu_open(&gpu, 0))
        return NO_GPU;
    if (spec_load_text("damaged.lua", NULL, spec, strlen(spec), &list, &error) ||
        bundle_write(list.heads, 1, bundle, targets, 1, (bundle_parts){.objects = true}, &options, &error))
        return tell(&error);
    head_list_free(&list);
    gpu_close(&gpu);
    return DONE;
}

static bool computes_as_c(const fpa_kernel *kernel, const fpa_kernel *c, test_gpu *gpu)
{
    bool fine = true;
    for (fpa_form form = FPA_FORM_PARALLEL; form <= FPA_FORM_RECURRENT; form++) {
        gpu_problem here, there;
        problem_make(&here, fpa_describe(c), &(problem_shape){1, 40, 2, 2}, 1, NULL);
        problem_make(&there, fpa_describe(kernel), &(problem_shape){1, 40, 2, 2}, 1, gpu);
        problem_run(&here, c, form);
        problem_run(&there, kernel, form);
        fine = fine && operand_distance(&there.operand[OUT_O], &here.operand[OUT_O]) < 1e-4 &&
               operand_distance(&there.operand[OUT_STATE], &here.operand[OUT_STATE]) < 1e-4;
        problem_free(&here);
        problem_free(&there);
    }
    return fine;
}

/* Without a cache: no verdict of before holds. */
static outcome try_bundle(const char *bundle, const char *cache)
{
    const fpa_options cuda = {.target = "cuda", .cache_dir = ""},
                      host = {.target = float_target(), .cache_dir = cache};
    fpa_kernel *kernel, *c;
    fpa_error error;
    test_gpu gpu;
    if (fpa_open_text("damaged.lua", spec, NULL, &host, &c, &error))
        return tell(&error);
    if (!gpu_open(&gpu, 0))
        return NO_GPU;
    if (fpa_open_bundle(bundle, NULL, &cuda, &kernel, &error))
        return strstr(error.message, "SHA-256 differs") ? UNKNOWN : (tell(&error), REFUSED);
    return computes_as_c(kernel, c, &gpu) ? DONE : WRONG; /* its end closes all that is open */
}

/* A child of this program: --write or --try, a bundle, a folder for a cache. */
static int run_child_of_main(char **arguments)
{
    outcome (*work)(const char *, const char *) =
        strcmp(arguments[0], "--write") == 0 ? write_bundle : try_bundle;
    return (int)work(arguments[1], arguments[2]);
}

/* Damaged code may never end, and neither would this test. */
static int child(const fixture *f, const char *what)
{
    enum { SECONDS = 120 };
    char cache[96];
    int status = 0;
    snprintf(cache, sizeof cache, "%s/cache", f->folder);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test_cuda_damage", what, f->bundle, cache, (char *)NULL);
        _exit(127);
    }
    const time_t start = time(NULL);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (time(NULL) - start > SECONDS) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return HANGS;
        }
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : CRASHED + WTERMSIG(status);
}

/* ---- tests ---- */

static int find_object(fixture *f)
{
    DIR *list = opendir(f->bundle);
    for (struct dirent *item = list ? readdir(list) : NULL; item; item = readdir(list))
        if (strstr(item->d_name, ".cubin"))
            snprintf(f->object, sizeof f->object, "%s/%.50s", f->bundle, item->d_name);
    if (list)
        closedir(list);
    return f->object[0] ? 0 : -1;
}

static int make_fixture(void **state)
{
    static fixture f;
    *state = &f;
    scratch_make(f.folder);
    snprintf(f.bundle, sizeof f.bundle, "%s/bundle", f.folder);
    const int ended = child(&f, "--write");
    f.ready = ended == DONE;
    return ended == NO_GPU ? 0 : ended == DONE ? find_object(&f) : -1;
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    scratch_remove(f->folder);
    return 0;
}

static fpa_file read_object(const fixture *f)
{
    fpa_file file;
    fpa_error error;
    if (!f->ready)
        skip();
    assert_ok(file_read(f->object, &file, &error), &error);
    return file;
}

/* The object with other bytes at some place: one bit, or a whole instruction. */
static void write_damaged(const fixture *f, const fpa_file *file, size_t at, bool instruction)
{
    unsigned char *bytes = malloc(file->size);
    assert_non_null(bytes);
    memcpy(bytes, file->bytes, file->size);
    bytes[at] ^= (unsigned char)(1 << at % 8);
    for (size_t i = at / 16 * 16; instruction && i < at / 16 * 16 + 16 && i < file->size; i++)
        bytes[i] = (unsigned char)(bytes[i] * 167 + 13);
    scratch_write(f->object, bytes, file->size);
    free(bytes);
}

static void what_the_digest_does_not_know_is_never_loaded(void **state)
{
    enum { PLACES = 6 };
    const fixture *f = *state;
    fpa_file file = read_object(f);
    assert_int_equal(child(f, "--try"), DONE);
    for (size_t i = 0; i < PLACES; i++) {
        write_damaged(f, &file, file.size * (2 * i + 1) / (2 * PLACES), i % 2);
        assert_int_equal(child(f, "--try"), UNKNOWN);
    }
    scratch_write(f->object, file.bytes, file.size);
    assert_int_equal(child(f, "--try"), DONE);
    free(file.bytes);
}

/* The manifest of the bundle with the digest of the object that lies there now. */
static void sign(const fixture *f)
{
    char path[160];
    fpa_file text, object;
    fpa_manifest manifest;
    fpa_error error;
    snprintf(path, sizeof path, "%s/" MANIFEST_NAME, f->bundle);
    assert_int_equal(file_read(path, &text, &error), FPA_OK);
    assert_int_equal(file_read(f->object, &object, &error), FPA_OK);
    assert_int_equal(manifest_parse(path, (const char *)text.bytes, text.size, &manifest, &error), FPA_OK);
    manifest_digest(object.bytes, object.size, manifest.entries[0].files[MANIFEST_OBJECT].digest);
    char *other = manifest_print(&manifest);
    assert_non_null(other);
    scratch_write(path, other, strlen(other));
    manifest_free(&manifest);
    free(other);
    free(text.bytes);
    free(object.bytes);
}

static void with_a_digest_of_its_own_a_damaged_cubin_is_refused_or_right(void **state)
{
    enum { PLACES = 48 };
    const fixture *f = *state;
    fpa_file file = read_object(f);
    int right = 0, refused = 0, others = 0;
    for (size_t i = 0; i < PLACES; i++) {
        const size_t at = file.size * (2 * i + 1) / (2 * PLACES);
        write_damaged(f, &file, at, i % 2);
        sign(f);
        const int ended = child(f, "--try");
        if (ended == WRONG || ended == NO_GPU)
            fail_msg("byte %zu of %zu damaged: the kernel is verified, and its numbers are wrong (%d)", at,
                     file.size, ended);
        right += ended == DONE;
        refused += ended == REFUSED;
        others += ended != DONE && ended != REFUSED;
        if (ended != DONE && ended != REFUSED)
            print_message("byte %zu of %zu: ended with %d\n", at, file.size, ended);
    }
    print_message(
        "%d damaged cubins: %d refused, %d whose numbers are right, %d that ended the process or the GPU's "
        "context\n",
        PLACES, refused, right, others);
    scratch_write(f->object, file.bytes, file.size);
    sign(f);
    assert_int_equal(child(f, "--try"), DONE); /* and the GPU is well */
    free(file.bytes);
}

int main(int count, char **arguments)
{
    if (count == 4 && arguments[1][0] == '-')
        return run_child_of_main(arguments + 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_digest_does_not_know_is_never_loaded),
        cmocka_unit_test(with_a_digest_of_its_own_a_damaged_cubin_is_refused_or_right),
    };
    return cmocka_run_group_tests_name("damaged cubins", tests, make_fixture, drop_fixture);
}

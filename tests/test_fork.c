/* Processes that fork: a child computes what its parent does, and never waits for threads that it lost. */
#include "runtime/store/cache.h"
#include "claims.h"
#include "scratch.h"
#include "toy.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEADLINE = 120 /* seconds: a busy machine compiles slowly, and a hang lasts for ever */ };

typedef struct fixture {
    char folder[64], cache[96];
    fpa_options options;
    fpa_kernel *kernel;
} fixture;

static int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    scratch_make(f->folder);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder);
    f->options.cache_dir = f->cache;
    *state = f;
    return 0;
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    fpa_close(f->kernel);
    scratch_remove(f->folder);
    free(f);
    return 0;
}

static bool open_toy(fixture *f, const char *spec)
{
    fpa_error error;
    fpa_close(f->kernel);
    return fpa_open_text("toy", spec, NULL, &f->options, &f->kernel, &error) == FPA_OK;
}

/* A call that is worth threads: o of a few thousand tokens. */
enum { LONG = 8192, LONG_HEADS = 12 };

static float *long_call(const fpa_kernel *kernel)
{
    enum { COUNT = LONG * LONG_HEADS * TOY_WIDTH };
    float *in = malloc(sizeof *in * COUNT), *out = calloc(COUNT, sizeof *out);
    for (int i = 0; i < COUNT; i++)
        in[i] = (float)(i % 1009) / 500 - 1;
    int64_t shape[4] = {1, LONG, LONG_HEADS, TOY_WIDTH};
    DLTensor x = toy_tensor(in, 4, shape), o = toy_tensor(out, 4, shape);
    const fpa_tensors operands = {.q = &x, .k = &x, .v = &x, .o = &o};
    fpa_error error;
    if (toy_forward(kernel, FPA_FORM_CHUNKED, &operands, &error)) {
        free(out);
        out = NULL;
    }
    free(in);
    return out;
}

/* What a child does; true when all went well. */
typedef bool child_work(fixture *f);

static void expect_of_child(fixture *f, child_work *work)
{
    struct timespec pause = {0, 10000000};
    int status = 0, waited = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(work(f) ? 0 : 1);
    assert_true(child > 0);
    while (waitpid(child, &status, WNOHANG) == 0 && waited++ < DEADLINE * 100)
        nanosleep(&pause, NULL);
    if (waited >= DEADLINE * 100) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        fail_msg("the child still waits after %d seconds", DEADLINE);
    }
    assert_int_equal(status, 0);
}

static bool compute(fixture *f)
{
    return toy_works(f->kernel);
}

static bool open_and_compute(fixture *f)
{
    f->kernel = NULL;
    return open_toy(f, "return " TOY_HEAD("of_child")) && toy_works(f->kernel);
}

static void *compute_of_thread(void *argument)
{
    return compute(argument) ? argument : NULL;
}

static bool compute_in_a_thread_too(fixture *f)
{
    pthread_t thread;
    void *result = NULL;
    return pthread_create(&thread, NULL, compute_of_thread, f) == 0 && pthread_join(thread, &result) == 0 &&
           result == f;
}

static const float *expected; /* of long_call, in the parent */

static bool compute_long(fixture *f)
{
    float *o = long_call(f->kernel);
    bool same = o && memcmp(o, expected, sizeof *o * LONG * LONG_HEADS * TOY_WIDTH) == 0;
    free(o);
    return same && compute_in_a_thread_too(f);
}

/* The most threads that this process had while another one watched. */
typedef struct watch {
    atomic_bool over;
    int most;
} watch;

static void *watch_threads(void *argument)
{
    watch *w = argument;
    while (!w->over) {
        int threads = scratch_count("/proc/self/task", NULL);
        w->most = threads > w->most ? threads : w->most;
    }
    return NULL;
}

/* The one that came through the fork, the one that watches, the one with the call, and what OpenMP adds. */
static bool compute_long_with_threads(fixture *f)
{
    watch w = {.most = 0};
    pthread_t watching;
    if (pthread_create(&watching, NULL, watch_threads, &w))
        return false;
    bool fine = compute_long(f);
    w.over = true;
    pthread_join(watching, NULL);
    return fine && w.most > 3;
}

static bool fork_again(fixture *f)
{
    int status = 1;
    pid_t child = compute(f) ? fork() : -1;
    if (child == 0)
        _exit(compute(f) && open_and_compute(f) ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* The first claim: nothing of OpenMP is in this process yet. */
static void a_child_forked_before_any_use_opens_and_computes(void **state)
{
    expect_of_child(*state, open_and_compute);
}

static void a_child_computes_with_what_its_parent_used(void **state)
{
    fixture *f = *state;
    assert_true(open_toy(f, TOY_SPEC));
    assert_true(toy_works(f->kernel));
    expect_of_child(f, compute);
    assert_true(toy_works(f->kernel));
}

static void a_child_opens_after_its_parent_computed(void **state)
{
    fixture *f = *state;
    assert_true(open_toy(f, TOY_SPEC));
    assert_true(toy_works(f->kernel));
    expect_of_child(f, open_and_compute);
}

static void a_long_call_of_a_child_has_threads_and_gives_its_parents_bits(void **state)
{
    fixture *f = *state;
    assert_true(open_toy(f, TOY_SPEC));
    float *o = long_call(f->kernel);
    assert_non_null(o);
    expected = o;
    expect_of_child(f, compute_long_with_threads);
    free(o);
}

static void children_of_children_compute_and_open(void **state)
{
    fixture *f = *state;
    assert_true(open_toy(f, TOY_SPEC));
    assert_true(toy_works(f->kernel));
    expect_of_child(f, fork_again);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    toy_hurry();
    setenv("OMP_NUM_THREADS", "3", 1);
    const struct CMUnitTest tests[] = {
        CLAIM(a_child_forked_before_any_use_opens_and_computes),
        CLAIM(a_child_computes_with_what_its_parent_used),
        CLAIM(a_child_opens_after_its_parent_computed),
        CLAIM(a_long_call_of_a_child_has_threads_and_gives_its_parents_bits),
        CLAIM(children_of_children_compute_and_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

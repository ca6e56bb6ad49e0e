/* Threads and processes that open one head at the same time: one compiles, the others wait. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "open_fixture.h"

typedef struct worker {
    pthread_t thread;
    fixture *f;
    bool fine;
} worker;

static void *open_and_use(void *argument)
{
    worker *w = argument;
    fpa_options options = w->f->options;
    fpa_kernel *kernel;
    fpa_error error;
    options.log = NULL; /* the recorder is not for several threads */
    if (fpa_open(w->f->specs, NULL, &options, &kernel, &error))
        return NULL;
    w->fine = toy_works(kernel);
    fpa_close(kernel);
    return NULL;
}

enum { AT_ONCE = 8 };

static void start_threads(fixture *f, worker workers[AT_ONCE])
{
    for (int i = 0; i < AT_ONCE; i++) {
        workers[i] = (worker){.f = f};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, open_and_use, &workers[i]), 0);
    }
}

static void join_threads(worker workers[AT_ONCE])
{
    for (int i = 0; i < AT_ONCE; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].fine);
    }
}

/* What a process of its own does: `test_open_once --worker SPEC CACHE COMPILER`. */
static int run_worker(char **arguments)
{
    fixture f = {.options = {.cache_dir = arguments[1], .compiler = arguments[2]}};
    worker w = {.f = &f};
    snprintf(f.specs, sizeof f.specs, "%s", arguments[0]);
    open_and_use(&w);
    return !w.fine;
}

static pid_t start_process(const fixture *f)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_open_once", "--worker", f->specs, f->cache, f->compiler, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    return child;
}

static void join_process(pid_t child, int expected)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, expected);
}

static void threads_and_processes_that_open_one_head_at_once_compile_it_once(void **state)
{
    fixture *f = *state;
    pid_t children[AT_ONCE];
    worker workers[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++)
        children[i] = start_process(f);
    start_threads(f, workers);
    join_threads(workers);
    for (int i = 0; i < AT_ONCE; i++)
        join_process(children[i], 0);
    assert_int_equal(compilations(f), 1);
    assert_int_equal(scratch_count(f->cache, NULL), 1);
    assert_true(comes_from_cache(f));
}

/* A compiler that notes the call, then does what rest says. */
static void slow_compiler(const fixture *f, const char *rest)
{
    char script[512];
    snprintf(script, sizeof script, "#!/bin/sh\necho call >>%s\n%s\n", f->calls, rest);
    scratch_write(f->compiler, script, strlen(script));
}

static void await_compilations(const fixture *f, int count)
{
    while (compilations(f) < count)
        usleep(10000);
}

static void one_takes_over_from_a_process_that_dies_while_it_compiles(void **state)
{
    fixture *f = *state;
    worker workers[AT_ONCE];
    char first_only[256];
    snprintf(first_only, sizeof first_only, "[ $(wc -l <%s) -gt 1 ] || exec sleep 5\nexec gcc \"$@\"",
             f->calls);
    slow_compiler(f, first_only);
    pid_t owner = start_process(f);
    await_compilations(f, 1);
    start_threads(f, workers);
    usleep(300000);
    assert_int_equal(compilations(f), 1); /* they wait */
    kill(owner, SIGKILL);
    join_process(owner, SIGKILL);
    join_threads(workers);
    assert_int_equal(compilations(f), 2);
    assert_int_equal(scratch_count(f->cache, NULL), 1);
}

static void who_waits_is_told(void **state)
{
    fixture *f = *state;
    slow_compiler(f, "sleep 1\nexec gcc \"$@\"");
    pid_t owner = start_process(f);
    await_compilations(f, 1);
    assert_true(comes_from_cache(f));
    join_process(owner, 0);
    assert_non_null(strstr(f->log.text, "toy: another process or thread builds it; waiting"));
    assert_int_equal(compilations(f), 1);
}

/* Nobody waits for the next one to fail, too. */
static void what_cannot_be_compiled_keeps_those_who_wait_no_longer(void **state)
{
    fixture *f = *state;
    worker workers[AT_ONCE];
    slow_compiler(f, "sleep 1\nexit 1");
    start_threads(f, workers);
    time_t start = time(NULL);
    for (int i = 0; i < AT_ONCE; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_false(workers[i].fine);
    }
    assert_true(time(NULL) - start < AT_ONCE - 1);
    assert_int_equal(scratch_count(f->cache, NULL), 0);
}

int main(int count, char **arguments)
{
    if (count == 5 && strcmp(arguments[1], "--worker") == 0)
        return run_worker(arguments + 2);
    toy_hurry();
    const struct CMUnitTest tests[] = {
        CLAIM(threads_and_processes_that_open_one_head_at_once_compile_it_once),
        CLAIM(one_takes_over_from_a_process_that_dies_while_it_compiles),
        CLAIM(who_waits_is_told),
        CLAIM(what_cannot_be_compiled_keeps_those_who_wait_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

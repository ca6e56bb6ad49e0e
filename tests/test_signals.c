/* A signal in the middle of a compilation: no process, no file is left, and the exit status is the signal's. */
#include "claims.h"
#include "command_place.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A compiler that never ends, and its child: each says its number. */
static const char slow_compiler[] = "#!/bin/sh\n"
                                    "sleep 300 &\n"
                                    "echo temporary > \"$TMPDIR/cc-temporary\"\n"
                                    "mkdir -p \"$TMPDIR/deep/er\" && echo x > \"$TMPDIR/deep/er/x\"\n"
                                    "echo $$ $! > %s.new && mv %s.new %s\n"
                                    "wait\n";

typedef struct fixture {
    place here;
    char compiler[PATH], temporary[PATH], cache[PATH], pids[PATH];
} fixture;

static int begin(void **state)
{
    fixture *f = *state = calloc(1, sizeof *f);
    char script[1024];
    place_begin(&f->here, tiny_spec);
    place_file(&f->here, "cc", f->compiler);
    place_file(&f->here, "temporary", f->temporary);
    place_file(&f->here, "cache", f->cache);
    place_file(&f->here, "pids", f->pids);
    snprintf(script, sizeof script, slow_compiler, f->pids, f->pids, f->pids);
    text_write(f->compiler, script);
    assert_int_equal(chmod(f->compiler, 0700), 0);
    assert_int_equal(mkdir(f->temporary, 0700), 0);
    return 0;
}

static int end(void **state)
{
    fixture *f = *state;
    scratch_remove(f->here.folder);
    free(f);
    return 0;
}

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){0, 10 * 1000 * 1000}, NULL);
}

static bool ends_soon(int pid)
{
    for (int i = 0; i < 1000 && program_runs(pid); i++)
        pause_shortly();
    return !program_runs(pid);
}

/* fpac verify with the slow compiler, begun and arrived there; pids of compiler and child. */
static pid_t start_verify(const fixture *f, int ignored, int pids[2])
{
    const char *named = getenv("FPAC"), *fpac = named ? named : "build/fpac";
    unlink(f->pids);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, 1);
        dup2(nothing, 2);
        setenv("FPA_CC", f->compiler, 1);
        setenv("TMPDIR", f->temporary, 1);
        setenv("FPA_CACHE_DIR", f->cache, 1);
        signal(SIGPIPE, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        if (ignored)
            signal(ignored, SIG_IGN);
        execl(fpac, "fpac", "verify", f->here.spec, "--target", "c:sse2", (char *)NULL);
        _exit(127);
    }
    char *text = NULL;
    for (int i = 0; i < 3000 && !text; i++) {
        pause_shortly();
        text = text_read(f->pids, NULL);
    }
    assert_non_null(text);
    assert_int_equal(sscanf(text, "%d %d", &pids[0], &pids[1]), 2);
    free(text);
    assert_int_equal(scratch_count(f->temporary, NULL), 1);
    return child;
}

static int status_of(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_signal_ends_the_compilers_and_removes_what_is_temporary(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    fixture *f = *state;
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
        int pids[2];
        pid_t child = start_verify(f, 0, pids);
        kill(child, signals[i]);
        int status = status_of(child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
        assert_int_equal(scratch_count(f->temporary, NULL), 0);
        assert_true(scratch_count(f->cache, NULL) <= 0);
        assert_true(ends_soon(pids[0]));
        assert_true(ends_soon(pids[1]));
    }
}

static void a_signal_that_is_ignored_stays_so(void **state)
{
    fixture *f = *state;
    int pids[2];
    pid_t child = start_verify(f, SIGHUP, pids); /* nohup */
    kill(child, SIGHUP);
    for (int i = 0; i < 20; i++)
        pause_shortly();
    assert_true(program_runs(child));
    assert_true(program_runs(pids[0]));
    kill(child, SIGTERM);
    assert_int_equal(WTERMSIG(status_of(child)), SIGTERM);
    assert_true(ends_soon(pids[0]));
}

static void a_compiler_does_not_outlive_what_was_killed(void **state)
{
    fixture *f = *state;
    int pids[2];
    pid_t child = start_verify(f, 0, pids);
    kill(child, SIGKILL);
    assert_int_equal(WTERMSIG(status_of(child)), SIGKILL);
    bool ended = ends_soon(pids[0]);
    kill(-pids[0], SIGKILL); /* the child that sleeps, whom nobody told: it takes no time of the machine's */
    assert_true(ended);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(a_signal_ends_the_compilers_and_removes_what_is_temporary),
        CLAIM(a_signal_that_is_ignored_stays_so),
        CLAIM(a_compiler_does_not_outlive_what_was_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "runtime/c/process.h"
#include "claims.h"
#include "program.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct fixture {
    char folder[64]; /* where the program starts */
} fixture;

static int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    scratch_make(f->folder);
    setenv("TMPDIR", f->folder, 1);
    *state = f;
    return 0;
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    scratch_remove(f->folder);
    free(f);
    return 0;
}

/* Run a shell script as the program. */
static fpa_status run_script(const fixture *f, const char *script, int seconds, fpa_outcome *outcome)
{
    fpa_error error;
    const char *const arguments[] = {"/bin/sh", "-c", script, NULL};
    const fpa_process process = {arguments, f->folder, seconds};
    return process_run(&process, outcome, &error);
}

static void a_program_gets_a_small_environment_and_its_folder(void **state)
{
    fixture *f = *state;
    fpa_outcome outcome;
    setenv("CPATH", "/somewhere", 1);
    setenv("LC_ALL", "de_DE", 1);
    assert_int_equal(run_script(f, "echo $LC_ALL $CPATH $TMPDIR; pwd -P; cat; exit 3", 10, &outcome), FPA_OK);
    unsetenv("CPATH");
    unsetenv("LC_ALL");
    char wanted[256];
    snprintf(wanted, sizeof wanted, "C %s\n%s\n", f->folder, f->folder);
    assert_string_equal(outcome.output, wanted);
    assert_int_equal(outcome.exit_code, 3);
    assert_false(outcome.timed_out);
}

static void a_program_past_its_time_is_killed_with_its_children(void **state)
{
    fixture *f = *state;
    fpa_outcome outcome;
    time_t start = time(NULL);
    assert_int_equal(run_script(f, "sleep 100 & echo $!; wait", 1, &outcome), FPA_OK);
    assert_true(outcome.timed_out);
    assert_true(outcome.exit_code != 0);
    assert_true(time(NULL) - start < 20);
    int child = atoi(outcome.output);
    assert_true(child > 0);
    const struct timespec pause = {0, 10 * 1000 * 1000};
    for (int i = 0; i < 200 && program_runs(child); i++)
        nanosleep(&pause, NULL);
    assert_false(program_runs(child));
}

static void a_child_that_keeps_the_pipe_open_does_not_hold_us_up(void **state)
{
    fixture *f = *state;
    fpa_outcome outcome;
    time_t start = time(NULL);
    assert_int_equal(run_script(f, "sleep 5 & echo done", 60, &outcome), FPA_OK);
    assert_string_equal(outcome.output, "done\n");
    assert_true(time(NULL) - start < 4);
}

static void long_output_is_cut_and_does_not_block(void **state)
{
    fixture *f = *state;
    fpa_outcome outcome;
    assert_int_equal(
        run_script(f, "i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done", 60, &outcome),
        FPA_OK);
    assert_int_equal(outcome.exit_code, 0);
    assert_int_equal(strlen(outcome.output), sizeof outcome.output - 1);
}

static void a_signal_is_an_exit_code_and_a_missing_program_an_error(void **state)
{
    fixture *f = *state;
    fpa_outcome outcome;
    fpa_error error;
    assert_int_equal(run_script(f, "kill -9 $$", 10, &outcome), FPA_OK);
    assert_int_equal(outcome.exit_code, 128 + 9);
    const char *const arguments[] = {"/nowhere/program", NULL};
    const fpa_process process = {arguments, f->folder, 10};
    assert_int_equal(process_run(&process, &outcome, &error), FPA_IO);
    assert_string_equal(error.where, "/nowhere/program");
}

static void an_exit_code_that_went_elsewhere_is_unknown(void **state)
{
    fixture *f = *state;
    fpa_outcome outcome;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    fpa_status status = run_script(f, "echo failed; exit 3", 10, &outcome);
    signal(SIGCHLD, before);
    assert_int_equal(status, FPA_OK);
    assert_true(outcome.unknown);
    assert_string_equal(outcome.output, "failed\n");
    assert_int_equal(run_script(f, "exit 3", 10, &outcome), FPA_OK);
    assert_false(outcome.unknown);
    assert_int_equal(outcome.exit_code, 3);
}

static void no_signal_is_ignored_or_blocked(void **state)
{
    fixture *f = *state;
    fpa_outcome outcome;
    sigset_t all, before;
    sigfillset(&all);
    void (*usr1)(int) = signal(SIGUSR1, SIG_IGN);
    sigprocmask(SIG_SETMASK, &all, &before);
    fpa_status status = run_script(f, "exec grep -E '^Sig(Blk|Ign)' /proc/self/status", 10, &outcome);
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGUSR1, usr1);
    assert_int_equal(status, FPA_OK);
    const char *ignored = strstr(outcome.output, "SigBlk:\t0000000000000000\nSigIgn:\t");
    assert_non_null(ignored);
    /* 32 and 33 are the C library's own, which no program can set: as make leaves them to what it starts */
    assert_int_equal(strtoull(strrchr(ignored, '\t'), NULL, 16) & ~(UINT64_C(3) << 31), 0);
}

/* Somebody ends the process that waits: its program is killed, and the program's children have their time. */
static void a_deadline_outlives_who_set_it(void **state)
{
    fixture *f = *state;
    char path[128], line[512];
    int pids[2] = {0, 0};
    snprintf(path, sizeof path, "%s/pids", f->folder);
    snprintf(line, sizeof line, "(while :; do :; done) & echo $$ $! >new; mv new %s; wait", path);
    pid_t caller = fork();
    assert_true(caller >= 0);
    if (caller == 0) {
        fpa_outcome outcome;
        _exit(run_script(f, line, 2, &outcome) != FPA_OK);
    }
    const struct timespec pause = {0, 10 * 1000 * 1000};
    for (int i = 0; i < 1000 && pids[1] == 0; i++) {
        nanosleep(&pause, NULL);
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%d %d", &pids[0], &pids[1]) != 2)
            pids[1] = 0;
        if (file)
            fclose(file);
    }
    assert_true(pids[1] > 0);
    kill(caller, SIGKILL);
    assert_int_equal(waitpid(caller, NULL, 0), caller);
    for (int i = 0; i < 6000 && program_runs(pids[1]); i++)
        nanosleep(&pause, NULL);
    bool ended[2] = {!program_runs(pids[0]), !program_runs(pids[1])};
    kill(-pids[0], SIGKILL);
    assert_true(ended[0]);
    assert_true(ended[1]);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(a_program_gets_a_small_environment_and_its_folder),
        CLAIM(a_program_past_its_time_is_killed_with_its_children),
        CLAIM(a_child_that_keeps_the_pipe_open_does_not_hold_us_up),
        CLAIM(long_output_is_cut_and_does_not_block),
        CLAIM(an_exit_code_that_went_elsewhere_is_unknown),
        CLAIM(no_signal_is_ignored_or_blocked),
        CLAIM(a_deadline_outlives_who_set_it),
        CLAIM(a_signal_is_an_exit_code_and_a_missing_program_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

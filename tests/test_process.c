#include "runtime/c/process.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

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

static bool is_running(int pid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    const char *name_end = got ? strrchr(line, ')') : NULL;
    return name_end && name_end[2] != 'Z' && name_end[2] != 'X';
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
    for (int i = 0; i < 200 && is_running(child); i++)
        nanosleep(&pause, NULL);
    assert_false(is_running(child));
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

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(a_program_gets_a_small_environment_and_its_folder),
        CLAIM(a_program_past_its_time_is_killed_with_its_children),
        CLAIM(a_child_that_keeps_the_pipe_open_does_not_hold_us_up),
        CLAIM(long_output_is_cut_and_does_not_block),
        CLAIM(a_signal_is_an_exit_code_and_a_missing_program_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

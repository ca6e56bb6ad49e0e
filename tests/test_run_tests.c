/* tools/run-tests.sh: what it sums up, of shares too, and what it does not run again where it goes on after an interruption. */
#include "claims.h"
#include "program.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct place {
    char build[64], fine[96], wrong[96];
} place;

/* A program that tells each time that it runs. */
static void write_program(const char *path, const char *body)
{
    char text[512];
    snprintf(text, sizeof text, "#!/bin/sh\necho ran >>%s.ran\n%s", path, body);
    text_write(path, text);
    assert_int_equal(chmod(path, 0700), 0);
}

static void write_fine(const place *at)
{
    write_program(at->fine, "echo '[  PASSED  ] 3 test(s).'\necho '[  SKIPPED ] 1 test(s).'\n");
}

static int setup(void **state)
{
    static place at;
    char tests[80];
    scratch_make(at.build);
    snprintf(tests, sizeof tests, "%s/tests", at.build);
    assert_int_equal(mkdir(tests, 0700), 0);
    snprintf(at.fine, sizeof at.fine, "%s/test_fine", tests);
    snprintf(at.wrong, sizeof at.wrong, "%s/test_wrong", tests);
    write_fine(&at);
    write_program(at.wrong, "echo '[  PASSED  ] 1 test(s).'\necho '[  FAILED  ] 1 test(s).'\nexit 1\n");
    *state = &at;
    return 0;
}

static int teardown(void **state)
{
    const place *at = *state;
    scratch_remove(at->build);
    return 0;
}

static int count_runs(const char *program)
{
    char path[128];
    size_t size = 0;
    snprintf(path, sizeof path, "%s.ran", program);
    free(text_read(path, &size));
    return (int)(size / strlen("ran\n"));
}

/* Both programs; how often each has run in all then, and what is summed up. */
static void run(const place *at, const char *resume, const char *part, int fine, int wrong)
{
    program_result result = RUN("/usr/bin/env", resume, part, "TEST_JOBS=1", "tools/run-tests.sh", at->build,
                                at->fine, at->wrong);
    assert_int_equal(result.code, 1);
    assert_non_null(strstr(result.out, "\n4 passed, 1 failed, 1 skipped\n"));
    assert_int_equal(count_runs(at->fine), fine);
    assert_int_equal(count_runs(at->wrong), wrong);
    program_free(&result);
}

static void what_has_passed_is_not_run_again_where_an_interruption_is_resumed(void **state)
{
    const place *at = *state;
    run(at, "TEST_RESUME=no", "FPA_TEST_ALL=0", 1, 1);
    run(at, "TEST_RESUME=no", "FPA_TEST_ALL=0", 2, 2);
    run(at, "TEST_RESUME=yes", "FPA_TEST_ALL=0", 2, 3);
    run(at, "TEST_RESUME=yes", "FPA_TEST_ALL=1", 3, 4); /* more of the tests */
    run(at, "TEST_RESUME=yes", "FPA_TEST_ALL=1", 3, 5);
    write_fine(at); /* linked again */
    run(at, "TEST_RESUME=yes", "FPA_TEST_ALL=1", 4, 6);
}

/* Whatever it has said before: its sum is gone. */
static void what_was_killed_is_a_failure_and_runs_again(void **state)
{
    const place *at = *state;
    write_program(at->fine, "echo '[  PASSED  ] 3 test(s).'\nkill -9 $$\n");
    for (int i = 0; i < 2; i++) {
        program_result result =
            RUN("/usr/bin/env", "TEST_RESUME=yes", "TEST_JOBS=1", "tools/run-tests.sh", at->build, at->fine);
        assert_int_equal(result.code, 1);
        assert_non_null(strstr(result.out, "\n3 passed, 1 failed, 0 skipped\n"));
        program_free(&result);
    }
    assert_int_equal(count_runs(at->fine), 6);
}

/* A program of shares: which it is asked for is what it has. */
static void run_shares(const place *at, const char *all, int code, const char *says)
{
    char shares[2][128], body[512];
    snprintf(body, sizeof body,
             "echo '[  PASSED  ] 1 test(s).'\n"
             "echo \"share ${FPA_TEST_SHARE%%%%/*} of ${FPA_TEST_SHARE#*/}: 1 of %s faults, numbers that sum "
             "up to ${FPA_TEST_SHARE%%%%/*}\"\n",
             all);
    write_program(at->fine, body);
    for (int i = 0; i < 2; i++)
        snprintf(shares[i], sizeof shares[i], "%s:%d/2", at->fine, i + 1);
    program_result result = RUN("/usr/bin/env", "tools/run-tests.sh", at->build, shares[0], shares[1]);
    assert_int_equal(result.code, code);
    assert_non_null(strstr(result.out, says));
    program_free(&result);
}

static void shares_have_everything_between_them(void **state)
{
    run_shares(*state, "2", 0, "\n2 passed, 0 failed, 0 skipped\n");
    run_shares(*state, "3", 1,
               "LACKS test_fine faults: 2 of 3 in 2 of 2 shares\n2 passed, 1 failed, 0 skipped\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_passed_is_not_run_again_where_an_interruption_is_resumed),
        cmocka_unit_test(what_was_killed_is_a_failure_and_runs_again),
        cmocka_unit_test(shares_have_everything_between_them),
    };
    return cmocka_run_group_tests_name("run-tests", tests, setup, teardown);
}

#include "base/parallel.h"
#include "claims.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { JOBS = 1000 };

static atomic_int done[JOBS];
static atomic_int interrupted;
static pthread_t caller;

static void note(int index, void *user)
{
    assert_ptr_equal(user, done);
    atomic_fetch_add(&done[index], 1);
}

static void each_job_runs_once_whatever_their_number(void **state)
{
    for (int count = 0; count <= JOBS; count = count < 3 ? count + 1 : count * 10) {
        for (int i = 0; i < JOBS; i++)
            done[i] = 0;
        parallel_run(count, note, done);
        for (int i = 0; i < JOBS; i++)
            assert_int_equal(done[i], i < count);
    }
}

typedef struct meeting {
    atomic_int came, met;
} meeting;

/* Alone, the first gives up after five seconds. */
static void wait_for_another(int index, void *user)
{
    struct meeting *two = user;
    atomic_fetch_add(&two->came, 1);
    for (int tries = 0; two->came < 2 && tries < 5000; tries++)
        usleep(1000);
    if (two->came == 2)
        atomic_fetch_add(&two->met, 1);
}

static void jobs_run_at_the_same_time_where_there_are_cores(void **state)
{
    meeting two = {0, 0};
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) || CPU_COUNT(&cores) < 2)
        skip();
    parallel_run(2, wait_for_another, &two);
    assert_int_equal(two.met, 2);
}

static void remember_thread(int signal)
{
    interrupted = pthread_equal(pthread_self(), caller) ? 1 : 2;
}

static void raise_signal(int index, void *user)
{
    if (index == 0)
        kill(getpid(), SIGUSR1);
    usleep(1000);
}

static void signals_are_handled_on_the_callers_thread(void **state)
{
    struct sigaction action = {.sa_handler = remember_thread}, before;
    caller = pthread_self();
    sigaction(SIGUSR1, &action, &before);
    for (int i = 0; i < 50; i++) {
        interrupted = 0;
        parallel_run(8, raise_signal, NULL);
        assert_int_equal(interrupted, 1);
    }
    sigaction(SIGUSR1, &before, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_runs_once_whatever_their_number),
        cmocka_unit_test(jobs_run_at_the_same_time_where_there_are_cores),
        cmocka_unit_test(signals_are_handled_on_the_callers_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* parallel: one function for many indices, on every core, for tests. */
#ifndef FPAC_TESTS_PARALLEL_H
#define FPAC_TESTS_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

typedef void parallel_function(void *argument, int index);

typedef struct parallel_work {
    parallel_function *function;
    void *argument;
    int count;
    atomic_int next;
} parallel_work;

static inline void *parallel_thread(void *argument)
{
    parallel_work *work = argument;
    for (int i; (i = atomic_fetch_add(&work->next, 1)) < work->count;)
        work->function(work->argument, i);
    return NULL;
}

/* function(argument, 0) ... function(argument, count - 1), in any order; returns after the last. The
 * function may not assert: only the thread that runs a test may. */
static inline void run_parallel(int count, parallel_function *function, void *argument)
{
    enum { MANY_THREADS = 32 };
    parallel_work work = {.function = function, .argument = argument, .count = count};
    pthread_t threads[MANY_THREADS];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int started = 0, wanted = cores > MANY_THREADS ? MANY_THREADS : (int)cores;
    while (started < wanted - 1 && !pthread_create(&threads[started], NULL, parallel_thread, &work))
        started++;
    parallel_thread(&work);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

#endif

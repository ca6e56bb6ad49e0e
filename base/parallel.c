#include "parallel.h"
#include "plain_locale.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

enum {
    MOST_HELPERS = 31,
    STACK = 16 << 20 /* bytes: compilers recurse, and a thread's default may be small */
};

typedef struct work {
    atomic_int next;
    int count;
    void (*job)(int index, void *user);
    void *user;
} work;

static void *do_jobs(void *argument)
{
    work *w = argument;
    const locale_t before = locale_plain();
    for (int i = atomic_fetch_add(&w->next, 1); i < w->count; i = atomic_fetch_add(&w->next, 1))
        w->job(i, w->user);
    locale_restore(before);
    return NULL;
}

/* The cores that this process may run on, which may be fewer than there are. */
static int core_count(void)
{
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
}

static int start_helpers(work *w, int wanted, pthread_t helpers[])
{
    int count = 0;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return 0;
    pthread_attr_setstacksize(&attributes, STACK);
    while (count < wanted && pthread_create(&helpers[count], &attributes, do_jobs, w) == 0)
        count++;
    pthread_attr_destroy(&attributes);
    return count;
}

void parallel_run(int count, void (*job)(int index, void *user), void *user)
{
    work w = {.count = count, .job = job, .user = user};
    pthread_t helpers[MOST_HELPERS];
    int cores = core_count(), wanted = (count < cores ? count : cores) - 1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int started = start_helpers(&w, wanted < MOST_HELPERS ? wanted : MOST_HELPERS, helpers);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    do_jobs(&w);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
}

/* openmp: the part of libgomp that emitted kernels use, by threads of pthreads, for `make tsan`.
 *
 * The thread sanitizer does not see how libgomp's threads wait for each other, so that it would report every parallel
 * region. Programs that are linked with this file show its functions to the kernels that they load, before
 * libgomp's: threads of a region are started and joined where the sanitizer sees it, and what is shared inside a
 * region is judged like everything else. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* Indices of a loop that counts upwards, of which members take `chunk` at a time. */
typedef struct loop {
    long next, end, step, chunk;
} loop;

/* One parallel region: a team, and the loop that it shares. */
typedef struct region {
    void (*body)(void *data);
    void *data;
    int members;
    pthread_mutex_t lock;
    bool begun; /* the loop is known */
    loop loop;
} region;

typedef struct member {
    region *region; /* NULL: outside of any */
    int number;
    bool looped; /* it has come to the region's loop */
} member;

static _Thread_local member here;

static void *run_member(void *argument)
{
    here = *(member *)argument;
    here.region->body(here.region->data);
    return NULL;
}

static _Thread_local int wanted; /* omp_set_num_threads; 0: as the environment says */

static int count_threads(void)
{
    if (wanted > 0)
        return wanted;
    const char *text = getenv("OMP_NUM_THREADS");
    const int count = text ? atoi(text) : 0;
    return count > 0 ? count : 4;
}

/* Regions inside of regions would have one member, as OpenMP has them; emitted code has none. */
static void run_region(region *r, unsigned threads)
{
    r->members = threads ? (int)threads : count_threads();
    pthread_t *others = calloc((size_t)r->members, sizeof *others);
    member *members = calloc((size_t)r->members, sizeof *members);
    if (!others || !members || here.region)
        abort();
    pthread_mutex_init(&r->lock, NULL);
    for (int i = 0; i < r->members; i++)
        members[i] = (member){.region = r, .number = i};
    for (int i = 1; i < r->members; i++)
        if (pthread_create(&others[i], NULL, run_member, &members[i]))
            abort();
    run_member(&members[0]);
    here = (member){.region = NULL};
    for (int i = 1; i < r->members; i++)
        pthread_join(others[i], NULL);
    pthread_mutex_destroy(&r->lock);
    free(others);
    free(members);
}

static bool take_some(loop *l, long *from, long *to)
{
    const bool more = l->next < l->end;
    *from = l->next;
    *to = l->end - l->next > l->chunk * l->step ? l->next + l->chunk * l->step : l->end;
    l->next = *to;
    return more;
}

/* ---- what a compiler makes of `#pragma omp`, by the names that it has for it ---- */

#define SHOWN __attribute__((visibility("default")))

SHOWN void omp_set_num_threads(int threads);
SHOWN int omp_get_max_threads(void);
SHOWN int omp_get_thread_num(void);
SHOWN int omp_get_num_threads(void);
SHOWN void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);
SHOWN void GOMP_parallel_loop_nonmonotonic_dynamic(void (*body)(void *), void *data, unsigned threads,
                                                   long start, long end, long step, long chunk,
                                                   unsigned flags);
SHOWN bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long *from,
                                                long *to);
SHOWN bool GOMP_loop_nonmonotonic_dynamic_next(long *from, long *to);
SHOWN void GOMP_loop_end_nowait(void);

void omp_set_num_threads(int threads)
{
    wanted = threads;
}

int omp_get_max_threads(void)
{
    return count_threads();
}

int omp_get_thread_num(void)
{
    return here.number;
}

int omp_get_num_threads(void)
{
    return here.region ? here.region->members : 1;
}

void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags)
{
    region r = {.body = body, .data = data};
    run_region(&r, threads);
}

/* A region that is a loop and nothing else: its members ask for the next indices at once. */
void GOMP_parallel_loop_nonmonotonic_dynamic(void (*body)(void *), void *data, unsigned threads, long start,
                                             long end, long step, long chunk, unsigned flags)
{
    region r = {.body = body, .data = data, .begun = true, .loop = {start, end, step, chunk}};
    if (step <= 0)
        abort();
    run_region(&r, threads);
}

/* A region has one loop. */
bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long *from, long *to)
{
    region *r = here.region;
    if (!r || here.looped || step <= 0)
        abort();
    here.looped = true;
    pthread_mutex_lock(&r->lock);
    if (!r->begun)
        r->loop = (loop){start, end, step, chunk};
    r->begun = true;
    const bool more = take_some(&r->loop, from, to);
    pthread_mutex_unlock(&r->lock);
    return more;
}

bool GOMP_loop_nonmonotonic_dynamic_next(long *from, long *to)
{
    region *r = here.region;
    pthread_mutex_lock(&r->lock);
    const bool more = take_some(&r->loop, from, to);
    pthread_mutex_unlock(&r->lock);
    return more;
}

void GOMP_loop_end_nowait(void)
{
}

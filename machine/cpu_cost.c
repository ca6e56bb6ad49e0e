/* cpu_cost: seconds of loops and of data, from counts of operations and a row of cpu.h. */
#include "cpu_cost.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The resources that may limit a loop. */
typedef enum resource {
    MULTIPLY_ADDS,
    ARITHMETIC,
    SHUFFLES,
    LOADS,
    STORES,
    INSTRUCTIONS,
    LATENCY,
    CALLS,
    CACHE,
    MEMORY,
    WAITS,
    RESOURCES
} resource;

static const char *const resource_names[RESOURCES] = {"multiply-adds", "arithmetic",   "shuffles", "loads",
                                                      "stores",        "instructions", "latency",  "calls",
                                                      "caches",        "memory",       "waits"};

static bool operations_equal(const fpa_cpu_operations *a, const fpa_cpu_operations *b)
{
    return a->multiply_adds == b->multiply_adds && a->arithmetic == b->arithmetic &&
           a->shuffles == b->shuffles && a->roundings == b->roundings && a->broadcasts == b->broadcasts &&
           a->loads == b->loads && a->stores == b->stores;
}

/* Whether two loops differ only in how often they run. */
static bool is_alike(const fpa_cpu_loop *a, const fpa_cpu_loop *b)
{
    return strcmp(a->name, b->name) == 0 && operations_equal(&a->step, &b->step) &&
           operations_equal(&a->narrow, &b->narrow) && a->others == b->others && a->chain == b->chain &&
           a->calls == b->calls && a->forwards == b->forwards && a->exponentials == b->exponentials &&
           a->first == b->first && a->last == b->last && a->steps == b->steps && a->come == b->come &&
           a->gone == b->gone && a->set == b->set;
}

/* The weighted mean of two counts. */
static void mix(double *to, double from, double share)
{
    *to += share * (from - *to);
}

static void mix_operations(fpa_cpu_operations *to, const fpa_cpu_operations *from, double share)
{
    mix(&to->multiply_adds, from->multiply_adds, share);
    mix(&to->arithmetic, from->arithmetic, share);
    mix(&to->shuffles, from->shuffles, share);
    mix(&to->roundings, from->roundings, share);
    mix(&to->broadcasts, from->broadcasts, share);
    mix(&to->loads, from->loads, share);
    mix(&to->stores, from->stores, share);
}

/* Merges a loop into another one, with the mean of their counts. */
static void unite(fpa_cpu_loop *to, const fpa_cpu_loop *from)
{
    const double steps = to->runs * to->steps + from->runs * from->steps, runs = to->runs + from->runs;
    const double share = steps > 0 ? from->runs * from->steps / steps : 0, edge = from->runs / runs;
    mix_operations(&to->step, &from->step, share);
    mix_operations(&to->narrow, &from->narrow, share);
    double *const counts[] = {&to->others,   &to->calls, &to->exponentials, &to->chain,
                              &to->forwards, &to->come,  &to->gone};
    const double more[] = {from->others,   from->calls, from->exponentials, from->chain,
                           from->forwards, from->come,  from->gone};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        mix(counts[i], more[i], share);
    mix(&to->first, from->first, edge);
    mix(&to->last, from->last, edge);
    to->set = fmax(to->set, from->set);
    to->runs = runs;
    to->steps = steps / runs;
}

static fpa_cpu_loop *last_of_name(fpa_cpu_work *work, const char *name)
{
    for (int i = work->loop_count - 1; i >= 0; i--)
        if (strcmp(work->loop[i].name, name) == 0)
            return &work->loop[i];
    return &work->loop[work->loop_count - 1];
}

void cpu_work_loop(fpa_cpu_work *work, fpa_cpu_loop loop)
{
    if (loop.runs <= 0)
        return;
    for (int i = 0; i < work->loop_count; i++)
        if (is_alike(&work->loop[i], &loop)) {
            work->loop[i].runs += loop.runs;
            return;
        }
    if (work->loop_count < CPU_LOOPS)
        work->loop[work->loop_count++] = loop;
    else
        unite(last_of_name(work, loop.name), &loop);
}

void cpu_work_data(fpa_cpu_work *work, fpa_cpu_data data)
{
    if (data.read <= 0 && data.written <= 0)
        return;
    if (work->data_count < CPU_DATA) {
        work->data[work->data_count++] = data;
        return;
    }
    fpa_cpu_data *last = &work->data[CPU_DATA - 1];
    last->read += data.read;
    last->written += data.written;
    last->set = fmax(last->set, data.set);
}

/* The fastest cache that holds so many bytes. */
static fpa_cache_level level_of(const fpa_cpu *cpu, double bytes)
{
    int level = CACHE_FIRST;
    while (level < CACHES && cpu->cache[level].bytes < bytes)
        level++;
    return (fpa_cache_level)level;
}

/* Bytes a cycle of memory for one of several threads. */
static double memory_bandwidth(const fpa_cpu *cpu, int threads)
{
    return fmin(cpu->memory, cpu->all_memory / threads) / cpu->clock;
}

/* Cycles for reading and writing bytes of a working set of `set` bytes, beyond the first-level cache. */
static double far_cycles(const fpa_cpu *cpu, double read, double written, double set, int threads)
{
    const fpa_cache_level level = level_of(cpu, set);
    if (level == CACHE_FIRST)
        return 0; /* loads and stores are counted separately */
    if (level == CACHES)
        return (read + written) / memory_bandwidth(cpu, threads);
    return fmax(read, written) / cpu->cache[level].bandwidth;
}

static double instructions(const fpa_cpu *cpu, const fpa_cpu_operations *of)
{
    return of->multiply_adds * cpu->product_instructions + of->broadcasts * cpu->broadcast_instructions +
           of->arithmetic + of->shuffles + of->roundings + of->stores;
}

/* Cycles of a run: those of its busiest kind of operations. Bytes from beyond the first-level cache also occupy that cache, which
 * takes no stores meanwhile. */
static resource busiest(const fpa_cpu *cpu, const fpa_cpu_loop *loop, int threads, double *cycles)
{
    const fpa_cpu_operations *step = &loop->step, *narrow = &loop->narrow;
    const double n = loop->steps, part = 1 / cpu->passes;
    const fpa_cache_level level = level_of(cpu, loop->set);
    const double far = n * far_cycles(cpu, loop->come, loop->gone, loop->set, threads);
    const double filled = level == CACHE_FIRST ? 0 : n * loop->come / cpu->cache[CACHE_FIRST].bandwidth;
    const double taken[] = {
        [MULTIPLY_ADDS] = n * (step->multiply_adds + part * narrow->multiply_adds) / cpu->multiply_adds,
        [ARITHMETIC] = n * (step->arithmetic + part * narrow->arithmetic) / cpu->arithmetic,
        [SHUFFLES] = n * (step->shuffles / cpu->shuffles + step->roundings / cpu->roundings),
        [LOADS] = (n * (step->loads + step->broadcasts + part * narrow->loads) + loop->first) / cpu->loads,
        [STORES] = (n * (step->stores + part * narrow->stores) + loop->last) / cpu->stores + filled,
        [INSTRUCTIONS] = (n * (instructions(cpu, step) + instructions(cpu, narrow) + loop->others) +
                          loop->first + loop->last) /
                         cpu->instructions,
        [LATENCY] = n * (loop->chain * cpu->latency + loop->forwards * cpu->forward),
        [CALLS] = n * (loop->calls * cpu->call + loop->exponentials * cpu->exponential),
        [CACHE] = level < CACHES ? far : 0,
        [MEMORY] = level < CACHES ? 0 : far,
    };
    resource most = MULTIPLY_ADDS;
    for (int i = 0; i <= MEMORY; i++)
        most = taken[i] > taken[most] ? (resource)i : most;
    *cycles = taken[most];
    return most;
}

double cpu_loop_cycles(const fpa_cpu *cpu, const fpa_cpu_loop *loop)
{
    double run;
    busiest(cpu, loop, 1, &run);
    return loop->runs * run;
}

double cpu_data_cycles(const fpa_cpu *cpu, const fpa_cpu_data *data, int threads)
{
    return far_cycles(cpu, data->read, data->written, data->set, threads);
}

fpa_cost cpu_cost(const fpa_cpu *cpu, const fpa_cpu_work *work)
{
    double spent[RESOURCES] = {0}, seconds = 0;
    for (int i = 0; i < work->loop_count; i++) {
        const fpa_cpu_loop *loop = &work->loop[i];
        double run;
        const resource most = busiest(cpu, loop, work->threads, &run);
        spent[most] += loop->runs * run / cpu->clock;
    }
    for (int i = 0; i < work->data_count; i++) {
        const bool far = level_of(cpu, work->data[i].set) == CACHES;
        spent[far ? MEMORY : CACHE] += cpu_data_cycles(cpu, &work->data[i], work->threads) / cpu->clock;
    }
    spent[CACHE] += work->exchanged / cpu->between / cpu->clock;
    spent[WAITS] = work->regions * cpu->region + work->waits * cpu->wait;
    int most = 0;
    for (int i = 0; i < RESOURCES; i++) {
        seconds += spent[i];
        most = spent[i] > spent[most] ? i : most;
    }
    return (fpa_cost){.seconds = seconds, .limit = resource_names[most]};
}

/* Figures of this processor, as a row of machine/cpu.c has them: multiply-adds, loads and stores a cycle, latency,
 * bytes a cycle of each cache and of memory, and what threads cost.
 *
 * cc -O2 -march=native -fopenmp bench/machine_cpu.c -lm -o machine_cpu && taskset -c 0 ./machine_cpu
 *
 * Every figure is the best of several runs: other programs only ever make them worse. Cycles are those of a chain
 * of dependent additions of whole numbers, one a cycle on every core that has a row. */
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

#if defined(__x86_64__)
#define VECTOR "+x"
#else
#define VECTOR "+w"
#endif
#if defined(__AVX512F__)
#undef VECTOR
#define VECTOR "+v"
#endif

typedef float vector __attribute__((vector_size(4 * LANES)));
enum { RUNS = 30 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The compiler may neither drop the value nor know it. */
#define KEEP(value) __asm__ volatile("" : VECTOR(value))

#if defined(__x86_64__)
#define ADD "add $3, %0\n\t"
#else
#define ADD "add %0, %0, #3\n\t"
#endif

static void add_chain(void *memory, int64_t steps)
{
    uint64_t sum = (uint64_t)(uintptr_t)memory;
    for (int64_t i = 0; i < steps / 8; i++)
        __asm__ volatile(ADD ADD ADD ADD ADD ADD ADD ADD : "+r"(sum));
}

static void multiply_add_chain(void *memory, int64_t steps)
{
    vector a = *(vector *)memory, b = a, sum = a;
    KEEP(a);
    KEEP(b);
    for (int64_t i = 0; i < steps; i++) {
        sum = sum * a + b;
        KEEP(sum);
    }
    *(vector *)memory = sum;
}

/* Twelve independent sums: more than latency times pipes of all rows but one need 10. */
static void multiply_adds(void *memory, int64_t steps)
{
    vector a = *(vector *)memory, b = a, s[12];
#pragma GCC unroll 12
    for (int j = 0; j < 12; j++)
        s[j] = a;
    for (int64_t i = 0; i < steps / 12; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < 12; j++) {
            s[j] += a * b;
            KEEP(s[j]);
        }
        KEEP(a);
    }
#pragma GCC unroll 12
    for (int j = 0; j < 12; j++)
        a += s[j];
    *(vector *)memory = a;
}

static int64_t bytes; /* of the memory that the next ones walk */

static void reads(void *memory, int64_t steps)
{
    const vector *at = memory;
    const int64_t count = bytes / (int64_t)sizeof *at;
    for (int64_t i = 0; i < steps; i += count)
        for (int64_t j = 0; j < count; j += 8) {
#pragma GCC unroll 8
            for (int u = 0; u < 8; u++) {
                vector a = at[j + u];
                KEEP(a);
            }
        }
}

static void writes(void *memory, int64_t steps)
{
    vector *at = memory, a = {0};
    const int64_t count = bytes / (int64_t)sizeof *at;
    for (int64_t i = 0; i < steps; i += count)
        for (int64_t j = 0; j < count; j += 8) {
#pragma GCC unroll 8
            for (int u = 0; u < 8; u++) {
                KEEP(a);
                at[j + u] = a;
            }
        }
}

/* Read, and written where it was: what an updated state is. */
static void updates(void *memory, int64_t steps)
{
    vector *at = memory;
    const int64_t count = bytes / (int64_t)sizeof *at;
    for (int64_t i = 0; i < steps; i += count)
        for (int64_t j = 0; j < count; j += 8) {
#pragma GCC unroll 8
            for (int u = 0; u < 8; u++) {
                vector a = at[j + u];
                KEEP(a);
                at[j + u] = a;
            }
        }
}

#ifdef __AVX512BF16__
static void roundings(void *memory, int64_t steps)
{
    (void)memory;
    for (int64_t i = 0; i < steps / 4; i++)
        __asm__ volatile("vcvtne2ps2bf16 %%zmm0, %%zmm1, %%zmm2\n\t"
                         "vcvtne2ps2bf16 %%zmm0, %%zmm1, %%zmm3\n\t"
                         "vcvtne2ps2bf16 %%zmm0, %%zmm1, %%zmm4\n\t"
                         "vcvtne2ps2bf16 %%zmm0, %%zmm1, %%zmm5\n\t"
                         :
                         :
                         : "zmm2", "zmm3", "zmm4", "zmm5");
}
#endif

static volatile int64_t vector_bytes = sizeof(vector);
static volatile double exponent = -0.02;

/* A row of packed rows a call. */
static void calls(void *memory, int64_t steps)
{
    const size_t size = (size_t)vector_bytes;
    for (int64_t i = 0; i < steps; i++)
        memset((char *)memory + i % 64 * 192, 0, size);
}

static void exponentials(void *memory, int64_t steps)
{
    double sum = 0;
    for (int64_t i = 0; i < steps; i++)
        sum += exp(exponent);
    *(double *)memory = sum;
}

typedef void kernel(void *memory, int64_t steps);

static double best(kernel *run, void *memory, int64_t steps)
{
    double least = 1e9;
    run(memory, steps);
    for (int i = 0; i < RUNS; i++) {
        const double begin = now();
        run(memory, steps);
        const double taken = now() - begin;
        least = taken < least ? taken : least;
    }
    return least / (double)steps;
}

/* Where threads of a team meet, as templates/c/workspace.c.in has it. */
static struct {
    int arrived, round;
} meeting;

static void meet(int team)
{
    const int round = __atomic_load_n(&meeting.round, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&meeting.arrived, 1, __ATOMIC_ACQ_REL) == team) {
        meeting.arrived = 0;
        __atomic_store_n(&meeting.round, round + 1, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&meeting.round, __ATOMIC_ACQUIRE) == round)
        ;
}

/* A parallel region whose threads meet so often. */
static double region_seconds(int waits)
{
    double least = 1e9;
    for (int i = 0; i < 1000; i++) {
        const double begin = now();
#pragma omp parallel
        for (int w = 0; w < waits; w++)
            meet(omp_get_num_threads());
        const double taken = now() - begin;
        least = taken < least ? taken : least;
    }
    return least;
}

enum { SHARED = 64 << 10 };

/* Bytes a second that a thread reads of what another has just written, and that it takes back to write again. */
static void exchange_rates(char *memory, double *read, double *taken_back)
{
    double reading = 1e9, writing = 1e9;
    bytes = SHARED;
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 1000; i++) {
        const bool writes_now = omp_get_thread_num() == 0;
        const double begin = now();
        if (writes_now)
            writes(memory, SHARED / (int64_t)sizeof(vector));
        writing = writes_now && now() - begin < writing ? now() - begin : writing;
        meet(2);
        const double second = now();
        if (!writes_now)
            reads(memory, SHARED / (int64_t)sizeof(vector));
        reading = !writes_now && now() - second < reading ? now() - second : reading;
        meet(2);
    }
    *read = SHARED / reading;
    *taken_back = SHARED / writing;
}

int main(void)
{
    static const struct {
        const char *name;
        int64_t size;
    } levels[] = {{"first-level cache", 16 << 10},
                  {"second-level cache", 512 << 10},
                  {"third-level cache", 8 << 20},
                  {"memory", 512 << 20}};
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, 512 << 20))
        return 1;
    memset(memory, 0, 512 << 20);
    const double cycle = best(add_chain, memory, 8000000);
    printf("clock                     %.3f GHz\n", 1e-9 / cycle);
    printf("floats a vector           %d\n", LANES);
    printf("multiply-add, latency     %.2f cycles\n", best(multiply_add_chain, memory, 1000000) / cycle);
    printf("multiply-adds             %.2f a cycle\n", cycle / best(multiply_adds, memory, 12000000));
#ifdef __AVX512BF16__
    printf("roundings to bf16         %.2f a cycle\n", cycle / best(roundings, memory, 4000000));
#endif
    printf("memset of a vector        %.1f cycles\n", best(calls, memory, 100000) / cycle);
    printf("exp of a double           %.1f cycles\n", best(exponentials, memory, 100000) / cycle);
    for (int i = 0; i < 4; i++) {
        bytes = levels[i].size;
        const int64_t steps = bytes > (1 << 20) ? bytes / (int64_t)sizeof(vector) : 1 << 20;
        const double size = sizeof(vector);
        printf("%-25s %.1f read, %.1f written, %.1f read and written where it was, bytes a cycle each\n",
               levels[i].name, size * cycle / best(reads, memory, steps),
               size * cycle / best(writes, memory, steps), size * cycle / best(updates, memory, steps));
    }
    const double region = region_seconds(0);
    printf("parallel region           %.2f us, a meeting in it %.2f us, %d threads\n", 1e6 * region,
           1e6 * (region_seconds(100) - region) / 100, omp_get_max_threads());
    if (omp_get_max_threads() > 1) {
        double read, taken_back;
        exchange_rates(memory, &read, &taken_back);
        printf("another core's cache      %.1f read, %.1f taken back, bytes a cycle\n", read * cycle,
               taken_back * cycle);
    }
    free(memory);
    return 0;
}

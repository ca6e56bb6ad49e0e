/* bench_c: C kernels beside OpenBLAS's sgemm and a copy of memory, on this machine.
 *
 *   bench_c [TARGET] [PART...]      parts: heads, random, flat, numpy, softmax (all of them)
 *
 * Every line's share is of one run: forwards and their ceiling take turns, the best of each counts. The
 * ceiling of arithmetic is sgemm of 1024^3 with as many threads, of decoding a copy of as many bytes as the
 * states have (read and written once each, as a step does). `asked`: what a line is to reach.
 *
 * Operations, per token and head (the plan's count): 4 D dv for update and query of the state, c (d + dv) for
 * the chunk's own pairs (c/2 visible pairs of 2 (d + dv) each), projections; parallel 2 (d + dv) a visible
 * pair.
 *
 * numpy: the degree-2 head as NumPy program with explicit features (bench/numpy_head.py); softmax: torch's
 * attention on the CPU (bench/peers/softmax_cpu.py). What is not installed is named and passed over. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure_c.h"

extern char *openblas_get_corename(void);

typedef struct line {
    const char *spec, *head;
    bench_load load;
    double asked; /* per cent of the ceiling; against the fp32 kernel where beside is set: times */
    int beside;   /* 1 + index of the line that it is compared with, as times as fast; 0: none */
} line;

static const line lines[] = {
    {"specs/tspow.lua", "tspow2_d64_b8", {FPA_FORM_CHUNKED, 4096, 1, 1, false}, 90, 0},
    {"specs/tspow.lua", "tspow2_d64_b8", {FPA_FORM_CHUNKED, 65536, 1, 1, false}, 90, 0},
    {"specs/tspow.lua", "tspow2_d64_b8", {FPA_FORM_PARALLEL, 1024, 1, 4, false}, 85, 0},
    {"specs/tspow.lua", "tspow2_d64_b8", {FPA_FORM_RECURRENT, 1, 1, 64, true}, 85, 0},
    {"specs/linear.lua", "linear_d64", {FPA_FORM_CHUNKED, 4096, 2, 1, false}, 80, 0},
    {"specs/linear.lua", "linear_d64", {FPA_FORM_CHUNKED, 65536, 2, 1, false}, 80, 0},
    {"specs/linear.lua", "linear_d64", {FPA_FORM_CHUNKED, 65536, 1, 16, false}, 0, 0},
    {"specs/linear.lua", "linear_d64", {FPA_FORM_PARALLEL, 1024, 1, 4, false}, 85, 0},
    {"specs/mixed.lua", "dense_16x32_d64", {FPA_FORM_CHUNKED, 4096, 1, 2, false}, 80, 0},
    {"specs/tspow.lua", "tspow3_d16", {FPA_FORM_CHUNKED, 4096, 1, 2, false}, 80, 0},
    {"specs/tspow.lua", "tspow3_d32", {FPA_FORM_CHUNKED, 4096, 1, 2, false}, 80, 0},
    {"specs/gated.lua", "gated_power2_d64", {FPA_FORM_CHUNKED, 4096, 1, 2, false}, 0, 0},
    {"specs/storage.lua", "tspow2_d64_bf16", {FPA_FORM_CHUNKED, 4096, 1, 1, false}, 1.6, 1},
    {"specs/storage.lua", "tspow2_d64_bf16", {FPA_FORM_CHUNKED, 65536, 1, 1, false}, 1.6, 2},
    {"specs/storage.lua", "tspow2_d64_bf16", {FPA_FORM_PARALLEL, 1024, 1, 4, false}, 0, 3},
};

enum { LINES = sizeof lines / sizeof *lines, BUFFER = 512 };

typedef struct bench {
    const char *target;
    int threads;
    double seconds[LINES][MOST_THREADS]; /* of a token and head */
} bench;

static fpa_kernel *open_head(const bench *b, const char *spec, const char *head)
{
    const fpa_options options = {.target = b->target};
    fpa_kernel *kernel;
    fpa_error error;
    if (fpa_open(spec, head, &options, &kernel, &error)) {
        fprintf(stderr, "bench_c: %s: %s\n", error.where, error.message);
        exit(1);
    }
    return kernel;
}

static const char *form_of(const bench_load *load)
{
    static const char *const names[] = {"parallel", "chunked", "step"};
    return names[load->form];
}

/* Operations of a token and head. */
static double flop_of(const fpa_description *about, const bench_load *load)
{
    const double pairs = ((double)load->length + 1) / 2;
    return about->flop[load->form] * (load->form == FPA_FORM_PARALLEL ? pairs : 1);
}

static void print_title(void)
{
    printf("\n%-18s %-9s %8s %5s %7s %13s %8s %14s %10s %9s\n", "head", "form", "tokens", "B x H", "threads",
           "ns/token/head", "GFLOP/s", "ceiling", "share", "asked");
}

/* Against the ceiling, and against one thread. */
static void print_share(const bench *b, int i, int n, const bench_times *times, double rate, double ceiling,
                        const char *unit)
{
    const line *l = &lines[i];
    char share[32], asked[32] = "";
    snprintf(share, sizeof share, "%.0f %%", 100 * rate / ceiling);
    if (l->beside)
        snprintf(share, sizeof share, "%.2f x f32", b->seconds[l->beside - 1][n] / b->seconds[i][n]);
    if (l->asked > 0 && !l->beside && strcmp(b->target, "c:avx2") == 0)
        snprintf(asked, sizeof asked, "%.0f %%", l->asked < 85 ? l->asked : 85);
    else if (l->asked > 0)
        snprintf(asked, sizeof asked, l->beside ? "%.1f x" : "%.0f %%", l->asked);
    printf(" %8.1f %6.1f %-7s %10s %9s", rate, ceiling, unit, share, asked);
    if (n)
        printf("   %.2f x one thread", times->forward[0] / times->forward[n]);
    printf("\n");
    fflush(stdout);
}

static void show_line(bench *b, int i)
{
    const line *l = &lines[i];
    const bench_load *load = &l->load;
    bench_times times;
    fpa_kernel *kernel = open_head(b, l->spec, l->head);
    const fpa_description *about = fpa_describe(kernel);
    if (l->beside && strcmp(about->arithmetic, "bf16") != 0) {
        printf("%-18s %-9s skipped: %s multiplies no pairs of bf16\n", l->head, form_of(load), about->target);
        fpa_close(kernel);
        return;
    }
    bench_measure(kernel, load, b->threads, &times);
    const double items = (double)load->batch * load->length * load->heads;
    const double work =
        load->decode ? 2 * sizeof(float) * (double)about->state_elements : flop_of(about, load);
    const double top = load->decode ? 2 * sizeof(float) * (double)about->state_elements * load->heads
                                    : 2.0 * SGEMM_SIZE * SGEMM_SIZE * SGEMM_SIZE;
    for (int n = 0; n < b->threads; n++) {
        b->seconds[i][n] = times.forward[n] / items;
        printf("%-18s %-9s %8lld %2dx%-2d %7d %13.1f", l->head, form_of(load), (long long)load->length,
               load->batch, load->heads, n + 1, 1e9 * b->seconds[i][n]);
        print_share(b, i, n, &times, 1e-9 * work / b->seconds[i][n], 1e-9 * top / times.ceiling[n],
                    load->decode ? "GB/s" : "GFLOP/s");
    }
    fpa_close(kernel);
}

static void show_heads(bench *b)
{
    print_title();
    for (int i = 0; i < LINES; i++)
        show_line(b, i);
}

/* ---- heads that nobody chose ---- */

enum { RANDOM_HEADS = 16 };

static int between(uint32_t *random, int low, int high)
{
    *random = *random * 1664525u + 1013904223u;
    return low + (int)((*random >> 8) % (uint32_t)(high - low + 1));
}

/* A spec of one head; which family, by turns. */
static void random_spec(uint32_t *random, int number, char *spec, size_t size)
{
    char terms[200];
    const int d = number % 4 == 1 ? between(random, 8, 18) : between(random, 16, 80),
              dv = between(random, 16, 130);
    const int block = between(random, 1, 12), first = between(random, 2, 30), second = between(random, 2, 30);
    switch (number % 4) {
    case 0:
        snprintf(terms, sizeof terms, "tspow { d = %d, degree = 2, block = %d }", d, block);
        break;
    case 1:
        snprintf(terms, sizeof terms, "power { degree = 3 }");
        break;
    case 2:
        snprintf(terms, sizeof terms, "inhomogeneous { degree = 2, constant = %d }", block);
        break;
    default:
        snprintf(terms, sizeof terms,
                 "{ term { dense(orthogonal { rows = %d, d = %d, seed = %d }), dense(orthogonal { rows = %d, "
                 "d = %d, "
                 "seed = %d }) } }",
                 first < d ? first : d, d, number, second < d ? second : d, d, number + 100);
    }
    snprintf(spec, size, "return head { name = 'random_%d', d = %d, dv = %d, terms = %s }", number, d, dv,
             terms);
}

static void show_random(const bench *b)
{
    const bench_load load = {FPA_FORM_CHUNKED, 4096, 1, 2, false};
    const fpa_options options = {.target = b->target};
    uint32_t random = 2026;
    double least = 1e9;
    printf("\n%-18s %5s %5s %7s %13s %8s %16s %7s\n", "chunked, 1 thread", "d", "dv", "D", "ns/token/head",
           "GFLOP/s", "sgemm", "share");
    for (int i = 0; i < RANDOM_HEADS; i++) {
        char spec[512];
        fpa_kernel *kernel;
        fpa_error error;
        bench_times times;
        random_spec(&random, i, spec, sizeof spec);
        if (fpa_open_text("random", spec, NULL, &options, &kernel, &error)) {
            fprintf(stderr, "bench_c: %s: %s\n", error.where, error.message);
            exit(1);
        }
        const fpa_description *about = fpa_describe(kernel);
        bench_measure(kernel, &load, 1, &times);
        const double seconds = times.forward[0] / (double)(load.length * load.heads);
        const double rate = 1e-9 * flop_of(about, &load) / seconds;
        const double top = 2e-9 * SGEMM_SIZE * SGEMM_SIZE * SGEMM_SIZE / times.ceiling[0];
        printf("%-18s %5d %5d %7lld %13.1f %8.1f %8.1f GFLOP/s %5.0f %%\n", about->name, about->d, about->dv,
               (long long)about->features, 1e9 * seconds, rate, top, 100 * rate / top);
        fflush(stdout);
        least = rate / top < least ? rate / top : least;
        fpa_close(kernel);
    }
    printf("least share of %d random heads: %.0f %% (asked: 70 %%)\n", RANDOM_HEADS, 100 * least);
}

/* ---- work and memory do not grow with the length ---- */

static void show_flat(const bench *b)
{
    static const char *const heads[][2] = {{"specs/tspow.lua", "tspow2_d64_b8"},
                                           {"specs/linear.lua", "linear_d64"}};
    printf("\n%-18s %8s %7s %13s %14s %26s\n", "chunked", "tokens", "threads", "ns/token/head",
           "workspace MiB", "state x threads + 8 MiB");
    for (size_t h = 0; h < sizeof heads / sizeof *heads; h++) {
        fpa_kernel *kernel = open_head(b, heads[h][0], heads[h][1]);
        const double state = 4.0 * (double)fpa_describe(kernel)->state_elements / (1 << 20);
        for (int64_t length = 1024; length <= 1 << 20; length *= 32) {
            const bench_load load = {FPA_FORM_CHUNKED, length, 1, 1, false};
            bench_times times;
            bench_measure(kernel, &load, 1, &times);
            printf("%-18s %8lld %7d %13.1f %14.2f %26.2f\n", heads[h][1], (long long)length, 1,
                   1e9 * times.forward[0] / (double)length, times.workspace / (1 << 20), state + 8);
            fflush(stdout);
        }
        fpa_close(kernel);
    }
}

/* ---- beside programs in Python ---- */

/* The last number that a program prints; 0: it could not measure, and its words are shown. */
static double ask(const char *command)
{
    char text[BUFFER] = "";
    double number = 0;
    FILE *out = popen(command, "r");
    if (!out)
        return 0;
    while (fgets(text, sizeof text, out)) {
        text[strcspn(text, "\n")] = 0;
        if (sscanf(text, "ns %lf", &number) != 1)
            printf("%s\n", text);
    }
    return pclose(out) ? 0 : number;
}

/* The head is measured before and after its rival: the better counts. */
static double best_ns(const fpa_kernel *kernel, int64_t length, int threads)
{
    const bench_load load = {FPA_FORM_AUTO, length, 1, 1, false};
    bench_times times;
    bench_measure(kernel, &load, threads, &times);
    return 1e9 * times.forward[threads - 1] / (double)length;
}

static void show_numpy(const bench *b)
{
    static const double asked[MOST_THREADS] = {1.7, 2.7};
    fpa_kernel *kernel = open_head(b, "specs/tspow.lua", "tspow2_d64_b8");
    printf("\n%-18s %8s %7s %16s %16s %9s %9s\n", "beside NumPy", "tokens", "threads", "numpy ns", "fpac ns",
           "times", "asked");
    for (int threads = 1; threads <= b->threads && threads <= MOST_THREADS; threads++) {
        char command[BUFFER];
        snprintf(command, sizeof command,
                 "OPENBLAS_NUM_THREADS=%d OMP_NUM_THREADS=%d python3 bench/numpy_head.py --length 8192",
                 threads, threads);
        const double before = best_ns(kernel, 8192, threads), rival = ask(command);
        if (rival <= 0)
            break;
        const double after = best_ns(kernel, 8192, threads), mine = before < after ? before : after;
        printf("%-18s %8d %7d %16.1f %16.1f %7.2f x %7.1f x\n", "tspow2_d64_b8", 8192, threads, rival, mine,
               rival / mine, asked[threads - 1]);
        fflush(stdout);
    }
    fpa_close(kernel);
}

static void show_softmax(const bench *b)
{
    fpa_kernel *kernel = open_head(b, "specs/tspow.lua", "tspow2_d64_b8");
    int64_t crossover = 0;
    printf("\n%-18s %8s %7s %16s %16s %9s\n", "beside softmax", "tokens", "threads", "torch ns", "fpac ns",
           "times");
    for (int64_t length = 512; length <= 32768; length *= 2) {
        char command[BUFFER];
        snprintf(
            command, sizeof command,
            "OMP_NUM_THREADS=%d ${PYTHON:-python3} bench/peers/softmax_cpu.py --length %lld --threads %d",
            b->threads, (long long)length, b->threads);
        const double rival = ask(command);
        if (rival <= 0)
            break;
        const double mine = best_ns(kernel, length, b->threads);
        printf("%-18s %8lld %7d %16.1f %16.1f %7.2f x\n", "tspow2_d64_b8", (long long)length, b->threads,
               rival, mine, rival / mine);
        fflush(stdout);
        if (!crossover && mine < rival)
            crossover = length;
    }
    if (crossover)
        printf("faster than softmax from %lld tokens on\n", (long long)crossover);
    fpa_close(kernel);
}

/* ---- main ---- */

static void print_machine(const bench *b)
{
    char text[256], model[200] = "unknown CPU";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(text, sizeof text, file)) {
        if (sscanf(text, "model name : %199[^\n]", model) == 1)
            break;
    }
    if (file)
        fclose(file);
    printf("%s, %d threads; target %s; OpenBLAS kernels for %s\n", model, b->threads, b->target,
           openblas_get_corename());
}

static bool wants(int count, char **parts, const char *part)
{
    for (int i = 2; i < count; i++)
        if (strcmp(parts[i], part) == 0)
            return true;
    return count <= 2;
}

int main(int count, char **arguments)
{
    bench b = {.target = count > 1 ? arguments[1] : "c"};
    const int most = omp_get_max_threads();
    b.threads = most < MOST_THREADS ? most : MOST_THREADS;
    print_machine(&b);
    if (wants(count, arguments, "heads"))
        show_heads(&b);
    if (wants(count, arguments, "random"))
        show_random(&b);
    if (wants(count, arguments, "flat"))
        show_flat(&b);
    if (wants(count, arguments, "numpy"))
        show_numpy(&b);
    if (wants(count, arguments, "softmax"))
        show_softmax(&b);
    return 0;
}

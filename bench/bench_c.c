/* bench_c: C kernels beside OpenBLAS's sgemm and a copy of memory, on this machine.
 *
 *   bench_c [--tsv FILE] [TARGET] [PART...]      parts: heads, random, flat, numpy, softmax (all of them)
 *
 * Every line's share is of one run: forwards and their ceiling take turns, the best of each counts. The
 * ceiling of arithmetic is sgemm of 1024^3 with as many threads, of decoding a copy of as many bytes as the
 * states have (read and written once each, as a step does). --tsv adds lines for fpac plot to a file; shares
 * of the ceiling stand there as those of the matrix product or of the copy.
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
    int beside; /* 1 + index of the line that it is compared with, as times as fast; 0: none */
} line;

static const line lines[] = {
    {"specs/tspow.lua", "tspow2_d64_b8", {FPA_FORM_CHUNKED, 4096, 1, 1, false}, 0},
    {"specs/tspow.lua", "tspow2_d64_b8", {FPA_FORM_CHUNKED, 65536, 1, 1, false}, 0},
    {"specs/tspow.lua", "tspow2_d64_b8", {FPA_FORM_PARALLEL, 1024, 1, 4, false}, 0},
    {"specs/tspow.lua", "tspow2_d64_b8", {FPA_FORM_RECURRENT, 1, 1, 64, true}, 0},
    {"specs/linear.lua", "linear_d64", {FPA_FORM_CHUNKED, 4096, 2, 1, false}, 0},
    {"specs/linear.lua", "linear_d64", {FPA_FORM_CHUNKED, 65536, 2, 1, false}, 0},
    {"specs/linear.lua", "linear_d64", {FPA_FORM_CHUNKED, 65536, 1, 16, false}, 0},
    {"specs/linear.lua", "linear_d64", {FPA_FORM_PARALLEL, 1024, 1, 4, false}, 0},
    {"specs/mixed.lua", "dense_16x32_d64", {FPA_FORM_CHUNKED, 4096, 1, 2, false}, 0},
    {"specs/tspow.lua", "tspow3_d16", {FPA_FORM_CHUNKED, 4096, 1, 2, false}, 0},
    {"specs/tspow.lua", "tspow3_d32", {FPA_FORM_CHUNKED, 4096, 1, 2, false}, 0},
    {"specs/gated.lua", "gated_power2_d64", {FPA_FORM_CHUNKED, 4096, 1, 2, false}, 0},
    {"specs/storage.lua", "tspow2_d64_bf16", {FPA_FORM_CHUNKED, 4096, 1, 1, false}, 1},
    {"specs/storage.lua", "tspow2_d64_bf16", {FPA_FORM_CHUNKED, 65536, 1, 1, false}, 2},
    {"specs/storage.lua", "tspow2_d64_bf16", {FPA_FORM_PARALLEL, 1024, 1, 4, false}, 3},
};

enum { LINES = sizeof lines / sizeof *lines, BUFFER = 512 };

typedef struct bench {
    const char *target;
    FILE *tsv; /* NULL: no lines are kept */
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

/* A line for fpac plot (command/measured.h). case_: what was done; ns: of a token and head. */
static void keep_line(const bench *b, const char *who, const char *version, const char *case_,
                      const bench_load *load, double ns, const char *shares)
{
    const double items = (double)load->batch * load->length * load->heads;
    if (!b->tsv)
        return;
    fprintf(b->tsv, "%s\t%s\t%s\t%lld\t%d\t%d\t%g\t%g%s\n", who, version, case_, (long long)load->length,
            load->batch, load->heads, ns, 1e-6 * ns * items, shares);
    fflush(b->tsv);
}

static void keep_head(const bench *b, const fpa_description *about, const bench_load *load, const char *form,
                      int threads, double ns, double share)
{
    char name[160], shares[48] = "";
    snprintf(name, sizeof name, "%s %s %s %s, %d thread%s", about->name, about->dtype, form, about->target,
             threads, threads > 1 ? "s" : "");
    if (share > 0)
        snprintf(shares, sizeof shares, load->decode ? "\t-\t%.4f" : "\t%.4f\t-", share);
    keep_line(b, "fpac", fpa_version(), name, load, ns, shares);
}

static void print_title(void)
{
    printf("\n%-18s %-9s %8s %5s %7s %13s %8s %14s %10s\n", "head", "form", "tokens", "B x H", "threads",
           "ns/token/head", "GFLOP/s", "ceiling", "share");
}

/* Against the ceiling, and against one thread. */
static void print_share(const bench *b, int i, int n, const bench_times *times, double rate, double ceiling,
                        const char *unit)
{
    const line *l = &lines[i];
    char share[32];
    snprintf(share, sizeof share, "%.0f %%", 100 * rate / ceiling);
    if (l->beside)
        snprintf(share, sizeof share, "%.2f x f32", b->seconds[l->beside - 1][n] / b->seconds[i][n]);
    printf(" %8.1f %6.1f %-7s %10s", rate, ceiling, unit, share);
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
        const double rate = 1e-9 * work / b->seconds[i][n], ceiling = 1e-9 * top / times.ceiling[n];
        print_share(b, i, n, &times, rate, ceiling, load->decode ? "GB/s" : "GFLOP/s");
        keep_head(b, about, load, form_of(load), n + 1, 1e9 * b->seconds[i][n], rate / ceiling);
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
    printf("least share of %d random heads: %.0f %%\n", RANDOM_HEADS, 100 * least);
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
    fpa_kernel *kernel = open_head(b, "specs/tspow.lua", "tspow2_d64_b8");
    const bench_load load = {FPA_FORM_AUTO, 8192, 1, 1, false};
    printf("\n%-18s %8s %7s %16s %16s %9s\n", "beside NumPy", "tokens", "threads", "numpy ns", "fpac ns",
           "times");
    for (int threads = 1; threads <= b->threads && threads <= MOST_THREADS; threads++) {
        char command[BUFFER];
        snprintf(command, sizeof command,
                 "OPENBLAS_NUM_THREADS=%d OMP_NUM_THREADS=%d python3 bench/numpy_head.py --length 8192",
                 threads, threads);
        const double before = best_ns(kernel, 8192, threads), rival = ask(command);
        if (rival <= 0)
            break;
        const double after = best_ns(kernel, 8192, threads), mine = before < after ? before : after;
        printf("%-18s %8d %7d %16.1f %16.1f %7.2f x\n", "tspow2_d64_b8", 8192, threads, rival, mine,
               rival / mine);
        fflush(stdout);
        keep_line(b, "numpy", "-", threads > 1 ? "power 2, 2 threads" : "power 2, 1 thread", &load, rival,
                  "");
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
        const bench_load load = {FPA_FORM_AUTO, length, 1, 1, false};
        keep_line(b, "torch", "-", "softmax", &load, rival, "");
        keep_head(b, fpa_describe(kernel), &load, "auto", b->threads, mine, 0);
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

static bool wants(char *const *parts, const char *part)
{
    for (int i = 0; parts[i]; i++)
        if (strcmp(parts[i], part) == 0)
            return true;
    return !parts[0];
}

static FILE *open_tsv(const char *path)
{
    FILE *file = fopen(path, "a");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

int main(int count, char **arguments)
{
    const bool keeps = count > 2 && strcmp(arguments[1], "--tsv") == 0;
    bench b = {.tsv = keeps ? open_tsv(arguments[2]) : NULL};
    char *const *words = arguments + (keeps ? 3 : 1), *const *parts = words[0] ? words + 1 : words;
    b.target = words[0] ? words[0] : "c";
    const int most = omp_get_max_threads();
    b.threads = most < MOST_THREADS ? most : MOST_THREADS;
    print_machine(&b);
    if (wants(parts, "heads"))
        show_heads(&b);
    if (wants(parts, "random"))
        show_random(&b);
    if (wants(parts, "flat"))
        show_flat(&b);
    if (wants(parts, "numpy"))
        show_numpy(&b);
    if (wants(parts, "softmax"))
        show_softmax(&b);
    if (b.tsv)
        fclose(b.tsv);
    return 0;
}

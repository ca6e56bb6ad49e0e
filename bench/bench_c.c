/* bench_c: the degree-2 head of the paper beside a matrix product, on this machine.
 *
 * tspow2_d64_b8 (D = 2304) runs in chunked form, float32, through the public API; OpenBLAS's
 * sgemm runs in the same process, before and after, with as many threads. A head's share is its
 * rate over the best sgemm rate: both do nothing but multiply and add, so 100 % is the ceiling.
 *
 * Operations, per token and head: 4 D dv for update and query of the state (2 D dv each), and
 * c (d + dv) for the chunk's own pairs (c/2 visible pairs of 2 (d + dv) each). */
#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fpa.h"

extern void openblas_set_num_threads(int threads);
extern char *openblas_get_config(void);
extern char *openblas_get_corename(void);

static const char spec[] = "return head { name = 'tspow2_d64_b8', d = 64, dv = 64, chunk = 128,\n"
                           "  terms = tspow { d = 64, degree = 2, block = 8 } }\n";

enum { MANY = 64, D_KEY = 64, D_VALUE = 64 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *seconds, int count)
{
    qsort(seconds, (size_t)count, sizeof *seconds, compare);
    return count % 2 ? seconds[count / 2] : (seconds[count / 2 - 1] + seconds[count / 2]) / 2;
}

/* count numbers of -0.5..0.5, 64-byte aligned. */
static float *numbers(size_t count)
{
    float *data = aligned_alloc(64, (count * sizeof *data + 63) / 64 * 64 + 64);
    uint32_t state = 12345;
    if (!data) {
        fprintf(stderr, "bench_c: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    return data;
}

/* ---- sgemm ---- */

/* GFLOP/s of an m x n x k product, by the median of several. */
static double measure_sgemm(int m, int n, int k, int repeats)
{
    float *a = numbers((size_t)m * (size_t)k), *b = numbers((size_t)k * (size_t)n),
          *c = numbers((size_t)m * (size_t)n);
    double seconds[MANY];
    for (int i = -1; i < repeats; i++) {
        double start = now();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
        if (i >= 0)
            seconds[i] = now() - start;
    }
    free(a), free(b), free(c);
    return 2e-9 * m * (double)n * k / median(seconds, repeats);
}

/* The best of a square product and of the head's own shapes: S += phi(K)' V is 2304 x 64 over many
 * tokens. */
static double best_sgemm(int threads)
{
    openblas_set_num_threads(threads);
    double square = measure_sgemm(1024, 1024, 1024, 15);
    double update = measure_sgemm(2304, D_VALUE, 16384, 5);
    double best = square > update ? square : update;
    printf("%-24s %7d %10s %14s %10.1f   1024^3 %.1f, 2304 x 64 x 16384 %.1f\n", "openblas sgemm", threads,
           "", "", best, square, update);
    return best;
}

/* ---- the head ---- */

static DLTensor tensor(float *data, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static void stop_on(fpa_status status, const fpa_error *error)
{
    if (status) {
        fprintf(stderr, "bench_c: %s: %s\n", error->where, error->message);
        exit(1);
    }
}

/* Median seconds of one chunked forward of `length` tokens. */
static double measure_head(const fpa_kernel *kernel, int64_t length, int repeats)
{
    int64_t shape[4] = {1, length, 1, D_KEY};
    size_t count = (size_t)length * D_KEY, size;
    float *q_data = numbers(count), *k_data = numbers(count), *v_data = numbers(count),
          *o_data = numbers(count);
    DLTensor q = tensor(q_data, shape), k = tensor(k_data, shape), v = tensor(v_data, shape),
             o = tensor(o_data, shape);
    fpa_tensors tensors = {.q = &q, .k = &k, .v = &v, .o = &o};
    fpa_error error;
    double seconds[MANY];
    stop_on(fpa_workspace_size(kernel, FPA_FORM_CHUNKED, &tensors, &size, &error), &error);
    float *workspace = numbers(size / sizeof(float) + 16);
    for (int i = -1; i < repeats; i++) {
        double start = now();
        stop_on(fpa_forward(kernel, FPA_FORM_CHUNKED, &tensors, workspace, size, &error), &error);
        if (i >= 0)
            seconds[i] = now() - start;
    }
    free(q_data), free(k_data), free(v_data), free(o_data), free(workspace);
    return median(seconds, repeats);
}

static void show_head(const fpa_kernel *kernel, int64_t length, int threads, double ceiling)
{
    const fpa_description *about = fpa_describe(kernel);
    double flop = 4.0 * (double)about->features * D_VALUE + (double)about->chunk * (D_KEY + D_VALUE);
    double seconds = measure_head(kernel, length, length > 10000 ? 5 : 15);
    double rate = 1e-9 * flop * (double)length / seconds;
    printf("%-24s %7d %10lld %14.1f %10.1f   %.0f %% of sgemm\n", about->name, threads, (long long)length,
           1e9 * seconds / (double)length, rate, 100 * rate / ceiling);
    fflush(stdout);
}

static void print_machine(const fpa_description *about)
{
    char line[256], model[200] = "unknown CPU";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "model name : %199[^\n]", model) == 1)
            break;
    }
    if (file)
        fclose(file);
    printf("%s, %d threads at most; OpenBLAS kernels for %s\n", model, omp_get_max_threads(),
           openblas_get_corename());
    printf("%s on %s: D = %lld, chunk %d; %s\n\n", about->name, about->target, (long long)about->features,
           about->chunk, about->verdict);
}

int main(void)
{
    fpa_kernel *kernel;
    fpa_error error;
    int most = omp_get_max_threads();
    stop_on(fpa_open_text("bench_c", spec, NULL, NULL, &kernel, &error), &error);
    print_machine(fpa_describe(kernel));
    printf("%-24s %7s %10s %14s %10s\n", "what", "threads", "tokens", "ns/token/head", "GFLOP/s");
    for (int threads = 1; threads <= 2 && threads <= most; threads++) {
        omp_set_num_threads(threads);
        double before = best_sgemm(threads);
        show_head(kernel, 4096, threads, before);
        show_head(kernel, 65536, threads, before);
    }
    fpa_close(kernel);
    return 0;
}

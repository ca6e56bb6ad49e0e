#include "measure_c.h"

#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern void openblas_set_num_threads(int threads);

enum { IN_A_ROW = 3 };

static const double LEAST_SECONDS = 1, MOST_SECONDS = 6;

double bench_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void stop_on(fpa_status status, const fpa_error *error)
{
    if (status) {
        fprintf(stderr, "bench_c: %s: %s\n", error->where, error->message);
        exit(1);
    }
}

float *bench_numbers(size_t count)
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

/* ---- operands ---- */

typedef struct operand {
    DLTensor tensor;
    int64_t shape[4];
} operand;

/* Numbers of bf16 are made of floats' upper halves. */
static void make_operand(operand *x, bool half, const bench_load *load, int64_t width)
{
    const size_t count = (size_t)load->batch * load->length * load->heads * width;
    float *data = bench_numbers(count);
    if (half)
        for (size_t i = 0; i < count; i++) {
            uint32_t bits;
            memcpy(&bits, data + i, sizeof bits);
            ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        }
    *x = (operand){.shape = {load->batch, load->length, load->heads, width}};
    x->tensor = (DLTensor){.data = data,
                           .device = {kDLCPU, 0},
                           .ndim = 4,
                           .dtype = {half ? kDLBfloat : kDLFloat, half ? 16 : 32, 1},
                           .shape = x->shape};
}

static void make_state(operand *x, const bench_load *load, int64_t elements)
{
    const bench_load one = {.batch = load->batch, .length = 1, .heads = load->heads};
    make_operand(x, false, &one, elements);
    x->shape[1] = load->heads, x->shape[2] = elements;
    x->tensor.ndim = 3;
}

/* Gates between 0.6 and 1: exp(g), g = -0.5..0. */
static void make_gate(operand *x, const bench_load *load)
{
    make_operand(x, false, load, 1);
    x->tensor.ndim = 3;
    for (int64_t i = 0; i < load->batch * load->length * load->heads; i++)
        ((float *)x->tensor.data)[i] = (((float *)x->tensor.data)[i] - 0.5f) / 2;
}

/* ---- ceilings ---- */

typedef struct ceiling {
    float *a, *b, *c; /* c NULL: copy from a to b */
    size_t size;      /* bytes */
} ceiling;

static ceiling ceiling_make(size_t state_bytes)
{
    const size_t matrix = (size_t)SGEMM_SIZE * SGEMM_SIZE, count = state_bytes ? state_bytes / 4 : matrix;
    return (ceiling){bench_numbers(count), bench_numbers(count), state_bytes ? NULL : bench_numbers(matrix),
                     state_bytes};
}

static void ceiling_free(ceiling *c)
{
    free(c->a), free(c->b), free(c->c);
}

static void ceiling_run(const ceiling *c, int threads)
{
    const int n = SGEMM_SIZE;
    if (c->c) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, c->a, n, c->b, n, 0, c->c, n);
        return;
    }
    const size_t part = c->size / (size_t)threads;
#pragma omp parallel num_threads(threads)
    memcpy((char *)c->b + part * (size_t)omp_get_thread_num(),
           (char *)c->a + part * (size_t)omp_get_thread_num(), part);
}

/* ---- turns ---- */

typedef struct turn {
    const fpa_kernel *kernel;
    fpa_form form;
    const fpa_tensors *tensors;
    void *workspace;
    size_t size;
} turn;

static double time_ceiling(const ceiling *c, int threads)
{
    double start = bench_now();
    ceiling_run(c, threads);
    return bench_now() - start;
}

static double time_forward(const turn *t)
{
    fpa_error error;
    double start = bench_now();
    stop_on(fpa_forward(t->kernel, t->form, t->tensors, t->workspace, t->size, &error), &error);
    return bench_now() - start;
}

static void keep_best(double *best, double seconds)
{
    if (*best == 0 || seconds < *best)
        *best = seconds;
}

/* Threads that have done their work look for more for a while (OpenBLAS's for 20 ms): those of the one
 * library must not take cores from the other's. */
static void rest(void)
{
    const struct timespec pause = {.tv_nsec = 40000000};
    nanosleep(&pause, NULL);
}

/* Ceilings in a row, then forwards. The first of each is not counted: it wakes threads up, and in the first
 * round faults pages in. */
static double take_turn(const turn *t, const ceiling *c, int threads, bench_times *times)
{
    double spent = 0;
    omp_set_num_threads(threads);
    openblas_set_num_threads(threads);
    rest();
    for (int i = 0; i <= IN_A_ROW; i++) {
        const double seconds = time_ceiling(c, threads);
        if (i)
            keep_best(&times->ceiling[threads - 1], seconds);
    }
    rest();
    for (int i = 0; i <= IN_A_ROW; i++) {
        const double seconds = time_forward(t);
        if (i)
            keep_best(&times->forward[threads - 1], seconds);
        spent += seconds;
    }
    return spent;
}

static void take_turns(const turn *t, const ceiling *c, int threads, bench_times *times)
{
    double spent = 0;
    for (int round = 0; spent < MOST_SECONDS && (round < ROUNDS || spent < LEAST_SECONDS); round++)
        for (int n = 1; n <= threads; n++)
            spent += take_turn(t, c, n, times);
}

void bench_measure(const fpa_kernel *kernel, const bench_load *load, int threads, bench_times *times)
{
    const fpa_description *about = fpa_describe(kernel);
    const bool half = strcmp(about->dtype, "bf16") == 0;
    operand q, k, v, o, gate = {0}, state = {0};
    fpa_error error;
    make_operand(&q, half, load, about->d);
    make_operand(&k, half, load, about->d);
    make_operand(&v, half, load, about->dv);
    make_operand(&o, half, load, about->dv);
    fpa_tensors tensors = {.q = &q.tensor, .k = &k.tensor, .v = &v.tensor, .o = &o.tensor};
    if (about->gate) {
        make_gate(&gate, load);
        tensors.log_gate = &gate.tensor;
    }
    if (load->decode) {
        make_state(&state, load, about->state_elements);
        tensors.state_in = tensors.state_out = &state.tensor;
    }
    turn t = {kernel, load->form, &tensors, NULL, 0};
    omp_set_num_threads(threads);
    stop_on(fpa_workspace_size(kernel, load->form, &tensors, &t.size, &error), &error);
    t.workspace = bench_numbers(t.size / sizeof(float) + 16);
    ceiling c = ceiling_make(load->decode ? sizeof(float) * (size_t)about->state_elements * load->heads : 0);
    *times = (bench_times){.workspace = (double)t.size};
    take_turns(&t, &c, threads, times);
    ceiling_free(&c);
    free(q.tensor.data), free(k.tensor.data), free(v.tensor.data), free(o.tensor.data);
    free(gate.tensor.data), free(state.tensor.data), free(t.workspace);
}

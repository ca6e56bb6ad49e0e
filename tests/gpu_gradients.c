#include "gpu_gradients.h"
#include "claims.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, L = 300, HQ = 4, H = 2, D = 8, ROWS = 4 };

enum { Q, K, V, GATE, W, D_O, O, DEN, D_Q, D_K, D_V, D_GATE, D_W, ARRAYS };

static const struct shape {
    int axes;
    int64_t size[4];
} shapes[ARRAYS] = {
    [Q] = {4, {B, L, HQ, D}},  [K] = {4, {B, L, H, D}},   [V] = {4, {B, L, H, D}},
    [GATE] = {3, {B, L, H}},   [W] = {2, {ROWS, D}},      [D_O] = {4, {B, L, HQ, D}},
    [O] = {4, {B, L, HQ, D}},  [DEN] = {3, {B, L, HQ}},   [D_Q] = {4, {B, L, HQ, D}},
    [D_K] = {4, {B, L, H, D}}, [D_V] = {4, {B, L, H, D}}, [D_GATE] = {3, {B, L, H}},
    [D_W] = {2, {ROWS, D}},
};

typedef struct pass {
    const test_gpu *gpu; /* NULL: on the CPU */
    struct shape shape[ARRAYS];
    DLTensor tensor[ARRAYS];
    float *host[ARRAYS];
    size_t bytes[ARRAYS];
} pass;

static void *memory_of(const pass *p, size_t bytes)
{
    CUdeviceptr address = 0;
    if (!p->gpu)
        return aligned_alloc(64, (bytes + 64) / 64 * 64);
    CUDA(p->gpu, cuMemAlloc(&address, bytes + 1));
    return (void *)(uintptr_t)address;
}

static void release(const pass *p, void *address)
{
    if (p->gpu)
        CUDA(p->gpu, cuMemFree((CUdeviceptr)(uintptr_t)address));
    else
        free(address);
}

static bool is_input(int i)
{
    return i < O;
}

/* Of inputs that the normaliser stays far from zero with, positive; of log-gates negative. */
static float number(int array, size_t i)
{
    const float x = (float)((uint32_t)(i * 2654435761u + (unsigned)array * 40503u) >> 8) * 0x1p-24f;
    if (array == GATE)
        return -0.1f * x;
    return array == V || array == D_O ? x - 0.5f : x;
}

static void make(pass *p, const test_gpu *gpu)
{
    p->gpu = gpu;
    memcpy(p->shape, shapes, sizeof shapes);
    for (int i = 0; i < ARRAYS; i++) {
        size_t count = 1;
        for (int a = 0; a < shapes[i].axes; a++)
            count *= (size_t)shapes[i].size[a];
        p->bytes[i] = count * sizeof(float);
        p->host[i] = malloc(p->bytes[i]);
        assert_non_null(p->host[i]);
        for (size_t j = 0; j < count; j++)
            p->host[i][j] = is_input(i) ? number(i, j) : NAN;
        p->tensor[i] = (DLTensor){.data = memory_of(p, p->bytes[i]),
                                  .device = {gpu ? kDLCUDA : kDLCPU, gpu ? gpu->number : 0},
                                  .ndim = shapes[i].axes,
                                  .dtype = {kDLFloat, 32, 1},
                                  .shape = p->shape[i].size};
        assert_non_null(p->tensor[i].data);
        if (gpu)
            CUDA(gpu, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)p->tensor[i].data, p->host[i], p->bytes[i]));
        else
            memcpy(p->tensor[i].data, p->host[i], p->bytes[i]);
    }
    if (gpu)
        CUDA(gpu, cuCtxSynchronize()); /* the stream waits for no copy by itself */
}

static void run(pass *p, const fpa_kernel *kernel, fpa_form form)
{
    DLTensor *t = p->tensor;
    const DLTensor *weights[] = {&t[W]};
    DLTensor *d_weights[] = {&t[D_W]};
    void *stream = p->gpu ? p->gpu->stream : NULL;
    const fpa_tensors forward = {.q = &t[Q],
                                 .k = &t[K],
                                 .v = &t[V],
                                 .o = &t[O],
                                 .den = &t[DEN],
                                 .log_gate = &t[GATE],
                                 .weights = weights,
                                 .stream = stream};
    const fpa_gradient_tensors backward = {.q = &t[Q],
                                           .k = &t[K],
                                           .v = &t[V],
                                           .o = &t[O],
                                           .den = &t[DEN],
                                           .log_gate = &t[GATE],
                                           .weights = weights,
                                           .d_o = &t[D_O],
                                           .d_q = &t[D_Q],
                                           .d_k = &t[D_K],
                                           .d_v = &t[D_V],
                                           .d_log_gate = &t[D_GATE],
                                           .d_weights = d_weights,
                                           .stream = stream};
    fpa_error error;
    size_t size, backward_size;
    assert_ok(fpa_workspace_size(kernel, form, &forward, &size, &error), &error);
    assert_ok(fpa_backward_workspace(kernel, form, &backward, &backward_size, &error), &error);
    size = size > backward_size ? size : backward_size;
    void *workspace = memory_of(p, size);
    assert_ok(fpa_forward(kernel, form, &forward, workspace, size, &error), &error);
    assert_ok(fpa_backward(kernel, form, &backward, workspace, size, &error), &error);
    if (p->gpu)
        CUDA(p->gpu, cuStreamSynchronize(p->gpu->stream));
    release(p, workspace);
}

static void fetch(pass *p)
{
    for (int i = O; i < ARRAYS; i++)
        if (p->gpu)
            CUDA(p->gpu, cuMemcpyDtoH(p->host[i], (CUdeviceptr)(uintptr_t)p->tensor[i].data, p->bytes[i]));
        else
            memcpy(p->host[i], p->tensor[i].data, p->bytes[i]);
}

static void drop(pass *p)
{
    for (int i = 0; i < ARRAYS; i++) {
        release(p, p->tensor[i].data);
        free(p->host[i]);
    }
}

/* What is no number is infinitely far. */
static double distance(const float *x, const float *y, size_t count)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)x[i] - (double)y[i]);
        worst = off <= worst ? worst : isnan(off) ? INFINITY : off;
        largest = fmax(largest, fabs((double)y[i]));
    }
    return largest > 0 ? worst / largest : INFINITY;
}

double gradients_distance(const fpa_kernel *kernel, const test_gpu *gpu, const fpa_kernel *host,
                          fpa_form form)
{
    static pass here, there;
    double worst = 0;
    make(&here, NULL);
    make(&there, gpu);
    run(&here, host, form);
    run(&there, kernel, form);
    fetch(&here);
    fetch(&there);
    for (int i = O; i < ARRAYS; i++)
        worst = fmax(worst, distance(there.host[i], here.host[i], here.bytes[i] / sizeof(float)));
    drop(&here);
    drop(&there);
    return worst;
}

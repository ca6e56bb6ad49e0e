/* decode_cuda: decoding on a GPU. One step is captured in a CUDA graph and replayed for every token; the
 * state stays on the GPU and is updated in place. Uses the driver alone, found at run time, so that it
 * builds where there is no CUDA; a program that has cuda.h includes that instead of the table below.
 *
 *   cc decode_cuda.c $(pkg-config --cflags --libs fpa) -ldl -o decode_cuda
 *   ./decode_cuda specs/tspow.lua tspow2_d64_b8 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fpa.h"

enum { BATCH = 8, HEADS = 16, TOKENS = 8 };

typedef unsigned long long address; /* CUdeviceptr */

/* Of cuda.h: the functions that are used, by their symbols. All return 0 for success. */
static struct driver {
    int (*cuInit)(unsigned flags);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuCtxPushCurrent_v2)(void *context);
    int (*cuMemAlloc_v2)(address *memory, size_t size);
    int (*cuMemsetD8_v2)(address memory, unsigned char value, size_t size);
    int (*cuMemcpyHtoD_v2)(address to, const void *from, size_t size);
    int (*cuMemcpyDtoH_v2)(void *to, address from, size_t size);
    int (*cuCtxSynchronize)(void);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamSynchronize)(void *stream);
    int (*cuStreamBeginCapture_v2)(void *stream, int mode);
    int (*cuStreamEndCapture)(void *stream, void **graph);
    int (*cuGraphInstantiateWithFlags)(void **executable, void *graph, unsigned long long flags);
    int (*cuGraphLaunch)(void *executable, void *stream);
} cu;

static const char *const symbols[] = {
    "cuInit",
    "cuDevicePrimaryCtxRetain",
    "cuCtxPushCurrent_v2",
    "cuMemAlloc_v2",
    "cuMemsetD8_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuCtxSynchronize",
    "cuStreamCreate",
    "cuStreamSynchronize",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
};
_Static_assert(sizeof cu == sizeof symbols, "a function without a symbol");

static void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

static void check(int result, const char *call)
{
    char text[32];
    snprintf(text, sizeof text, "CUDA error %d", result);
    if (result)
        stop(call, text);
}

/* The driver, and the GPU's primary context as this thread's current one: the library computes there. */
static void open_gpu(void)
{
    void *context, *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        stop("decode_cuda", "there is no NVIDIA driver here");
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *function = dlsym(library, symbols[i]);
        if (!function)
            stop(symbols[i], "the driver is too old");
        memcpy((char *)&cu + i * sizeof function, &function, sizeof function);
    }
    check(cu.cuInit(0), "cuInit");
    check(cu.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cu.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent");
}

/* A float32 tensor on the GPU, zeros, C order. */
static DLTensor tensor(int axes, int64_t *shape)
{
    address memory;
    size_t size = sizeof(float);
    for (int a = 0; a < axes; a++)
        size *= (size_t)shape[a];
    check(cu.cuMemAlloc_v2(&memory, size), "cuMemAlloc");
    check(cu.cuMemsetD8_v2(memory, 0, size), "cuMemsetD8");
    return (DLTensor){.data = (void *)(uintptr_t)memory,
                      .device = {kDLCUDA, 0},
                      .ndim = axes,
                      .dtype = {kDLFloat, 32, 1},
                      .shape = shape};
}

static void fill(const DLTensor *to, size_t count) /* with what a model would compute */
{
    float *numbers = malloc(count * sizeof *numbers);
    if (!numbers)
        stop("decode_cuda", "out of memory");
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    check(cu.cuMemcpyHtoD_v2((address)(uintptr_t)to->data, numbers, count * sizeof *numbers), "cuMemcpyHtoD");
    check(cu.cuCtxSynchronize(), "cuCtxSynchronize"); /* our stream does not wait for the copy by itself */
    free(numbers);
}

/* A step as an executable graph: launches allocate nothing and wait for nothing, so they can be captured. */
static void *capture_step(const fpa_kernel *kernel, const fpa_tensors *tensors)
{
    fpa_error error;
    address workspace;
    size_t size;
    void *graph, *executable;
    if (fpa_workspace_size(kernel, FPA_FORM_RECURRENT, tensors, &size, &error))
        stop(error.where, error.message);
    check(cu.cuMemAlloc_v2(&workspace, size + 64), "cuMemAlloc"); /* as long as the graph lives */
    check(cu.cuStreamBeginCapture_v2(tensors->stream, 0), "cuStreamBeginCapture");
    if (fpa_step(kernel, tensors, (void *)(uintptr_t)workspace, size, &error))
        stop(error.where, error.message);
    check(cu.cuStreamEndCapture(tensors->stream, &graph), "cuStreamEndCapture");
    check(cu.cuGraphInstantiateWithFlags(&executable, graph, 0), "cuGraphInstantiate");
    return executable;
}

int main(int count, char **arguments)
{
    const fpa_options options = {.target = "cuda"};
    fpa_error error;
    fpa_kernel *kernel;
    void *stream;
    if (count < 2)
        return fprintf(stderr, "usage: decode_cuda SPEC [HEAD]\n"), 2;
    open_gpu();
    if (fpa_open(arguments[1], count > 2 ? arguments[2] : NULL, &options, &kernel, &error))
        stop(error.where, error.message);
    const fpa_description *head = fpa_describe(kernel);
    if (strcmp(head->dtype, "f32") != 0 || strcmp(head->state_dtype, "f32") != 0 || head->gate ||
        head->weight_count)
        stop(head->name, "this example wants a head of float32 without gate and run-time matrices");
    printf("%s on %s: D = %lld; %s\n", head->name, head->target, (long long)head->features, head->verdict);

    int64_t keys[4] = {BATCH, 1, HEADS, head->d}, values[4] = {BATCH, 1, HEADS, head->dv};
    int64_t states[3] = {BATCH, HEADS, head->state_elements};
    check(cu.cuStreamCreate(&stream, 1 /* waits for no other */), "cuStreamCreate");
    DLTensor q = tensor(4, keys), k = tensor(4, keys), v = tensor(4, values), o = tensor(4, values);
    DLTensor state = tensor(3, states);
    check(cu.cuCtxSynchronize(), "cuCtxSynchronize");
    const fpa_tensors tensors = {
        .q = &q, .k = &k, .v = &v, .o = &o, .state_in = &state, .state_out = &state, .stream = stream};
    void *step = capture_step(kernel, &tensors);
    for (int token = 0; token < TOKENS; token++) {
        float first;
        fill(&q, (size_t)BATCH * HEADS * (size_t)head->d);
        fill(&k, (size_t)BATCH * HEADS * (size_t)head->d);
        fill(&v, (size_t)BATCH * HEADS * (size_t)head->dv);
        check(cu.cuGraphLaunch(step, stream), "cuGraphLaunch");
        check(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
        check(cu.cuMemcpyDtoH_v2(&first, (address)(uintptr_t)o.data, sizeof first), "cuMemcpyDtoH");
        printf("token %d: o[0] = %g\n", token, (double)first);
    }
    fpa_close(kernel); /* the driver frees the rest with the process */
    return 0;
}

/* serve.h: what serve.c needs beside the library: memory of the process or of a GPU, and a picture of its figures. */
#ifndef SERVE_H
#define SERVE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

/* ---- memory: the process's own, or a GPU's; a program that has cuda.h includes that instead of this table ---- */

static struct driver { /* all return 0 for success */
    int (*cuInit)(unsigned flags);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuCtxPushCurrent_v2)(void *context);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuMemAlloc_v2)(unsigned long long *memory, size_t size);
    int (*cuMemFree_v2)(unsigned long long memory);
    int (*cuMemcpyHtoDAsync_v2)(unsigned long long to, const void *from, size_t size, void *stream);
    int (*cuCtxSynchronize)(void);
} cu;

static const char *const symbols[] = {
    "cuInit",       "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuStreamCreate", "cuMemAlloc_v2",
    "cuMemFree_v2", "cuMemcpyHtoDAsync_v2",     "cuCtxSynchronize"};
_Static_assert(sizeof cu == sizeof symbols, "a function without a symbol");

static int on_gpu;
static void *stream;

static void expect(int result, const char *call)
{
    if (result)
        stop(call, "the driver refused");
}

static void open_gpu(void)
{
    void *context, *library = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *function = library ? dlsym(library, symbols[i]) : NULL;
        if (!function)
            stop("cuda", "there is no GPU here: no NVIDIA driver, or one that is too old");
        memcpy((char *)&cu + i * sizeof function, &function, sizeof function);
    }
    if (cu.cuInit(0))
        stop("cuda", "there is no GPU here: the NVIDIA driver finds none");
    expect(cu.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    expect(cu.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent");
    expect(cu.cuStreamCreate(&stream, 1), "cuStreamCreate");
    on_gpu = 1;
}

static void *allocate(size_t size)
{
    unsigned long long address = 0;
    if (on_gpu) {
        expect(cu.cuMemAlloc_v2(&address, size + 1), "cuMemAlloc");
        return (void *)(uintptr_t)address;
    }
    void *memory = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!memory)
        stop("serve", "out of memory");
    return memory;
}

static void release(void *memory)
{
    if (on_gpu)
        expect(cu.cuMemFree_v2((uintptr_t)memory), "cuMemFree");
    else
        free(memory);
}

/* In the order of the stream: the calls before it have read what it overwrites. */
static void upload(void *to, const void *from, size_t size)
{
    if (on_gpu)
        expect(cu.cuMemcpyHtoDAsync_v2((uintptr_t)to, from, size, stream), "cuMemcpyHtoDAsync");
    else
        memcpy(to, from, size);
}

static void wait_for_all(void)
{
    if (on_gpu)
        expect(cu.cuCtxSynchronize(), "cuCtxSynchronize");
}

/* ---- the picture ---- */

static void draw(const char *path, const char *head, const char *target, const double *rate, int count)
{
    FILE *out = fopen(path, "w");
    double most = 0;
    if (!out)
        stop(path, "cannot be written");
    for (int i = 0; i < count; i++)
        most = rate[i] > most ? rate[i] : most;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 480 300\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n"
            "<text x=\"240\" y=\"20\" text-anchor=\"middle\">%s on %s: tokens decoded a second, against "
            "slots</text>\n"
            "<path d=\"M60 40V250H460\" fill=\"none\" stroke=\"black\"/>\n<polyline fill=\"none\" "
            "stroke=\"#0060c0\" points=\"",
            head, target);
    for (int i = 0; i < count; i++)
        fprintf(out, "%.1f,%.1f ", 60 + 380.0 * (i + 0.5) / count, 250 - 200 * rate[i] / most);
    fprintf(out, "\"/>\n");
    for (int i = 0; i < count; i++)
        fprintf(out,
                "<text x=\"%.1f\" y=\"268\" text-anchor=\"middle\">%d</text><text x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"middle\">%.0f</text>\n",
                60 + 380.0 * (i + 0.5) / count, 1 << i, 60 + 380.0 * (i + 0.5) / count,
                242 - 200 * rate[i] / most, rate[i]);
    fprintf(out, "</svg>\n");
    if (fclose(out))
        stop(path, "cannot be written");
}

#endif

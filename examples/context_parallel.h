/* context_parallel.h: what context_parallel.c needs beside the library: memory of the process or of GPUs, the functions of NCCL,
 * and numbers to call it with. A program that has cuda.h and nccl.h includes these instead of the tables. */
#ifndef CONTEXT_PARALLEL_H
#define CONTEXT_PARALLEL_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fpa.h"

enum { NCCL_FLOAT = 7, NCCL_SUM = 0 };

typedef unsigned long long address; /* CUdeviceptr */

static int devices;    /* GPUs; 0: the CPU */
static size_t element; /* bytes of a number of q, k, v, o */

/* Of cuda.h and nccl.h: the functions that are used. All return 0 for success. */
static struct driver {
    int (*cuInit)(unsigned flags);
    int (*cuDeviceGetCount)(int *count);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamSynchronize)(void *stream);
    int (*cuMemAlloc_v2)(address *memory, size_t size);
    int (*cuMemcpy)(address to, address from, size_t size); /* from any GPU to any other */
    int (*cuMemcpyHtoD_v2)(address to, const void *from, size_t size);
    int (*cuMemcpyDtoH_v2)(void *to, address from, size_t size);
    int (*cuMemsetD8_v2)(address to, unsigned char value, size_t size);
    int (*cuMemFree_v2)(address memory);
    int (*cuCtxSynchronize)(void);
} cu;
static const char *const cu_symbols[] = {"cuInit",          "cuDeviceGetCount", "cuDevicePrimaryCtxRetain",
                                         "cuCtxSetCurrent", "cuStreamCreate",   "cuStreamSynchronize",
                                         "cuMemAlloc_v2",   "cuMemcpy",         "cuMemcpyHtoD_v2",
                                         "cuMemcpyDtoH_v2", "cuMemsetD8_v2",    "cuMemFree_v2",
                                         "cuCtxSynchronize"};
static struct collectives {
    int (*ncclCommInitAll)(void **communicators, int count, const int *devices);
    int (*ncclReduce)(const void *send, void *receive, size_t count, int type, int operation, int root,
                      void *communicator, void *stream);
} nccl;
static const char *const nccl_symbols[] = {"ncclCommInitAll", "ncclReduce"};

static void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

static void check(fpa_status status, const fpa_error *error)
{
    if (status)
        stop(error->where, error->message);
}

static void expect(int result, const char *call)
{
    if (result)
        stop(call, "failed");
}

/* False: the library, or a function, is not here. */
static int find_symbols(const char *name, const char *const *symbols, size_t count, void *table)
{
    void *library = dlopen(name, RTLD_NOW);
    for (size_t i = 0; i < count; i++) {
        void *function = library ? dlsym(library, symbols[i]) : NULL;
        if (!function)
            return 0;
        memcpy((char *)table + i * sizeof function, &function, sizeof function);
    }
    return 1;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Zeros, of the host. */
static void *claim(size_t size)
{
    void *memory = calloc(1, size + 1);
    if (!memory)
        stop("context_parallel", "out of memory");
    return memory;
}

/* ---- memory ---- */

static void *put(const void *numbers, size_t size) /* NULL: zeros */
{
    address memory = 0;
    if (devices) {
        expect(cu.cuMemAlloc_v2(&memory, size + 1), "cuMemAlloc");
        expect(numbers ? cu.cuMemcpyHtoD_v2(memory, numbers, size) : cu.cuMemsetD8_v2(memory, 0, size),
               "a copy");
        expect(cu.cuCtxSynchronize(), "cuCtxSynchronize");
        return (void *)(uintptr_t)memory;
    }
    void *copy = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!copy)
        stop("context_parallel", "out of memory");
    return numbers ? memcpy(copy, numbers, size) : memset(copy, 0, size);
}

static void drop(void *memory)
{
    if (!devices)
        free(memory);
    else if (memory)
        expect(cu.cuMemFree_v2((address)(uintptr_t)memory), "cuMemFree");
}

static void get(void *to, const void *from, size_t size)
{
    if (devices)
        expect(cu.cuMemcpyDtoH_v2(to, (address)(uintptr_t)from, size), "cuMemcpyDtoH");
    else
        memcpy(to, from, size);
}

/* ---- numbers ---- */

/* Random ones, which begin again after 4 Mi of them: to make each anew would take longer than all calls. */
static char *numbers(size_t count)
{
    enum { MADE = 1 << 22 };
    char *made = claim(count * element);
    static uint32_t state = 1;
    for (size_t i = 0; i < count && i < MADE; i++) {
        state = state * 1664525u + 1013904223u;
        const float a = 0.1f + (float)(state >> 8) * 0x1p-24f; /* positive: normalisers are far from 0 */
        memcpy(made + i * element, (const char *)&a + sizeof a - element,
               element); /* little-endian: of bf16 the upper half */
    }
    for (size_t i = MADE; i < count; i += MADE)
        memcpy(made + i * element, made, (count - i < MADE ? count - i : MADE) * element);
    return made;
}

static double value_at(const char *numbers, size_t i)
{
    uint32_t bits = 0;
    float a;
    memcpy(&bits, numbers + i * element, element);
    bits = element == 2 ? bits << 16 : bits;
    memcpy(&a, &bits, sizeof a);
    return a;
}

#endif

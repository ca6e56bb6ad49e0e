/* on_gpu: tensors of GPU 0 for programs that measure calls; an error ends the program. */
#ifndef FPAC_BENCH_ON_GPU_H
#define FPAC_BENCH_ON_GPU_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/operand.h"
#include "runtime/kernel.h"

static void check(fpa_status status, const fpa_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, error->where, error->message);
    exit(1);
}

/* Numbers between low and high; int32 ones as they are given. */
static DLTensor make(const fpa_kernel *kernel, const char *dtype, int axes, int64_t *shape, float low,
                     float high, const int32_t *given)
{
    const fpa_memory *memory = kernel->module.backend->memory;
    fpa_error error = {0};
    int64_t count = 1;
    DLTensor tensor = {.device = {kDLCUDA, 0}, .ndim = axes, .shape = shape, .dtype = {kDLInt, 32, 1}};
    for (int a = 0; a < axes; a++)
        count *= shape[a];
    const size_t bytes = (size_t)count * (given ? sizeof *given : dtype_size(dtype_find(dtype)));
    void *numbers = malloc(bytes + 1);
    if (!numbers)
        exit(1);
    if (given)
        memcpy(numbers, given, bytes);
    else
        fill_pattern(dtype_find(dtype), numbers, count, (uint64_t)count, low, high);
    if (!given)
        tensor.dtype = dtype_describe(dtype_find(dtype));
    check(memory->allocate(&kernel->module, bytes + 1, &tensor.data, &error), &error);
    check(memory->upload(&kernel->module, tensor.data, numbers, bytes, &error), &error);
    free(numbers);
    return tensor;
}

#endif

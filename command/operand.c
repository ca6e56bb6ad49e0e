#include "operand.h"

#include <stdlib.h>
#include <string.h>

#include "../runtime/half.h"

fpa_status operand_new(int axes, const int64_t *shape, fpa_operand *operand, fpa_error *error)
{
    fpa_array *array = &operand->array;
    memset(operand, 0, sizeof *operand);
    array->axes = axes;
    array->count = 1;
    for (int i = 0; i < axes; i++) {
        array->shape[i] = shape[i];
        if (__builtin_mul_overflow(array->count, shape[i], &array->count))
            return fail_memory(error);
    }
    array->data = calloc(array->count > 0 ? (size_t)array->count : 1, sizeof *array->data);
    return array->data ? FPA_OK : fail_memory(error);
}

static fpa_status convert(fpa_operand *operand, fpa_error *error)
{
    size_t size = dtype_size(operand->dtype);
    char *stored = calloc((size_t)operand->array.count + 1, size);
    if (!stored)
        return fail_memory(error);
    for (int64_t i = 0; i < operand->array.count; i++)
        dtype_store(operand->dtype, stored + (size_t)i * size, (double)operand->array.data[i]);
    operand->stored = stored;
    return FPA_OK;
}

fpa_status operand_bind(fpa_operand *operand, fpa_dtype dtype, fpa_error *error)
{
    static const DLDataType types[FPA_DTYPES] = {
        [FPA_F32] = {kDLFloat, 32, 1}, [FPA_BF16] = {kDLBfloat, 16, 1}, [FPA_F16] = {kDLFloat, 16, 1}};
    operand->dtype = dtype;
    fpa_status status = dtype == FPA_F32 ? FPA_OK : convert(operand, error);
    operand->tensor = (DLTensor){
        .data = operand->stored ? operand->stored : operand->array.data,
        .device = {kDLCPU, 0},
        .ndim = operand->array.axes,
        .dtype = types[dtype],
        .shape = operand->array.shape,
    };
    return status;
}

void operand_fetch(fpa_operand *operand)
{
    const char *stored = operand->stored;
    size_t size = dtype_size(operand->dtype);
    for (int64_t i = 0; stored && i < operand->array.count; i++)
        operand->array.data[i] = (float)dtype_load(operand->dtype, stored + (size_t)i * size);
}

void operand_free(fpa_operand *operand)
{
    npy_free(&operand->array);
    free(operand->stored);
    operand->stored = NULL;
}

fpa_dtype dtype_find(const char *name)
{
    for (int i = 0; i < FPA_DTYPES; i++) {
        if (!strcmp(name, dtype_name((fpa_dtype)i)))
            return (fpa_dtype)i;
    }
    return FPA_F32;
}

fpa_status workspace_new(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *tensors,
                         void **workspace, size_t *size, fpa_error *error)
{
    *workspace = NULL;
    fpa_status status = fpa_workspace_size(kernel, form, tensors, size, error);
    if (status)
        return status;
    size_t rounded = (*size + 63) / 64 * 64;
    *workspace = aligned_alloc(64, rounded ? rounded : 64);
    return *workspace ? FPA_OK : fail_memory(error);
}

#include "operand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "device.h"
#include "notes.h"

static fpa_status fail_array(const fpa_array *array, fpa_error *error)
{
    return fail(error, FPA_NO_MEMORY, "memory", "an array of %lld numbers cannot be allocated",
                (long long)array->count);
}

fpa_status operand_new(int axes, const int64_t *shape, fpa_operand *operand, fpa_error *error)
{
    fpa_array *array = &operand->array;
    memset(operand, 0, sizeof *operand);
    array->axes = axes;
    array->count = 1;
    for (int i = 0; i < axes; i++) {
        array->shape[i] = shape[i];
        if (__builtin_mul_overflow(array->count, shape[i], &array->count))
            return fail(error, FPA_NO_MEMORY, "memory", "an array would have more than 2^63 numbers");
    }
    array->data = calloc(array->count > 0 ? (size_t)array->count : 1, sizeof *array->data);
    return array->data ? FPA_OK : fail_array(array, error);
}

static size_t item_of(const fpa_operand *operand)
{
    return operand->is_mask ? 1 : dtype_size(operand->dtype);
}

/* Allocates the tensor's values, zeroed, unless they are the array's floats. */
static fpa_status make_room(fpa_operand *operand, fpa_error *error)
{
    operand->stored = calloc((size_t)operand->array.count + 1, item_of(operand));
    return operand->stored ? FPA_OK : fail_array(&operand->array, error);
}

static fpa_status convert(fpa_operand *operand, fpa_error *error)
{
    const size_t size = item_of(operand);
    fpa_status status = make_room(operand, error);
    char *stored = operand->stored;
    if (status)
        return status;
    for (int64_t i = 0; i < operand->array.count; i++)
        if (operand->is_mask)
            stored[i] = operand->array.data[i] != 0;
        else
            dtype_store(operand->dtype, stored + (size_t)i * size, (double)operand->array.data[i]);
    return FPA_OK;
}

DLDataType dtype_describe(fpa_dtype dtype)
{
    static const DLDataType types[FPA_DTYPES] = {
        [FPA_F32] = {kDLFloat, 32, 1}, [FPA_BF16] = {kDLBfloat, 16, 1}, [FPA_F16] = {kDLFloat, 16, 1}};
    return types[dtype];
}

/* The address of the tensor's values in this process. */
static void *own_values(const fpa_operand *operand)
{
    return operand->stored ? operand->stored : operand->array.data;
}

static size_t operand_bytes(const fpa_operand *operand)
{
    return (size_t)operand->array.count * item_of(operand);
}

static void make_tensor(fpa_operand *operand)
{
    operand->tensor = (DLTensor){
        .data = own_values(operand),
        .device = {kDLCPU, 0},
        .ndim = operand->array.axes,
        .dtype = dtype_describe(operand->dtype),
        .shape = operand->array.shape,
    };
}

fpa_status operand_bind(fpa_operand *operand, fpa_dtype dtype, fpa_error *error)
{
    operand->dtype = dtype;
    fpa_status status = dtype == FPA_F32 ? FPA_OK : convert(operand, error);
    make_tensor(operand);
    return status;
}

fpa_status operand_bind_pattern(fpa_operand *operand, fpa_dtype dtype, uint64_t seed, float low, float high,
                                fpa_error *error)
{
    operand->dtype = dtype;
    fpa_status status = dtype == FPA_F32 ? FPA_OK : make_room(operand, error);
    if (status)
        return status;
    make_tensor(operand);
    if (low == 0 && high == 0)
        return FPA_OK;
    fill_pattern(dtype, own_values(operand), operand->array.count, seed, low, high);
    return FPA_OK;
}

fpa_status operand_bind_mask(fpa_operand *operand, fpa_error *error)
{
    operand->is_mask = true;
    fpa_status status = convert(operand, error);
    operand->tensor = (DLTensor){
        .data = operand->stored,
        .device = {kDLCPU, 0},
        .ndim = operand->array.axes,
        .dtype = {kDLUInt, 8, 1},
        .shape = operand->array.shape,
    };
    return status;
}

fpa_status operand_bind_index(fpa_operand *operand, const char *where, fpa_error *error)
{
    const fpa_array *array = &operand->array;
    operand->is_index = true;
    int32_t *numbers = calloc((size_t)array->count + 1, sizeof *numbers);
    if (!numbers)
        return fail_memory(error);
    operand->stored = numbers;
    for (int64_t i = 0; i < array->count; i++) {
        if (array->data[i] != floorf(array->data[i]))
            return fail(error, FPA_INVALID, where, "[%lld] is %g, which is no whole number", (long long)i,
                        (double)array->data[i]);
        numbers[i] = (int32_t)array->data[i];
    }
    operand->tensor = (DLTensor){.data = numbers,
                                 .device = {kDLCPU, 0},
                                 .ndim = array->axes,
                                 .dtype = {kDLInt, 32, 1},
                                 .shape = operand->array.shape};
    return FPA_OK;
}

fpa_status operand_place(fpa_operand *operand, const fpa_kernel *kernel, fpa_error *error)
{
    void *address;
    if (!device_is_remote(kernel) || operand->home)
        return FPA_OK;
    fpa_status status = device_allocate(kernel, operand_bytes(operand), &address, error);
    if (status)
        return status;
    operand->home = kernel;
    operand->tensor.data = address;
    operand->tensor.device = device_of(kernel);
    return kernel->module.backend->memory->upload(&kernel->module, address, own_values(operand),
                                                  operand_bytes(operand), error);
}

fpa_status operand_fetch(fpa_operand *operand, fpa_error *error)
{
    const fpa_module *module = operand->home ? &operand->home->module : NULL;
    const char *stored = operand->stored;
    size_t size = dtype_size(operand->dtype);
    fpa_status status = FPA_OK;
    if (module)
        status = module->backend->memory->download(module, own_values(operand), operand->tensor.data,
                                                   operand_bytes(operand), error);
    for (int64_t i = 0; stored && !status && i < operand->array.count; i++)
        operand->array.data[i] = (float)dtype_load(operand->dtype, stored + (size_t)i * size);
    return status;
}

fpa_status operand_check_finite(const fpa_operand *operand, const char *where, const char *hint,
                                fpa_error *error)
{
    char index[INDEX_TEXT];
    for (int64_t i = 0; i < operand->array.count; i++) {
        if (isfinite(operand->array.data[i]))
            continue;
        return fail(error, FPA_INVALID, where, "[%s] is %g%s", index_text(&operand->array, i, index),
                    isnan(operand->array.data[i]) ? (double)NAN : (double)operand->array.data[i], hint);
    }
    return FPA_OK;
}

void operand_free(fpa_operand *operand)
{
    if (operand->home)
        device_release(operand->home, operand->tensor.data);
    npy_free(&operand->array);
    free(operand->stored);
    operand->stored = NULL;
    operand->home = NULL;
}

fpa_dtype dtype_find(const char *name)
{
    for (int i = 0; i < FPA_DTYPES; i++) {
        if (!strcmp(name, dtype_name((fpa_dtype)i)))
            return (fpa_dtype)i;
    }
    return FPA_F32;
}

fpa_status workspace_new(const fpa_kernel *kernel, const fpa_candidate *candidate, fpa_form form,
                         const fpa_tensors *tensors, void **workspace, size_t *size, fpa_error *error)
{
    *workspace = NULL;
    fpa_status status = workspace_size_by(kernel, candidate, form, tensors, size, error);
    if (status)
        return status;
    return device_allocate(kernel, *size, workspace, error);
}

void fill_stored(fpa_dtype dtype, void *stored, int64_t count, uint64_t seed, float low, float high)
{
    uint64_t state = seed * 2654435769u + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float value = low + (high - low) * (float)(state >> 40) * 0x1p-24f;
        dtype_store(dtype, (char *)stored + (size_t)i * dtype_size(dtype), (double)value);
    }
}

void fill_pattern(fpa_dtype dtype, void *stored, int64_t count, uint64_t seed, float low, float high)
{
    enum { PATTERN = 1 << 20 };
    const int64_t drawn = count < PATTERN ? count : PATTERN;
    const size_t bytes = (size_t)count * dtype_size(dtype);
    char *values = stored;
    fill_stored(dtype, values, drawn, seed, low, high);
    for (size_t known = (size_t)drawn * dtype_size(dtype); known < bytes; known *= 2)
        memcpy(values + known, values, known < bytes - known ? known : bytes - known);
}

int weight_shape(const fpa_matrix *matrix, int64_t heads, int64_t shape[3])
{
    int axes = 0;
    if (matrix->per_head)
        shape[axes++] = heads;
    if (matrix->kind == FPA_MATRIX_TRAINABLE)
        shape[axes++] = matrix->rows;
    shape[axes++] = matrix->cols;
    return axes;
}

#include "gpu_problem.h"

#include "base/dtype.h"
#include "claims.h"
#include "random_head.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xa5 };

/* ---- a GPU ---- */

void gpu_check(const fpa_driver *driver, CUresult result, const char *call)
{
    const char *name = "?";
    if (result == CUDA_SUCCESS)
        return;
    driver->cuGetErrorName(result, &name);
    fail_msg("%s: %s", call, name);
}

static bool missing(const char *message)
{
    const char *required = getenv("FPA_REQUIRE_CUDA");
    fprintf(stderr, "no GPU: %s\n", message);
    if (required && strcmp(required, "1") == 0)
        exit(1);
    return false;
}

bool gpu_open(test_gpu *gpu, int number)
{
    fpa_error error;
    CUdevice device;
    *gpu = (struct test_gpu){.number = number};
    if (driver_find(&gpu->driver, &error))
        return missing(error.message);
    if (number >= gpu->driver->devices)
        return false; /* a further one is nobody's requirement */
    CUDA(gpu, cuDeviceGet(&device, number));
    CUDA(gpu, cuDevicePrimaryCtxRetain(&gpu->context, device));
    CUDA(gpu, cuCtxPushCurrent(gpu->context));
    CUDA(gpu, cuStreamCreate(&gpu->stream, CU_STREAM_NON_BLOCKING));
    return true;
}

void gpu_close(test_gpu *gpu)
{
    CUdevice device;
    CUcontext popped;
    if (!gpu->context)
        return;
    CUDA(gpu, cuStreamDestroy(gpu->stream));
    CUDA(gpu, cuCtxPopCurrent(&popped));
    CUDA(gpu, cuDeviceGet(&device, gpu->number));
    CUDA(gpu, cuDevicePrimaryCtxRelease(device));
    gpu->context = NULL;
}

const char *float_target(void)
{
    const fpa_target *best = target_best();
    return best->pairs ? "c:avx512" : best->name;
}

/* ---- operands ---- */

static DLDataType dlpack_type(fpa_dtype dtype)
{
    DLDataType type = {dtype == FPA_BF16 ? kDLBfloat : kDLFloat, (uint8_t)(8 * dtype_size(dtype)), 1};
    return type;
}

static fpa_dtype dtype_named(const char *name)
{
    fpa_dtype dtype = FPA_F32;
    while (strcmp(dtype_name(dtype), name))
        dtype++;
    return dtype;
}

static void make_operand(gpu_problem *problem, operand_index index, fpa_dtype dtype, int axes,
                         const int64_t *shape)
{
    gpu_operand *operand = &problem->operand[index];
    *operand = (struct gpu_operand){.dtype = dtype, .count = 1};
    for (int a = 0; a < axes; a++) {
        operand->shape[a] = shape[a];
        operand->count *= shape[a];
    }
    operand->size = (size_t)operand->count * dtype_size(dtype);
    operand->host = malloc(operand->size + 1);
    assert_non_null(operand->host);
    if (problem->gpu)
        CUDA(problem->gpu, cuMemAlloc(&operand->device, operand->size + 256));
    operand->tensor = (DLTensor){
        .data = problem->gpu ? (void *)(uintptr_t)operand->device : operand->host,
        .device = {problem->gpu ? kDLCUDA : kDLCPU, problem->gpu ? problem->gpu->number : 0},
        .ndim = axes,
        .dtype = dlpack_type(dtype),
        .shape = operand->shape,
    };
}

static void upload(const gpu_problem *problem, const gpu_operand *operand)
{
    if (problem->gpu && operand->size) {
        CUDA(problem->gpu, cuMemcpyHtoD(operand->device, operand->host, operand->size));
        CUDA(problem->gpu, cuCtxSynchronize()); /* the stream waits for no copy by itself */
    }
}

/* Values between low and high. */
static void fill(const gpu_problem *problem, gpu_operand *operand, uint64_t seed, double low, double high)
{
    random_source random = {seed};
    for (int64_t i = 0; i < operand->count; i++)
        dtype_store(operand->dtype, operand->host + (size_t)i * dtype_size(operand->dtype),
                    low + (high - low) * random_unit(&random));
    upload(problem, operand);
}

static DLTensor *given(gpu_operand *operand)
{
    return operand->tensor.ndim ? &operand->tensor : NULL;
}

static void set_tensors(gpu_problem *problem)
{
    gpu_operand *all = problem->operand;
    problem->tensors = (fpa_tensors){
        .q = given(&all[IN_Q]),
        .k = given(&all[IN_K]),
        .v = given(&all[IN_V]),
        .o = given(&all[OUT_O]),
        .log_gate = given(&all[IN_GATE]),
        .state_in = given(&all[IN_STATE]),
        .state_out = given(&all[OUT_STATE]),
        .stream = problem->gpu ? problem->gpu->stream : NULL,
    };
}

void problem_make(gpu_problem *problem, const fpa_description *is, const problem_shape *shape, uint64_t seed,
                  const test_gpu *gpu)
{
    fpa_dtype dtype = dtype_named(is->dtype);
    const int64_t b = shape->batch, l = shape->length, hq = shape->query_heads, h = shape->heads;
    assert_int_equal(is->weight_count, 0);
    *problem = (struct gpu_problem){.gpu = gpu};
    make_operand(problem, IN_Q, dtype, 4, (const int64_t[]){b, l, hq, is->d});
    make_operand(problem, IN_K, dtype, 4, (const int64_t[]){b, l, h, is->d});
    make_operand(problem, IN_V, dtype, 4, (const int64_t[]){b, l, h, is->dv});
    make_operand(problem, OUT_O, dtype, 4, (const int64_t[]){b, l, hq, is->dv});
    if (is->gate)
        make_operand(problem, IN_GATE, FPA_F32, 3, (const int64_t[]){b, l, h});
    make_operand(problem, OUT_STATE, dtype_named(is->state_dtype), 3,
                 (const int64_t[]){b, h, is->state_elements});
    /* positive, where something is divided by: a normaliser near zero magnifies every rounding */
    fill(problem, &problem->operand[IN_Q], seed, is->normalized ? 0.1 : -1, 1);
    fill(problem, &problem->operand[IN_K], seed + 1, is->normalized ? 0.1 : -1, 1);
    fill(problem, &problem->operand[IN_V], seed + 2, -1, 1);
    if (is->gate)
        fill(problem, &problem->operand[IN_GATE], seed + 3, -0.1, 0);
    set_tensors(problem);
    problem_poison(problem);
}

void problem_resume(gpu_problem *problem, const gpu_problem *before)
{
    const gpu_operand *from = &before->operand[OUT_STATE];
    make_operand(problem, IN_STATE, from->dtype, 3, from->shape);
    memcpy(problem->operand[IN_STATE].host, from->host, from->size);
    upload(problem, &problem->operand[IN_STATE]);
    set_tensors(problem);
}

void problem_free(gpu_problem *problem)
{
    for (int i = 0; i < OPERANDS; i++) {
        free(problem->operand[i].host);
        if (problem->operand[i].device)
            CUDA(problem->gpu, cuMemFree(problem->operand[i].device));
    }
    *problem = (struct gpu_problem){0};
}

/* ---- a run ---- */

static bool is_output(int index)
{
    return index == OUT_O || index == OUT_STATE;
}

void problem_poison(gpu_problem *problem)
{
    for (int i = 0; i < OPERANDS; i++) {
        gpu_operand *operand = &problem->operand[i];
        if (!is_output(i) || !operand->size)
            continue;
        memset(operand->host, POISON, operand->size);
        upload(problem, operand);
    }
}

void problem_fetch(gpu_problem *problem)
{
    if (!problem->gpu)
        return;
    CUDA(problem->gpu, cuStreamSynchronize(problem->gpu->stream));
    for (int i = 0; i < OPERANDS; i++) {
        gpu_operand *operand = &problem->operand[i];
        if (is_output(i) && operand->size)
            CUDA(problem->gpu, cuMemcpyDtoH(operand->host, operand->device, operand->size));
    }
}

CUdeviceptr problem_workspace(const gpu_problem *problem, const fpa_kernel *kernel, fpa_form form,
                              size_t *size)
{
    fpa_error error;
    CUdeviceptr workspace;
    assert_ok(fpa_workspace_size(kernel, form, &problem->tensors, size, &error), &error);
    CUDA(problem->gpu, cuMemAlloc(&workspace, *size + 256));
    return workspace;
}

static void run_on_cpu(gpu_problem *problem, const fpa_kernel *kernel, fpa_form form)
{
    size_t size;
    fpa_error error;
    fpa_status status = fpa_workspace_size(kernel, form, &problem->tensors, &size, &error);
    void *workspace = aligned_alloc(64, (size + 127) / 64 * 64);
    assert_non_null(workspace);
    if (!status)
        status = fpa_forward(kernel, form, &problem->tensors, workspace, size, &error);
    free(workspace);
    assert_ok(status, &error);
}

void problem_run(gpu_problem *problem, const fpa_kernel *kernel, fpa_form form)
{
    size_t size;
    fpa_error error;
    problem_poison(problem);
    if (!problem->gpu) {
        run_on_cpu(problem, kernel, form);
        return;
    }
    CUdeviceptr workspace = problem_workspace(problem, kernel, form, &size);
    assert_ok(fpa_forward(kernel, form, &problem->tensors, (void *)(uintptr_t)workspace, size, &error),
              &error);
    problem_fetch(problem);
    CUDA(problem->gpu, cuMemFree(workspace));
}

double operand_distance(const gpu_operand *x, const gpu_operand *y)
{
    double most = 0, largest = 0;
    assert_int_equal(x->count, y->count);
    for (int64_t i = 0; i < x->count; i++) {
        double a = dtype_load(x->dtype, x->host + (size_t)i * dtype_size(x->dtype)),
               b = dtype_load(y->dtype, y->host + (size_t)i * dtype_size(y->dtype)), difference = fabs(a - b);
        most = difference >= 0 ? fmax(most, difference) : INFINITY;
        largest = fmax(largest, fabs(b));
    }
    return largest > 0 ? most / largest : most;
}

#include "ceiling.h"

#include <stdio.h>
#include <stdlib.h>

#include "cublas.h"
#include "operand.h"

enum { REPEATS = 15 };
static const double budget = 2; /* seconds for each measurement */

/* ---- copy ---- */

typedef struct copying {
    const fpa_device *device;
    CUdeviceptr from, to;
    size_t size;
} copying;

static fpa_status launch_copy(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    const copying *c = user;
    (void)number;
    return device_check(c->device, c->device->driver->cuMemcpyDtoDAsync(c->to, c->from, c->size, stream),
                        "a copy", error);
}

fpa_status ceiling_copy(const fpa_device *device, fpa_ceiling *ceiling, fpa_error *error)
{
    const fpa_driver *driver = device->driver;
    copying c = {.device = device, .size = (size_t)1 << 30};
    const fpa_work work = {launch_copy, &c};
    fpa_sample sample;
    fpa_status status = device_check(device, driver->cuMemAlloc(&c.from, c.size), "1 GiB to copy", error);
    if (!status)
        status = device_check(device, driver->cuMemAlloc(&c.to, c.size), "1 GiB to copy to", error);
    if (!status)
        status = device_check(device, driver->cuMemsetD8(c.from, 0x5a, c.size), "filling 1 GiB", error);
    if (!status)
        status = device_measure(device, &work, REPEATS, budget, &sample, error);
    if (!status)
        ceiling->copy = 2 * (double)c.size / sample.median;
    if (c.from)
        driver->cuMemFree(c.from);
    if (c.to)
        driver->cuMemFree(c.to);
    return status;
}

/* ---- matrix product ---- */

enum { OPERAND_A, OPERAND_B, RESULT, MATRICES };

typedef struct multiplying {
    const fpa_device *device;
    fpa_cublas cublas;
    fpa_dtype dtype;
    int rows;
    CUdeviceptr matrix[MATRICES];
} multiplying;

static fpa_status launch_product(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    const multiplying *m = user;
    (void)number;
    return cublas_product(&m->cublas, m->dtype, m->rows, m->matrix[OPERAND_A], m->matrix[OPERAND_B],
                          m->matrix[RESULT], stream, error);
}

/* Fills a matrix with random numbers: zeros would take less power, and be multiplied faster. */
static fpa_status fill_matrix(const multiplying *m, CUdeviceptr matrix, uint64_t seed, fpa_error *error)
{
    const int64_t row = m->rows;
    const size_t size = (size_t)row * dtype_size(m->dtype), band = 64;
    void *numbers = malloc(band * size);
    if (!numbers)
        return fail_memory(error);
    fill_stored(m->dtype, numbers, (int64_t)band * row, seed, -1, 1);
    fpa_status status = FPA_OK;
    for (size_t at = 0; at < (size_t)row && !status; at += band)
        status =
            device_check(m->device, m->device->driver->cuMemcpyHtoD(matrix + at * size, numbers, band * size),
                         "filling a matrix", error);
    free(numbers);
    return status;
}

static fpa_status make_matrices(multiplying *m, fpa_error *error)
{
    const size_t size = (size_t)m->rows * (size_t)m->rows * dtype_size(m->dtype);
    fpa_status status = FPA_OK;
    for (int i = 0; i < MATRICES && !status; i++)
        status =
            device_check(m->device, m->device->driver->cuMemAlloc(&m->matrix[i], size), "a matrix", error);
    if (!status)
        status = fill_matrix(m, m->matrix[OPERAND_A], 1, error);
    return status ? status : fill_matrix(m, m->matrix[OPERAND_B], 2, error);
}

static fpa_status measure_product(multiplying *m, fpa_ceiling *ceiling, fpa_error *error)
{
    const fpa_work work = {launch_product, m};
    const double rows = m->rows;
    fpa_sample sample;
    fpa_status status = make_matrices(m, error);
    if (!status)
        status = device_measure(m->device, &work, REPEATS, budget, &sample, error);
    if (!status)
        ceiling->product[m->dtype] = 2 * rows * rows * rows / sample.median;
    for (int i = 0; i < MATRICES; i++) {
        if (m->matrix[i])
            m->device->driver->cuMemFree(m->matrix[i]);
    }
    return status;
}

fpa_status ceiling_product(const fpa_device *device, fpa_dtype dtype, fpa_ceiling *ceiling, fpa_error *error)
{
    multiplying m = {.device = device, .dtype = dtype, .rows = 8192};
    fpa_error reason;
    ceiling->product_rows = m.rows;
    fpa_status status = FPA_OK;
    if (cublas_open(&m.cublas, &reason))
        snprintf(ceiling->note, sizeof ceiling->note, "%.32s: %.200s", reason.where, reason.message);
    else
        status = measure_product(&m, ceiling, error);
    cublas_close(&m.cublas);
    return status;
}

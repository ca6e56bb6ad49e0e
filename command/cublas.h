/* cublas: NVIDIA's matrix product, loaded at run time, as a rate to compare with. */
#ifndef FPAC_COMMAND_CUBLAS_H
#define FPAC_COMMAND_CUBLAS_H

#include "base/error.h"
#include "head/head.h"
#include "runtime/cuda/driver.h"

typedef struct fpa_cublas {
    void *handle;
    struct cublas_functions *functions;
} fpa_cublas;

/* Load the library and make a handle in the current context. UNSUPPORTED: it was not found, with the places that
 * were searched; DEVICE: it does not start. Call cublas_close afterwards, also after an error. */
fpa_status cublas_open(fpa_cublas *cublas, fpa_error *error);
void cublas_close(fpa_cublas *cublas);

/* c = a b for square matrices of n rows in device memory, of that dtype, with float32 sums. */
fpa_status cublas_product(const fpa_cublas *cublas, fpa_dtype dtype, int n, CUdeviceptr a, CUdeviceptr b,
                          CUdeviceptr c, CUstream stream, fpa_error *error);

#endif

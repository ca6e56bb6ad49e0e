/* cublas: NVIDIA's matrix product, found at run time, to compare rates with. */
#ifndef FPAC_COMMAND_CUBLAS_H
#define FPAC_COMMAND_CUBLAS_H

#include "base/error.h"
#include "head/head.h"
#include "runtime/cuda/driver.h"

typedef struct fpa_cublas {
    void *handle;
    struct cublas_functions *functions;
} fpa_cublas;

/* Load the library and make a handle in the current context. UNSUPPORTED when it is nowhere, with
 * where it was looked for; DEVICE when it does not start. cublas_close afterwards, also after an error. */
fpa_status cublas_open(fpa_cublas *cublas, fpa_error *error);
void cublas_close(fpa_cublas *cublas);

/* c = a b, square matrices of n rows in device memory, in that dtype with float32 sums. */
fpa_status cublas_product(const fpa_cublas *cublas, fpa_dtype dtype, int n, CUdeviceptr a, CUdeviceptr b,
                          CUdeviceptr c, CUstream stream, fpa_error *error);

#endif

/* call: one call of a kernel on the CPU, as experiments make it: contiguous float32 tensors, the chunked form. */
#ifndef FPAC_EXPERIMENTS_CALL_H
#define FPAC_EXPERIMENTS_CALL_H

#include "runtime/api/fpa.h"

/* A tensor of float32 in C order. */
DLTensor call_tensor(float *data, int dimensions, int64_t *shape);

/* The chunked form, in a workspace of its own. */
fpa_status call_forward(const fpa_kernel *kernel, const fpa_tensors *tensors, fpa_error *error);

#endif

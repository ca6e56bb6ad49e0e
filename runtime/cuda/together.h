/* together_cuda: launches of several CUDA modules on parallel streams that fork from the caller's and join it. */
#ifndef FPAC_RUNTIME_CUDA_TOGETHER_H
#define FPAC_RUNTIME_CUDA_TOGETHER_H

#include "runtime/together.h"

extern const fpa_together together_cuda;

#endif

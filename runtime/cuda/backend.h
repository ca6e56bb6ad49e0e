/* backend_cuda: what the two halves of the back end share: backend.c, which loads modules, and build.c, which compiles them. */
#ifndef FPAC_RUNTIME_CUDA_BACKEND_H
#define FPAC_RUNTIME_CUDA_BACKEND_H

#include "runtime/backend.h"

/* A target of this back end by its name; UNSUPPORTED when it is none. */
fpa_status cuda_target(const char *name, const fpa_target **target, fpa_error *error);

#endif

/* backend_c: what its two halves share, the one that loads (backend.c) and the one that compiles (build.c). */
#ifndef FPAC_RUNTIME_C_BACKEND_H
#define FPAC_RUNTIME_C_BACKEND_H

#include "runtime/backend.h"

/* A target of this back end by its name; UNSUPPORTED when it is none. */
fpa_status c_target(const char *name, const fpa_target **target, fpa_error *error);

#endif

/* backend_c: declarations shared by backend.c, which loads, and build.c, which compiles. */
#ifndef FPAC_RUNTIME_C_BACKEND_H
#define FPAC_RUNTIME_C_BACKEND_H

#include "runtime/backend.h"

/* The target of this back end with that name; UNSUPPORTED: there is none. */
fpa_status c_target(const char *name, const fpa_target **target, fpa_error *error);

#endif

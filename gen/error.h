/* error: filling an fpa_error, one line a failure. Internal to fpac. */
#ifndef FPAC_GEN_ERROR_H
#define FPAC_GEN_ERROR_H

#include "fpa_error.h"

/* Fill *error (may be NULL) and return code, so that a caller can write
 *     return fail(error, FPA_INVALID, "q", "has %d axes, but 4 are needed", n);
 * where may be NULL or "". Texts that are too long are cut. */
fpa_status fail(fpa_error *error, fpa_status code, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The error of a failed allocation. */
fpa_status fail_memory(fpa_error *error);

#endif

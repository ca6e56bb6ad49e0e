/* error: filling an fpa_error, one line a failure. Internal to fpac. */
#ifndef FPAC_BASE_ERROR_H
#define FPAC_BASE_ERROR_H

#include "fpa_error.h"

#include <stdarg.h>

/* Fill *error (may be NULL) and return code, so that a caller can write
 *     return fail(error, FPA_INVALID, "q", "has %d axes, but 4 are needed", n);
 * `where` may be NULL or "". Texts that are too long are cut. */
fpa_status fail(fpa_error *error, fpa_status code, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same with the arguments in a list. */
fpa_status fail_list(fpa_error *error, fpa_status code, const char *where, const char *format,
                     va_list arguments);

/* Append text to the message of *error, which may be NULL. */
void fail_more(fpa_error *error, const char *text);

/* The error of a failed allocation. */
fpa_status fail_memory(fpa_error *error);

/* the analyzer sees one file at a time, and has to know that neither returns FPA_OK */
#ifdef __clang_analyzer__
#define fail(error, code, ...) ((void)fail(error, code, __VA_ARGS__), code)
#define fail_memory(error) ((void)fail_memory(error), FPA_NO_MEMORY)
#endif

#endif

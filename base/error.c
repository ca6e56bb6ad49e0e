#include "error.h"

#include <stdio.h>
#include <string.h>

#undef fail /* error.h defines these as macros for the static analyzer */
#undef fail_memory

fpa_status fail_list(fpa_error *error, fpa_status code, const char *where, const char *format,
                     va_list arguments)
{
    if (error) {
        error->code = code;
        snprintf(error->where, sizeof error->where, "%s", where ? where : "");
        vsnprintf(error->message, sizeof error->message, format, arguments);
    }
    return code;
}

fpa_status fail(fpa_error *error, fpa_status code, const char *where, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_list(error, code, where, format, arguments);
    va_end(arguments);
    return code;
}

void fail_more(fpa_error *error, const char *text)
{
    if (!error)
        return;
    const size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, "%s", text);
}

fpa_status fail_memory(fpa_error *error)
{
    return fail(error, FPA_NO_MEMORY, "", "out of memory");
}

const char *fpa_status_name(fpa_status status)
{
    static const char *const names[] = {
        [FPA_OK] = "ok",
        [FPA_INVALID] = "invalid",
        [FPA_UNSUPPORTED] = "unsupported",
        [FPA_NO_MEMORY] = "no memory",
        [FPA_IO] = "io",
        [FPA_COMPILE] = "compile",
        [FPA_LOAD] = "load",
        [FPA_REFUSED] = "refused",
        [FPA_DEVICE] = "device",
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

#include "backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const fpa_backend *const backends[] = {&backend_c};

const fpa_backend *backend_find(const char *target)
{
    size_t length = strcspn(target, ":");
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strlen(backends[i]->name) == length && strncmp(backends[i]->name, target, length) == 0)
            return backends[i];
    return NULL;
}

/* "c:sse2, c:avx2, ..." */
static void list_targets(char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < target_count() && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", target_at(i)->name);
}

fpa_status backend_target(const char *name, const fpa_backend **backend, const fpa_target **target,
                          fpa_error *error)
{
    char names[256];
    *backend = backend_find(name);
    *target = *backend ? target_find(name) : NULL;
    if (*target)
        return FPA_OK;
    list_targets(names, sizeof names);
    return fail(error, FPA_UNSUPPORTED, name, "is no target; there are c (the best one here), %s", names);
}

void log_line(const fpa_options *options, const char *format, ...)
{
    if (!options || !options->log)
        return;
    char line[1024]; /* of fixed size, so that a message about memory needs none */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    options->log(options->log_user, line);
}

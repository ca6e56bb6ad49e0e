#include "log.h"

#include <stdarg.h>
#include <stdio.h>

void log_line(const fpa_options *options, const char *format, ...)
{
    if (!options || !options->log)
        return;
    char line[1024]; /* of fixed size, so that a message about lacking memory can be printed */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    options->log(options->log_user, line);
}

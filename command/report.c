/* report: what the subcommands tell a person: errors, progress, sizes. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

int report(const fpa_error *error)
{
    progress_end();
    if (error->where[0])
        fprintf(stderr, "fpac: %s: %s\n", error->where, error->message);
    else
        fprintf(stderr, "fpac: %s\n", error->message);
    return error->code == FPA_REFUSED ? EXIT_REFUSED : EXIT_FAILED;
}

int finish_output(int code)
{
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    fprintf(stderr, "fpac: standard output: %s\n", strerror(errno));
    return EXIT_FAILED;
}

void progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

void progress_end(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

const char *size_text(char text[SIZE_TEXT], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    unsigned unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, SIZE_TEXT, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

/* messages: what the subcommands tell a person: errors, progress, sizes. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "plain_text.h"

int report(const fpa_error *error)
{
    progress_end();
    fputs("fpac: ", stderr);
    print_escaped(stderr, error->where);
    fputs(error->where[0] ? ": " : "", stderr);
    print_escaped(stderr, error->message);
    fputc('\n', stderr);
    return error->code == FPA_REFUSED ? EXIT_REFUSED : EXIT_FAILED;
}

int finish_output(int code)
{
    const bool failed = ferror(stdout); /* a write before this one: its reason is gone */
    errno = 0;
    if (!fflush(stdout) && !failed)
        return code;
    fprintf(stderr, "fpac: standard output: %s\n", errno ? strerror(errno) : "not all could be written");
    return EXIT_FAILED;
}

void progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("\r\033[K", stderr);
    print_escaped(stderr, text);
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

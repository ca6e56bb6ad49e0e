/* messages: output of the subcommands for people: errors, progress, sizes. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "command.h"
#include "json.h"
#include "plain_text.h"

/* Set while the command line is parsed, when there is one thread only. */
static bool as_json, is_verbose;

void report_as_json(bool wanted)
{
    as_json = wanted;
}

bool json_errors(void)
{
    return as_json;
}

bool *verbose_flag(void)
{
    return &is_verbose;
}

/* Writes an error as one object in one line. */
static void write_error(const fpa_error *error)
{
    fputs("{\"error\": {\"code\": ", stderr);
    json_write_string(stderr, fpa_status_name(error->code));
    fputs(", \"where\": ", stderr);
    json_write_string(stderr, error->where);
    fputs(", \"message\": ", stderr);
    json_write_string(stderr, error->message);
    fputs("}}\n", stderr);
}

static void print_error(const fpa_error *error)
{
    fputs("fpac: ", stderr);
    print_escaped(stderr, error->where);
    fputs(error->where[0] ? ": " : "", stderr);
    print_escaped(stderr, error->message);
    fputc('\n', stderr);
}

bool is_of_line(const fpa_error *error)
{
    return error->code == FPA_INVALID && error->where[0] == '-';
}

int report(const fpa_error *error)
{
    progress_end();
    if (as_json)
        write_error(error);
    else
        print_error(error);
    if (is_of_line(error))
        return EXIT_USAGE;
    return error->code == FPA_REFUSED ? EXIT_REFUSED : EXIT_FAILED;
}

void note(const char *format, ...)
{
    char text[1280];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    progress_end();
    fputs("fpac: ", stderr);
    print_escaped(stderr, text);
    fputc('\n', stderr);
}

void detail(const char *format, ...)
{
    char text[1280];
    va_list arguments;
    if (!is_verbose)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    note("%s", text);
}

void say_log(void *user, const char *line)
{
    static char told[512]; /* the last warning: one that concerns all heads of a command is printed once */
    (void)user;
    const bool warns = strstr(line, ": warning: ") != NULL;
    if (is_verbose || (warns && strncmp(line, told, sizeof told - 1) != 0))
        note("%s", line);
    else if (!warns)
        progress("%s", line);
    if (warns)
        snprintf(told, sizeof told, "%s", line);
}

int finish_output(int code)
{
    const bool failed = ferror(stdout); /* an earlier write failed, whose reason is no longer known */
    errno = 0;
    if (!fflush(stdout) && !failed)
        return code;
    fprintf(stderr, "fpac: standard output: %s\n", errno ? strerror(errno) : "not all could be written");
    return EXIT_FAILED;
}

/* Columns of the terminal except the last one: a line that wraps cannot be erased. */
static size_t line_width(size_t most)
{
    struct winsize size;
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known && size.ws_col < most ? size.ws_col - 1u : most - 1;
}

/* Cuts text to at most that many bytes, without dividing a character. */
static void cut(char *text, size_t most)
{
    if (strlen(text) <= most)
        return;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    text[most] = '\0';
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
    cut(text, line_width(sizeof text));
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

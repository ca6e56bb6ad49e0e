/* Lines for explain: which passes were applied, and what a user should know about the result. */
#include "passes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool add_line(fpa_simplifier *s, char ***lines, int *count, const char *format, va_list arguments)
{
    arena *memory = &s->simple->head->memory;
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    char **longer = arena_array(memory, (size_t)*count + 1, sizeof *longer);
    char *line = arena_string(memory, text);
    if (!longer || !line)
        return false;
    if (*count)
        memcpy(longer, *lines, (size_t)*count * sizeof *longer);
    longer[(*count)++] = line;
    *lines = longer;
    return true;
}

bool simplify_note(fpa_simplifier *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool added = add_line(s, &s->simple->notes, &s->simple->note_count, format, arguments);
    va_end(arguments);
    return added;
}

bool simplify_warn(fpa_simplifier *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool added = add_line(s, &s->simple->warnings, &s->simple->warning_count, format, arguments);
    va_end(arguments);
    return added;
}

#include "declarations.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static bool is_line(const char *line, size_t size, const char *text)
{
    return size == strlen(text) && memcmp(line, text, size) == 0;
}

/* Not of a variable, or a line that declares all of a function. */
static bool begins_function(const char *line, size_t size)
{
    static const char word[] = "RUNTIME ";
    return size > 0 && *line != '#' && !isspace((unsigned char)*line) &&
           memmem(line, size, word, sizeof word - 1) && line[size - 1] != ';';
}

/* Lines stay where they are, for what the compiler says of them. */
static void write_declarations(FILE *out, const char *text)
{
    enum { OUTSIDE, HEAD, BODY } in = OUTSIDE;
    while (*text) {
        const char *end = strchrnul(text, '\n');
        const size_t size = (size_t)(end - text);
        if (in == OUTSIDE && begins_function(text, size))
            in = HEAD;
        if (in == HEAD && is_line(text, size, "{")) {
            putc(';', out);
            in = BODY;
        } else if (in == BODY && is_line(text, size, "}")) {
            in = OUTSIDE;
        } else if (in != BODY) {
            fwrite(text, 1, size, out);
        }
        putc('\n', out);
        text = *end ? end + 1 : end;
    }
}

static fpa_status declare(const char *from, const char *to, const char *name, fpa_error *error)
{
    char path[PATH_MAX], *text = NULL;
    size_t size;
    fpa_file file = {0};
    snprintf(path, sizeof path, "%.3000s/%.255s", from, name);
    fpa_status status = file_read(path, &file, error);
    FILE *out = status ? NULL : open_memstream(&text, &size);
    if (!status && !out)
        status = fail_memory(error);
    if (out) {
        write_declarations(out, (const char *)file.bytes);
        if (fclose(out))
            status = fail_memory(error);
    }
    if (!status) {
        const fpa_bytes part = {text, size};
        status = file_write(to, name, 0600, &part, 1, error);
    }
    free(text);
    free(file.bytes);
    return status;
}

static int is_header(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".h") == 0;
}

fpa_status declarations_write(const char *from, const char *to, fpa_error *error)
{
    struct dirent **names;
    fpa_status status = FPA_OK;
    const int count = scandir(from, &names, is_header, alphasort);
    if (count < 1)
        return fail(error, FPA_IO, from, "has no headers");
    for (int i = 0; i < count; i++) {
        if (!status)
            status = declare(from, to, names[i]->d_name, error);
        free(names[i]);
    }
    free(names);
    return status;
}

#include "emitted_text.h"
#include "claims.h"

#include <stdlib.h>
#include <string.h>

/* Blanks for what is no code, in place; line breaks stay. */
static void blank_comments(char *c)
{
    while (*c) {
        if (c[0] == '/' && c[1] == '*') {
            char *end = strstr(c + 2, "*/");
            for (end = end ? end + 2 : c + strlen(c); c < end; c++)
                *c = *c == '\n' ? '\n' : ' ';
        } else if (*c == '"' || *c == '\'') {
            const char quote = *c++;
            for (; *c && *c != quote; c++) {
                if (*c == '\\' && c[1])
                    *c++ = ' ';
                *c = ' ';
            }
            c += *c != '\0';
        } else {
            c++;
        }
    }
}

void emitted_read(struct text *t, const char *about, const char *code)
{
    *t = (struct text){.about = about, .lines = strdup(code), .codes = strdup(code)};
    assert_non_null(t->lines);
    assert_non_null(t->codes);
    blank_comments(t->codes);
    int lines = 0;
    for (const char *c = code; *c; c++)
        lines += *c == '\n';
    t->line = calloc((size_t)lines + 1, sizeof *t->line);
    assert_non_null(t->line);
    char *text = t->lines, *stripped = t->codes;
    bool inside = false; /* a comment */
    while (*text) {
        char *end = strchrnul(text, '\n');
        const size_t size = (size_t)(end - text), first = strspn(text, " ");
        struct line *line = &t->line[t->count];
        const bool begins = !strncmp(text + first, "/*", 2);
        *line = (struct line){text, stripped, (int)size, t->count + 1, inside || begins};
        t->count++;
        text = *end ? end + 1 : end;
        stripped[size] = '\0';
        stripped += size + 1;
        *end = '\0';
        for (const char *c = line->text; *c; c++)
            if (inside ? c[0] == '*' && c[1] == '/' : c[0] == '/' && c[1] == '*')
                inside = !inside;
    }
}

void emitted_free(struct text *t)
{
    free(t->lines);
    free(t->codes);
    free(t->line);
}

int indent_of(const struct line *line)
{
    return (int)strspn(line->text, " ");
}

bool is_blank(const char *text)
{
    return text[strspn(text, " ")] == '\0';
}

char last_of(const char *code)
{
    const char *end = code + strlen(code);
    while (end > code && end[-1] == ' ')
        end--;
    return end > code ? end[-1] : '\0';
}

void wrong(struct text *t, const struct line *line, const char *what)
{
    if (t->wrong++ < 10)
        print_message("%s:%d: %s: %.100s\n", t->about, line->number, what, line->text);
}

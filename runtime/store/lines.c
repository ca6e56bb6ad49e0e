#include "lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fpa_status lines_refuse(const fpa_lines *r, const char *wanted)
{
    char place[256];
    snprintf(place, sizeof place, "%.200s:%d", r->where, r->number);
    return fail(r->error, FPA_INVALID, place, "expected '%s', found '%.100s'; write the bundle again", wanted,
                r->line);
}

bool lines_next(fpa_lines *r)
{
    size_t length = strcspn(r->next, "\n");
    r->number++;
    snprintf(r->line, sizeof r->line, "%.*s", length < LINES_MOST ? (int)length : LINES_MOST - 1, r->next);
    bool fine = length < LINES_MOST && r->next[length] == '\n';
    r->next += length + (r->next[length] == '\n');
    return fine;
}

char *lines_after(fpa_lines *r, const char *word)
{
    size_t length = strlen(word);
    bool same = strncmp(r->line, word, length) == 0 && r->line[length] == ' ';
    return same ? r->line + length + 1 : NULL;
}

bool whole_parse(const char *text, int64_t largest, int64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    *value = parsed;
    return errno == 0 && *end == 0 && parsed <= largest;
}

bool is_plain_name(const char *name)
{
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
    return length > 0 && name[length] == 0 && name[0] != '.';
}

bool is_digest(const char *text)
{
    return strspn(text, "0123456789abcdef") == 64 && text[64] == 0;
}

bool word_copy(char *to, size_t size, const char *word)
{
    return (size_t)snprintf(to, size, "%s", word) < size;
}

bool words_split(char *text, char **first, char **second)
{
    char *space = text ? strchr(text, ' ') : NULL;
    if (!space || strchr(space + 1, ' '))
        return false;
    *space = 0;
    *first = text;
    *second = space + 1;
    return true;
}

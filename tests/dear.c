#include "dear.h"
#include "claims.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool dear_tests(void)
{
    const char *all = getenv("FPA_TEST_ALL");
    return all && *all && strcmp(all, "0") != 0;
}

bool is_one_of(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

void dear_report(const char *what, int running, int all)
{
    print_message("%d of %d %s%s\n", running, all, what, running < all ? "; make test-all runs all" : "");
}

static bool has(const function_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->names[i], name) == 0)
            return true;
    return false;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* What stands before the first parenthesis of a line that begins a definition, launch bounds left out;
 * without the head's name. The size is 0 where there is none. */
static size_t defined_name(const char *line, size_t size, const char *head, const char **name)
{
    static const char bounds[] = "__launch_bounds__";
    const char *end = line + size, *open = memchr(line, '(', size);
    const size_t head_size = strlen(head);
    if (!isalpha((unsigned char)*line) && *line != '_' && strncmp(line, "#define ", 8) != 0)
        return 0;
    if (open && open - line >= (ptrdiff_t)sizeof bounds - 1 &&
        strncmp(open - (sizeof bounds - 1), bounds, sizeof bounds - 1) == 0) {
        const char *close = memchr(open, ')', (size_t)(end - open));
        open = close ? memchr(close, '(', (size_t)(end - close)) : NULL;
    }
    if (!open)
        return 0;
    for (*name = open; *name > line && is_name((*name)[-1]);)
        --*name;
    if (strncmp(*name, "__attribute__(", (size_t)(open - *name) + 1) == 0) /* of a table */
        return 0;
    if ((size_t)(open - *name) > head_size && strncmp(*name, head, head_size) == 0 &&
        (*name)[head_size] == '_')
        *name += head_size;
    return (size_t)(open - *name);
}

static void drop_digits(char *text)
{
    char *to = text;
    for (const char *c = text; *c; c++)
        if (!isdigit((unsigned char)*c))
            *to++ = *c;
    *to = 0;
}

static void add_name(function_set *set, const char *name, size_t length, bool plain)
{
    char *text = strndup(name, length);
    assert_non_null(text);
    if (plain)
        drop_digits(text);
    if (has(set, text)) {
        free(text);
        return;
    }
    set->names = realloc(set->names, (set->count + 1) * sizeof *set->names);
    assert_non_null(set->names);
    set->names[set->count++] = text;
}

static void add_names(function_set *set, const char *code, const char *head, bool plain)
{
    for (const char *line = code; *line;) {
        const size_t size = strcspn(line, "\n");
        const char *name;
        const size_t length = defined_name(line, size, head, &name);
        if (length > 0)
            add_name(set, name, length, plain);
        line += size + (line[size] == '\n');
    }
}

void function_set_add(function_set *set, const char *code, const char *head)
{
    add_names(set, code, head, false);
}

void function_set_add_plain(function_set *set, const char *code, const char *head)
{
    add_names(set, code, head, true);
}

void function_set_free(function_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->names[i]);
    free(set->names);
    *set = (function_set){0};
}

const char *function_set_lacks(const function_set *some, const function_set *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (!has(some, all->names[i]))
            return all->names[i];
    return NULL;
}

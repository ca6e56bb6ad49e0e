#include "kernels.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ITEMS = 2000, MOST_NAMES = 24 };

static const char kernel_begins[] = "extern \"C\" __global__", linkage[] = "extern \"C\"";

/* What is between two blank lines that stand outside of braces: one definition, or a few. */
typedef struct item {
    const char *text;
    size_t size;
    struct {
        const char *at;
        size_t size;
    } name[MOST_NAMES]; /* of functions, structures and macros that it defines */
    int names;
    bool constants; /* some that have no name here */
    bool kernel;
    bool taken; /* what the one question or the other is about */
} item;

typedef struct items {
    int count;
    item item[MOST_ITEMS];
    bool *mentions; /* [count][count]: item i has a name of item j in it */
} items;

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The word that begins, or ends, there. */
static void add_name(item *it, const char *from, const char *end)
{
    if (from < end && it->names < MOST_NAMES) {
        it->name[it->names].at = from;
        it->name[it->names++].size = (size_t)(end - from);
    }
}

static void add_word(item *it, const char *from)
{
    const char *end = from;
    while (is_name(*end))
        end++;
    add_name(it, from, end);
}

/* The word that ends before `end`, spaces left out. */
static void add_word_before(item *it, const char *line, const char *end)
{
    while (end > line && !is_name(end[-1]))
        end--;
    const char *from = end;
    while (from > line && is_name(from[-1]))
        from--;
    add_name(it, from, end);
}

static bool ends_with(const char *line, const char *end, const char *word)
{
    const size_t size = strlen(word);
    return (size_t)(end - line) >= size && memcmp(end - size, word, size) == 0;
}

/* Where the first parenthesis, bracket, = or ; is that belongs to no attribute; else the line's end. */
static const char *find_mark(const char *line, const char *end)
{
    const char *at = line;
    for (; at < end && !strchr("([=;", *at); at++)
        ;
    while (at < end && *at == '(' &&
           (ends_with(line, at, "__attribute__") || ends_with(line, at, "__launch_bounds__") ||
            ends_with(line, at, "__align__"))) {
        for (int depth = 0; at < end; at++) {
            depth += (*at == '(') - (*at == ')');
            if (depth == 0)
                break;
        }
        for (; at < end && (*at == ')' || !strchr("([=;", *at)); at++)
            ;
    }
    return at;
}

/* The word before the parenthesis of a function, before [ or = or ; of variables and types, or behind `struct`, or behind
 * #define. */
static void name_line(item *it, const char *line, size_t size)
{
    static const char define[] = "#define ";
    const char *structure = memmem(line, size, "struct ", 7), *end = line + size;
    const char *mark = find_mark(line, end);
    if (strncmp(line, define, sizeof define - 1) == 0)
        add_word(it, line + sizeof define - 1);
    else if (!isalpha((unsigned char)*line) && *line != '_')
        return;
    else if (strncmp(line, "enum", 4) == 0)
        it->constants = true;
    else if (structure && !memchr(line, '(', size) && memchr(line, '{', size))
        add_word(it, structure + 7);
    else if (mark < end)
        add_word_before(it, line, mark);
}

static void name_item(item *it)
{
    for (const char *line = it->text; line < it->text + it->size;) {
        const size_t size = strcspn(line, "\n");
        it->kernel = it->kernel || strncmp(line, kernel_begins, sizeof kernel_begins - 1) == 0;
        name_line(it, line, size);
        line += size + (line[size] == '\n');
    }
}

/* Bodies are indented, and so is all that stands behind a blank line of theirs. */
static bool begins_item(const char *line)
{
    return *line && !isspace((unsigned char)*line) && *line != '}' && strncmp(line, "#pragma", 7) != 0;
}

static bool split(const char *code, items *list)
{
    const char *begin = code;
    list->count = 0;
    for (const char *at = code; *begin; at++) {
        const bool ends = !*at || (at[0] == '\n' && at[1] == '\n' && (!at[2] || begins_item(at + 2)));
        if (!ends)
            continue;
        if (list->count == MOST_ITEMS)
            return false;
        item *it = &list->item[list->count++];
        *it = (item){.text = begin, .size = (size_t)(at - begin) + (*at ? 2 : 0)};
        name_item(it);
        begin = at + (*at ? 2 : 0);
        at = *at ? at + 1 : at - 1;
    }
    return true;
}

static bool is_in(const items *list, const item *it)
{
    for (int i = 0; i < list->count; i++)
        if (list->item[i].size == it->size && memcmp(list->item[i].text, it->text, it->size) == 0)
            return true;
    return false;
}

/* A name, and the item that defines it. */
typedef struct definition {
    const char *at;
    size_t size;
    int item;
} definition;

static int by_name(const void *a, const void *b)
{
    const definition *first = a, *second = b;
    const size_t size = first->size < second->size ? first->size : second->size;
    const int order = memcmp(first->at, second->at, size);
    return order ? order : (first->size > second->size) - (first->size < second->size);
}

/* Of all items, sorted; malloc'ed. */
static definition *definitions_of(const items *list, size_t *count)
{
    definition *all = malloc((size_t)list->count * MOST_NAMES * sizeof *all + 1);
    *count = 0;
    for (int i = 0; all && i < list->count; i++)
        for (int n = 0; n < list->item[i].names; n++)
            all[(*count)++] = (definition){list->item[i].name[n].at, list->item[i].name[n].size, i};
    if (all)
        qsort(all, *count, sizeof *all, by_name);
    return all;
}

/* Each of its words: several items may define it. */
static void find_mentions(items *list, int i, const definition *all, size_t count)
{
    const item *it = &list->item[i];
    for (const char *at = it->text, *end = at + it->size; at < end; at++) {
        definition word = {.at = at};
        while (at < end && is_name(*at))
            at++, word.size++;
        const definition *found = word.size ? bsearch(&word, all, count, sizeof *all, by_name) : NULL;
        while (found && found > all && by_name(found - 1, &word) == 0)
            found--;
        for (; found && found < all + count && by_name(found, &word) == 0; found++)
            list->mentions[i * list->count + found->item] = true;
    }
}

static void items_free(items *list)
{
    if (list)
        free(list->mentions);
    free(list);
}

/* NULL: they cannot be told apart, or memory has ended. */
static items *items_of(const char *code)
{
    items *list = calloc(1, sizeof *list);
    if (list && split(code, list))
        list->mentions = calloc((size_t)list->count * (size_t)list->count, sizeof *list->mentions);
    if (!list || !list->mentions) {
        items_free(list);
        return NULL;
    }
    size_t count;
    definition *all = definitions_of(list, &count);
    for (int i = 0; all && i < list->count; i++)
        find_mentions(list, i, all, count);
    if (!all) {
        items_free(list);
        return NULL;
    }
    free(all);
    return list;
}

/* All that mention what is taken, and what mentions those; false: something is taken that has no name, as constants
 * have none here. */
static bool take_users(items *list)
{
    for (bool more = true; more;) {
        more = false;
        for (int j = 0; j < list->count; j++) {
            if (list->item[j].taken && (!list->item[j].names || list->item[j].constants))
                return false;
            for (int i = 0; i < list->count && list->item[j].taken && !list->item[j].kernel; i++)
                if (!list->item[i].taken && list->mentions[i * list->count + j])
                    more = list->item[i].taken = true;
        }
    }
    return true;
}

static char *join(const items *list)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (int i = 0; i < list->count; i++) {
        const item *it = &list->item[i];
        const char *kernel =
            it->kernel && !it->taken ? memmem(it->text, it->size, linkage, sizeof linkage - 1) : NULL;
        const size_t before = kernel ? (size_t)(kernel - it->text) : it->size;
        fwrite(it->text, 1, before, out);
        if (kernel) {
            fputs("template <int>", out);
            fwrite(kernel + sizeof linkage - 1, 1, it->size - before - (sizeof linkage - 1), out);
        }
    }
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

char *kernels_changed(const char *base, const char *code)
{
    items *before = calloc(1, sizeof *before), *now = items_of(code);
    char *text = NULL;
    if (before && now && split(base, before)) {
        for (int i = 0; i < now->count; i++)
            now->item[i].taken = !is_in(before, &now->item[i]);
        if (take_users(now))
            text = join(now);
    }
    items_free(before);
    items_free(now);
    return text;
}

/* ---- what kernels reach ---- */

/* It, and all that it mentions, and what that mentions. */
static void take_reached(items *list, int kernel)
{
    for (int i = 0; i < list->count; i++)
        list->item[i].taken = i == kernel;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < list->count; i++)
            for (int j = 0; j < list->count && list->item[i].taken; j++)
                if (!list->item[j].taken && list->mentions[i * list->count + j])
                    more = list->item[j].taken = true;
    }
}

/* Functions of what is taken. How many of them are new. */
static size_t add_taken(const items *list, const char *head, function_set *set)
{
    const size_t before = set->count;
    for (int i = 0; i < list->count; i++) {
        const item *it = &list->item[i];
        char *text = it->taken && it->names ? strndup(it->text, it->size) : NULL;
        if (text)
            function_set_add(set, text, head);
        free(text);
    }
    return set->count - before;
}

char *kernels_new(const char *code, const char *head, function_set *set)
{
    items *list = items_of(code);
    bool wanted[MOST_ITEMS] = {false}, any = false;
    int longest = -1;
    if (!list)
        return NULL;
    for (int i = 0; i < list->count; i++) {
        if (!list->item[i].kernel)
            continue;
        take_reached(list, i);
        wanted[i] = add_taken(list, head, set) > 0;
        any = any || wanted[i];
        longest = longest < 0 || list->item[i].size > list->item[longest].size ? i : longest;
    }
    for (int i = 0; i < list->count; i++)
        list->item[i].taken = any ? wanted[i] : i == longest;
    char *text = longest >= 0 ? join(list) : NULL;
    items_free(list);
    return text;
}

/* HEAD_WHICH( is in it: the kernel's own name, which no kernel calls. */
static bool is_kernel(const item *it, const char *head, const char *which)
{
    char name[256];
    snprintf(name, sizeof name, "%s_%s(", head, which);
    return it->kernel && (!*which || memmem(it->text, it->size, name, strlen(name)));
}

char *kernels_one(const char *code, const char *head, const char *which, function_set *set)
{
    items *list = items_of(code);
    int longest = -1;
    if (!list)
        return NULL;
    for (int i = 0; i < list->count; i++)
        if (is_kernel(&list->item[i], head, which) &&
            (longest < 0 || list->item[i].size > list->item[longest].size))
            longest = i;
    char *text = NULL;
    if (longest >= 0) {
        take_reached(list, longest);
        add_taken(list, head, set);
        text = join(list);
    }
    items_free(list);
    return text;
}

char *kernels_without(const char *code, const char *head, const char *beginning)
{
    char name[256];
    items *list = calloc(1, sizeof *list);
    char *text = NULL;
    snprintf(name, sizeof name, "%s_%s", head, beginning);
    if (list && split(code, list)) {
        for (int i = 0; i < list->count; i++)
            list->item[i].taken = !memmem(list->item[i].text, list->item[i].size, name, strlen(name));
        text = join(list);
    }
    free(list);
    return text;
}

bool kernels_reach(const char *code, const char *head, function_set *set)
{
    items *list = items_of(code);
    for (int i = 0; list && i < list->count; i++)
        if (list->item[i].kernel) {
            take_reached(list, i);
            add_taken(list, head, set);
        }
    items_free(list);
    return list != NULL;
}

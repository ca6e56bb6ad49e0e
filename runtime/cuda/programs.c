/* programs: divides a CUDA file into several programs, which are compiled in parallel. The text is read as a sequence of items:
 * definitions and preprocessor lines. A program needs the kernels between its #if FPA_CUDA_HAS(...) and #endif; all items without a name
 * (enumerations, types, assertions, ...); and each item whose name occurs in one that it needs. So it has either all overloads of a
 * function's name or none. */
#include "programs.h"
#include "abi/cuda_call.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct word {
    const char *at;
    int length;
} word;

typedef struct item {
    const char *begin, *end;
    word name;  /* length 0: none */
    int part;   /* the program in whose #if FPA_CUDA_HAS it is; 0: none */
    bool first; /* every program needs it */
    int next;   /* next item of the same hash; -1: none */
} item;

struct file_programs {
    const char *code;
    item *items;
    int count, room;
    int *index; /* hash table of names: the first item; -1: none */
    unsigned mask;
    bool failed; /* no memory */
};

/* Reading */

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *past_comment(const char *at)
{
    const char *end = at[1] == '*' ? strstr(at + 2, "*/") : strchr(at, '\n');
    return end ? end + (at[1] == '*' ? 2 : 0) : at + strlen(at);
}

static const char *past_quotes(const char *at)
{
    const char quote = *at++;
    while (*at && *at != quote)
        at += *at == '\\' && at[1] ? 2 : 1;
    return *at ? at + 1 : at;
}

static const char *past_word(const char *at)
{
    while (in_word(*at))
        at++;
    return at;
}

static bool is_comment(const char *at)
{
    return at[0] == '/' && (at[1] == '*' || at[1] == '/');
}

static const char *past_blanks(const char *at)
{
    for (;; at = past_comment(at)) {
        while (isspace((unsigned char)*at))
            at++;
        if (!is_comment(at))
            return at;
    }
}

/* The next token's end. Numbers count as words, which match no name. */
static const char *past_token(const char *at)
{
    if (in_word(*at))
        return past_word(at);
    return *at == '"' || *at == '\'' ? past_quotes(at) : at + 1;
}

static const char *past_line(const char *at)
{
    while (*at && !(*at == '\n' && at[-1] != '\\'))
        at = is_comment(at) ? past_comment(at) : at + 1;
    return at;
}

static bool is_word(word w, const char *text)
{
    return w.length == (int)strlen(text) && memcmp(w.at, text, (size_t)w.length) == 0;
}

static bool is_any(word w, const char *const *words)
{
    for (; *words; words++)
        if (is_word(w, *words))
            return true;
    return false;
}

/* Definitions */

/* State of reading an item's tokens. */
typedef struct reader {
    item *to;
    word before;           /* the previous token; length 0: it is no word */
    int depth;             /* of brackets */
    int angles;            /* depth in template <...>; -1: not begun */
    bool data;             /* has a = */
    bool function;         /* has parameters */
    bool attribute;        /* inside an attribute's brackets */
    bool structure, begun; /* the first word is struct, union or class; there was a first word */
    bool unnamed, named;
} reader;

static void name_it(reader *r)
{
    if (r->named || r->unnamed)
        return;
    r->named = true;
    r->to->name = r->before;
}

static void see_word(reader *r, word w)
{
    static const char *const no_names[] = {"enum",  "typedef",   "static_assert", "extern",
                                           "using", "namespace", "asm",           NULL};
    static const char *const structures[] = {"struct", "union", "class", NULL};
    if (!r->begun) {
        r->unnamed = is_any(w, no_names);
        r->structure = is_any(w, structures);
    }
    r->begun = true;
    r->unnamed |= is_word(w, "operator");
    r->to->first |= is_word(w, "__global__") || r->unnamed;
    r->before = w;
}

static void open_bracket(reader *r, char c, char next)
{
    static const char *const attributes[] = {"__attribute__", "__align__", "alignas", "__launch_bounds__",
                                             NULL};
    if (r->depth++)
        return;
    if (c == '[' && next == '[') {
        r->attribute = true;
        return;
    }
    if (c == '(' && is_any(r->before, attributes)) {
        r->attribute = true;
        return;
    }
    r->function |= c == '(' && !r->data && !r->named;
    name_it(r);
}

/* Reads a sign; true: the item ends here. */
static bool see_sign(reader *r, char c, char next)
{
    const bool outside = r->depth == 0;
    if (strchr("([{", c))
        open_bracket(r, c, next);
    else if (strchr(")]}", c))
        r->depth--;
    else if (outside && (c == '=' || c == ';' || c == ':' || (c == '<' && r->structure)))
        name_it(r);
    else if (outside && c == ',')
        r->to->first = true; /* several names */
    r->data |= outside && c == '=';
    r->before = (word){NULL, 0};
    if (r->depth || r->attribute) {
        r->attribute &= r->depth > 0;
        return false;
    }
    return c == ';' || (c == '}' && r->function && !r->data);
}

/* Reads a sign in template <...>, whose default arguments must not end the item. */
static void see_template(reader *r, char c)
{
    if (strchr("([{", c))
        r->depth++;
    else if (strchr(")]}", c))
        r->depth--;
    else if (!r->depth && (c == '<' || c == '>'))
        r->angles += c == '<' ? 1 + (r->angles < 0) : -1;
}

static const char *read_definition(item *to, const char *at)
{
    reader r = {.to = to};
    for (; *at; at = past_blanks(at)) {
        const char *end = past_token(at);
        const word w = {at, (int)(end - at)};
        const bool ended =
            !in_word(*at) && *at != '"' && *at != '\'' && !r.angles && see_sign(&r, *at, at[1]);
        if (r.angles && !in_word(*at))
            see_template(&r, *at);
        else if (in_word(*at) && is_word(w, "template") && !r.begun)
            r.angles = -1;
        else if (in_word(*at) && !r.depth && !r.angles)
            see_word(&r, w);
        at = end;
        if (ended)
            break;
    }
    to->first |= to->name.length == 0;
    return at;
}

/* Lines of the preprocessor */

typedef struct brackets {
    /* depth of #if; the program of the enclosing FPA_CUDA_HAS, 0: none; its depth */
    int depth, part, part_depth;
} brackets;

/* The number of a part, whose name begins at `name` and ends with a bracket; 0: the text does not define it. */
static int part_number(const char *code, const char *name)
{
    const size_t length = strcspn(name, ")");
    for (const char *at = strstr(code, "#define "); at; at = strstr(at + 1, "#define ")) {
        const char *its = at + strlen("#define ");
        if (strncmp(its, name, length) == 0 && its[length] == ' ')
            return atoi(its + length);
    }
    return 0;
}

static void read_condition(const file_programs *p, brackets *b, const char *line)
{
    static const char asks[] = "#if FPA_CUDA_HAS(";
    if (strncmp(line, "#if", 3) == 0) {
        b->depth++;
        if (!b->part && strncmp(line, asks, strlen(asks)) == 0) {
            b->part = part_number(p->code, line + strlen(asks));
            b->part_depth = b->depth;
        }
    } else if (strncmp(line, "#endif", 6) == 0) {
        b->part = b->depth == b->part_depth ? 0 : b->part;
        b->depth--;
    }
}

/* A #define is an item with a name; all programs need the other lines. */
static const char *read_line(item *to, const char *at)
{
    const char *end = past_line(at);
    if (strncmp(at, "#define", 7) == 0) {
        to->name.at = past_blanks(at + 7);
        to->name.length = (int)(past_word(to->name.at) - to->name.at);
    }
    to->first = !to->name.length;
    return end;
}

/* Items */

static unsigned place_of(const file_programs *p, word name)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < name.length; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * 16777619u;
    return hash & p->mask;
}

static item *add(file_programs *p, const char *begin)
{
    if (p->count == p->room) {
        const int room = 2 * p->room + 512;
        item *items = realloc(p->items, (size_t)room * sizeof *items);
        if (!items)
            return NULL;
        p->items = items;
        p->room = room;
    }
    p->items[p->count] = (item){.begin = begin, .next = -1};
    return &p->items[p->count++];
}

static bool read_items(file_programs *p)
{
    brackets b = {0};
    const char *at = past_blanks(p->code);
    while (*at) {
        item *next = add(p, at);
        if (!next)
            return false;
        if (*at == '#') {
            read_condition(p, &b, at);
            at = read_line(next, at);
        } else {
            at = read_definition(next, at);
            next->part = b.part;
        }
        next->end = at;
        at = past_blanks(at);
    }
    return true;
}

static bool make_index(file_programs *p)
{
    p->mask = 1;
    while (p->mask < 2u * (unsigned)p->count)
        p->mask = 2 * p->mask + 1;
    p->index = malloc((p->mask + 1) * sizeof *p->index);
    if (!p->index)
        return false;
    memset(p->index, -1, (p->mask + 1) * sizeof *p->index);
    for (int i = 0; i < p->count; i++) {
        if (!p->items[i].name.length)
            continue;
        int *place = &p->index[place_of(p, p->items[i].name)];
        p->items[i].next = *place;
        *place = i;
    }
    return true;
}

file_programs *programs_read(const char *code)
{
    file_programs *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->code = code;
    if (read_items(p) && make_index(p))
        return p;
    programs_free(p);
    return NULL;
}

void programs_free(file_programs *p)
{
    if (!p)
        return;
    free(p->items);
    free(p->index);
    free(p);
}

bool programs_has(const file_programs *p, int part)
{
    bool named = false;
    for (int i = 0; i < p->count; i++) {
        if (p->items[i].part == part)
            return true;
        named |= p->items[i].part > 0;
    }
    return !named;
}

/* A program's text */

/* Items that a program needs; `open` are those of them whose words have not been looked up yet. */
typedef struct needs {
    const file_programs *of;
    int part;
    bool *needed;
    int *open, open_count;
} needs;

static void need(needs *n, int i)
{
    const item *its = &n->of->items[i];
    if (n->needed[i] || (its->part && its->part != n->part))
        return;
    n->needed[i] = true;
    n->open[n->open_count++] = i;
}

static void need_name(needs *n, word name)
{
    const file_programs *p = n->of;
    for (int i = p->index[place_of(p, name)]; i >= 0; i = p->items[i].next)
        if (p->items[i].name.length == name.length &&
            memcmp(p->items[i].name.at, name.at, (size_t)name.length) == 0)
            need(n, i);
}

static void need_words(needs *n, const item *its)
{
    for (const char *at = past_blanks(its->begin); at < its->end; at = past_blanks(at)) {
        const char *end = past_token(at);
        if (in_word(*at) && !isdigit((unsigned char)*at))
            need_name(n, (word){at, (int)(end - at)});
        at = end;
    }
}

static void find_needs(needs *n)
{
    for (int i = 0; i < n->of->count; i++)
        if (n->of->items[i].first || n->of->items[i].part)
            need(n, i);
    while (n->open_count)
        need_words(n, &n->of->items[n->open[--n->open_count]]);
}

static char *write_lines(char *to, const char *from, const char *end)
{
    for (const char *at = from; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        *to++ = '\n';
    return to;
}

/* Suppresses the warning about unused tables, whose users may be in another program; line numbers start after this heading. */
static const char heading[] = "#pragma nv_diag_suppress 177\n#line 1\n";

static void write_text(const needs *n, char *to)
{
    const char *at = n->of->code;
    to = stpcpy(to, heading);
    for (int i = 0; i < n->of->count; i++) {
        const item *its = &n->of->items[i];
        to = write_lines(to, at, n->needed[i] ? its->begin : its->end);
        at = its->end;
        if (n->needed[i]) {
            memcpy(to, its->begin, (size_t)(at - its->begin));
            to += at - its->begin;
        }
    }
    *to = '\n';
    to[1] = 0;
}

char *programs_text(const file_programs *p, int part)
{
    needs n = {.of = p, .part = part};
    char *text = malloc(sizeof heading + strlen(p->code) + 1);
    n.needed = calloc((size_t)p->count + 1, sizeof *n.needed);
    n.open = malloc(((size_t)p->count + 1) * sizeof *n.open);
    if (text && n.needed && n.open) {
        find_needs(&n);
        write_text(&n, text);
    } else {
        free(text);
        text = NULL;
    }
    free(n.needed);
    free(n.open);
    return text;
}

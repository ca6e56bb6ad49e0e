#include "template.h"

#include <ctype.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "gen/fault.h"
#include "lines.h"

/* ---- points: lines that end with ` $@ name` ---- */

/* The place of "$@" in a line, or NULL. */
static const char *find_mark(const char *line, const char *end)
{
    return memmem(line, (size_t)(end - line), "$@", 2);
}

static bool is_name(const char *text, const char *end)
{
    for (const char *c = text; c < end; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '_')
            return false;
    return text < end;
}

const char *template_next_point(const char **text, size_t *size)
{
    while (**text) {
        const char *line = *text, *end = strchrnul(line, '\n'), *mark = find_mark(line, end);
        *text = *end ? end + 1 : end;
        if (!mark || end - mark <= 3)
            continue;
        *size = (size_t)(end - mark - 3);
        return mark + 3;
    }
    return NULL;
}

/* ---- translation: one template line -> one Lua line ---- */

static void quote(FILE *out, const char *text, size_t size)
{
    putc_unlocked('"', out);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"' || text[i] == '\\')
            putc_unlocked('\\', out);
        putc_unlocked(text[i], out);
    }
    putc_unlocked('"', out);
}

/* The } that closes the ${ whose expression begins at text. */
static const char *expression_end(const char *text, const char *end)
{
    int depth = 1;
    for (; text < end; text++) {
        depth += (*text == '{') - (*text == '}');
        if (!depth)
            return text;
    }
    return NULL;
}

/* Translates a line of text to `put("text", (expression), ..., "\\n")`; false: a ${ is not closed. */
static bool translate_text(FILE *out, const char *line, const char *end)
{
    fputs("put(", out);
    for (;;) {
        const char *open = line;
        while (open < end && !(open[0] == '$' && open + 1 < end && open[1] == '{'))
            open++;
        quote(out, line, (size_t)(open - line));
        if (open == end)
            break;
        const char *close = expression_end(open + 2, end);
        if (!close)
            return false;
        fprintf(out, ", (%.*s), ", (int)(close - open - 2), open + 2);
        line = close + 1;
    }
    fputs(", \"\\n\")", out);
    return true;
}

/* Translates a line that ends with " $if condition" or " $for i = 1, n" to that statement around the line; another
 * line as it is. */
static bool translate_under(FILE *out, const char *line, const char *end)
{
    static const struct {
        const char *mark, *begin;
    } statements[] = {{" $if ", "then"}, {" $for ", "do"}};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        const char *mark = statements[i].mark;
        const char *found = memmem(line, (size_t)(end - line), mark, strlen(mark));
        if (!found)
            continue;
        fprintf(out, "%.*s %s ", (int)(end - found - 2), found + 2, statements[i].begin);
        const bool translated = translate_text(out, line, found);
        fputs(" end", out);
        return translated;
    }
    return translate_text(out, line, end);
}

static bool translate_line(FILE *out, const char *line, const char *end)
{
    const char *first = line;
    while (first < end && isblank((unsigned char)*first))
        first++;
    if (first == end || *first != '$' || (first + 1 < end && first[1] == '{'))
        return translate_under(out, line, end);
    fwrite(first + 1, 1, (size_t)(end - first - 1), out);
    return true;
}

/* State of the translation of a template. */
struct translation {
    FILE *out;
    const fpa_fault *fault; /* NULL: none */
    bool at_fault;          /* the previous line belongs to the fault's point */
};

/* The lines that replace a point, as one line of Lua. */
static bool translate_fault(FILE *out, const char *wrong)
{
    while (wrong && *wrong) {
        const char *end = strchrnul(wrong, '\n');
        if (!translate_line(out, wrong, end))
            return false;
        putc_unlocked(' ', out);
        wrong = *end ? end + 1 : end;
    }
    return true;
}

/* Translates a line. If it belongs to the fault's point, the replacement is printed instead, once for all
 * consecutive lines of the point. */
static bool translate(struct translation *t, const char *line, const char *end)
{
    const char *mark = find_mark(line, end);
    const bool followed = t->at_fault;
    t->at_fault = false;
    if (!mark)
        return translate_line(t->out, line, end);
    const char *name = mark + 3;
    if (mark == line || mark[-1] != ' ' || mark + 2 == end || mark[2] != ' ' || !is_name(name, end))
        return false;
    const size_t size = (size_t)(end - name);
    t->at_fault = t->fault && strlen(t->fault->point) == size && !strncmp(t->fault->point, name, size);
    if (t->at_fault)
        return followed || translate_fault(t->out, t->fault->wrong);
    while (mark > line && mark[-1] == ' ')
        mark--;
    return translate_line(t->out, line, mark);
}

char *template_translate(const char *text, const fpa_fault *fault, int *bad_line)
{
    text_buffer buffer;
    struct translation t = {.out = text_open(&buffer), .fault = fault};
    *bad_line = 0;
    if (!t.out)
        return NULL;
    for (int number = 1; *text; number++) {
        const char *end = strchrnul(text, '\n');
        if (!translate(&t, text, end)) {
            *bad_line = number;
            break;
        }
        fputc('\n', t.out);
        text = *end ? end + 1 : end;
    }
    char *lua = text_finish(&buffer);
    if (!*bad_line)
        return lua;
    free(lua);
    return NULL;
}

/* ---- running ---- */

/* The templates that `include` runs. */
struct templates {
    const char *(*find)(const char *name);
    const fpa_fault *fault;
};

static void *allocate(void *owner, void *block, size_t old_size, size_t size)
{
    (void)old_size;
    if (size == 0) {
        free(block);
        return NULL;
    }
    void *moved = realloc(block, size);
    if (!moved)
        *(bool *)owner = true;
    return moved;
}

lua_State *template_state(bool *no_memory)
{
    *no_memory = false;
    return lua_newstate(allocate, no_memory);
}

/* The flag that template_state sets when memory is out; NULL: another allocator. */
static bool *memory_of(lua_State *L)
{
    void *owner = NULL;
    return lua_getallocf(L, &owner) == allocate ? owner : NULL;
}

/* put(...): append the arguments to the table of text parts, in upvalue 1. */
static int put(lua_State *L)
{
    int count = lua_gettop(L);
    lua_Integer length = (lua_Integer)lua_rawlen(L, lua_upvalueindex(1));
    for (int i = 1; i <= count; i++) {
        if (lua_isinteger(L, i) || lua_isstring(L, i)) {
            lua_pushvalue(L, i);
            lua_rawseti(L, lua_upvalueindex(1), ++length);
        } else {
            return luaL_error(L, "a template printed a %s", luaL_typename(L, i));
        }
    }
    return 0;
}

static void load_template(lua_State *L, const char *name, const char *text, const fpa_fault *fault)
{
    int bad_line = 0;
    char *lua = template_translate(text, fault, &bad_line);
    if (!lua) {
        bool *no_memory = memory_of(L);
        if (no_memory && !bad_line)
            *no_memory = true;
        luaL_error(L,
                   bad_line ? "%s:%d: ${ without }, or $@ without a name behind it" : "%s: not enough memory",
                   name, bad_line);
        return; /* not reached: luaL_error does not return */
    }
    char chunk[128];
    snprintf(chunk, sizeof chunk, "@%s", name);
    int status = luaL_loadbufferx(L, lua, strlen(lua), chunk, "t");
    free(lua);
    if (status != LUA_OK)
        lua_error(L);
}

static int include(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const struct templates *templates = lua_touserdata(L, lua_upvalueindex(1));
    const char *text = templates->find(name);
    if (!text)
        return luaL_error(L, "no template '%s'", name);
    load_template(L, name, text, templates->fault);
    lua_call(L, 0, 0);
    return 0;
}

/* Runs protected: arguments are pointers to the templates and the first one's name; returns the text. */
static int run_protected(lua_State *L)
{
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, include, 1);
    lua_setglobal(L, "include");
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, put, 1);
    lua_setglobal(L, "put");
    int parts = lua_gettop(L);
    lines_define(L, parts);
    lua_getglobal(L, "include");
    lua_pushstring(L, lua_touserdata(L, 2));
    lua_call(L, 1, 0);
    luaL_Buffer text;
    lua_Integer count = (lua_Integer)lua_rawlen(L, parts);
    luaL_buffinit(L, &text);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, parts, i);
        luaL_addvalue(&text);
    }
    luaL_pushresult(&text);
    return 1;
}

fpa_status template_run(lua_State *L, const char *(*find)(const char *name), const char *name,
                        const fpa_fault *fault, char **text, fpa_error *error)
{
    struct templates templates = {find, fault};
    lua_pushcfunction(L, run_protected);
    lua_pushlightuserdata(L, &templates);
    lua_pushlightuserdata(L, (void *)name);
    int status = lua_pcall(L, 2, 1, 0);
    const bool *no_memory = memory_of(L);
    /* when memory is out, luaL_Buffer and our functions raise ordinary errors, so the flag decides */
    if (status == LUA_ERRMEM || (status != LUA_OK && no_memory && *no_memory))
        return fail_memory(error);
    const char *result = lua_tostring(L, -1);
    if (status != LUA_OK)
        return fail(error, FPA_INVALID, name, "%s", result ? result : "the template failed");
    *text = strdup(result);
    lua_pop(L, 1);
    return *text ? FPA_OK : fail_memory(error);
}

#include "lines.h"

#include <ctype.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

enum { COLUMNS = 120 };

/* ---- printing ---- */

/* State of the printer, after the lines that it has printed. */
typedef struct printer {
    bool empty;   /* the last line was empty */
    bool carried; /* lines.in holds back words that it will put before the next line */
    /* lines are collected in KEPT, because the whole text has to be known before they are printed */
    bool keeps;
    lua_Integer kept;
} printer;

/* Upvalues of the functions that line_printer returns. */
enum { PARTS = 1, KEPT, PRINTER, CHANGE, UPVALUES = CHANGE };

static printer *printer_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(PRINTER));
}

/* Appends the value on top of the stack to the parts of the text. */
static void append(lua_State *L)
{
    lua_rawseti(L, lua_upvalueindex(PARTS), (lua_Integer)lua_rawlen(L, lua_upvalueindex(PARTS)) + 1);
}

static void append_newline(lua_State *L)
{
    lua_pushliteral(L, "\n");
    append(L);
}

/* Prints the line on top of the stack: of consecutive empty lines only the first one, and an empty one before a
 * section. */
static void print_top(lua_State *L)
{
    static const char section[] = "/* ---- ";
    printer *p = printer_of(L);
    const char *line = lua_tostring(L, -1);
    const bool was_empty = p->empty;
    p->empty = !*line;
    if (!was_empty && strncmp(line, section, sizeof section - 1) == 0)
        append_newline(L);
    if (p->empty && was_empty) {
        lua_pop(L, 1);
        return;
    }
    append(L);
    append_newline(L);
}

static int print_line(lua_State *L)
{
    luaL_checkstring(L, 1);
    lua_settop(L, 1);
    print_top(L);
    return 0;
}

static void keep(lua_State *L)
{
    lua_rawseti(L, lua_upvalueindex(KEPT), ++printer_of(L)->kept);
}

/* Keeps the line on top of the stack, which may consist of several after a change. */
static void keep_top(lua_State *L)
{
    size_t size;
    const char *text = lua_tolstring(L, -1, &size), *end = memchr(text, '\n', size);
    if (!end) {
        keep(L);
        return;
    }
    for (; end; text = end + 1, end = strchr(text, '\n')) {
        lua_pushlstring(L, text, (size_t)(end - text));
        keep(L);
    }
    lua_pushstring(L, text);
    keep(L);
    lua_pop(L, 1);
}

static bool follows(const char *at, const char *end, const char *text)
{
    const size_t size = strlen(text);
    return (size_t)(end - at) >= size && memcmp(at, text, size) == 0;
}

/* Whether a rule of lines.in may match: a number 0 or 1 beside an operator. */
static bool may_be_simpler(const char *line, size_t size)
{
    const char *end = line + size;
    for (const char *c = line; c < end; c++) {
        if (*c != '0' && *c != '1')
            continue;
        const char before = c - line >= 2 && c[-1] == ' ' ? c[-2] : 0;
        if (follows(c, end, *c == '0' ? "0 * " : "1 * ") || (*c == '0' && follows(c, end, "0 + ")) ||
            (before && strchr(*c == '0' ? "+-" : "*/", before)))
            return true;
    }
    return false;
}

static void put_line(lua_State *L, const char *line, size_t size)
{
    printer *p = printer_of(L);
    const bool changes = p->carried || size > COLUMNS || may_be_simpler(line, size);
    if (changes)
        lua_pushvalue(L, lua_upvalueindex(CHANGE));
    lua_pushlstring(L, line, size);
    if (changes) {
        lua_call(L, 1, 2);
        p->carried = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    (p->keeps ? keep_top : print_top)(L);
}

/* put(...): lines of a template. */
static int put_lines(lua_State *L)
{
    lua_concat(L, lua_gettop(L));
    size_t size;
    const char *text = lua_tolstring(L, 1, &size), *end = text + size, *newline;
    if (!text)
        return luaL_error(L, "a template printed a %s", luaL_typename(L, 1));
    for (; (newline = memchr(text, '\n', (size_t)(end - text))); text = newline + 1)
        put_line(L, text, (size_t)(newline - text));
    return 0;
}

static int keep_lines(lua_State *L)
{
    printer_of(L)->keeps = true;
    return 0;
}

static void push_with_upvalues(lua_State *L, lua_CFunction function)
{
    for (int i = 1; i <= UPVALUES; i++)
        lua_pushvalue(L, i);
    lua_pushcclosure(L, function, UPVALUES);
}

/* line_printer(change): upvalue 1: the parts of the text. change(line): called for lines that may have to be
 * changed; returns the line and whether it holds back words for the next one. */
static int line_printer(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_newtable(L);
    *(printer *)lua_newuserdatauv(L, sizeof(printer), 0) = (printer){0};
    lua_rotate(L, 1, -1); /* the order of the upvalues */
    push_with_upvalues(L, put_lines);
    push_with_upvalues(L, print_line);
    lua_pushvalue(L, KEPT);
    push_with_upvalues(L, keep_lines);
    lua_pushinteger(L, COLUMNS);
    return 5;
}

/* ---- lines of code that are too long ---- */

/* The brackets that are open at a place of a line: for each, the column after it, where a continuation line
 * begins. */
typedef struct brackets {
    int count, column[128];
} brackets;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t count_blanks(const char *text)
{
    return strspn(text, " ");
}

/* Whether the text begins with "name = ". */
static bool begins_assignment(const char *text)
{
    const char *end = text;
    while (is_word(*end))
        end++;
    return end > text && strncmp(end, " = ", 3) == 0;
}

/* The length of "    const type " at the beginning of a declaration; 0: the line is none. */
static size_t declaration_size(const char *line)
{
    static const char word[] = "const ";
    const char *type = line + count_blanks(line), *end;
    if (strncmp(type, word, sizeof word - 1) != 0)
        return 0;
    type += sizeof word - 1;
    for (end = type; isalnum((unsigned char)*end);)
        end++;
    return end > type && *end == ' ' && begins_assignment(end + 1) ? (size_t)(end + 1 - line) : 0;
}

/* Whether a comma separates arguments of a C++ template: "name<..., " without parentheses in between. */
static bool is_in_angles(const char *line, const char *comma)
{
    const char *c = comma;
    while (c > line && !strchr("<>()", c[-1]))
        c--;
    return c - line >= 2 && c[-1] == '<' && is_word(c[-2]);
}

/* Whether the = of " = " or " += " is that of an assignment. */
static bool is_assigned(const char *line, const char *equals)
{
    const char *c = equals;
    if (c > line && strchr("+-*", c[-1]))
        c--;
    return c > line && c[-1] == ' ';
}

static int cost_before(char operator)
{
    switch (operator) {
    case '?':
    case ':':
        return 40;
    case '+':
    case '-':
        return 45;
    case '*':
        return 60;
    default:
        return -1;
    }
}

/* The cost of a line break at that blank, less is better; -1: no break is allowed there. */
static int break_cost(const char *line, const char *blank)
{
    const char last = blank > line ? blank[-1] : 0, next = blank[1], third = next ? blank[2] : 0;
    if (last == ',' && is_in_angles(line, blank - 1))
        return -1;
    if (last == ',' || last == ';')
        return 0;
    if (last == ':' && blank - line >= 2 && blank[-2] == ' ' && next == ':' && third == ' ')
        return -1;
    if ((next == '&' || next == '|') && third == next && blank[3] == ' ')
        return 10;
    const int cost = third == ' ' ? cost_before(next) : -1;
    if (cost >= 0 && cost < 60)
        return cost;
    return last == '=' && is_assigned(line, blank - 1) ? 60 : cost;
}

static void note_bracket(lua_State *L, brackets *open, char c, int column)
{
    if (c == ')' || c == ']' || c == '}') {
        open->count -= open->count > 0;
        return;
    }
    if (open->count == (int)(sizeof open->column / sizeof *open->column))
        luaL_error(L, "a line has more than %d nested brackets", open->count);
    open->column[open->count++] = column;
}

/* The best blank for a line break; NULL: none. *open has the brackets that are open where the line begins, and
 * becomes those at the break. */
static const char *find_break(lua_State *L, const char *line, brackets *open)
{
    enum { DEPTH = 80 };
    const char *best = NULL;
    brackets now = *open;
    int lowest = 0;
    char quote = 0;
    for (int i = (int)count_blanks(line); i <= COLUMNS && line[i]; i++) {
        const char c = line[i];
        if (quote) {
            if (c == '\\')
                i++;
            else if (c == quote)
                quote = 0;
        } else if (c == ' ') {
            const int own = break_cost(line, line + i), cost = own + DEPTH * now.count - i;
            if (own >= 0 && (!best || cost < lowest)) {
                best = line + i;
                lowest = cost;
                *open = now;
            }
        } else if (strchr("([{)]}", c)) {
            note_bracket(L, &now, c, i + 1);
        } else if (c == '"' || c == '\'') {
            quote = c;
        }
    }
    return best;
}

/* The column where the continuation line begins: after the innermost open bracket, or deeper than the statement. */
static int next_column(brackets *open, int indent)
{
    enum { FAR = 80 };
    if (!open->count)
        return indent + 4;
    int *column = &open->column[open->count - 1];
    if (*column > FAR)
        *column = indent + 8;
    return *column;
}

/* Replaces the line by its continuation: `after`, preceded by so many columns, which are blanks or the beginning
 * of a declaration. */
static void go_on(char *line, const char *after, size_t columns, const char *declaration)
{
    memmove(line + columns, after, strlen(after) + 1);
    if (declaration)
        memcpy(line, declaration, columns);
    else
        memset(line, ' ', columns);
}

/* fold_code(line): breaks a line of code into lines of at most COLUMNS; a declaration of several variables becomes
 * several declarations. */
static int fold_code(lua_State *L)
{
    size_t size;
    const char *given = luaL_checklstring(L, 1, &size);
    const int indent = (int)count_blanks(given);
    const size_t declares = declaration_size(given), most = 2 * size + 4 * COLUMNS;
    char *line = lua_newuserdatauv(L, most, 0), *at;
    brackets open = {0};
    luaL_Buffer result;
    luaL_buffinit(L, &result);
    memcpy(line, given, size + 1);
    while (strlen(line) > COLUMNS && (at = (char *)find_break(L, line, &open))) {
        const char *after = at + 1;
        const bool declared = !open.count && declares && at[-1] == ',' && begins_assignment(after);
        const size_t columns = declared ? declares : (size_t)next_column(&open, indent);
        luaL_addlstring(&result, line, (size_t)(at - line));
        if (declared) {
            luaL_buffsub(&result, 1);
            luaL_addchar(&result, ';');
        }
        luaL_addchar(&result, '\n');
        go_on(line, after, columns, declared ? given : NULL);
    }
    luaL_addstring(&result, line);
    luaL_pushresult(&result);
    return 1;
}

/* ---- names ---- */

/* Adds one to counts[name]; counts is on top of the stack. */
static void count_name(lua_State *L, const char *name, size_t size)
{
    lua_pushlstring(L, name, size);
    lua_pushvalue(L, -1);
    lua_rawget(L, -3);
    lua_pushinteger(L, lua_tointeger(L, -1) + 1);
    lua_remove(L, -2);
    lua_rawset(L, -3);
}

/* Counts the names in a line. inside: whether the line begins in a comment; returns whether it ends in one. */
static bool count_in(lua_State *L, const char *text, bool inside)
{
    while (*text) {
        if (inside) {
            const char *end = strstr(text, "*/");
            if (!end)
                return true;
            inside = false;
            text = end + 2;
        } else if (text[0] == '/' && text[1] == '*') {
            inside = true;
            text += 2;
        } else {
            const char *end = text;
            while (is_word(*end))
                end++;
            if (end > text && !isdigit((unsigned char)*text))
                count_name(L, text, (size_t)(end - text));
            text = end + (end == text);
        }
    }
    return inside;
}

static int count_names(lua_State *L)
{
    bool inside = false;
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 4, LUA_TTABLE);
    for (lua_Integer i = luaL_checkinteger(L, 2); i <= luaL_checkinteger(L, 3); i++) {
        lua_rawgeti(L, 1, i);
        lua_pushvalue(L, 4);
        inside = count_in(L, luaL_checkstring(L, -2), inside);
        lua_pop(L, 2);
    }
    return 1; /* the table of counts */
}

void lines_define(lua_State *L, int parts)
{
    lua_pushvalue(L, parts);
    lua_pushcclosure(L, line_printer, 1);
    lua_setglobal(L, "line_printer");
    lua_pushcfunction(L, fold_code);
    lua_setglobal(L, "fold_code");
    lua_pushcfunction(L, count_names);
    lua_setglobal(L, "count_names");
}

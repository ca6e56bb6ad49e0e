#include "script.h"
#include "complaint.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lualib.h>

#include "base/clock.h"
#include "base/nearest.h"

enum {
    STEP = 1000,                     /* instructions between two checks of the clock */
    COLLECT_HELD = 32 * 1024 * 1024, /* bytes held outside of Lua from which on garbage is collected */
};

/* Names of the two chunks in Lua's own messages, which are cut to 60 bytes; the user's file gets its full name
 * when the message leaves the script. */
static const char user_chunk[] = "=spec", prelude_chunk[] = "=prelude";

struct fpa_script {
    lua_State *L;
    const char *file;     /* the user's file, for messages */
    size_t memory;        /* bytes that Lua has allocated, and that are held outside for its values */
    int64_t held;         /* of these, bytes held outside of Lua */
    int64_t collect_at;   /* held bytes at which garbage is collected next */
    double deadline;      /* time at which the script is stopped (clock_seconds) */
    int seconds;          /* the time limit in seconds */
    bool refused;         /* the last allocation failed because of the limit, not because memory was out */
    int64_t instructions; /* instructions executed so far */
    int64_t look_at;      /* number of instructions at which the clock is checked next */
    int last_line;        /* a line of the user's file that was executed recently */
    fpa_status code;      /* status of the error that is being raised */
    int line;             /* line of that error; 0: not known yet */
    char message[sizeof((fpa_error *)0)->message];
};

static fpa_script *script_of(lua_State *L)
{
    void *script;
    lua_getallocf(L, &script);
    return script;
}

int script_line(lua_State *L)
{
    lua_Debug frame;
    for (int level = 0; lua_getstack(L, level, &frame); level++)
        if (lua_getinfo(L, "Sl", &frame) && strcmp(frame.source, user_chunk) == 0)
            return frame.currentline > 0 ? frame.currentline : 0;
    return 0;
}

/* ---- limits ---- */

/* An allocation is refused. The user's line is read here, since the stack no longer exists when Lua reports the
 * failure; but only for a new object: a block that grows may be the stack itself. */
static void *refuse_memory(fpa_script *script, bool new_object)
{
    script->refused = true;
    if (new_object && script->L && script_line(script->L))
        script->last_line = script_line(script->L);
    return NULL;
}

static void *allocate(void *owner, void *block, size_t old_size, size_t size)
{
    fpa_script *script = owner;
    if (!block)
        old_size = 0; /* for a new block Lua passes the kind of object in its place */
    if (size == 0) {
        free(block);
        script->memory -= old_size;
        return NULL;
    }
    if (size > old_size &&
        (script->memory > SCRIPT_MEMORY || size - old_size > SCRIPT_MEMORY - script->memory))
        return refuse_memory(script, !block);
    void *moved = realloc(block, size);
    if (!moved) {
        script->refused = false;
        return NULL;
    }
    script->memory += size - old_size;
    return moved;
}

/* The time limit: FPA_SPEC_SECONDS if that is a whole number from 1 on, else SCRIPT_SECONDS. */
static int limit_of_seconds(void)
{
    const char *text = getenv("FPA_SPEC_SECONDS");
    int64_t seconds = text ? strtol(text, NULL, 10) : 0;
    return seconds >= 1 && seconds <= 1000000 ? (int)seconds : SCRIPT_SECONDS;
}

void script_charge(lua_State *L, int64_t instructions)
{
    fpa_script *script = script_of(L);
    script->instructions += instructions;
    if (script->instructions < script->look_at)
        return;
    script->look_at = script->instructions + STEP;
    const int line = script_line(L);
    if (line)
        script->last_line = line;
    if (script->instructions > SCRIPT_INSTRUCTIONS)
        script_refuse(L, script->last_line, "still running after %d million instructions: an endless loop?",
                      SCRIPT_INSTRUCTIONS / 1000000);
    if (clock_seconds() > script->deadline)
        script_refuse(L, script->last_line,
                      "still running after %d seconds, the limit for a spec (FPA_SPEC_SECONDS sets another)",
                      script->seconds);
}

int64_t script_room(lua_State *L)
{
    const fpa_script *script = script_of(L);
    return script->memory > SCRIPT_MEMORY ? 0 : (int64_t)(SCRIPT_MEMORY - script->memory);
}

/* Collects garbage: Lua does not count the bytes held outside, and would collect too late. */
static void collect(lua_State *L, fpa_script *script)
{
    lua_gc(L, LUA_GCCOLLECT, 0);
    script->collect_at = 2 * script->held > COLLECT_HELD ? 2 * script->held : COLLECT_HELD;
}

void script_hold(lua_State *L, int64_t bytes)
{
    fpa_script *script = script_of(L);
    if (bytes > 0 && (bytes > script_room(L) || script->held + bytes > script->collect_at))
        collect(L, script);
    if (bytes > script_room(L))
        script_refuse(L, 0, "needs more than %d MiB of memory, the limit for a spec", SCRIPT_MEMORY >> 20);
    script->memory = (size_t)((int64_t)script->memory + bytes);
    script->held += bytes;
}

static void count_instructions(lua_State *L, lua_Debug *event)
{
    (void)event;
    script_charge(L, STEP);
}

/* ---- errors ---- */

int script_raise(lua_State *L, fpa_status code, int line, const char *format, ...)
{
    fpa_script *script = script_of(L);
    va_list arguments;
    script->code = code;
    script->line = line ? line : script_line(L);
    va_start(arguments, format);
    lua_pushvfstring(L, format, arguments);
    va_end(arguments);
    lua_error(L);
    __builtin_unreachable(); /* lua_error does not return */
}

int script_no_memory(lua_State *L)
{
    script_raise(L, FPA_NO_MEMORY, 0, "out of memory");
}

/* The message after the "spec:7: " or "prelude:7: " that Lua puts before its own messages. *line is the number; 0:
 * there is none, or it is the prelude's. */
static const char *skip_position(const char *message, int *line)
{
    char chunk[8], space;
    int number, length = 0;
    *line = 0;
    if (sscanf(message, "%7[a-z]:%d:%c%n", chunk, &number, &space, &length) != 3 || space != ' ')
        return message;
    if (strcmp(chunk, user_chunk + 1) == 0)
        *line = number;
    else if (strcmp(chunk, prelude_chunk + 1) != 0)
        return message;
    return message + length;
}

/* Message handler: keeps the message while the stack, which knows its line, still exists. */
static int keep_message(lua_State *L)
{
    fpa_script *script = script_of(L);
    int line = 0;
    const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "an error without a message";
    text = skip_position(text, &line);
    if (!script->line)
        script->line = line ? line : script_line(L);
    complaint_write(text, script->message, sizeof script->message);
    for (char *c = script->message; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    return 1;
}

static fpa_status report(const fpa_script *script, fpa_status code, int line, const char *message,
                         fpa_error *error)
{
    char number[16] = "", where[sizeof error->where];
    size_t room, length = strlen(script->file);
    if (line)
        snprintf(number, sizeof number, ":%d", line);
    room = sizeof where - 4 - strlen(number);
    if (length > room) /* of a long path the end is kept, which says more, and the line */
        snprintf(where, sizeof where, "...%s%s", script->file + length - room, number);
    else
        snprintf(where, sizeof where, "%s%s", script->file, number);
    return fail(error, code, where, "%s", message);
}

static fpa_status report_memory(const fpa_script *script, fpa_error *error)
{
    char message[80];
    if (!script->refused)
        return fail_memory(error);
    snprintf(message, sizeof message, "needs more than %d MiB of memory, the limit for a spec",
             SCRIPT_MEMORY >> 20);
    return report(script, FPA_INVALID, script->last_line, message, error);
}

fpa_status script_protect(fpa_script *script, lua_CFunction body, void *argument, fpa_error *error)
{
    lua_State *L = script->L;
    script->code = FPA_INVALID;
    script->line = 0;
    lua_settop(L, 0);
    lua_pushcfunction(L, keep_message);
    lua_pushcfunction(L, body);
    lua_pushlightuserdata(L, argument);
    int status = lua_pcall(L, 1, 0, 1);
    if (status == LUA_OK)
        return FPA_OK;
    if (status == LUA_ERRMEM)
        return report_memory(script, error);
    if (status != LUA_ERRRUN)
        return report(script, FPA_INVALID, script->last_line,
                      "failed, and its error message could not be made", error);
    if (script->code == FPA_NO_MEMORY)
        return fail_memory(error);
    return report(script, script->code, script->line, script->message, error);
}

fpa_status script_new(const char *file, fpa_script **script, fpa_error *error)
{
    fpa_script *made = calloc(1, sizeof *made);
    if (!made)
        return fail_memory(error);
    made->file = file;
    made->collect_at = COLLECT_HELD;
    made->seconds = limit_of_seconds();
    made->deadline = clock_seconds() + made->seconds;
    made->L = lua_newstate(allocate, made);
    if (!made->L) {
        free(made);
        return fail_memory(error);
    }
    lua_sethook(made->L, count_instructions, LUA_MASKCOUNT, STEP);
    *script = made;
    return FPA_OK;
}

void script_free(fpa_script *script)
{
    if (!script)
        return;
    lua_sethook(script->L, NULL, 0, 0);
    lua_close(script->L);
    free(script);
}

/* ---- vocabulary ---- */

static const char *const allowed_base[] = {"ipairs", "select", "tonumber", "type", NULL};
static const char *const allowed_math[] = {"abs", "ceil", "floor",     "huge", "max",
                                           "min", "pi",   "tointeger", "type", NULL};

/* Functions of Lua that the sandbox omits, and what to use instead. */
static const struct {
    const char *name, *remedy;
} absent[] = {
    {"io", "a spec computes and returns heads; matrices come by npy(\"file.npy\")"},
    {"os", "a spec gives the same heads on every day and machine"},
    {"debug", "a spec computes and returns heads"},
    {"load", "a spec is one text file"},
    {"loadfile", "a spec is one text file"},
    {"dofile", "a spec is one text file"},
    {"require", "a spec is one text file"},
    {"print", "`fpac explain` shows a spec's heads"},
    {"string", "join texts and numbers with .."},
    {"tostring", "join texts and numbers with .."},
    {"table", "append with list[#list + 1] = value"},
    {"pairs", "its order may change from run to run; ipairs visits a list in order"},
    {"next", "its order may change from run to run; ipairs visits a list in order"},
    {"pcall", "an error ends the spec"},
    {"coroutine", "plain functions and loops are enough"},
    {"setmetatable", "plain tables and functions are enough"},
};

/* The vocabulary's name nearest to word, or the alphabetically first of several, since lua_next has no order.
 * vocabulary is a stack index. The text belongs to the vocabulary. */
static const char *nearest_global(lua_State *L, int vocabulary, const char *word)
{
    const char *nearest = NULL;
    for (lua_pushnil(L); lua_next(L, vocabulary); lua_pop(L, 1)) {
        const char *name = lua_tostring(L, -2);
        if (!nearest_plausible(word, name))
            continue;
        int further = nearest ? nearest_distance(word, name) - nearest_distance(word, nearest) : -1;
        if (further < 0 || (further == 0 && strcmp(name, nearest) < 0))
            nearest = name;
    }
    return nearest;
}

/* __index of the user's globals: upvalue 1 is the vocabulary. */
static int find_global(lua_State *L)
{
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(1));
    if (!lua_isnil(L, -1))
        return 1;
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (strcmp(name, absent[i].name) == 0)
            return script_refuse(L, 0, "'%s' is not part of the spec language: %s", name, absent[i].remedy);
    lua_pushvalue(L, lua_upvalueindex(1));
    const char *nearest = nearest_global(L, lua_gettop(L), name);
    if (nearest)
        return script_refuse(L, 0, "'%s' is not defined; did you mean '%s'?", name, nearest);
    return script_refuse(L, 0, "'%s' is not defined (`fpac prelude` shows the vocabulary)", name);
}

/* error and assert, which name the user's line even if the prelude calls them. */
static int raise_error(lua_State *L)
{
    if (lua_type(L, 1) != LUA_TSTRING)
        return script_refuse(L, 0, "error(message): the message must be a string, not a %s",
                             luaL_typename(L, 1));
    return script_refuse(L, 0, "%s", lua_tostring(L, 1));
}

static int check_assertion(lua_State *L)
{
    luaL_checkany(L, 1);
    if (lua_toboolean(L, 1))
        return lua_gettop(L);
    return script_refuse(L, 0, "%s",
                         lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "assertion failed!");
}

/* Copy the names from the table on top to the table at index `to`. */
static void copy_names(lua_State *L, int to, const char *const *names)
{
    for (; *names; names++) {
        lua_getfield(L, -1, *names);
        lua_setfield(L, to, *names);
    }
}

static void allow_lua(lua_State *L, int vocabulary)
{
    luaL_requiref(L, "_G", luaopen_base, 0);
    copy_names(L, vocabulary, allowed_base);
    lua_pushcfunction(L, raise_error);
    lua_setfield(L, vocabulary, "error");
    lua_pushcfunction(L, check_assertion);
    lua_setfield(L, vocabulary, "assert");
    luaL_requiref(L, "math", luaopen_math, 0);
    lua_newtable(L);
    lua_insert(L, -2);
    copy_names(L, lua_gettop(L) - 1, allowed_math);
    lua_pop(L, 1);
    lua_setfield(L, vocabulary, "math");
    lua_pop(L, 1);
}

/* Loads text with the table at index `globals` as its _ENV. Syntax errors name their line. */
static void load_chunk(lua_State *L, const char *text, size_t size, const char *chunk, int globals)
{
    int status = luaL_loadbufferx(L, text, size, chunk, "t");
    int line;
    if (status == LUA_ERRMEM && !script_of(L)->refused)
        script_no_memory(L);
    if (status != LUA_OK) {
        const char *message = skip_position(luaL_tolstring(L, -1, NULL), &line);
        script_refuse(L, line, "%s", message);
    }
    lua_pushvalue(L, globals);
    lua_setupvalue(L, -2, 1);
}

/* Calls the prelude's function in upvalue 1. `return tspow {...}` of the user is a tail call; with a C function in
 * between, the user's frame, and so the line, remains on the stack. */
static int call_prelude(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* Wraps the prelude's functions by call_prelude. Lua allows assignments to existing fields during lua_next. */
static void wrap_functions(lua_State *L, int vocabulary)
{
    for (lua_pushnil(L); lua_next(L, vocabulary);) {
        if (!lua_isfunction(L, -1) || lua_iscfunction(L, -1)) {
            lua_pop(L, 1);
            continue;
        }
        lua_pushcclosure(L, call_prelude, 1);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, vocabulary);
    }
}

static const char vocabulary_key; /* its address is the registry's key */

void script_vocabulary(lua_State *L, const luaL_Reg *functions, const char *const *preludes)
{
    int vocabulary = lua_gettop(L) + 1;
    lua_newtable(L);
    allow_lua(L, vocabulary);
    luaL_setfuncs(L, functions, 0);
    for (; *preludes; preludes++) {
        load_chunk(L, *preludes, strlen(*preludes), prelude_chunk, vocabulary);
        lua_call(L, 0, 0);
    }
    wrap_functions(L, vocabulary);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &vocabulary_key);
}

/* A fresh table for the user's own globals; others are looked up in the vocabulary. */
static void push_globals(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &vocabulary_key);
    lua_pushcclosure(L, find_global, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

int script_run(lua_State *L, const char *text, size_t size)
{
    push_globals(L);
    int globals = lua_gettop(L);
    load_chunk(L, text, size, user_chunk, globals);
    lua_call(L, 0, LUA_MULTRET);
    return lua_gettop(L) - globals;
}

/* script: a sandboxed Lua state for one file of the user's.
 *
 * The sandbox is an allow-list: only what is in the vocabulary exists. Only text is executed, under limits of
 * instructions (an endless loop ends with a message), of seconds and of memory, which also hold for work that is
 * done in C. It contains accidents and keeps specs deterministic; it is not a security boundary. */
#ifndef FPAC_GEN_SPEC_SCRIPT_H
#define FPAC_GEN_SPEC_SCRIPT_H

#include <lauxlib.h>
#include <lua.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    SCRIPT_INSTRUCTIONS = 100 * 1000 * 1000, /* about a second */
    SCRIPT_MEMORY = 256 * 1024 * 1024,       /* bytes */
    SCRIPT_SECONDS = 30, /* of a script as a whole, unless FPA_SPEC_SECONDS sets another limit */
};

typedef struct fpa_script fpa_script;

/* Make a script. `file` names the user's text in messages, and must outlive the script. The caller frees it
 * (script_free). */
fpa_status script_new(const char *file, fpa_script **script, fpa_error *error);
void script_free(fpa_script *script); /* NULL is fine */

/* Call body(L) with `argument` as light userdata at index 1. Any error raised inside is returned, as one line:
 * where = "file:line" of the user's text, message = the rest. */
fpa_status script_protect(fpa_script *script, lua_CFunction body, void *argument, fpa_error *error);

/* ---- inside body: these raise Lua errors ---- */

/* Define the names that the user's file may use: the allowed functions of Lua, then `functions`, then the names
 * that the prelude defines. The prelude's globals are the vocabulary. */
void script_vocabulary(lua_State *L, const luaL_Reg *functions, const char *const *preludes);

/* Run the user's text; its results are pushed, and their number is returned. */
int script_run(lua_State *L, const char *text, size_t size);

/* The line of the user's file that is being executed; 0: none. */
int script_line(lua_State *L);

/* Raise an error at a line of the user's file (0: the line that is being executed). Formats as in lua_pushfstring:
 * %s %d %I %f %%. It does not return, but has a type, so that callers can write return script_raise(..). */
_Noreturn int script_raise(lua_State *L, fpa_status code, int line, const char *format, ...);
#define script_refuse(L, line, ...) script_raise(L, FPA_INVALID, line, __VA_ARGS__)

/* Count work done outside of Lua as instructions, which are limited. */
void script_charge(lua_State *L, int64_t instructions);

/* Count bytes that are held outside of Lua for one of its values, or released (negative). Garbage is collected
 * before memory is refused. */
void script_hold(lua_State *L, int64_t bytes);

/* The bytes that may still be held. */
int64_t script_room(lua_State *L);

/* Raise the error of an allocation that failed outside of Lua. */
_Noreturn int script_no_memory(lua_State *L);

#endif

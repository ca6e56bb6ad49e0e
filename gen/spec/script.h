/* script: a sandboxed Lua state for one file of the user's.
 *
 * The sandbox is an allow-list: what is not put into the vocabulary does not exist. Only text
 * is run, under limits of instructions (an endless loop ends with a message), of seconds and of memory, which hold
 * for what is done in C as well.
 * It contains accidents and keeps specs deterministic; it is not a security boundary. */
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
    SCRIPT_SECONDS = 30,                     /* of everything, unless FPA_SPEC_SECONDS says otherwise */
};

typedef struct fpa_script fpa_script;

/* file names the user's text in messages; it must outlive the script. */
fpa_status script_new(const char *file, fpa_script **script, fpa_error *error);
void script_free(fpa_script *script); /* NULL is fine */

/* Call body(L) with argument as light userdata at index 1. Whatever is raised inside ends here,
 * as one line: where = "file:line" of the user's text, message = the rest. */
fpa_status script_protect(fpa_script *script, lua_CFunction body, void *argument, fpa_error *error);

/* ---- inside body: these raise Lua errors ---- */

/* What the user's file may call: the allowed functions of Lua's, then functions, then what the
 * prelude defines. The prelude sees the vocabulary as its globals. */
void script_vocabulary(lua_State *L, const luaL_Reg *functions, const char *const *preludes);

/* Run the user's text; its results are on the stack, their number is returned. */
int script_run(lua_State *L, const char *text, size_t size);

/* The line of the user's file that is being run; 0: none. */
int script_line(lua_State *L);

/* Raise an error at a line of the user's file (0: the line that is being run). Formats as
 * lua_pushfstring: %s %d %I %f %%. Like lua_error it returns nothing, so that one can write return
 * script_raise(..). */
_Noreturn int script_raise(lua_State *L, fpa_status code, int line, const char *format, ...);
#define script_refuse(L, line, ...) script_raise(L, FPA_INVALID, line, __VA_ARGS__)

/* Count work done outside Lua as instructions, against their limit. */
void script_charge(lua_State *L, int64_t instructions);

/* Count bytes that are held outside Lua for one of its values, or that no longer are (negative). What is garbage is
 * collected before more is refused. */
void script_hold(lua_State *L, int64_t bytes);

/* Bytes that may still be held. */
int64_t script_room(lua_State *L);

/* Raise the error of memory that could not be had outside Lua. */
_Noreturn int script_no_memory(lua_State *L);

#endif

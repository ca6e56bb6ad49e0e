/* template: line templates -> text.
 *
 * A line whose first non-blank character is $ is Lua (`$--` a comment); in any other line
 * ${expression} is replaced by its value. Each template line becomes exactly one Lua line of
 * a chunk that bears the template's name, so that Lua's messages name the right line. */
#ifndef FPAC_GEN_EMIT_TEMPLATE_H
#define FPAC_GEN_EMIT_TEMPLATE_H

#include <lua.h>
#include <stdbool.h>

#include "base/error.h"

/* Translate a template to Lua source; malloc'ed, NULL: no memory. On a malformed line *bad_line
 * is its number (and the result NULL), else 0. */
char *template_translate(const char *text, int *bad_line);

/* Define `include(name)` in L: it runs the template of that name, found by find (NULL: none),
 * which appends to the text. Then run the template `name` and return its text, malloc'ed. */
fpa_status template_run(lua_State *L, const char *(*find)(const char *name), const char *name, char **text,
                        fpa_error *error);

#endif

/* template: line templates -> text.
 *
 * A line whose first non-blank character is $ is Lua (`$--` a comment); in any other line
 * ${expression} is replaced by its value. Each template line becomes exactly one Lua line of
 * a chunk that bears the template's name, so that Lua's messages name the right line.
 *
 * A line that ends with ` $if condition`, or ` $for i = 1, n`, is printed under that: what `$ if condition then`, the line and
 * `$ end` are.
 *
 * A line that ends with ` $@ name`, or some in a row, is the point of that name, where tests make faults
 * (fault.h). Nothing of that is printed. */
#ifndef FPAC_GEN_EMIT_TEMPLATE_H
#define FPAC_GEN_EMIT_TEMPLATE_H

#include <lua.h>
#include <stdbool.h>

#include "base/error.h"

struct fpa_fault;

/* Translate a template to Lua source; malloc'ed, NULL: no memory. On a malformed line *bad_line
 * is its number (and the result NULL), else 0. fault: what stands in the lines of its point instead, or
 * NULL. */
char *template_translate(const char *text, const struct fpa_fault *fault, int *bad_line);

/* The name of the next line of *text that is a point, and its size; *text goes on behind that line. NULL:
 * there is none. */
const char *template_next_point(const char **text, size_t *size);

/* A state for template_run, or NULL: no memory. *no_memory, which has to outlive it, becomes true when memory was
 * out: then an error is NO_MEMORY, whatever Lua calls it. */
lua_State *template_state(bool *no_memory);

/* Define `include(name)` in L: it runs the template of that name, found by find (NULL: none),
 * which appends to the text. Then run the template `name` and return its text, malloc'ed. */
fpa_status template_run(lua_State *L, const char *(*find)(const char *name), const char *name,
                        const struct fpa_fault *fault, char **text, fpa_error *error);

#endif

/* template: line templates -> text.
 *
 * A line whose first non-blank character is $ is Lua (`$--` a comment); in any other line ${expression} is replaced by
 * its value. Each template line becomes exactly one line of a Lua chunk that has the template's name, so that Lua's
 * messages name the right line.
 *
 * A line that ends with ` $if condition`, or ` $for i = 1, n`, is printed under that statement, as between the lines
 * `$ if condition then` and `$ end`.
 *
 * Consecutive lines that end with ` $@ name` are the point of that name, where tests make faults (fault.h). The mark is
 * not printed. */
#ifndef FPAC_GEN_EMIT_TEMPLATE_H
#define FPAC_GEN_EMIT_TEMPLATE_H

#include <lua.h>
#include <stdbool.h>

#include "base/error.h"

struct fpa_fault;

/* Translate a template to Lua source, malloc'ed; NULL: no memory, or a malformed line, whose number is in
 * *bad_line (else 0). fault: replaces the lines of its point; NULL: none. */
char *template_translate(const char *text, const struct fpa_fault *fault, int *bad_line);

/* The name of the next point in *text, and its size; *text advances past that line. NULL: there is none. */
const char *template_next_point(const char **text, size_t *size);

/* A Lua state for template_run, or NULL: no memory. *no_memory has to outlive the state, and becomes true when an
 * allocation fails: then an error is NO_MEMORY, whatever Lua reports. */
lua_State *template_state(bool *no_memory);

/* Define `include(name)` in L, which runs the template that find(name) returns (NULL: error) and appends to the
 * text. Then run the template `name` and return its text, malloc'ed. */
fpa_status template_run(lua_State *L, const char *(*find)(const char *name), const char *name,
                        const struct fpa_fault *fault, char **text, fpa_error *error);

#endif

/* lines: the functions of templates/common/lines.in that are in C, since they run for each of the thousands of
 * lines of a text. */
#ifndef FPAC_GEN_EMIT_LINES_H
#define FPAC_GEN_EMIT_LINES_H

#include <lua.h>

/* Define in L
 *   line_printer(change)  returns put, print_line, kept, keep_lines and the most columns of a line: see lines.in
 *   fold_code(line)       breaks a line of code that is too long
 *   count_names(lines, first, last, counts)  adds to counts[name] the occurrences of each name in these lines,
 *                         comments excluded
 * parts: index of the table to which the text is appended. */
void lines_define(lua_State *L, int parts);

#endif

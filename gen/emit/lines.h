/* lines: what templates/common/lines.in has C do, since it is done with each of the thousands of lines of a text. */
#ifndef FPAC_GEN_EMIT_LINES_H
#define FPAC_GEN_EMIT_LINES_H

#include <lua.h>

/* Define in L
 *   line_printer(change)  put, print_line, kept, keep_lines, the most columns of a line: see lines.in
 *   fold_code(line)       a line of code that is too long, in several
 *   count_names(lines, first, last, counts)  counts[name] of each name in these lines, comments left out, one more each time
 * parts: index of the table that the text is appended to. */
void lines_define(lua_State *L, int parts);

#endif

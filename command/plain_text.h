/* plain_text: text that may stand in a document, a terminal or JSON, and what is done with text that may not. */
#ifndef FPAC_COMMAND_PLAIN_TEXT_H
#define FPAC_COMMAND_PLAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* UTF-8 of characters that XML 1.0 allows, tabs and line ends left out. */
bool text_is_plain(const char *text, size_t size);

/* Bytes of the character at the start of text that text_is_plain takes; 0: it begins with none. */
size_t plain_size(const char *text);

/* Print, with a control character or what is no UTF-8 as \n, \x1b, \xff: a file's name must not move the
 * terminal's cursor. */
void print_escaped(FILE *out, const char *text);

#endif

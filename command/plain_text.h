/* plain_text: text that may be printed in a document, on a terminal or in JSON, and how other text is printed. */
#ifndef FPAC_COMMAND_PLAIN_TEXT_H
#define FPAC_COMMAND_PLAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether a text is UTF-8 of characters that XML 1.0 allows, without tabs and line ends. */
bool text_is_plain(const char *text, size_t size);

/* The bytes of the character at the start of text, if text_is_plain accepts it; else 0. */
size_t plain_size(const char *text);

/* Print a text, with control characters and invalid UTF-8 as \n, \x1b, \xff, so that a file's name cannot move the
 * terminal's cursor. */
void print_escaped(FILE *out, const char *text);

#endif

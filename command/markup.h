/* markup: text and numbers as HTML and SVG hold them. */
#ifndef FPAC_COMMAND_MARKUP_H
#define FPAC_COMMAND_MARKUP_H

#include <stdint.h>
#include <stdio.h>

/* Whatever the text holds it stays text, in an element or in an attribute between quotation marks: what begins a tag or an
 * entity is escaped; a control character, or what is no UTF-8, becomes U+FFFD. */
void markup_text(FILE *out, const char *text);

/* 65536 as 65,536; what is not whole, or beyond 10^12, as %g. */
enum { MARKUP_NUMBER = 64 };
const char *markup_number(char text[MARKUP_NUMBER], double value);

/* 0.000304 as 304 µs; three digits. */
const char *markup_seconds(char text[MARKUP_NUMBER], double seconds);

/* <data class="name" value="2112">2,112</data>: for people, and for programs. name is written as it is. */
void markup_data(FILE *out, const char *name, double value);

#endif

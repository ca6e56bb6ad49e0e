/* markup: writes text and numbers for HTML and SVG. */
#ifndef FPAC_COMMAND_MARKUP_H
#define FPAC_COMMAND_MARKUP_H

#include <stdint.h>
#include <stdio.h>

/* Write a text so that it remains text, in an element or in an attribute between quotation marks: characters that
 * begin a tag or an entity are escaped; control characters and invalid UTF-8 become U+FFFD. */
void markup_text(FILE *out, const char *text);

/* A number: 65536 as "65,536"; fractions, and numbers beyond 10^12, as %g. */
enum { MARKUP_NUMBER = 64 };
const char *markup_number(char text[MARKUP_NUMBER], double value);

/* Seconds with three digits: 0.000304 as "304 µs". */
const char *markup_seconds(char text[MARKUP_NUMBER], double seconds);

/* Write <data class="name" value="2112">2,112</data>, readable for people and programs. name is not escaped. */
void markup_data(FILE *out, const char *name, double value);

#endif

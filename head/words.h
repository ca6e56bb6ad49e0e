/* words: how a head's canonical text spells doubles. Private to head/. */
#ifndef FPAC_HEAD_WORDS_H
#define FPAC_HEAD_WORDS_H

#include <stdio.h>

/* Prints an odd integer times a power of two in C's hexadecimal notation, without a radix point, which would
 * depend on the program's locale. */
void text_double(FILE *out, double value);

#endif

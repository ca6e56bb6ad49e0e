/* text: texts that are printed piece by piece. */
#ifndef FPAC_BASE_TEXT_H
#define FPAC_BASE_TEXT_H

#include <stdio.h>

/* Close a stream that open_memstream gave for *text. The text, malloc'ed; NULL, and *text NULL, when not all
 * of it could be written. */
char *text_finish(FILE *stream, char **text);

#endif

/* text: texts that are printed piece by piece, into memory. What cannot be kept is told: open_memstream's streams
 * lose characters without an error when memory is out. */
#ifndef FPAC_BASE_TEXT_H
#define FPAC_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct text_buffer {
    FILE *stream;
    char *bytes; /* malloc'ed */
    size_t used, room;
    bool lost;         /* memory was out: something of the text is missing */
    char pending[512]; /* the stream's own buffer */
} text_buffer;

/* The stream to print to, or NULL: no memory. *text stays where it is until text_finish. */
FILE *text_open(text_buffer *text);

/* Close the stream. The text, malloc'ed; NULL: some of it was lost, since there was no memory. */
char *text_finish(text_buffer *text);

/* Rows, 0-based, as people count them: "1-8,10", runs of consecutive ones as "first-last". */
void text_rows(FILE *out, const int *row, int count);

#endif

/* text: printing to memory through a FILE. Unlike open_memstream, which may lose characters without an error when
 * memory is out, text_finish says whether the text is complete. */
#ifndef FPAC_BASE_TEXT_H
#define FPAC_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct text_buffer {
    FILE *stream;
    char *bytes; /* malloc'ed */
    size_t used, room;
    bool lost;         /* an allocation failed, so that a part of the text is missing */
    char pending[512]; /* the stream's own buffer */
} text_buffer;

/* The stream to print to, or NULL: no memory. *text must not be moved until text_finish. */
FILE *text_open(text_buffer *text);

/* Close the stream and return the text, malloc'ed; NULL: an allocation failed. */
char *text_finish(text_buffer *text);

/* Print rows (0-based indices) as 1-based numbers, runs of consecutive ones as "first-last": "1-8,10". */
void text_rows(FILE *out, const int *row, int count);

#endif

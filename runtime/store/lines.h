/* lines: reads a text line by line, each with an expected form, and words in lines. */
#ifndef FPAC_RUNTIME_STORE_LINES_H
#define FPAC_RUNTIME_STORE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { LINES_MOST = 512 /* the most bytes of a line, its end included */ };

typedef struct fpa_lines {
    const char *where; /* the file's name, for messages */
    const char *next;  /* start of the next line */
    int number;        /* of the current line, from 1 */
    char line[LINES_MOST];
    fpa_error *error;
} fpa_lines;

/* Go to the next line; false: there is none, it is too long, or it has no end. */
bool lines_next(fpa_lines *r);

/* The rest of the current line after "word ", or NULL. */
char *lines_after(fpa_lines *r, const char *word);

/* The error INVALID: the current line is not `wanted`. */
fpa_status lines_refuse(const fpa_lines *r, const char *wanted);

/* Parse a number of digits only that is at most `largest`; false: it is none. */
bool whole_parse(const char *text, int64_t largest, int64_t *value);

/* Split "first second" in two; false: the text is not two words. text may be NULL. */
bool words_split(char *text, char **first, char **second);

/* Copy a word; false: it does not fit. */
bool word_copy(char *to, size_t size, const char *word);

/* Whether a name stays inside its folder: it has no slash and does not begin with a dot. */
bool is_plain_name(const char *name);

/* Whether a text is a SHA-256 in hexadecimal. */
bool is_digest(const char *text);

#endif

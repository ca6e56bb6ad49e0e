/* lines: a text that is read line by line, each of which has to be as expected; and words in it. */
#ifndef FPAC_RUNTIME_STORE_LINES_H
#define FPAC_RUNTIME_STORE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { LINES_MOST = 512 /* bytes of a line at most, its end included */ };

typedef struct fpa_lines {
    const char *where; /* the file, in messages */
    const char *next;  /* start of the next line */
    int number;        /* of the current line, from 1 */
    char line[LINES_MOST];
    fpa_error *error;
} fpa_lines;

/* The next line is the current one; false: there is none, or it is too long or has no end. */
bool lines_next(fpa_lines *r);

/* The rest of the current line after "word ", or NULL. */
char *lines_after(fpa_lines *r, const char *word);

/* INVALID: the current line is not what is wanted. */
fpa_status lines_refuse(const fpa_lines *r, const char *wanted);

/* Digits alone, of a number that is not larger. */
bool whole_parse(const char *text, int64_t largest, int64_t *value);

/* Split "first second" in two; false when it is not two words. text may be NULL. */
bool words_split(char *text, char **first, char **second);

/* False: it has no room. */
bool word_copy(char *to, size_t size, const char *word);

/* A name that stays inside the folder: no slash, no dot at its start. */
bool is_plain_name(const char *name);

/* A SHA-256, in hexadecimal. */
bool is_digest(const char *text);

#endif

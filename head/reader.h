/* head_reader: reads lines and words of a head's canonical text (format: text.c), for head_parse. After the first
 * error functions read no further line and set no results, so that callers can check in->status at the end. */
#ifndef FPAC_HEAD_READER_H
#define FPAC_HEAD_READER_H

#include "head.h"

enum { WORD_SIZE = 128 };

typedef struct reader {
    const char *at, *stop;  /* rest of the line */
    const char *next, *end; /* text after the line */
    int line;               /* 1-based */
    int64_t listed;         /* rows that branches have listed so far, for HEAD_MAX_LISTED */
    fpa_head *head;
    fpa_error *error;
    /* the first error; after it nothing is read, and results stay as they are */
    fpa_status status;
} reader;

/* Set the error: FPA_INVALID, with the line's number. */
void reader_refuse(reader *in, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- lines ---- */

void reader_next_line(reader *in);
/* Go to the next line, which has to begin with the keyword, and past the keyword. */
void reader_begin(reader *in, const char *keyword);
/* Whether the next line begins with `start`. */
bool reader_sees(const reader *in, const char *start);
/* Check that nothing is left of the line. */
void reader_finish(reader *in);

/* ---- words ---- */

/* The next word of the line, up to a space or one of the delimiters; "" if there is none, or if it is longer than
 * any word of the format. */
void reader_word(reader *in, const char *delimiters, char word[WORD_SIZE]);
/* Skip the delimiter if it comes next; false: it does not. */
bool reader_skip(reader *in, char delimiter);
void reader_expect(reader *in, const char *keyword);
void reader_integer(reader *in, const char *delimiters, int low, int high, int *value);
/* Read a finite number in hexadecimal notation. */
void reader_double(reader *in, double *value);
void reader_number(reader *in, const char *delimiters, fpa_number *number);
/* An array of zeros in the head's memory; NULL after an error. */
void *reader_array(reader *in, int64_t count, size_t size);
/* Read a name; *name is in the head's memory. */
void reader_name(reader *in, const char *delimiters, char **name);
/* Read rows, 1-based in the text, such as "1-8,10"; *row, 0-based, is in the head's memory. */
void reader_rows(reader *in, int **row, int *count);
/* Read one of the words name(0) .. name(count - 1); *choice is its index. */
void reader_choice(reader *in, const char *(*name)(int), int count, int *choice);

/* ---- "keyword value" as a line of its own ---- */

void reader_field(reader *in, const char *keyword, int low, int high, int *value);
void reader_flag(reader *in, const char *keyword, bool *value);
void reader_double_field(reader *in, const char *keyword, double *value);
void reader_choice_field(reader *in, const char *keyword, const char *(*name)(int), int count, int *choice);

#endif

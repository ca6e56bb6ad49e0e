/* head_reader: lines and words of a head's canonical text (format: head_text.c), for head_parse. */
#ifndef FPAC_HEAD_READER_H
#define FPAC_HEAD_READER_H

#include "head.h"

enum { WORD_SIZE = 128 };

typedef struct reader {
    const char *at, *stop;  /* rest of the line */
    const char *next, *end; /* text after the line */
    int line;               /* 1-based */
    int64_t listed;         /* rows of all branches so far */
    fpa_head *head;
    fpa_error *error;
    /* of the first thing that is wrong: nothing is read behind it, and what is to be filled stays as it is */
    fpa_status status;
} reader;

/* INVALID, with the line's number. */
void reader_refuse(reader *in, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- lines ---- */

void reader_next_line(reader *in);
/* The next line, which has to begin with the keyword; goes behind it. */
void reader_begin(reader *in, const char *keyword);
/* Whether the text after this line begins so. */
bool reader_sees(const reader *in, const char *start);
/* Nothing may be left of the line. */
void reader_finish(reader *in);

/* ---- words ---- */

/* The next word of the line, cut at a space or one of the delimiters; "" when there is none
 * or it is longer than any word of the format. */
void reader_word(reader *in, const char *delimiters, char word[WORD_SIZE]);
/* False: the delimiter is not what comes next. */
bool reader_skip(reader *in, char delimiter);
void reader_expect(reader *in, const char *keyword);
void reader_integer(reader *in, const char *delimiters, int low, int high, int *value);
/* Hexadecimal and finite. */
void reader_double(reader *in, double *value);
void reader_number(reader *in, const char *delimiters, fpa_number *number);
/* An array of zeros in the head's memory; NULL after an error. */
void *reader_array(reader *in, int64_t count, size_t size);
/* In the head's memory. */
void reader_name(reader *in, const char *delimiters, char **name);
/* Rows, 1-based in the text, as "1-8,10"; *row is in the head's memory. */
void reader_rows(reader *in, int **row, int *count);
/* One of the words name(0) .. name(count - 1). */
void reader_choice(reader *in, const char *(*name)(int), int count, int *choice);

/* ---- "keyword value" as a line of its own ---- */

void reader_field(reader *in, const char *keyword, int low, int high, int *value);
void reader_flag(reader *in, const char *keyword, bool *value);
void reader_double_field(reader *in, const char *keyword, double *value);
void reader_choice_field(reader *in, const char *keyword, const char *(*name)(int), int count, int *choice);

#endif

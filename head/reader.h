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
} reader;

/* INVALID, with the line's number. */
fpa_status reader_refuse(reader *in, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- lines ---- */

fpa_status reader_next_line(reader *in);
/* The next line, which has to begin with the keyword; goes behind it. */
fpa_status reader_begin(reader *in, const char *keyword);
/* Whether the text after this line begins so. */
bool reader_sees(const reader *in, const char *start);
/* Nothing may be left of the line. */
fpa_status reader_finish(reader *in);

/* ---- words ---- */

/* The next word of the line, cut at a space or one of the delimiters; "" when there is none
 * or it is longer than any word of the format. */
void reader_word(reader *in, const char *delimiters, char word[WORD_SIZE]);
/* False: the delimiter is not what comes next. */
bool reader_skip(reader *in, char delimiter);
fpa_status reader_expect(reader *in, const char *keyword);
fpa_status reader_integer(reader *in, const char *delimiters, int low, int high, int *value);
/* Hexadecimal and finite. */
fpa_status reader_double(reader *in, double *value);
fpa_status reader_number(reader *in, const char *delimiters, fpa_number *number);
/* In the head's memory. */
fpa_status reader_name(reader *in, const char *delimiters, char **name);
/* Rows, 1-based in the text, as "1-8,10"; *row is in the head's memory. */
fpa_status reader_rows(reader *in, int **row, int *count);
/* One of the words name(0) .. name(count - 1). */
fpa_status reader_choice(reader *in, const char *(*name)(int), int count, int *choice);

/* ---- "keyword value" as a line of its own ---- */

fpa_status reader_field(reader *in, const char *keyword, int low, int high, int *value);
fpa_status reader_flag(reader *in, const char *keyword, bool *value);
fpa_status reader_double_field(reader *in, const char *keyword, double *value);
fpa_status reader_choice_field(reader *in, const char *keyword, const char *(*name)(int), int count,
                               int *choice);

#endif

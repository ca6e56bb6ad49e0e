/* emitted_text: emitted code by lines, for tests of how it reads. */
#ifndef FPAC_TESTS_EMITTED_TEXT_H
#define FPAC_TESTS_EMITTED_TEXT_H

#include <stdbool.h>

/* A line: as it is, and its code with blanks for comments and the insides of strings. */
struct line {
    const char *text, *code;
    int size, number;
    bool comment; /* it begins within a comment, or begins one */
};

struct text {
    const char *about;
    char *lines, *codes;
    struct line *line;
    int count;
    int wrong;
};

/* about: names the text in messages. emitted_free afterwards. */
void emitted_read(struct text *text, const char *about, const char *code);
void emitted_free(struct text *text);
int indent_of(const struct line *line); /* its first column that is not blank */
bool is_blank(const char *text);
char last_of(const char *code); /* the last character that is not blank; 0: none */
/* Count what is wrong with a line, and print the first ten. */
void wrong(struct text *text, const struct line *line, const char *what);

#endif

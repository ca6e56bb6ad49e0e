#include "reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reader_refuse(reader *in, const char *format, ...)
{
    char where[64];
    va_list arguments;
    if (in->status)
        return;
    snprintf(where, sizeof where, "head text:%d", in->line);
    va_start(arguments, format);
    in->status = fail_list(in->error, FPA_INVALID, where, format, arguments);
    va_end(arguments);
}

void *reader_array(reader *in, int64_t count, size_t size)
{
    void *array = in->status ? NULL : arena_array(&in->head->memory, (size_t)count, size);
    if (!array && !in->status)
        in->status = fail_memory(in->error);
    return array;
}

void reader_next_line(reader *in)
{
    if (in->status)
        return;
    in->line++;
    const char *newline = in->next < in->end ? memchr(in->next, '\n', (size_t)(in->end - in->next)) : NULL;
    if (!newline) {
        reader_refuse(in, "the text ends early");
        return;
    }
    in->at = in->next;
    in->stop = newline;
    in->next = newline + 1;
}

void reader_word(reader *in, const char *delimiters, char word[WORD_SIZE])
{
    size_t length = 0;
    while (in->at + length < in->stop && in->at[length] != ' ' && in->at[length] != '\0' &&
           !strchr(delimiters, in->at[length]))
        length++;
    if (length >= WORD_SIZE)
        length = 0;
    if (length)
        memcpy(word, in->at, length);
    word[length] = '\0';
    in->at += length;
}

bool reader_skip(reader *in, char delimiter)
{
    if (in->at >= in->stop || *in->at != delimiter)
        return false;
    in->at++;
    return true;
}

void reader_expect(reader *in, const char *keyword)
{
    char word[WORD_SIZE];
    reader_word(in, "", word);
    if (strcmp(word, keyword) != 0)
        reader_refuse(in, "expected \"%s\"", keyword);
    reader_skip(in, ' ');
}

void reader_begin(reader *in, const char *keyword)
{
    reader_next_line(in);
    reader_expect(in, keyword);
}

void reader_finish(reader *in)
{
    if (in->at != in->stop)
        reader_refuse(in, "unexpected bytes at the end of the line");
}

void reader_integer(reader *in, const char *delimiters, int low, int high, int *value)
{
    char word[WORD_SIZE], *rest;
    reader_word(in, delimiters, word);
    /* strtol returns an end of its range for numbers outside of it, which is outside of low..high, too */
    const long parsed = strtol(word, &rest, 10);
    if (word[0] < '0' || word[0] > '9' || *rest || parsed < low || parsed > high)
        reader_refuse(in, "\"%.40s\" is not an integer in %d..%d", word, low, high);
    if (!in->status)
        *value = (int)parsed;
}

void reader_field(reader *in, const char *keyword, int low, int high, int *value)
{
    reader_begin(in, keyword);
    reader_integer(in, "", low, high, value);
    reader_finish(in);
}

void reader_flag(reader *in, const char *keyword, bool *value)
{
    int integer = 0;
    reader_field(in, keyword, 0, 1, &integer);
    *value = integer;
}

void reader_double(reader *in, double *value)
{
    char word[WORD_SIZE], *rest;
    reader_word(in, "", word);
    if (!word[0] || strspn(word, "-+0123456789abcdefxp") != strlen(word))
        reader_refuse(in, "\"%.40s\" is not a hexadecimal number", word);
    if (in->status)
        return;
    *value = strtod(word, &rest);
    if (*rest || !isfinite(*value))
        reader_refuse(in, "\"%.40s\" is not a finite hexadecimal number", word);
    reader_skip(in, ' ');
}

void reader_double_field(reader *in, const char *keyword, double *value)
{
    reader_begin(in, keyword);
    reader_double(in, value);
    reader_finish(in);
}

void reader_number(reader *in, const char *delimiters, fpa_number *number)
{
    const char *start = in->at;
    char where[64];
    if (in->status)
        return;
    while (in->at < in->stop && *in->at != ' ' && *in->at != '\0' && !strchr(delimiters, *in->at))
        in->at++;
    *number = number_parse(&in->head->memory, start, (size_t)(in->at - start));
    if (number_status(*number) == FPA_INVALID) {
        reader_refuse(in, "\"%.*s\" is not a number", in->at - start < 40 ? (int)(in->at - start) : 40,
                      start);
        return;
    }
    snprintf(where, sizeof where, "head text:%d", in->line);
    in->status = number_check(*number, where, in->error);
}

void reader_name(reader *in, const char *delimiters, char **name)
{
    char word[WORD_SIZE];
    reader_word(in, delimiters, word);
    if (!word[0])
        reader_refuse(in, "a name is missing, or longer than %d bytes", HEAD_MAX_NAME);
    if (in->status)
        return;
    *name = arena_string(&in->head->memory, word);
    if (!*name)
        in->status = fail_memory(in->error);
}

void reader_choice(reader *in, const char *(*name)(int), int count, int *choice)
{
    char word[WORD_SIZE];
    reader_word(in, "", word);
    for (int i = 0; i < count && !in->status; i++)
        if (strcmp(word, name(i)) == 0) {
            *choice = i;
            reader_skip(in, ' ');
            return;
        }
    reader_refuse(in, "\"%.40s\" is not a word that belongs here (\"%s\" would be)", word, name(0));
}

void reader_choice_field(reader *in, const char *keyword, const char *(*name)(int), int count, int *choice)
{
    reader_begin(in, keyword);
    reader_choice(in, name, count, choice);
    reader_finish(in);
}

bool reader_sees(const reader *in, const char *start)
{
    const size_t length = strlen(start);
    return !in->status && (size_t)(in->end - in->next) >= length && memcmp(in->next, start, length) == 0;
}

/* Read one "first" or "first-last" of a list of rows. */
static void read_run(reader *in, int *first, int *last)
{
    reader_integer(in, ",-", 1, HEAD_MAX_ROWS, first);
    *last = *first;
    if (reader_skip(in, '-'))
        reader_integer(in, ",-", *first, HEAD_MAX_ROWS, last);
}

/* A list of rows is read twice: first to count the rows, then to store them. */
void reader_rows(reader *in, int **row, int *count)
{
    reader start = *in;
    int first = 0, last = 0, filled = 0;
    int64_t width = 0;
    do {
        read_run(in, &first, &last);
        width += last - first + 1;
        if (in->listed + width > HEAD_MAX_LISTED)
            reader_refuse(in, "the branches list more than %d rows", HEAD_MAX_LISTED);
    } while (!in->status && reader_skip(in, ','));
    in->listed += width;
    *row = reader_array(in, width, sizeof **row);
    if (in->status)
        return;
    *count = (int)width;
    do {
        read_run(&start, &first, &last);
        for (int r = first; r <= last; r++)
            (*row)[filled++] = r - 1;
    } while (reader_skip(&start, ','));
}

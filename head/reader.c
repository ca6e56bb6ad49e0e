#include "reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fpa_status reader_refuse(reader *in, const char *format, ...)
{
    char where[64], message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(where, sizeof where, "head text:%d", in->line);
    return fail(in->error, FPA_INVALID, where, "%s", message);
}

fpa_status reader_next_line(reader *in)
{
    const char *newline;
    in->line++;
    newline = in->next < in->end ? memchr(in->next, '\n', (size_t)(in->end - in->next)) : NULL;
    if (!newline)
        return reader_refuse(in, "the text ends early");
    in->at = in->next;
    in->stop = newline;
    in->next = newline + 1;
    return FPA_OK;
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

fpa_status reader_expect(reader *in, const char *keyword)
{
    char word[WORD_SIZE];
    reader_word(in, "", word);
    if (strcmp(word, keyword) != 0)
        return reader_refuse(in, "expected \"%s\"", keyword);
    reader_skip(in, ' ');
    return FPA_OK;
}

fpa_status reader_begin(reader *in, const char *keyword)
{
    fpa_status status = reader_next_line(in);
    return status == FPA_OK ? reader_expect(in, keyword) : status;
}

fpa_status reader_finish(reader *in)
{
    return in->at == in->stop ? FPA_OK : reader_refuse(in, "unexpected bytes at the end of the line");
}

fpa_status reader_integer(reader *in, const char *delimiters, int low, int high, int *value)
{
    char word[WORD_SIZE], *rest;
    long parsed;
    reader_word(in, delimiters, word);
    parsed = strtol(word, &rest, 10); /* out of range: its ends, which are out of ours */
    if (word[0] < '0' || word[0] > '9' || *rest || parsed < low || parsed > high)
        return reader_refuse(in, "\"%.40s\" is not an integer in %d..%d", word, low, high);
    *value = (int)parsed;
    return FPA_OK;
}

fpa_status reader_field(reader *in, const char *keyword, int low, int high, int *value)
{
    fpa_status status = reader_begin(in, keyword);
    if (status == FPA_OK)
        status = reader_integer(in, "", low, high, value);
    return status == FPA_OK ? reader_finish(in) : status;
}

fpa_status reader_flag(reader *in, const char *keyword, bool *value)
{
    int integer = 0;
    fpa_status status = reader_field(in, keyword, 0, 1, &integer);
    *value = integer;
    return status;
}

fpa_status reader_double(reader *in, double *value)
{
    char word[WORD_SIZE], *rest;
    reader_word(in, "", word);
    if (!word[0] || strspn(word, "-+0123456789abcdefxp") != strlen(word))
        return reader_refuse(in, "\"%.40s\" is not a hexadecimal number", word);
    *value = strtod(word, &rest);
    if (*rest || !isfinite(*value))
        return reader_refuse(in, "\"%.40s\" is not a finite hexadecimal number", word);
    reader_skip(in, ' ');
    return FPA_OK;
}

fpa_status reader_double_field(reader *in, const char *keyword, double *value)
{
    fpa_status status = reader_begin(in, keyword);
    if (status == FPA_OK)
        status = reader_double(in, value);
    return status == FPA_OK ? reader_finish(in) : status;
}

fpa_status reader_number(reader *in, const char *delimiters, fpa_number *number)
{
    const char *start = in->at;
    char where[64];
    while (in->at < in->stop && *in->at != ' ' && *in->at != '\0' && !strchr(delimiters, *in->at))
        in->at++;
    *number = number_parse(&in->head->memory, start, (size_t)(in->at - start));
    if (number_status(*number) == FPA_INVALID)
        return reader_refuse(in, "\"%.*s\" is not a number", in->at - start < 40 ? (int)(in->at - start) : 40,
                             start);
    snprintf(where, sizeof where, "head text:%d", in->line);
    return number_check(*number, where, in->error);
}

fpa_status reader_name(reader *in, const char *delimiters, char **name)
{
    char word[WORD_SIZE];
    reader_word(in, delimiters, word);
    if (!word[0])
        return reader_refuse(in, "a name is missing, or longer than %d bytes", HEAD_MAX_NAME);
    *name = arena_string(&in->head->memory, word);
    return *name ? FPA_OK : fail_memory(in->error);
}

fpa_status reader_choice(reader *in, const char *(*name)(int), int count, int *choice)
{
    char word[WORD_SIZE];
    reader_word(in, "", word);
    for (*choice = 0; *choice < count; (*choice)++)
        if (strcmp(word, name(*choice)) == 0) {
            reader_skip(in, ' ');
            return FPA_OK;
        }
    return reader_refuse(in, "\"%.40s\" is not a word that belongs here (\"%s\" would be)", word, name(0));
}

fpa_status reader_choice_field(reader *in, const char *keyword, const char *(*name)(int), int count,
                               int *choice)
{
    fpa_status status = reader_begin(in, keyword);
    if (status == FPA_OK)
        status = reader_choice(in, name, count, choice);
    return status == FPA_OK ? reader_finish(in) : status;
}

bool reader_sees(const reader *in, const char *start)
{
    const size_t length = strlen(start);
    return (size_t)(in->end - in->next) >= length && memcmp(in->next, start, length) == 0;
}

/* One "first" or "first-last" of a row list. */
static fpa_status read_run(reader *in, int *first, int *last)
{
    fpa_status status = reader_integer(in, ",-", 1, HEAD_MAX_ROWS, first);
    *last = *first;
    if (status == FPA_OK && reader_skip(in, '-'))
        status = reader_integer(in, ",-", *first, HEAD_MAX_ROWS, last);
    return status;
}

/* A row list is read twice: for its width, then for its rows. */
fpa_status reader_rows(reader *in, int **row, int *count)
{
    reader start = *in;
    int first = 0, last = 0, filled = 0;
    int64_t width = 0;
    fpa_status status;
    do {
        if ((status = read_run(in, &first, &last)) != FPA_OK)
            return status;
        width += last - first + 1;
        if (in->listed + width > HEAD_MAX_LISTED)
            return reader_refuse(in, "the branches list more than %d rows", HEAD_MAX_LISTED);
    } while (reader_skip(in, ','));
    in->listed += width;
    *count = (int)width;
    *row = arena_array(&in->head->memory, (size_t)width, sizeof **row);
    if (!*row)
        return fail_memory(in->error);
    do {
        if ((status = read_run(&start, &first, &last)) != FPA_OK)
            return status;
        for (int r = first; r <= last; r++)
            (*row)[filled++] = r - 1;
    } while (reader_skip(&start, ','));
    return FPA_OK;
}

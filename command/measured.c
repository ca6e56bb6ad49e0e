#include "measured.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "plain_text.h"

enum { FIELDS_LEAST = 8, FIELDS_MOST = 10 };

static const char *const field_names[FIELDS_MOST] = {"who",   "version", "what", "length",     "batch",
                                                     "heads", "ns",      "ms",   "of product", "of copy"};

/* A line of the file, divided into fields; path and number are for messages. */
typedef struct line {
    const char *path;
    int number;
    int fields;
    const char *field[FIELDS_MOST];
} line;

static fpa_status fail_line(fpa_error *error, const line *in, const char *problem, const char *detail)
{
    char where[256];
    snprintf(where, sizeof where, "%s:%d", in->path, in->number);
    return fail(error, FPA_INVALID, where, "%s%s", problem, detail);
}

static fpa_status fail_field(fpa_error *error, const line *in, int index, const char *wanted)
{
    char detail[256];
    snprintf(detail, sizeof detail, "%d (%s) is '%.60s', but %s is needed", index + 1, field_names[index],
             in->field[index], wanted);
    return fail_line(error, in, "field ", detail);
}

/* ---- reading ---- */

static fpa_status split(char *text, line *in, fpa_error *error)
{
    int fields = 0;
    for (char *at = text; at; fields++) {
        char *tab = strchr(at, '\t');
        if (fields < FIELDS_MOST)
            in->field[fields] = at;
        if (tab)
            *tab++ = 0;
        at = tab;
    }
    in->fields = fields;
    if (fields == FIELDS_LEAST || fields == FIELDS_MOST)
        return FPA_OK;
    char detail[64];
    snprintf(detail, sizeof detail, "%d or %d are needed, but there are %d", FIELDS_LEAST, FIELDS_MOST,
             fields);
    return fail_line(error, in, "a line of measurements has fields with tabs between them: ", detail);
}

static fpa_status read_name(const line *in, int index, char name[MEASURED_NAME], fpa_error *error)
{
    const char *text = in->field[index];
    size_t size = strlen(text);
    if (size == 0 || size >= MEASURED_NAME)
        return fail_field(error, in, index, "a name of 1 to 127 bytes");
    if (!text_is_plain(text, size))
        return fail_field(error, in, index, "UTF-8 without control characters");
    memcpy(name, text, size + 1);
    return FPA_OK;
}

static fpa_status read_count(const line *in, int index, int64_t *count, fpa_error *error)
{
    const char *text = in->field[index];
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value < 1)
        return fail_field(error, in, index, "a whole number from 1");
    *count = value;
    return FPA_OK;
}

/* Reads a decimal number; strtod would also accept "inf" and "0x1p3". */
static bool read_decimal(const char *text, double *value)
{
    char *end;
    if (!*text || text[strspn(text, "0123456789.eE+-")])
        return false;
    *value = strtod(text, &end);
    return !*end && end != text && isfinite(*value);
}

static fpa_status read_time(const line *in, int index, double *value, fpa_error *error)
{
    if (!read_decimal(in->field[index], value) || *value <= 0)
        return fail_field(error, in, index, "a number above 0");
    return FPA_OK;
}

static fpa_status read_share(const line *in, int index, double *value, fpa_error *error)
{
    *value = 0;
    if (index >= in->fields || !strcmp(in->field[index], "-"))
        return FPA_OK;
    if (!read_decimal(in->field[index], value) || *value < 0)
        return fail_field(error, in, index, "a share from 0, or '-',");
    return FPA_OK;
}

static fpa_status read_item(const line *in, fpa_measured *item, fpa_error *error)
{
    char *const names[3] = {item->who, item->version, item->what};
    int64_t *const counts[3] = {&item->length, &item->batch, &item->heads};
    fpa_status status = FPA_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = read_name(in, i, names[i], error);
    for (int i = 0; i < 3 && !status; i++)
        status = read_count(in, 3 + i, counts[i], error);
    if (!status)
        status = read_time(in, 6, &item->nanoseconds, error);
    if (!status)
        status = read_time(in, 7, &item->milliseconds, error);
    if (!status)
        status = read_share(in, 8, &item->product, error);
    return status ? status : read_share(in, 9, &item->copy, error);
}

static fpa_status add_item(fpa_measured_list *list, const fpa_measured *item, fpa_error *error)
{
    if ((list->count & (list->count - 1)) == 0) { /* at 0 and powers of two the room is full */
        size_t room = list->count ? 2 * (size_t)list->count : 1;
        fpa_measured *grown = realloc(list->item, room * sizeof *grown);
        if (!grown)
            return fail_memory(error);
        list->item = grown;
    }
    list->item[list->count++] = *item;
    return FPA_OK;
}

static bool says_nothing(const char *text)
{
    return !*text || *text == '#' || !strcmp(text, "skipped") || !strncmp(text, "skipped\t", 8);
}

static fpa_status read_line(char *text, line *in, fpa_measured_list *list, fpa_error *error)
{
    fpa_measured item = {0};
    if (says_nothing(text))
        return FPA_OK;
    fpa_status status = split(text, in, error);
    if (!status)
        status = read_item(in, &item, error);
    return status ? status : add_item(list, &item, error);
}

static fpa_status read_lines(char *text, size_t size, const char *path, fpa_measured_list *list,
                             fpa_error *error)
{
    line in = {.path = path};
    fpa_status status = FPA_OK;
    for (char *at = text, *end = text + size; at < end && !status;) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        in.number++;
        if (!newline)
            return fail_line(error, &in, "the last line has no end", "");
        if (memchr(at, 0, (size_t)(newline - at)))
            return fail_line(error, &in, "a line of measurements is text, but this one contains a zero byte",
                             "");
        *newline = 0;
        status = read_line(at, &in, list, error);
        at = newline + 1;
    }
    return status;
}

fpa_status measured_read(const char *path, fpa_measured_list *list, fpa_error *error)
{
    fpa_file file;
    fpa_status status = file_read(path, &file, error);
    if (status)
        return status;
    status = read_lines((char *)file.bytes, file.size, path, list, error);
    free(file.bytes);
    return status;
}

void measured_free(fpa_measured_list *list)
{
    free(list->item);
    *list = (fpa_measured_list){0};
}

/* ---- writing ---- */

/* Checks that a file contains lines of measurements, so that nothing is appended to a spec that was named by
 * mistake. */
static fpa_status check_content(const char *path, fpa_error *error)
{
    fpa_measured_list list = {0};
    fpa_file file;
    fpa_status status = file_read(path, &file, error);
    if (status)
        return file.missing ? FPA_OK : status;
    status = read_lines((char *)file.bytes, file.size, path, &list, error);
    free(file.bytes);
    measured_free(&list);
    return status;
}

fpa_status measured_open(const char *path, FILE **file, fpa_error *error)
{
    *file = NULL;
    fpa_status status = check_content(path, error);
    if (status)
        return status;
    *file = fopen(path, "a");
    return *file ? FPA_OK : fail(error, FPA_IO, path, "cannot be written: %s", strerror(errno));
}

static const char *share_text(char text[32], double share)
{
    if (share > 0)
        snprintf(text, 32, "%.4f", share);
    else
        strcpy(text, "-");
    return text;
}

fpa_status measured_write(FILE *file, const char *path, const fpa_measured *item, fpa_error *error)
{
    char product[32], copy[32];
    int written =
        fprintf(file, "%s\t%s\t%s\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%.6g\t%.6g\t%s\t%s\n", item->who,
                item->version, item->what, item->length, item->batch, item->heads, item->nanoseconds,
                item->milliseconds, share_text(product, item->product), share_text(copy, item->copy));
    if (written < 0 || fflush(file))
        return fail(error, FPA_IO, path, "cannot be written: %s", strerror(errno));
    return FPA_OK;
}

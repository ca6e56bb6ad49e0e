#include "npy_header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const wanted_text[] = {
    [WANT_FLOATS] = "'<f2', '<f4' or '<f8' (float16, 32 or 64)",
    [WANT_NUMBERS] = "'<f2', '<f4', '<f8' (float16, 32 or 64) or an integer type",
    [WANT_MASK] = "'|b1' or '|u1' (bool or uint8)",
};

static const struct {
    const char *name;
    char kind;
    int item;
} types[] = {
    {"<f2", 'f', 2}, {"<f4", 'f', 4}, {"<f8", 'f', 8}, {"|b1", 'b', 1}, {"|u1", 'u', 1}, {"|i1", 'i', 1},
    {"<u2", 'u', 2}, {"<i2", 'i', 2}, {"<u4", 'u', 4}, {"<i4", 'i', 4}, {"<u8", 'u', 8}, {"<i8", 'i', 8},
};

/* ---- the header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ---- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\n");
}

/* Each parser below begins at *at and advances *at past what it has read. */

/* A string without escapes, as Python quotes it: its first character and its length. */
static bool parse_string(const char **at, const char **text, size_t *length)
{
    const char quote = **at;
    if (quote != '\'' && quote != '"')
        return false;
    *text = *at + 1;
    *length = strcspn(*text, quote == '\'' ? "'\\\n" : "\"\\\n");
    if ((*text)[*length] != quote)
        return false;
    *at = *text + *length + 1;
    return true;
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

static bool is_wanted(npy_wanted wanted, char kind, int item)
{
    if (wanted == WANT_MASK)
        return kind == 'b' || (kind == 'u' && item == 1);
    return kind == 'f' || (wanted == WANT_NUMBERS && kind != 'b');
}

static fpa_status parse_type(const char *path, const char **at, npy_layout *layout, fpa_error *error)
{
    const char *value = *at, *type;
    size_t length;
    if (*value == '[')
        return fail(error, FPA_INVALID, path, "has elements of type %.*s, but %s is needed",
                    (int)strcspn(value + 1, "'\n") + 2, value, wanted_text[layout->wanted]);
    if (!parse_string(at, &type, &length))
        return fail(error, FPA_INVALID, path, "has a header without a type");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_word(type, length, types[i].name) && is_wanted(layout->wanted, types[i].kind, types[i].item)) {
            layout->kind = types[i].kind;
            layout->item = types[i].item;
            return FPA_OK;
        }
    return fail(error, FPA_INVALID, path, "has elements of type %.*s, but %s is needed", (int)(*at - value),
                value, wanted_text[layout->wanted]);
}

static fpa_status parse_order(const char *path, const char **at, npy_layout *layout, fpa_error *error)
{
    size_t length = strspn(*at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    const char *value = *at;
    *at += length;
    layout->reversed = is_word(value, length, "True");
    if (layout->reversed || is_word(value, length, "False"))
        return FPA_OK;
    return fail(error, FPA_INVALID, path, "has a header without fortran_order");
}

static fpa_status add_axis(const char *path, const char **at, npy_layout *layout, fpa_error *error)
{
    char *end = NULL;
    errno = 0;
    int64_t size = **at >= '0' && **at <= '9' ? strtoll(*at, &end, 10) : -1;
    if (size < 0 || errno)
        return fail(error, FPA_INVALID, path, "has a shape that cannot be read");
    if (layout->axes == NPY_MAX_AXES)
        return fail(error, FPA_INVALID, path, "has more than %d axes", NPY_MAX_AXES);
    layout->shape[layout->axes++] = size;
    if (__builtin_mul_overflow(layout->count, size, &layout->count) ||
        layout->count > INT64_MAX / (int64_t)sizeof(double))
        return fail(error, FPA_INVALID, path, "has a shape too large for any memory");
    *at = skip_blanks(end);
    return FPA_OK;
}

/* A tuple of axes: (), (3,) or (3, 4). In Python (3) is no tuple, and it is refused here, too. */
static fpa_status parse_shape(const char *path, const char **at, npy_layout *layout, fpa_error *error)
{
    bool comma = false;
    layout->axes = 0;
    layout->count = 1;
    if (**at != '(')
        return fail(error, FPA_INVALID, path, "has a header without a shape");
    *at = skip_blanks(*at + 1);
    while (**at != ')') {
        if (layout->axes > 0 && !comma)
            return fail(error, FPA_INVALID, path, "has a shape that cannot be read");
        fpa_status status = add_axis(path, at, layout, error);
        if (status)
            return status;
        comma = **at == ',';
        if (comma)
            *at = skip_blanks(*at + 1);
    }
    if (layout->axes == 1 && !comma)
        return fail(error, FPA_INVALID, path, "has a shape that cannot be read");
    ++*at;
    return FPA_OK;
}

enum { KEY_TYPE = 1, KEY_ORDER = 2, KEY_SHAPE = 4, ALL_KEYS = 7 };

static fpa_status parse_value(int key, const char *path, const char **at, npy_layout *layout,
                              fpa_error *error)
{
    if (key == KEY_TYPE)
        return parse_type(path, at, layout, error);
    return key == KEY_ORDER ? parse_order(path, at, layout, error) : parse_shape(path, at, layout, error);
}

/* A key and its colon, such as "'descr':". Returns which key it is; 0: another one, or no key. */
static int parse_key(const char **at)
{
    const char *name;
    size_t length;
    if (!parse_string(at, &name, &length))
        return 0;
    *at = skip_blanks(*at);
    if (**at != ':')
        return 0;
    *at = skip_blanks(*at + 1);
    return is_word(name, length, "descr")           ? KEY_TYPE
           : is_word(name, length, "fortran_order") ? KEY_ORDER
           : is_word(name, length, "shape")         ? KEY_SHAPE
                                                    : 0;
}

static fpa_status fail_missing(const char *path, int seen, fpa_error *error)
{
    return fail(error, FPA_INVALID, path, "has a header without %s",
                !(seen & KEY_TYPE)    ? "a type"
                : !(seen & KEY_ORDER) ? "fortran_order"
                                      : "a shape");
}

/* The three keys, each once, in any order, and nothing else. Values are literals: what Python would have to
 * evaluate, such as '<f4'*2, is refused. */
fpa_status npy_header_parse(const char *path, const char *header, npy_layout *layout, fpa_error *error)
{
    const char *at = skip_blanks(header);
    int seen = 0;
    bool more = *at == '{';
    at = more ? skip_blanks(at + 1) : at;
    while (more && *at != '}') {
        int key = parse_key(&at);
        if (!key || (seen & key))
            return fail(error, FPA_INVALID, path, "has a header that cannot be read: %.40s", at);
        fpa_status status = parse_value(key, path, &at, layout, error);
        if (status)
            return status;
        seen |= key;
        at = skip_blanks(at);
        more = *at == ',';
        at = more ? skip_blanks(at + 1) : at;
    }
    if (*at == '}' && seen != ALL_KEYS)
        return fail_missing(path, seen, error);
    if (*at != '}' || *skip_blanks(at + 1))
        return fail(error, FPA_INVALID, path, "has a header that cannot be read: %.40s", at);
    return FPA_OK;
}

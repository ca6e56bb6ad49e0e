#include "npy.h"
#include "dtype.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "npy files are little-endian, and so must be the machine"
#endif

enum {
    MAGIC_SIZE = 8, /* "\x93NUMPY", major, minor */
    MAX_HEADER = 64 * 1024,
};

static const char magic[] = "\x93NUMPY";

/* What a file may hold. */
typedef enum npy_wanted { WANT_FLOATS, WANT_NUMBERS, WANT_MASK } npy_wanted;

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

/* What a file's header says. */
typedef struct npy_layout {
    npy_wanted wanted;
    char kind;     /* 'f': floating-point, 'i', 'u': integers with and without sign, 'b': bool */
    int item;      /* bytes a number: 1, 2, 4 or 8 */
    bool reversed; /* Fortran order: the first axis is the fastest */
    int axes;
    int64_t shape[NPY_MAX_AXES];
    int64_t count;
} npy_layout;

static fpa_status fail_file(const char *path, const char *what, fpa_error *error)
{
    return errno == ENOMEM ? fail_memory(error) : fail(error, FPA_IO, path, "%s: %s", what, strerror(errno));
}

/* ---- the header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ---- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\n");
}

/* Each parser below begins at *at and leaves it behind what it has read. */

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
        return fail(error, FPA_INVALID, path, "holds %.*s, but %s is needed",
                    (int)strcspn(value + 1, "'\n") + 2, value, wanted_text[layout->wanted]);
    if (!parse_string(at, &type, &length))
        return fail(error, FPA_INVALID, path, "has a header without a type");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_word(type, length, types[i].name) && is_wanted(layout->wanted, types[i].kind, types[i].item)) {
            layout->kind = types[i].kind;
            layout->item = types[i].item;
            return FPA_OK;
        }
    return fail(error, FPA_INVALID, path, "holds %.*s, but %s is needed", (int)(*at - value), value,
                wanted_text[layout->wanted]);
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

/* (), (3,) or (3, 4): (3) is no tuple. */
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

/* "'descr':", and which key it is; 0: none of ours, or no key. */
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

/* The three keys, each once, in any order, and nothing else: what Python would evaluate further
 * ('<f4'*2) is no header. */
static fpa_status parse_header(const char *path, const char *header, npy_layout *layout, fpa_error *error)
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

/* Read the length of the header and the header; header has room for MAX_HEADER + 1 bytes. */
static fpa_status read_header(FILE *file, const char *path, char *header, fpa_error *error)
{
    unsigned char start[MAGIC_SIZE], size[4] = {0};

    if (fread(start, 1, MAGIC_SIZE, file) != MAGIC_SIZE || memcmp(start, magic, 6) != 0)
        return fail(error, FPA_INVALID, path, "is not a .npy file");
    if (start[6] < 1 || start[6] > 3)
        return fail(error, FPA_INVALID, path, "is of .npy version %d.%d, but 1 to 3 can be read", start[6],
                    start[7]);
    size_t width = start[6] == 1 ? 2 : 4;
    if (fread(size, 1, width, file) != width)
        return fail(error, FPA_INVALID, path, "ends inside its header");
    size_t length = size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16 | (size_t)size[3] << 24;
    if (length > MAX_HEADER)
        return fail(error, FPA_INVALID, path, "has a header of %zu bytes, more than %d", length, MAX_HEADER);
    if (fread(header, 1, length, file) != length)
        return fail(error, FPA_INVALID, path, "ends inside its header");
    header[length] = '\0';
    if (strlen(header) != length)
        return fail(error, FPA_INVALID, path, "has a zero byte in its header");
    return FPA_OK;
}

/* The file must hold exactly the numbers that its shape promises. */
static fpa_status check_size(FILE *file, const char *path, const npy_layout *layout, fpa_error *error)
{
    struct stat facts;
    long at = ftell(file);

    if (at < 0 || fstat(fileno(file), &facts) != 0)
        return fail_file(path, "cannot be read", error);
    int64_t held = (int64_t)facts.st_size - at, needed = layout->count * layout->item;
    if (S_ISREG(facts.st_mode) && held == needed)
        return FPA_OK;
    return fail(error, FPA_INVALID, path, "holds %lld bytes of numbers, but its shape needs %lld",
                (long long)held, (long long)needed);
}

static fpa_status read_layout(FILE *file, const char *path, npy_layout *layout, fpa_error *error)
{
    char *header = malloc(MAX_HEADER + 1);
    fpa_status status = header ? read_header(file, path, header, error) : fail_memory(error);

    if (status == FPA_OK)
        status = parse_header(path, header, layout, error);
    if (status == FPA_OK)
        status = check_size(file, path, layout, error);
    free(header);
    return status;
}

/* ---- reading ---- */

/* The numbers as they lie in the file, malloc'ed; never NULL on success. */
static fpa_status read_items(FILE *file, const char *path, const npy_layout *layout, void **items,
                             fpa_error *error)
{
    size_t count = (size_t)layout->count;

    *items = malloc(count ? count * (size_t)layout->item : 1);
    if (!*items)
        return fail_memory(error);
    if (fread(*items, (size_t)layout->item, count, file) == count)
        return FPA_OK;
    free(*items);
    *items = NULL;
    return fail_file(path, "cannot be read", error);
}

/* A regular file, opened without waiting for anybody: whoever opens a FIFO waits for its other end. */
static fpa_status open_file(const char *path, FILE **file, fpa_error *error)
{
    struct stat facts;
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (descriptor < 0)
        return fail_file(path, "cannot be opened", error);
    if (fstat(descriptor, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        close(descriptor);
        return fail(error, FPA_INVALID, path, "is not a regular file");
    }
    *file = fdopen(descriptor, "rb");
    if (*file)
        return FPA_OK;
    close(descriptor);
    return fail_file(path, "cannot be opened", error);
}

/* Before a number is read. */
static fpa_status check_limit(const char *path, const npy_layout *layout, const npy_limit *limit,
                              fpa_error *error)
{
    if (!limit || layout->axes != 2)
        return FPA_OK;
    if (layout->shape[0] > limit->rows || layout->shape[1] > limit->columns)
        return fail(error, FPA_INVALID, path, "is %lld x %lld, but at most %lld x %lld is allowed",
                    (long long)layout->shape[0], (long long)layout->shape[1], (long long)limit->rows,
                    (long long)limit->columns);
    if (layout->count > limit->numbers)
        return fail(error, FPA_INVALID, path, "has %lld numbers, more than there is memory for (%lld)",
                    (long long)layout->count, (long long)limit->numbers);
    return FPA_OK;
}

static fpa_status read_file(const char *path, const npy_limit *limit, npy_layout *layout, void **items,
                            fpa_error *error)
{
    FILE *file = NULL;
    fpa_status status = open_file(path, &file, error);

    if (status != FPA_OK)
        return status;
    status = read_layout(file, path, layout, error);
    if (status == FPA_OK)
        status = check_limit(path, layout, limit, error);
    if (status == FPA_OK)
        status = read_items(file, path, layout, items, error);
    fclose(file);
    return status;
}

/* Where number i of C order lies in the file. */
static int64_t place_of(const npy_layout *layout, int64_t i)
{
    int64_t place = 0, stride = layout->count;
    if (!layout->reversed)
        return i;
    for (int a = layout->axes - 1; a >= 0; a--) {
        stride /= layout->shape[a];
        place += i % layout->shape[a] * stride;
        i /= layout->shape[a];
    }
    return place;
}

static double integer_at(const npy_layout *layout, const void *items, int64_t place)
{
    const char *at = (const char *)items + place * layout->item;
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)layout->item);
    if (layout->kind != 'i')
        return (double)bits;
    const int above = 64 - 8 * layout->item; /* the sign goes to the top, and comes down again */
    return (double)((int64_t)(bits << above) >> above);
}

static double item_at(const npy_layout *layout, const void *items, int64_t i)
{
    const int64_t place = place_of(layout, i);
    if (layout->kind != 'f')
        return integer_at(layout, items, place);
    if (layout->item == 2)
        return (double)f16_to_float(((const uint16_t *)items)[place]);
    return layout->item == 4 ? (double)((const float *)items)[place] : ((const double *)items)[place];
}

/* As float, in C order; an integer beyond 2^24 is exact as it is, or an error. */
static fpa_status convert(const char *path, const npy_layout *layout, const void *items, float *to,
                          fpa_error *error)
{
    const double most = 0x1p53; /* what is larger was rounded to double already */
    for (int64_t i = 0; i < layout->count; i++) {
        const double value = item_at(layout, items, i);
        to[i] = (float)value;
        if (layout->kind != 'f' && ((double)to[i] != value || value > most || value < -most))
            return fail(error, FPA_INVALID, path,
                        "holds the integer %.0f, number %lld of the array, which float32 does not have",
                        value, (long long)i + 1);
    }
    return FPA_OK;
}

static fpa_status read_array(const char *path, npy_wanted wanted, fpa_array *array, fpa_error *error)
{
    npy_layout layout = {.wanted = wanted};
    void *items;

    *array = (fpa_array){0};
    fpa_status status = read_file(path, NULL, &layout, &items, error);
    if (status != FPA_OK)
        return status;
    if (layout.kind != 'f' || layout.item != (int)sizeof(float) || layout.reversed) {
        float *converted = malloc(layout.count ? (size_t)layout.count * sizeof(float) : 1);
        status = converted ? convert(path, &layout, items, converted, error) : fail_memory(error);
        free(items);
        items = converted;
        if (status != FPA_OK) {
            free(converted);
            return status;
        }
    }
    array->axes = layout.axes;
    memcpy(array->shape, layout.shape, sizeof array->shape);
    array->count = layout.count;
    array->item = layout.item;
    array->reversed = layout.reversed;
    array->data = items;
    return FPA_OK;
}

fpa_status npy_read(const char *path, fpa_array *array, fpa_error *error)
{
    return read_array(path, WANT_FLOATS, array, error);
}

fpa_status npy_read_numbers(const char *path, fpa_array *array, fpa_error *error)
{
    return read_array(path, WANT_NUMBERS, array, error);
}

fpa_status npy_read_mask(const char *path, fpa_array *array, fpa_error *error)
{
    return read_array(path, WANT_MASK, array, error);
}

fpa_status npy_read_matrix(const char *path, int64_t *rows, int64_t *cols, double **data, fpa_error *error)
{
    return npy_read_matrix_within(path, NULL, rows, cols, data, error);
}

fpa_status npy_read_matrix_within(const char *path, const npy_limit *limit, int64_t *rows, int64_t *cols,
                                  double **data, fpa_error *error)
{
    npy_layout layout = {0};
    void *items;

    fpa_status status = read_file(path, limit, &layout, &items, error);
    if (status != FPA_OK)
        return status;
    if (layout.axes != 2) {
        free(items);
        return fail(error, FPA_INVALID, path, "has %d axes, but a matrix has 2", layout.axes);
    }
    if (layout.item != (int)sizeof(double) || layout.reversed) {
        double *wide = malloc(layout.count ? (size_t)layout.count * sizeof(double) : 1);
        for (int64_t i = 0; wide && i < layout.count; i++)
            wide[i] = item_at(&layout, items, i);
        free(items);
        items = wide;
        if (!wide)
            return fail_memory(error);
    }
    *rows = layout.shape[0];
    *cols = layout.shape[1];
    *data = items;
    return FPA_OK;
}

void npy_free(fpa_array *array)
{
    free(array->data);
    *array = (fpa_array){0};
}

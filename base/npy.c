#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
    ALIGNMENT = 64, /* of the data in the file */
};

static const char magic[] = "\x93NUMPY";

/* What a file's header says. */
typedef struct npy_layout {
    int item; /* bytes a number: 4 or 8 */
    int axes;
    int64_t shape[NPY_MAX_AXES];
    int64_t count;
} npy_layout;

static fpa_status fail_file(const char *path, const char *what, fpa_error *error)
{
    return fail(error, FPA_IO, path, "%s: %s", what, strerror(errno));
}

/* ---- the header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ---- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\n");
}

/* The value of a key of the dictionary, or NULL. */
static const char *header_value(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *at = strstr(header, quoted);
    if (!at)
        return NULL;
    at = skip_blanks(at + strlen(quoted));
    return *at == ':' ? skip_blanks(at + 1) : NULL;
}

static fpa_status parse_type(const char *path, const char *header, npy_layout *layout, fpa_error *error)
{
    const char *value = header_value(header, "descr");
    if (!value || (*value != '\'' && *value != '['))
        return fail(error, FPA_INVALID, path, "has a header without a type");
    if (strncmp(value, "'<f4'", 5) == 0)
        layout->item = 4;
    else if (strncmp(value, "'<f8'", 5) == 0)
        layout->item = 8;
    else
        return fail(error, FPA_INVALID, path, "holds %.*s, but '<f4' (float32) or '<f8' (float64) is needed",
                    (int)strcspn(value + 1, "'\n") + 2, value);
    return FPA_OK;
}

static fpa_status parse_order(const char *path, const char *header, fpa_error *error)
{
    const char *value = header_value(header, "fortran_order");
    if (value && strncmp(value, "False", 5) == 0)
        return FPA_OK;
    if (value && strncmp(value, "True", 4) == 0)
        return fail(error, FPA_INVALID, path, "is in Fortran order; save it with numpy.ascontiguousarray");
    return fail(error, FPA_INVALID, path, "has a header without fortran_order");
}

/* (), (3,) or (3, 4). */
static fpa_status parse_shape(const char *path, const char *header, npy_layout *layout, fpa_error *error)
{
    const char *value = header_value(header, "shape");
    layout->axes = 0;
    layout->count = 1;
    if (!value || *value != '(')
        return fail(error, FPA_INVALID, path, "has a header without a shape");
    for (value = skip_blanks(value + 1); *value != ')'; value = skip_blanks(value)) {
        char *end;
        errno = 0;
        int64_t size = *value >= '0' && *value <= '9' ? strtoll(value, &end, 10) : -1;
        if (size < 0 || errno)
            return fail(error, FPA_INVALID, path, "has a shape that cannot be read");
        if (layout->axes == NPY_MAX_AXES)
            return fail(error, FPA_INVALID, path, "has more than %d axes", NPY_MAX_AXES);
        layout->shape[layout->axes++] = size;
        if (__builtin_mul_overflow(layout->count, size, &layout->count) ||
            layout->count > INT64_MAX / (int64_t)sizeof(double))
            return fail(error, FPA_INVALID, path, "has a shape too large for any memory");
        value = skip_blanks(end);
        if (*value == ',')
            value++;
        else if (*value != ')')
            return fail(error, FPA_INVALID, path, "has a shape that cannot be read");
    }
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
        status = parse_type(path, header, layout, error);
    if (status == FPA_OK)
        status = parse_order(path, header, error);
    if (status == FPA_OK)
        status = parse_shape(path, header, layout, error);
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

fpa_status npy_read(const char *path, fpa_array *array, fpa_error *error)
{
    npy_layout layout = {0};
    void *items;

    *array = (fpa_array){0};
    fpa_status status = read_file(path, NULL, &layout, &items, error);
    if (status != FPA_OK)
        return status;
    if (layout.item == (int)sizeof(double)) {
        float *rounded = malloc(layout.count ? (size_t)layout.count * sizeof(float) : 1);
        for (int64_t i = 0; rounded && i < layout.count; i++)
            rounded[i] = (float)((const double *)items)[i];
        free(items);
        items = rounded;
        if (!rounded)
            return fail_memory(error);
    }
    array->axes = layout.axes;
    memcpy(array->shape, layout.shape, sizeof array->shape);
    array->count = layout.count;
    array->data = items;
    return FPA_OK;
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
    if (layout.item == (int)sizeof(float)) {
        double *wide = malloc(layout.count ? (size_t)layout.count * sizeof(double) : 1);
        for (int64_t i = 0; wide && i < layout.count; i++)
            wide[i] = ((const float *)items)[i];
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

/* ---- writing ---- */

/* "(3, 4)", and "(3,)" for one axis, as Python has it. */
static void format_shape(char *text, size_t size, const fpa_array *array)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (int i = 0; i < array->axes; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "", (long long)array->shape[i]);
    snprintf(text + used, size - used, "%s)", array->axes == 1 ? "," : "");
}

/* Version 1.0; the data begin at a multiple of ALIGNMENT. */
static bool write_header(FILE *file, const fpa_array *array)
{
    char shape[NPY_MAX_AXES * 24 + 8], header[sizeof shape + 128];

    format_shape(shape, sizeof shape, array);
    int text =
        snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    int start = MAGIC_SIZE + 2;
    int length = (start + text + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - start;
    unsigned char size[2] = {(unsigned char)(length & 255), (unsigned char)(length >> 8)};
    fwrite(magic, 1, 6, file);
    fwrite("\1\0", 1, 2, file);
    fwrite(size, 1, 2, file);
    return fprintf(file, "%s%*s\n", header, length - text - 1, "") > 0;
}

/* Takes the descriptor over. */
static bool write_array(int descriptor, const fpa_array *array)
{
    FILE *file = fdopen(descriptor, "wb");
    if (!file) {
        close(descriptor);
        return false;
    }
    size_t count = (size_t)array->count;
    bool written = write_header(file, array) && fwrite(array->data, sizeof(float), count, file) == count;
    written = fflush(file) == 0 && written && fsync(descriptor) == 0;
    return fclose(file) == 0 && written;
}

fpa_status npy_write(const char *path, const fpa_array *array, fpa_error *error)
{
    char temporary[PATH_MAX];

    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
        return fail(error, FPA_INVALID, path, "is too long a path");
    int descriptor = mkstemp(temporary);
    if (descriptor < 0)
        return fail_file(path, "cannot be written", error);
    fchmod(descriptor, 0644);
    if (write_array(descriptor, array) && rename(temporary, path) == 0)
        return FPA_OK;
    fpa_status status = fail_file(path, "cannot be written", error);
    unlink(temporary);
    return status;
}

#include "npy.h"
#include "dtype.h"
#include "npy_header.h"

#include <errno.h>
#include <fcntl.h>
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

static fpa_status fail_file(const char *path, const char *what, fpa_error *error)
{
    return errno == ENOMEM ? fail_memory(error) : fail(error, FPA_IO, path, "%s: %s", what, strerror(errno));
}

/* Read the header's length, then the header; `header` has room for MAX_HEADER + 1 bytes. */
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
        status = npy_header_parse(path, header, layout, error);
    if (status == FPA_OK)
        status = check_size(file, path, layout, error);
    free(header);
    return status;
}

/* ---- reading ---- */

/* The numbers in the file's order and type, malloc'ed; never NULL on success. */
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

/* Open a regular file. Opening a FIFO would wait for its writer, so the file is opened without waiting and its
 * kind checked. */
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

/* The file's shape is checked against the limit before any number is read. */
static fpa_status check_limit(const char *path, const npy_layout *layout, const npy_limit *limit,
                              fpa_error *error)
{
    const int64_t *shape = layout->shape + (layout->axes == 3);
    if (!limit || layout->axes < 2 || layout->axes > 3)
        return FPA_OK;
    if (shape[0] > limit->rows || shape[1] > limit->columns)
        return fail(error, FPA_INVALID, path, "is %lld x %lld, but at most %lld x %lld is allowed",
                    (long long)shape[0], (long long)shape[1], (long long)limit->rows,
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

/* Index in the file of the number that has index i in C order. */
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
    const int above = 64 - 8 * layout->item; /* shifted up, then down with copies of the sign bit */
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

/* As float, in C order. An integer that float32 cannot hold exactly is an error. */
static fpa_status convert(const char *path, const npy_layout *layout, const void *items, float *to,
                          fpa_error *error)
{
    const double most = 0x1p53; /* larger integers were already rounded when they were converted to double */
    for (int64_t i = 0; i < layout->count; i++) {
        const double value = item_at(layout, items, i);
        to[i] = (float)value;
        if (layout->kind != 'f' && ((double)to[i] != value || value > most || value < -most))
            return fail(error, FPA_INVALID, path,
                        "holds the integer %.0f, number %lld of the array, which float32 cannot hold exactly",
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

/* The numbers of a file as double, in C order, malloc'ed. */
static fpa_status read_doubles(const char *path, const npy_limit *limit, npy_layout *layout, double **data,
                               fpa_error *error)
{
    void *items;
    fpa_status status = read_file(path, limit, layout, &items, error);
    if (status != FPA_OK)
        return status;
    if (layout->kind == 'f' && layout->item == (int)sizeof(double) && !layout->reversed) {
        *data = items;
        return FPA_OK;
    }
    *data = malloc(layout->count ? (size_t)layout->count * sizeof(double) : 1);
    for (int64_t i = 0; *data && i < layout->count; i++)
        (*data)[i] = item_at(layout, items, i);
    free(items);
    return *data ? FPA_OK : fail_memory(error);
}

fpa_status npy_read_matrices(const char *path, const npy_limit *limit, npy_matrices *matrices,
                             fpa_error *error)
{
    npy_layout layout = {.wanted = WANT_NUMBERS};
    double *values;
    fpa_status status = read_doubles(path, limit, &layout, &values, error);
    if (status != FPA_OK)
        return status;
    if (layout.axes != 2 && layout.axes != 3) {
        free(values);
        return fail(error, FPA_INVALID, path, "has %d axes, but a matrix has 2, several of one shape have 3",
                    layout.axes);
    }
    const int stacked = layout.axes == 3;
    *matrices = (npy_matrices){.several = stacked,
                               .count = stacked ? layout.shape[0] : 1,
                               .rows = layout.shape[stacked],
                               .columns = layout.shape[stacked + 1],
                               .data = values};
    return FPA_OK;
}

void npy_free(fpa_array *array)
{
    free(array->data);
    *array = (fpa_array){0};
}

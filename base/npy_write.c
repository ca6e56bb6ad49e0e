/* npy_write: writes float32 or float16 arrays as .npy files (npy.h). */
#include "npy.h"
#include "dtype.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAGIC_SIZE = 8, /* "\x93NUMPY", major, minor */
    ALIGNMENT = 64, /* of the data in the file */
};

static const char magic[] = "\x93NUMPY";

/* A shape as a Python tuple: "(3, 4)", or "(3,)" for one axis. */
static void format_shape(char *text, size_t size, const fpa_array *array)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (int i = 0; i < array->axes; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "", (long long)array->shape[i]);
    snprintf(text + used, size - used, "%s)", array->axes == 1 ? "," : "");
}

/* Room for a header of version 1.0, after which the data begin at a multiple of ALIGNMENT. */
enum { WRITTEN_HEADER = 512 };
_Static_assert(WRITTEN_HEADER % ALIGNMENT == 0 && WRITTEN_HEADER > NPY_MAX_AXES * 24 + 128, "too short");

/* Returns the header's bytes. */
static size_t format_header(char header[WRITTEN_HEADER], const fpa_array *array)
{
    enum { START = MAGIC_SIZE + 2 };
    char shape[NPY_MAX_AXES * 24 + 8];
    format_shape(shape, sizeof shape, array);
    size_t text = (size_t)snprintf(header + START, WRITTEN_HEADER - START,
                                   "{'descr': '<f%d', 'fortran_order': False, 'shape': %s, }",
                                   array->item == 2 ? 2 : 4, shape);
    size_t length = (START + text + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - START;
    memset(header + START + text, ' ', length - text - 1);
    header[START + length - 1] = '\n';
    memcpy(header, magic, 6);
    header[6] = 1;
    header[7] = 0;
    header[8] = (char)(length & 255);
    header[9] = (char)(length >> 8);
    return START + length;
}

static fpa_status write_parts(const char *path, const fpa_array *array, const void *items, size_t item,
                              fpa_error *error)
{
    char header[WRITTEN_HEADER];
    size_t size = format_header(header, array);
    const fpa_bytes parts[] = {{header, size}, {items, (size_t)array->count * item}};
    return output_write(path, 0666, parts, 2, error);
}

fpa_status npy_write(const char *path, const fpa_array *array, fpa_error *error)
{
    if (array->item != 2)
        return write_parts(path, array, array->data, sizeof(float), error);
    uint16_t *halves = malloc(array->count ? (size_t)array->count * sizeof *halves : 1);
    if (!halves)
        return fail_memory(error);
    for (int64_t i = 0; i < array->count; i++)
        halves[i] = f16_from_float(array->data[i]);
    fpa_status status = write_parts(path, array, halves, sizeof *halves, error);
    free(halves);
    return status;
}

/* read_array: .npy files that must be readable, and such to be read. */
#ifndef FPAC_TESTS_READ_ARRAY_H
#define FPAC_TESTS_READ_ARRAY_H

#include "base/npy.h"
#include "claims.h"

#include <stdlib.h>

/* npy_free afterwards. */
static inline fpa_array read_array(const char *path)
{
    fpa_array array = {0};
    fpa_error error = {0};
    assert_ok(npy_read(path, &array, &error), &error);
    return array;
}

/* Number i is value(i, seed). */
static inline void write_numbers(const char *path, int axes, const int64_t *shape,
                                 float (*value)(int64_t i, int seed), int seed)
{
    fpa_array array = {.axes = axes, .count = 1};
    fpa_error error = {0};
    for (int i = 0; i < axes; i++)
        array.count *= array.shape[i] = shape[i];
    array.data = malloc((size_t)array.count * sizeof *array.data + 1);
    assert_non_null(array.data);
    for (int64_t i = 0; i < array.count; i++)
        array.data[i] = value(i, seed);
    assert_ok(npy_write(path, &array, &error), &error);
    npy_free(&array);
}

/* Small ones that differ. */
static inline float small_number(int64_t i, int seed)
{
    return (float)((i * 37 + seed) % 101) / 101 - 0.4f;
}

#endif

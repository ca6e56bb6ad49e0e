/* read_array: a .npy file that must be readable. */
#ifndef FPAC_TESTS_READ_ARRAY_H
#define FPAC_TESTS_READ_ARRAY_H

#include "base/npy.h"
#include "claims.h"

/* npy_free afterwards. */
static inline fpa_array read_array(const char *path)
{
    fpa_array array = {0};
    fpa_error error = {0};
    assert_ok(npy_read(path, &array, &error), &error);
    return array;
}

#endif

/* read_array: a .npy file that must be readable. */
#ifndef FPAC_TESTS_READ_ARRAY_H
#define FPAC_TESTS_READ_ARRAY_H

#include "base/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

/* npy_free afterwards. */
static inline fpa_array read_array(const char *path)
{
    fpa_array array = {0};
    fpa_error error = {0};
    if (npy_read(path, &array, &error))
        fail_msg("%s: %s", error.where, error.message);
    return array;
}

#endif

/* mask_file: a mask of keys as a .npy file of bool. */
#ifndef FPAC_TESTS_MASK_FILE_H
#define FPAC_TESTS_MASK_FILE_H

#include "base/npy.h"
#include "claims.h"

#include <stdio.h>

/* The opposite of a mask [B, L] whose 1 means masked out. */
static inline void write_kept(const char *path, const fpa_array *masked)
{
    enum { HEADER = 118 }; /* 10 bytes before it, 128 in all */
    char header[HEADER + 1];
    snprintf(header, sizeof header, "{'descr': '|b1', 'fortran_order': False, 'shape': (%lld, %lld), }",
             (long long)masked->shape[0], (long long)masked->shape[1]);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fwrite("\x93NUMPY\1\0", 1, 8, out);
    fputc(HEADER, out);
    fputc(0, out);
    fprintf(out, "%-*s\n", HEADER - 1, header);
    for (int64_t i = 0; i < masked->count; i++)
        fputc(masked->data[i] == 0, out);
    assert_int_equal(fclose(out), 0);
}

#endif

/* npy: arrays in NumPy's .npy format (version 1.0 to 3.0, little-endian; in memory always in C order). */
#ifndef FPAC_BASE_NPY_H
#define FPAC_BASE_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

enum { NPY_MAX_AXES = 8 };

typedef struct fpa_array {
    int axes;
    int64_t shape[NPY_MAX_AXES];
    int64_t count; /* product of shape */
    float *data;   /* [count], C order, malloc'ed */
    int item;      /* bytes of a number in the file: 1, 2 (float16), 4 or 8; 0 means 4 */
    bool reversed; /* the file has Fortran order; data were reordered */
} fpa_array;

/* Read float16 or float32, or float64 rounded to float32; data in Fortran order are reordered to C order. Errors
 * name the file and what it contains. The caller frees array->data. */
fpa_status npy_read(const char *path, fpa_array *array, fpa_error *error);
/* The same for floats or integers of any type; FPA_INVALID if float32 cannot hold one of the integers exactly. */
fpa_status npy_read_numbers(const char *path, fpa_array *array, fpa_error *error);
/* Read a mask, bool or uint8, as the numbers that it contains. */
fpa_status npy_read_mask(const char *path, fpa_array *array, fpa_error *error);
/* Write float32, or float16 (item 2), to the file that path leads to (output.h): it appears whole or not at all. */
fpa_status npy_write(const char *path, const fpa_array *array, fpa_error *error);
void npy_free(fpa_array *array);

/* Constants for a spec: a matrix (two axes) or several matrices of one shape (three axes), of floats or integers. */
typedef struct npy_matrices {
    bool several; /* the file has three axes; else count is 1 */
    int64_t count, rows, columns;
    double *data; /* [count][rows][columns], malloc'ed */
} npy_matrices;

/* The most rows and columns of a matrix, and the most numbers of all matrices; a file with more is FPA_INVALID
 * before its numbers are read. */
typedef struct npy_limit {
    int64_t rows, columns, numbers;
} npy_limit;

fpa_status npy_read_matrices(const char *path, const npy_limit *limit, npy_matrices *matrices,
                             fpa_error *error);

#endif

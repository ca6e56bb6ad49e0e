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
    int item;      /* bytes of a number in its file: 1, 2 (float16), 4 or 8; 0 stands for 4 */
    bool reversed; /* the file has it in Fortran order: it was copied */
} fpa_array;

/* Read float16 or float32, or float64 rounded to float32; Fortran order is copied to C order. The message names the file
 * and what it holds. */
fpa_status npy_read(const char *path, fpa_array *array, fpa_error *error);
/* The same, or integers of any type: INVALID where float32 does not have one of them. */
fpa_status npy_read_numbers(const char *path, fpa_array *array, fpa_error *error);
/* A mask, bool or uint8: its numbers as they are. */
fpa_status npy_read_mask(const char *path, fpa_array *array, fpa_error *error);
/* Write float32, or float16 (item 2), to where path leads (output.h): a file appears whole or not at all. */
fpa_status npy_write(const char *path, const fpa_array *array, fpa_error *error);
void npy_free(fpa_array *array);

/* What a spec may be given: a matrix, two axes, or several of one shape, three; floats, or integers of any type. */
typedef struct npy_matrices {
    bool several; /* three axes; else count is 1 */
    int64_t count, rows, columns;
    double *data; /* [count][rows][columns], malloc'ed */
} npy_matrices;

/* Of each matrix at most so many rows and columns, of all so many numbers: what has more is INVALID before it is read. */
typedef struct npy_limit {
    int64_t rows, columns, numbers;
} npy_limit;

fpa_status npy_read_matrices(const char *path, const npy_limit *limit, npy_matrices *matrices,
                             fpa_error *error);

#endif

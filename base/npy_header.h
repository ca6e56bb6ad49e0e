/* npy_header: what the header of a .npy file says. */
#ifndef FPAC_BASE_NPY_HEADER_H
#define FPAC_BASE_NPY_HEADER_H

#include "npy.h"

/* Kinds of numbers that a caller accepts. */
typedef enum npy_wanted { WANT_FLOATS, WANT_NUMBERS, WANT_MASK } npy_wanted;

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

/* Parse a header: its three keys, each once, in any order, and nothing else. The caller sets layout->wanted; path
 * is for messages. */
fpa_status npy_header_parse(const char *path, const char *header, npy_layout *layout, fpa_error *error);

#endif

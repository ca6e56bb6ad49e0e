/* image: the bytes of a CUDA object: one cubin, or several that together have a head's kernels, each padded with zeros to a multiple of
 * IMAGE_UNIT. */
#ifndef FPAC_RUNTIME_CUDA_IMAGE_H
#define FPAC_RUNTIME_CUDA_IMAGE_H

#include "runtime/backend.h"

enum { IMAGE_UNIT = 16 /* bytes: an ELF header's alignment is at most this */ };

/* A whole cubin, but without any code. */
bool image_is_empty(const fpa_object *image);

/* Whether a cubin may have a kernel: its sections are named after its kernels. */
bool image_names(const fpa_object *image, const char *kernel);

/* Cubins as one object. */
fpa_status image_join(const fpa_object images[], int count, fpa_object *object, fpa_error *error);

/* The cubins of an object, which owns their bytes; returns their number. 0: a part is no whole cubin, or there are more than `most`. */
int image_split(const fpa_object *object, fpa_object images[], int most);

#endif

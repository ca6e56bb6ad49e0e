/* image_cuda: the bytes of a CUDA object: one cubin, or several that have a head's kernels together, back
 * to back, each filled up with zeros to whole IMAGE_UNITs. */
#ifndef FPAC_RUNTIME_CUDA_IMAGE_H
#define FPAC_RUNTIME_CUDA_IMAGE_H

#include "runtime/backend.h"

enum { IMAGE_UNIT = 16 /* bytes: an ELF header's alignment is at most this */ };

/* A whole cubin, but without any code. */
bool image_is_empty(const fpa_object *image);

/* A cubin's sections are named after its kernels: whether this may be one of them. */
bool image_names(const fpa_object *image, const char *kernel);

/* Cubins as one object. */
fpa_status image_join(const fpa_object images[], int count, fpa_object *object, fpa_error *error);

/* The cubins of an object, which keeps their bytes; how many there are. 0: something in it is no whole
 * cubin, or they are more than `most`. */
int image_split(const fpa_object *object, fpa_object images[], int most);

#endif

/* notes: what `fpac run` says on stderr of arrays and calls, beside errors. */
#ifndef FPAC_COMMAND_NOTES_H
#define FPAC_COMMAND_NOTES_H

#include "base/npy.h"
#include "runtime/kernel.h"

/* Once an array was read: that it was copied from Fortran order. */
void note_order(const char *path, const fpa_array *array);

/* Log-gates above 0 let a state grow: how many, and where the first is. */
void note_gates(const char *path, const fpa_array *gates);

/* Numbers that float16 cannot hold become infinite when array is written so. */
void note_overflow(const char *path, const fpa_array *array);

/* With --verbose: the form that carries the call out, why, and by which mechanism. asked: as --form gave it. */
void note_call(const fpa_kernel *kernel, fpa_form asked, const fpa_tensors *tensors);

/* "0, 3, 1, 2": number `at` of the array, as NumPy counts. */
enum { INDEX_TEXT = 128 };
const char *index_text(const fpa_array *array, int64_t at, char text[INDEX_TEXT]);

#endif

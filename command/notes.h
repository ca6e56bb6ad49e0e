/* notes: remarks of `fpac run` on stderr about arrays and calls, other than errors. */
#ifndef FPAC_COMMAND_NOTES_H
#define FPAC_COMMAND_NOTES_H

#include "base/npy.h"
#include "runtime/kernel.h"

/* That an array was copied from Fortran order. */
void note_order(const char *path, const fpa_array *array);

/* Log-gates above 0, which let a state grow: how many there are, and where the first one is. */
void note_gates(const char *path, const fpa_array *gates);

/* Numbers that become infinite because the array is written as float16. */
void note_overflow(const char *path, const fpa_array *array);

/* With --verbose: the form of the call, why, and by which mechanism. asked: the form of --form. */
void note_call(const fpa_kernel *kernel, fpa_form asked, const fpa_tensors *tensors);

/* The indices of element `at` of the array, as in NumPy: "0, 3, 1, 2". */
enum { INDEX_TEXT = 128 };
const char *index_text(const fpa_array *array, int64_t at, char text[INDEX_TEXT]);

#endif

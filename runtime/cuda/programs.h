/* programs: what each of a file's programs needs of the file's text. NVRTC reads texts one after the other, whichever
 * thread asks it (only what comes behind is done at once), and keeps every table that it has read. */
#ifndef FPAC_RUNTIME_CUDA_PROGRAMS_H
#define FPAC_RUNTIME_CUDA_PROGRAMS_H

#include <stdbool.h>

/* The definitions of a text that fpac has emitted, which must outlive it. NULL: no memory. */
typedef struct file_programs file_programs;
file_programs *programs_read(const char *code);
void programs_free(file_programs *p);

/* Whether a program has kernels: FPA_CUDA_PART of cuda_call.h. A text that names none by FPA_CUDA_HAS says by other
 * means what is in which, and has all. */
bool programs_has(const file_programs *p, int part);

/* The text of one program: its kernels and everything that they name, directly or through others. Other lines are
 * empty, so that line numbers do not change. malloc'ed; NULL: no memory. */
char *programs_text(const file_programs *p, int part);

#endif

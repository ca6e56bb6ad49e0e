/* programs: the text of each program of a file. NVRTC parses on one thread at a time, whichever thread calls it (only its later stages
 * run in parallel), and keeps every table that it has parsed: so a program should have only the text that it needs. */
#ifndef FPAC_RUNTIME_CUDA_PROGRAMS_H
#define FPAC_RUNTIME_CUDA_PROGRAMS_H

#include <stdbool.h>

/* The definitions of a text that fpac has emitted, which must outlive it. NULL: no memory. */
typedef struct file_programs file_programs;
file_programs *programs_read(const char *code);
void programs_free(file_programs *p);

/* Whether a program has kernels; part: FPA_CUDA_PART of cuda_call.h. True for all programs of a text without FPA_CUDA_HAS. */
bool programs_has(const file_programs *p, int part);

/* The text of one program: its kernels and all items that these name, directly or indirectly. Other lines are empty, so that line numbers
 * stay. malloc'ed; NULL: no memory. */
char *programs_text(const file_programs *p, int part);

#endif

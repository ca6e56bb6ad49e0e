/* What the tests of the command line share: a folder with a spec, and what a run of fpac must give. */
#ifndef FPAC_TESTS_COMMAND_PLACE_H
#define FPAC_TESTS_COMMAND_PLACE_H

#include <stdbool.h>

#include "program.h"

enum { PATH = 256 };

/* A folder of one test with a spec in it. */
typedef struct place {
    char folder[64];
    char spec[PATH];
} place;

extern const char tiny_spec[];      /* one head, "tiny": d = dv = 4 */
extern const char two_heads_spec[]; /* "one" and "two" */

/* Make the folder, with the text as spec.lua; scratch_remove(folder) removes it. */
void place_begin(place *here, const char *spec);
void place_file(const place *here, const char *name, char path[PATH]);

/* Fails the test unless the exit code is that and the streams hold these texts (NULL: anything). Frees it. */
void expect(program_result result, int code, const char *out, const char *err);

/* Whether `fpac list` says so of a CUDA target: nothing of the kind is tried a second time here. */
bool nvrtc_is_here(void);
bool gpu_is_here(void);

#endif

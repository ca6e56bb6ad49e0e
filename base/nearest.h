/* nearest: which name was meant by one that is mistyped. */
#ifndef FPAC_BASE_NEAREST_H
#define FPAC_BASE_NEAREST_H

#include <stdbool.h>

#include "error.h"

/* The least number of letters to insert, delete, replace or swap with their neighbour to turn a into b. Names
 * longer than 64 bytes are compared by their first 64. */
int nearest_distance(const char *a, const char *b);

/* True if word may be name with typing errors: about one letter in three differs, at most. */
bool nearest_plausible(const char *word, const char *name);

/* Of the candidates (an array that NULL ends) that are plausible, the nearest one to word; NULL: none is
 * plausible. */
const char *nearest_name(const char *word, const char *const *candidates);

/* The error for a word that is none of the candidates: "chunkd is no form; did you mean chunked? (there are
 * auto, parallel, ...)". */
fpa_status fail_unknown(fpa_error *error, const char *where, const char *word, const char *kind,
                        const char *const *candidates);

#endif

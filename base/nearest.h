/* nearest: the name that someone who mistyped a name most likely meant. */
#ifndef FPAC_BASE_NEAREST_H
#define FPAC_BASE_NEAREST_H

#include <stdbool.h>

#include "error.h"

/* Letters to insert, delete, replace or swap with their neighbour to make b of a. Names
 * longer than 64 bytes are compared by their first 64. */
int nearest_distance(const char *a, const char *b);

/* True when a typing slip may have made word of name: about one letter in three differs. */
bool nearest_plausible(const char *word, const char *name);

/* The plausible one of candidates (NULL ends them) that is nearest to word, or NULL. */
const char *nearest_name(const char *word, const char *const *candidates);

/* The error of a word that is none of candidates: "chunkd is no form; did you mean chunked? (auto, parallel, ...)". */
fpa_status fail_unknown(fpa_error *error, const char *where, const char *word, const char *kind,
                        const char *const *candidates);

#endif

/* fault: a mistake on purpose in emitted code, for tests of what has to find it.
 *
 * Templates name the lines where mistakes are made ("points", template.h): tests hang on these names, and not
 * on the text of the lines. Nothing of a point is in what is emitted. */
#ifndef FPAC_GEN_FAULT_H
#define FPAC_GEN_FAULT_H

#include "gen.h"

typedef struct fpa_fault {
    const char *point; /* name of template lines */
    const char *wrong; /* template lines in their place; NULL: none */
    bool backward;     /* in the text of the gradients */
    bool values;       /* in that of a pass of values (gen.h: source_generate_pass), */
    bool rows;         /* or of rows */
    const char *right; /* the text without the fault; NULL: it is generated too */
} fpa_fault;

/* As source_generate, with the fault. FPA_INVALID when no template has such a point, or when what is emitted
 * is the same with and without the fault. */
fpa_status source_generate_faulty(const fpa_head *head, const char *target, const fpa_fault *fault,
                                  fpa_source *source, fpa_error *error);

#endif

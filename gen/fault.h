/* fault: a deliberate mistake in emitted code, for tests that verification finds it.
 *
 * The lines of a template that a fault can replace have a name, a `point` (gen/emit/template.h). Tests refer to
 * the name, so that they do not depend on the lines' text. Emitted code contains nothing of points. */
#ifndef FPAC_GEN_FAULT_H
#define FPAC_GEN_FAULT_H

#include "gen.h"

typedef struct fpa_fault {
    const char *point; /* name of the template lines that are replaced */
    const char *wrong; /* template lines that replace them; NULL: they are omitted */
    bool backward;     /* the point is in the text of the gradients */
    bool values;       /* the point is in the text of a pass of values (gen.h: source_generate_pass) */
    bool rows;         /* the point is in the text of a pass of rows */
    const char *right; /* the text without the fault, to compare with; NULL: it is generated */
} fpa_fault;

/* source_generate with the fault. FPA_INVALID if no template has such a point, or if the emitted text is the same
 * with and without the fault. */
fpa_status source_generate_faulty(const fpa_head *head, const char *target, const fpa_fault *fault,
                                  fpa_source *source, fpa_error *error);

#endif

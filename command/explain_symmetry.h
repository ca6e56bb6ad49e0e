/* explain_symmetry: the rotations of q and k together that do not change a head, for `fpac explain`. */
#ifndef FPAC_COMMAND_EXPLAIN_SYMMETRY_H
#define FPAC_COMMAND_EXPLAIN_SYMMETRY_H

#include "gen/simplify/simplify.h"
#include "json.h"

/* Print a section of text on stdout or, with json, the field "symmetry" of the open object. NO_MEMORY. */
fpa_status explain_symmetry(const fpa_head *written, const fpa_simplified *simple, fpa_json *json,
                            fpa_error *error);

#endif

/* explain_symmetry: which rotations of q and k together leave a head as it is, for `fpac explain`. */
#ifndef FPAC_COMMAND_EXPLAIN_SYMMETRY_H
#define FPAC_COMMAND_EXPLAIN_SYMMETRY_H

#include "gen/simplify/simplify.h"
#include "json.h"

/* A section of text on stdout; with json the field "symmetry" of the object that is open there. NO_MEMORY. */
fpa_status explain_symmetry(const fpa_head *written, const fpa_simplified *simple, fpa_json *json,
                            fpa_error *error);

#endif

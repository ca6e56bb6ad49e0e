/* explain_candidates: the candidates of a call, for `fpac explain --length`. */
#ifndef FPAC_COMMAND_EXPLAIN_CANDIDATES_H
#define FPAC_COMMAND_EXPLAIN_CANDIDATES_H

#include "gen/plan/candidates.h"
#include "gen/simplify/simplify.h"
#include "json.h"

/* The call that the command line describes. */
typedef struct explain_call {
    const char *form; /* a name for select_form; auto: all that suit the length */
    int64_t length, batch, heads;
    bool states;          /* an initial state is given, and a final one is wanted */
    const char *gpu_name; /* a row of the table of GPUs; NULL: the target's usual one */
    fpa_machine machine;  /* the machine with that GPU */
} explain_call;

/* Print a table for each form, the mechanisms that the plan has not chosen, and the machine; json NULL: for
 * people. */
fpa_status explain_candidates(const fpa_plan *plan, const fpa_simplified *simple, const fpa_head *written,
                              const explain_call *call, fpa_json *json, fpa_error *error);

#endif

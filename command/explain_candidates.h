/* explain_candidates: the ways to carry out a call, in `fpac explain --length`. */
#ifndef FPAC_COMMAND_EXPLAIN_CANDIDATES_H
#define FPAC_COMMAND_EXPLAIN_CANDIDATES_H

#include "gen/plan/candidates.h"
#include "gen/simplify/simplify.h"
#include "json.h"

/* What the command line says of it. */
typedef struct explain_call {
    const char *form; /* as select_form knows it; auto: all that suit the length */
    int64_t length, batch, heads;
    bool states;          /* an initial state is given, a final one wanted */
    const char *gpu_name; /* a row of the table of GPUs; NULL: the target's usual one */
    fpa_machine machine;  /* that it names */
} explain_call;

/* A table a form, mechanisms that the plan has not chosen, and the machine that it is of; json NULL: for people. */
fpa_status explain_candidates(const fpa_plan *plan, const fpa_simplified *simple, const fpa_head *written,
                              const explain_call *call, fpa_json *json, fpa_error *error);

#endif

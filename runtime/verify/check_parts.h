/* verify_check_parts: what verify_check.c and verify_recent.c share. how: what is said behind the trial in a
 * message; may be "". */
#ifndef FPAC_RUNTIME_VERIFY_CHECK_PARTS_H
#define FPAC_RUNTIME_VERIFY_CHECK_PARTS_H

#include "check.h"

fpa_status check_refuse(const fpa_trial *trial, fpa_form_index form, const char *how, const char *what,
                        fpa_error *error);

/* A field for the trial's outputs. */
fpa_status check_make_output(const fpa_trial *trial, fpa_field *o, fpa_error *error);

/* Criterion 1 for tokens [from, end). */
fpa_status check_values(const fpa_trial *trial, fpa_form_index form, const char *how, const fpa_field *o,
                        int64_t from, int64_t end, const fpa_bound *bound, fpa_measure *measure,
                        fpa_error *error);

/* Nothing outside the elements of a field was written; name: of the field. */
fpa_status check_guards(const fpa_trial *trial, fpa_form_index form, const char *how, const char *name,
                        const fpa_field *field, fpa_error *error);

/* Every element of a state is written and finite, and zero when no token was seen. */
fpa_status check_state(const fpa_trial *trial, fpa_form_index form, const char *how, const fpa_field *state,
                       int64_t tokens, fpa_error *error);

/* Queries of a state that has not seen the newest tokens; states by form `producer`, without queries. */
fpa_status check_recent(const fpa_trial *trial, const fpa_module *module, fpa_form_index producer,
                        fpa_measure *measure, fpa_error *error);

#endif

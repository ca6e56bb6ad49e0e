/* handover: a sequence in runs, with a state from one to the next. */
#ifndef FPAC_RUNTIME_VERIFY_HANDOVER_H
#define FPAC_RUNTIME_VERIFY_HANDOVER_H

#include "judge.h"

typedef struct handover {
    fpa_field o, state, other; /* other: a second state, of another layout perhaps */
    int64_t cut[2];            /* ends of the first and of the second run */
    char how[96];              /* what is said in messages */
} handover;

/* handover_free also after an error. */
fpa_status handover_make(const fpa_trial *trial, fpa_layout other, handover *x, fpa_error *error);
void handover_free(handover *x);

/* Of outputs by `form` of which a run by `producer` made the state. */
fpa_bound handover_bound(const fpa_trial *trial, fpa_form_index form, fpa_form_index producer);

#endif

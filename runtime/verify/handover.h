/* handover: runs that hand a state over, which together must equal one run. */
#ifndef FPAC_RUNTIME_VERIFY_HANDOVER_H
#define FPAC_RUNTIME_VERIFY_HANDOVER_H

#include "judge.h"

typedef struct handover {
    fpa_field o, state, other; /* other: a second state, possibly of another layout */
    int64_t cut[2];            /* tokens at which the first and second runs end */
    char how[96];              /* text for messages of the check */
} handover;

void handover_begin(fpa_check *c, fpa_layout other, handover *x);
/* Checks that nothing outside the fields' elements was written, and frees them. state: the states' name in messages. */
void handover_end(fpa_check *c, const char *state, handover *x);

/* Compares outputs of tokens [from, to) whose state a run by `producer` made. */
void handover_check_values(fpa_check *c, const handover *x, int64_t from, int64_t to,
                           fpa_form_index producer);
/* Checks that x->state still equals its copy x->other. */
void handover_check_untouched(fpa_check *c, const handover *x);

/* The bound for outputs by the check's form whose state a run by `producer` made. */
fpa_bound handover_bound(const fpa_check *c, fpa_form_index producer);

/* ---- checks ---- */

/* Checks that three runs, the first by `producer`, equal one. */
void check_resume(fpa_check *c, fpa_form_index producer);

/* Checks queries with a state that lacks recent tokens; states are made by form `producer`, without queries. */
void check_recent(fpa_check *c, fpa_form_index producer);

/* Checks two pieces of a sequence, each computed in two halves: the total of its keys, then its outputs; the second piece begins with the
 * first one's total. Does nothing if the module keeps no copies of states between halves. */
void check_piece(fpa_check *c);

#endif

/* handover: a sequence in runs, with a state from one to the next. */
#ifndef FPAC_RUNTIME_VERIFY_HANDOVER_H
#define FPAC_RUNTIME_VERIFY_HANDOVER_H

#include "judge.h"

typedef struct handover {
    fpa_field o, state, other; /* other: a second state, of another layout perhaps */
    int64_t cut[2];            /* ends of the first and of the second run */
    char how[96];              /* what the check says in messages meanwhile */
} handover;

void handover_begin(fpa_check *c, fpa_layout other, handover *x);
/* Nothing outside the fields' elements was written; they are freed. state: what states are called. */
void handover_end(fpa_check *c, const char *state, handover *x);

/* Outputs of tokens [from, to), of which a run by `producer` made the state. */
void handover_check_values(fpa_check *c, const handover *x, int64_t from, int64_t to,
                           fpa_form_index producer);
/* x->other is what x->state was. */
void handover_check_untouched(fpa_check *c, const handover *x);

/* Of outputs by the check's form of which a run by `producer` made the state. */
fpa_bound handover_bound(const fpa_check *c, fpa_form_index producer);

/* ---- the checks that hand over, of everything that a module has for it ---- */

/* Three runs, of which the first is by `producer`, equal one. */
void check_resume(fpa_check *c, fpa_form_index producer);

/* Queries of a state that has not seen the newest tokens; states by form `producer`, without queries. */
void check_recent(fpa_check *c, fpa_form_index producer);

/* Two pieces of a sequence, each in two halves: what its keys add up to, then its outputs; the second behind the first one's total. Nothing where the
 * module keeps no copies of states between halves. */
void check_piece(fpa_check *c);

#endif

#include "piece.h"

#include <stdio.h>

#include "handover.h"

static fpa_status run_pieces(const fpa_trial *t, const fpa_module *module, handover *x, bool *kept,
                             fpa_error *error)
{
    fpa_status status = trial_run_piece(t, module, 0, x->cut[0], &x->o, NULL, &x->state, kept, error);
    if (status != FPA_OK || !*kept)
        return status;
    status = check_state(t, FORM_CHUNKED, x->how, &x->state, x->cut[0], error);
    return status == FPA_OK ? trial_run_piece(t, module, x->cut[0], t->shape.length, &x->o, &x->state,
                                              &x->other, kept, error)
                            : status;
}

fpa_status check_piece(const fpa_trial *t, const fpa_module *module, fpa_measure *m, fpa_error *error)
{
    handover x;
    bool kept = false;
    const fpa_bound bound = handover_bound(t, FORM_CHUNKED, FORM_CHUNKED);
    fpa_status status = handover_make(t, LAYOUT_PLAIN, &x, error);
    snprintf(x.how, sizeof x.how, " (a piece of %lld tokens and the rest, with copies of states kept)",
             (long long)x.cut[0]);
    if (status == FPA_OK && x.cut[0] > 0)
        status = run_pieces(t, module, &x, &kept, error);
    if (status == FPA_OK && kept)
        status = check_values(t, FORM_CHUNKED, x.how, &x.o, 0, t->shape.length, &bound, m, error);
    if (status == FPA_OK && kept)
        status = check_guards(t, FORM_CHUNKED, x.how, "o", &x.o, error);
    if (status == FPA_OK && kept)
        status = check_guards(t, FORM_CHUNKED, x.how, "a total", &x.other, error);
    handover_free(&x);
    return status;
}

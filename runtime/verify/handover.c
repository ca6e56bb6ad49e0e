#include "handover.h"

#include <math.h>

fpa_status handover_make(const fpa_trial *t, fpa_layout other, handover *x, fpa_error *error)
{
    const int64_t length = t->shape.length;
    fpa_status status;
    *x = (handover){.cut = {(length + 1) / 3, (2 * length + 2) / 3}};
    status = check_make_output(t, &x->o, error);
    if (status == FPA_OK)
        status = check_make_state(t, LAYOUT_PADDED, &x->state, error);
    return status == FPA_OK ? check_make_state(t, other, &x->other, error) : status;
}

void handover_free(handover *x)
{
    field_free(&x->o);
    field_free(&x->state);
    field_free(&x->other);
}

fpa_bound handover_bound(const fpa_trial *t, fpa_form_index form, fpa_form_index producer)
{
    fpa_bound bound = bound_of(t->head, t->facts, form, t->shape.length, 2);
    const fpa_bound first = bound_of(t->head, t->facts, producer, t->shape.length, 2);
    bound.tau = fmax(bound.tau, first.tau);
    return bound;
}

#include "recent.h"

#include <stdio.h>
#include <string.h>

#include "handover.h"

/* Token `token` with a state of the tokens before `from`, which it must leave as it is. Tokens before cut[0]
 * are in the state from the start, those before cut[1] go into it together; x->other: the state before. */
static fpa_status decode_recent_token(const fpa_trial *t, const fpa_module *module, handover *x, int64_t from,
                                      int64_t token, const fpa_bound *bound, fpa_measure *m, fpa_error *error)
{
    fpa_status status;
    field_copy(&x->other, &x->state);
    status = trial_decode_recent(t, module, from, token, &x->o, &x->state, error);
    if (status == FPA_OK && memcmp(x->other.bytes, x->state.bytes, x->state.size) != 0)
        status = check_refuse(t, FORM_RECURRENT, x->how, "a state that stays as it is was changed", error);
    return status == FPA_OK
               ? check_values(t, FORM_RECURRENT, x->how, &x->o, token, token + 1, bound, m, error)
               : status;
}

/* Some numbers of recent tokens: none, few, and all up to `end`. */
static fpa_status decode_recent_tokens(const fpa_trial *t, const fpa_module *module, handover *x,
                                       int64_t from, int64_t end, const fpa_bound *bound, fpa_measure *m,
                                       fpa_error *error)
{
    const int64_t tokens[] = {from, from + 1, from + 4, end - 1};
    fpa_status status = FPA_OK;
    for (int i = 0; i < 4 && status == FPA_OK; i++)
        if (tokens[i] >= from && tokens[i] < end && (i == 0 || tokens[i] > tokens[i - 1]))
            status = decode_recent_token(t, module, x, from, tokens[i], bound, m, error);
    return status;
}

static fpa_status run_recent(const fpa_trial *t, const fpa_module *module, fpa_form_index producer,
                             handover *x, const fpa_bound *bound, fpa_measure *m, fpa_error *error)
{
    fpa_status status = trial_run(t, module, producer, 0, x->cut[0], NULL, NULL, &x->state, error);
    if (status == FPA_OK)
        status = check_state(t, producer, x->how, &x->state, x->cut[0], error);
    if (status == FPA_OK)
        status = decode_recent_tokens(t, module, x, x->cut[0], x->cut[1], bound, m, error);
    if (status == FPA_OK)
        status = trial_run(t, module, producer, x->cut[0], x->cut[1], NULL, &x->state, &x->state, error);
    if (status == FPA_OK)
        status = check_state(t, producer, x->how, &x->state, x->cut[1], error);
    if (status == FPA_OK)
        status = decode_recent_tokens(t, module, x, x->cut[1], t->shape.length, bound, m, error);
    return status;
}

fpa_status check_recent(const fpa_trial *t, const fpa_module *module, fpa_form_index producer, fpa_measure *m,
                        fpa_error *error)
{
    handover x;
    const fpa_bound bound = handover_bound(t, FORM_RECURRENT, producer);
    fpa_status status = handover_make(t, LAYOUT_PADDED, &x, error);
    snprintf(x.how, sizeof x.how, " (with recent tokens behind %lld and %lld, the states by the %s form)",
             (long long)x.cut[0], (long long)x.cut[1], form_name(producer));
    if (status == FPA_OK)
        status = run_recent(t, module, producer, &x, &bound, m, error);
    if (status == FPA_OK)
        status = check_guards(t, FORM_RECURRENT, x.how, "o", &x.o, error);
    if (status == FPA_OK)
        status = check_guards(t, producer, x.how, "the state", &x.state, error);
    handover_free(&x);
    return status;
}

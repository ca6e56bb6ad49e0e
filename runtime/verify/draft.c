#include "draft.h"

#include <stdio.h>
#include <string.h>

#include "handover.h"

/* Where drafts of a trial are: behind token `first`, of which there are `room`. */
typedef struct drafts {
    handover x;
    fpa_bound bound;
    int64_t first, room;
    int64_t tokens;      /* of the first draft */
    int64_t least, most; /* that sequences accept of it: sequence b least + b, or all least */
    int32_t counts[64];
} drafts;

static fpa_status expect_untouched(const fpa_trial *t, drafts *d, fpa_error *error)
{
    const handover *x = &d->x;
    return memcmp(x->other.bytes, x->state.bytes, x->state.size) == 0
               ? FPA_OK
               : check_refuse(t, FORM_RECURRENT, x->how, "a state that stays as it is was changed", error);
}

/* The state is read only. */
static fpa_status ask(const fpa_trial *t, const fpa_module *module, drafts *d, fpa_measure *m,
                      fpa_error *error)
{
    const fpa_draft_trial draft = {.from = d->first, .length = d->tokens};
    handover *x = &d->x;
    fpa_status status;
    field_copy(&x->other, &x->state);
    status = trial_run_draft(t, module, &draft, &x->o, &x->state, NULL, error);
    if (status == FPA_OK)
        status = expect_untouched(t, d, error);
    return status == FPA_OK ? check_values(t, FORM_RECURRENT, x->how, &x->o, d->first, d->first + d->tokens,
                                           &d->bound, m, error)
                            : status;
}

/* Sequences accept tokens, each another number, and go on with drafts behind them, which overlap in tokens. */
static fpa_status accept_and_ask(const fpa_trial *t, const fpa_module *module, drafts *d, fpa_measure *m,
                                 fpa_error *error)
{
    handover *x = &d->x;
    const int64_t left = d->room - d->most, length = left < 16 ? left : 16;
    const fpa_draft_trial draft = {.from = d->first + d->least,
                                   .length = length,
                                   .apart = d->least < d->most,
                                   .accepted_from = d->first,
                                   .accepted = d->tokens,
                                   .counts = d->counts};
    fpa_status status;
    field_poison(&x->o);
    field_poison(&x->other);
    status = trial_run_draft(t, module, &draft, length ? &x->o : NULL, &x->state, &x->other, error);
    if (status == FPA_OK)
        status = check_state(t, FORM_RECURRENT, x->how, &x->other, d->first + d->least, error);
    if (status != FPA_OK || d->least + length <= d->most)
        return status;
    return check_values(t, FORM_RECURRENT, x->how, &x->o, d->first + d->most, d->first + d->least + length,
                        &d->bound, m, error);
}

/* In place, without queries: all sequences are at the same token then, and go on there. */
static fpa_status catch_up(const fpa_trial *t, const fpa_module *module, drafts *d, fpa_measure *m,
                           fpa_error *error)
{
    handover *x = &d->x;
    const int64_t apart = d->most - d->least, ahead = d->room - d->most > 5 + apart ? 2 : 0;
    const int64_t accepted = apart + ahead, here = d->first + d->most + ahead;
    const int64_t end = here + 3 < t->shape.length ? here + 3 : t->shape.length;
    const fpa_draft_trial draft = {.accepted_from = d->first + d->least,
                                   .accepted = accepted,
                                   .accepted_apart = apart > 0,
                                   .counts = d->counts};
    fpa_status status;
    if (accepted == 0 || d->most + accepted > d->room || here >= end)
        return FPA_OK;
    for (int64_t b = 0; b < t->shape.batch; b++)
        d->counts[b] = (int32_t)(d->most + ahead - d->counts[b]);
    field_poison(&x->o);
    status = trial_run_draft(t, module, &draft, NULL, &x->other, &x->other, error);
    if (status == FPA_OK)
        status = check_state(t, FORM_RECURRENT, x->how, &x->other, here, error);
    if (status == FPA_OK)
        status = trial_run(t, module, FORM_RECURRENT, here, end, &x->o, &x->other, NULL, error);
    return status == FPA_OK ? check_values(t, FORM_RECURRENT, x->how, &x->o, here, end, &d->bound, m, error)
                            : status;
}

/* Numbers of sequences lie b apart, none of them above the draft. */
static void set_counts(const fpa_trial *t, drafts *d)
{
    const int64_t batch = t->shape.batch;
    const bool apart =
        batch > 1 && batch - 1 <= d->tokens; /* 3, 4 ... of long drafts, 0, 1 ... of short ones */
    d->least = apart && d->tokens < batch + 2 ? 0 : d->tokens < 3 ? d->tokens : 3;
    d->most = apart ? d->least + batch - 1 : d->least;
    for (int64_t b = 0; b < batch; b++)
        d->counts[b] = (int32_t)(d->least + (apart ? b : 0));
}

static fpa_status run_drafts(const fpa_trial *t, const fpa_module *module, drafts *d, fpa_measure *m,
                             fpa_error *error)
{
    handover *x = &d->x;
    const int64_t left = d->room < 16 ? d->room : 16;
    fpa_status status = trial_run(t, module, FORM_RECURRENT, 0, d->first, NULL, NULL, &x->state, error);
    d->tokens = left > 6 && t->shape.batch > 1 ? 6 : left;
    set_counts(t, d);
    if (status == FPA_OK)
        status = ask(t, module, d, m, error);
    if (status == FPA_OK)
        status = accept_and_ask(t, module, d, m, error);
    return status == FPA_OK ? catch_up(t, module, d, m, error) : status;
}

fpa_status check_draft(const fpa_trial *t, const fpa_module *module, fpa_measure *m, fpa_error *error)
{
    drafts d = {.bound = handover_bound(t, FORM_RECURRENT, FORM_CHUNKED)};
    handover *x = &d.x;
    fpa_status status;
    if (t->head->window || t->shape.batch > 64)
        return FPA_OK;
    status = handover_make(t, LAYOUT_PADDED, x, error);
    d.first = x->cut[0];
    d.room = t->shape.length - d.first;
    snprintf(x->how, sizeof x->how, " (drafts behind token %lld)", (long long)d.first);
    if (status == FPA_OK && d.room > 0)
        status = run_drafts(t, module, &d, m, error);
    if (status == FPA_OK)
        status = check_guards(t, FORM_RECURRENT, x->how, "o", &x->o, error);
    if (status == FPA_OK)
        status = check_guards(t, FORM_RECURRENT, x->how, "the state", &x->state, error);
    if (status == FPA_OK)
        status = check_guards(t, FORM_RECURRENT, x->how, "the state", &x->other, error);
    handover_free(x);
    return status;
}

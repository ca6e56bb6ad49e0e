/* draft: three calls with drafts, which accept tokens into the state and query tokens after it. */
#include "draft.h"

#include <stdio.h>

#include "handover.h"

/* Drafts of a trial: after token `first`, of at most `room` tokens. */
typedef struct drafts {
    handover x;
    int64_t first, room;
    int64_t tokens; /* tokens of the first draft */
    /* tokens of it that sequences accept: sequence b accepts least + b, or all of them `least` */
    int64_t least, most;
    int32_t counts[64];
} drafts;

static void check_outputs(fpa_check *c, const drafts *d, int64_t from, int64_t to)
{
    handover_check_values(c, &d->x, from, to, FORM_CHUNKED);
}

/* The first draft: queries only; the state must not change. */
static void ask(fpa_check *c, drafts *d)
{
    const fpa_draft_trial draft = {0};
    handover *x = &d->x;
    if (c->status != FPA_OK)
        return;
    field_copy(&x->other, &x->state);
    check_run(c, (fpa_run){.from = d->first,
                           .to = d->first + d->tokens,
                           .o = &x->o,
                           .state_in = &x->state,
                           .draft = &draft});
    handover_check_untouched(c, x);
    check_outputs(c, d, d->first, d->first + d->tokens);
}

/* Each sequence accepts a different number of tokens, and queries a second draft after them. Only tokens that all sequences query are
 * compared. */
static void accept_and_ask(fpa_check *c, drafts *d)
{
    handover *x = &d->x;
    const int64_t left = d->room - d->most, length = left < 16 ? left : 16, from = d->first + d->least;
    const fpa_draft_trial draft = {
        .apart = d->least < d->most, .accepted_from = d->first, .accepted = d->tokens, .counts = d->counts};
    if (c->status != FPA_OK)
        return;
    field_poison(&x->o);
    field_poison(&x->other);
    check_run(c, (fpa_run){.from = from,
                           .to = from + length,
                           .o = length ? &x->o : NULL,
                           .state_in = &x->state,
                           .state_out = &x->other,
                           .draft = &draft});
    check_state(c, &x->other, from);
    if (d->least + length > d->most)
        check_outputs(c, d, d->first + d->most, from + length);
}

/* Accepts more tokens in place, without queries, so that all sequences are at the same token; then compares later outputs. */
static void catch_up(fpa_check *c, drafts *d)
{
    handover *x = &d->x;
    const fpa_shape *s = &c->trial->shape;
    const int64_t apart = d->most - d->least, ahead = d->room - d->most > 5 + apart ? 2 : 0;
    const int64_t accepted = apart + ahead, here = d->first + d->most + ahead;
    const int64_t end = here + 3 < s->length ? here + 3 : s->length;
    const fpa_draft_trial draft = {.accepted_from = d->first + d->least,
                                   .accepted = accepted,
                                   .accepted_apart = apart > 0,
                                   .counts = d->counts};
    if (c->status != FPA_OK || accepted == 0 || d->most + accepted > d->room || here >= end)
        return;
    for (int64_t b = 0; b < s->batch; b++)
        d->counts[b] = (int32_t)(d->most + ahead - d->counts[b]);
    field_poison(&x->o);
    check_run(c, (fpa_run){.state_in = &x->other, .state_out = &x->other, .draft = &draft});
    check_state(c, &x->other, here);
    check_run(c, (fpa_run){.from = here, .to = end, .o = &x->o, .state_in = &x->other});
    check_outputs(c, d, here, end);
}

/* Sets the numbers of accepted tokens: if possible a different one for each sequence, none above the draft's length. */
static void set_counts(const fpa_trial *t, drafts *d)
{
    const int64_t batch = t->shape.batch;
    /* 3, 4 ... of long drafts, 0, 1 ... of short ones */
    const bool apart = batch > 1 && batch - 1 <= d->tokens;
    d->least = apart && d->tokens < batch + 2 ? 0 : d->tokens < 3 ? d->tokens : 3;
    d->most = apart ? d->least + batch - 1 : d->least;
    for (int64_t b = 0; b < batch; b++)
        d->counts[b] = (int32_t)(d->least + (apart ? b : 0));
}

void check_draft(fpa_check *c)
{
    const fpa_shape *s = &c->trial->shape;
    drafts d;
    if (c->trial->head->window || s->batch > 64)
        return;
    handover_begin(c, LAYOUT_PADDED, &d.x);
    d.first = d.x.cut[0];
    d.room = s->length - d.first;
    const int64_t left = d.room < 16 ? d.room : 16;
    d.tokens = left > 6 && s->batch > 1 ? 6 : left;
    set_counts(c->trial, &d);
    snprintf(d.x.how, sizeof d.x.how, " (drafts behind token %lld)", (long long)d.first);
    if (d.room > 0) {
        check_run(c, (fpa_run){.to = d.first, .state_out = &d.x.state});
        ask(c, &d);
        accept_and_ask(c, &d);
        catch_up(c, &d);
    }
    handover_end(c, "the state", &d.x);
}

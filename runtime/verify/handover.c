/* handover: a trial in several runs, each with the state of the one before it. */
#include "handover.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void handover_begin(fpa_check *c, fpa_layout other, handover *x)
{
    const int64_t length = c->trial->shape.length;
    *x = (handover){.cut = {(length + 1) / 3, (2 * length + 2) / 3}};
    if (c->trial->shape.checks & CHECK_SEGMENTS) {
        x->cut[0] = 3;
        x->cut[1] = length - 2;
    }
    check_make_output(c, &x->o);
    check_make_states(c, LAYOUT_PADDED, c->trial->shape.batch, &x->state);
    check_make_states(c, other, c->trial->shape.batch, &x->other);
    c->how = x->how;
}

void handover_end(fpa_check *c, const char *state, handover *x)
{
    check_guards(c, "o", &x->o);
    check_guards(c, state, &x->state);
    check_guards(c, state, &x->other);
    field_free(&x->o);
    field_free(&x->state);
    field_free(&x->other);
    c->how = "";
}

fpa_bound handover_bound(const fpa_check *c, fpa_form_index producer)
{
    const fpa_trial *t = c->trial;
    fpa_bound bound = bound_of(t->head, t->facts, c->form, t->shape.length, 2);
    const fpa_bound first = bound_of(t->head, t->facts, producer, t->shape.length, 2);
    bound.tau = fmax(bound.tau, first.tau);
    return bound;
}

void handover_check_values(fpa_check *c, const handover *x, int64_t from, int64_t to, fpa_form_index producer)
{
    const fpa_bound bound = handover_bound(c, producer);
    check_values(c, &x->o, from, to, &bound);
}

void handover_check_untouched(fpa_check *c, const handover *x)
{
    if (c->status == FPA_OK && memcmp(x->other.bytes, x->state.bytes, x->state.size) != 0)
        check_refuse(c, "a state that must not change was changed");
}

/* ---- three runs ---- */

static void check_same_state(fpa_check *c, const fpa_field *a, const fpa_field *b)
{
    if (c->status != FPA_OK || field_equal(a, b, 0, 1))
        return;
    for (int64_t batch = 0; batch < a->batch; batch++) /* zeros of either sign are equal */
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->entries; i++)
                if (field_get(a, batch, 0, h, i) != field_get(b, batch, 0, h, i)) {
                    check_refuse(c, "a call of no tokens changed the state");
                    return;
                }
}

/* A run by the producer without initial state, one in place, one without tokens (a copy of the state), and one without final state.
 * Without a mask only the last run reads all keys. */
void check_resume(fpa_check *c, fpa_form_index producer)
{
    const int64_t length = c->trial->shape.length;
    const fpa_form_index form = c->form;
    handover x;
    handover_begin(c, LAYOUT_PLAIN, &x);
    snprintf(x.how, sizeof x.how, " (cut after %lld and %lld, the first by the %s form)", (long long)x.cut[0],
             (long long)x.cut[1], form_name(producer));
    c->form = producer;
    check_run(c, (fpa_run){.to = x.cut[0], .o = &x.o, .state_out = &x.state});
    c->form = form;
    check_state(c, &x.state, x.cut[0]);
    check_run(
        c,
        (fpa_run){.from = x.cut[0], .to = x.cut[1], .o = &x.o, .state_in = &x.state, .state_out = &x.state});
    check_state(c, &x.state, x.cut[1]);
    check_run(
        c,
        (fpa_run){.from = x.cut[1], .to = x.cut[1], .o = &x.o, .state_in = &x.state, .state_out = &x.other});
    check_same_state(c, &x.state, &x.other);
    check_run(c, (fpa_run){.from = x.cut[1], .to = length, .o = &x.o, .state_in = &x.other});
    handover_check_values(c, &x, c->trial->head->causal ? 0 : x.cut[1], length, producer);
    handover_end(c, "the final state", &x);
}

/* ---- recent tokens ---- */

/* Decodes a token with the state of the tokens before `from`, which must not change; x->other: a copy of it. */
static void decode_recent_token(fpa_check *c, handover *x, int64_t from, int64_t token,
                                fpa_form_index producer)
{
    if (c->status != FPA_OK)
        return;
    field_copy(&x->other, &x->state);
    check_run(
        c,
        (fpa_run){.from = from, .to = token + 1, .unseen = token - from, .o = &x->o, .state_in = &x->state});
    handover_check_untouched(c, x);
    handover_check_values(c, x, token, token + 1, producer);
}

/* Decodes with different numbers of recent tokens: none, few, and all up to `end`. */
static void decode_recent_tokens(fpa_check *c, handover *x, int64_t from, int64_t end,
                                 fpa_form_index producer)
{
    const int64_t tokens[] = {from, from + 1, from + 4, end - 1};
    c->form = FORM_RECURRENT;
    for (int i = 0; i < 4; i++)
        if (tokens[i] >= from && tokens[i] < end && (i == 0 || tokens[i] > tokens[i - 1]))
            decode_recent_token(c, x, from, tokens[i], producer);
    c->form = producer;
}

/* The state has the tokens before cut[0]; later those before cut[1] are added in one call. */
void check_recent(fpa_check *c, fpa_form_index producer)
{
    handover x;
    handover_begin(c, LAYOUT_PADDED, &x);
    snprintf(x.how, sizeof x.how, " (with recent tokens behind %lld and %lld, the states by the %s form)",
             (long long)x.cut[0], (long long)x.cut[1], form_name(producer));
    c->form = producer;
    check_run(c, (fpa_run){.to = x.cut[0], .state_out = &x.state});
    check_state(c, &x.state, x.cut[0]);
    decode_recent_tokens(c, &x, x.cut[0], x.cut[1], producer);
    check_run(c, (fpa_run){.from = x.cut[0], .to = x.cut[1], .state_in = &x.state, .state_out = &x.state});
    check_state(c, &x.state, x.cut[1]);
    decode_recent_tokens(c, &x, x.cut[1], c->trial->shape.length, producer);
    c->form = FORM_RECURRENT;
    handover_end(c, "the state", &x);
}

/* ---- pieces ---- */

void check_piece(fpa_check *c)
{
    const int64_t length = c->trial->shape.length;
    handover x;
    bool kept = false;
    handover_begin(c, LAYOUT_PLAIN, &x);
    snprintf(x.how, sizeof x.how, " (a piece of %lld tokens and the rest, with copies of states kept)",
             (long long)x.cut[0]);
    check_run(c, (fpa_run){.to = x.cut[0], .o = &x.o, .state_out = &x.state, .piece = &kept});
    if (kept) {
        check_state(c, &x.state, x.cut[0]);
        check_run(c, (fpa_run){.from = x.cut[0],
                               .to = length,
                               .o = &x.o,
                               .state_in = &x.state,
                               .state_out = &x.other,
                               .piece = &kept});
    }
    if (kept)
        handover_check_values(c, &x, 0, length, FORM_CHUNKED);
    handover_end(c, "a total", &x);
}

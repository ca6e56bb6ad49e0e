/* gradient_ragged: gradients of a packed batch with states in a pool: two runs, the first for the gradients of states. */
#include "gradient_ragged.h"

#include <stdlib.h>

enum { ROW_PARTS = 3 }; /* sequences of a row: its first part, one without tokens, its second part */

typedef struct ragged {
    fpa_gradient_check *check;
    const fpa_gradient_trial *trial;
    fpa_gradient_sequences sequences;
    fpa_field states;         /* [rows]: after the first part */
    fpa_field before, behind; /* [sequences]: gradients of the states before and after them */
} ragged;

void gradient_make_states(fpa_gradient_check *c, int64_t count, fpa_field *states)
{
    const fpa_trial *t = &c->trial->inputs;
    *states = (fpa_field){0};
    if (c->status == FPA_OK)
        c->status = field_make(states, NULL, t->head->state_dtype, LAYOUT_PADDED, count, 1, t->shape.heads,
                               t->facts->state_elements, c->error);
}

static void make_sequences(ragged *r, int64_t cut)
{
    const fpa_shape *s = &r->trial->inputs.shape;
    fpa_gradient_sequences *list = &r->sequences;
    list->count = ROW_PARTS * s->batch;
    list->longest = cut > s->length - cut ? cut : s->length - cut;
    list->cu_seqlens = calloc((size_t)list->count + 1, sizeof *list->cu_seqlens);
    list->in = calloc((size_t)list->count, sizeof *list->in);
    if (r->check->status == FPA_OK && !(list->cu_seqlens && list->in))
        r->check->status = fail_memory(r->check->error);
    for (int64_t i = 0; i < list->count && r->check->status == FPA_OK; i++) {
        const int64_t row = i / ROW_PARTS, part = i % ROW_PARTS;
        list->cu_seqlens[i] = (int32_t)(row * s->length + (part ? cut : 0));
        list->in[i] = part ? (int32_t)row : -1;
        list->cu_seqlens[list->count] = (int32_t)(s->batch * s->length);
    }
}

/* Sets the gradients of states after sequences: for a row's first part that before its second part, otherwise zeros. */
static void hand_back(ragged *r)
{
    const fpa_field *from = &r->before;
    for (int64_t i = 0; i < r->sequences.count; i++)
        for (int64_t h = 0; h < from->heads; h++)
            for (int64_t e = 0; e < from->entries; e++)
                field_put(&r->behind, i, 0, h, e,
                          i % ROW_PARTS ? 0 : field_get(from, i + ROW_PARTS - 1, 0, h, e));
}

/* For a sequence without tokens the gradient of its initial state is that of its final state. */
static bool passes_on(const ragged *r)
{
    const fpa_field *a = &r->before;
    for (int64_t i = 1; i < r->sequences.count; i += ROW_PARTS)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t e = 0; e < a->entries; e++)
                if (field_get(a, i, 0, h, e) != 0)
                    return false;
    return true;
}

static void check_states(const ragged *r)
{
    if (r->check->status != FPA_OK)
        return;
    if (field_scan(&r->before).poison)
        gradient_refuse(r->check, "an element of d_state_in was not written");
    if (!passes_on(r))
        gradient_refuse(r->check, "a sequence of no tokens changed its state's gradient");
    if (!(field_guards_hold(&r->before) && field_guards_hold(&r->behind) && field_guards_hold(&r->states)))
        gradient_refuse(r->check, "the module wrote outside the elements of a state");
}

/* Runs once for the gradients of states, then for all others. */
static void run_twice(ragged *r, const fpa_gradient_run *run, fpa_gradient_outputs *outputs)
{
    const fpa_gradient_run first = {
        .to = run->to, .state_in = &r->states, .d_state_in = &r->before, .sequences = &r->sequences};
    fpa_gradient_run second = *run;
    gradient_check_run(r->check, first, outputs);
    check_states(r);
    if (r->check->status != FPA_OK)
        return;
    hand_back(r);
    second.state_in = &r->states;
    second.d_state_out = &r->behind;
    second.sequences = &r->sequences;
    gradient_check_run(r->check, second, outputs);
}

void gradient_run_states(fpa_gradient_check *c, fpa_field *states)
{
    const fpa_trial *t = &c->trial->inputs;
    const fpa_run run = {
        .form = t->head->causal ? FORM_RECURRENT : FORM_CHUNKED, .to = c->trial->cut, .state_out = states};
    if (c->status == FPA_OK)
        c->status = trial_run(t, c->forward, &run, c->error);
}

void gradient_run_ragged(fpa_gradient_check *c, const fpa_gradient_run *run, fpa_gradient_outputs *outputs)
{
    ragged r = {.check = c, .trial = c->trial};
    make_sequences(&r, c->trial->cut);
    gradient_make_states(c, c->trial->inputs.shape.batch, &r.states);
    gradient_make_states(c, r.sequences.count, &r.before);
    gradient_make_states(c, r.sequences.count, &r.behind);
    gradient_run_states(c, &r.states);
    if (c->status == FPA_OK)
        run_twice(&r, run, outputs);
    free(r.sequences.cu_seqlens);
    free(r.sequences.in);
    field_free(&r.states);
    field_free(&r.before);
    field_free(&r.behind);
}

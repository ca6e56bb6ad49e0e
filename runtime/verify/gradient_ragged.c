#include "gradient_ragged.h"

#include <stdlib.h>
#include <string.h>

enum { ROW_PARTS = 3 }; /* sequences of a row: the first, one of no tokens, the second */

typedef struct ragged {
    const fpa_gradient_trial *trial;
    fpa_gradient_sequences sequences;
    fpa_field states;         /* [rows]: behind the first part */
    fpa_field before, behind; /* [sequences]: gradients of the states there */
} ragged;

static fpa_status make_states(const fpa_gradient_trial *g, fpa_field *states, int64_t count, fpa_error *error)
{
    return field_make(states, NULL, g->inputs.head->state_dtype, LAYOUT_PADDED, count, 1,
                      g->inputs.shape.heads, g->inputs.facts->state_elements, error);
}

static fpa_status make(ragged *r, int64_t cut, fpa_error *error)
{
    const fpa_shape *s = &r->trial->inputs.shape;
    fpa_gradient_sequences *list = &r->sequences;
    fpa_status status;

    list->count = ROW_PARTS * s->batch;
    list->longest = cut > s->length - cut ? cut : s->length - cut;
    list->cu_seqlens = calloc((size_t)list->count + 1, sizeof *list->cu_seqlens);
    list->in = calloc((size_t)list->count, sizeof *list->in);
    if (!list->cu_seqlens || !list->in)
        return fail_memory(error);
    for (int64_t i = 0; i < list->count; i++) {
        const int64_t row = i / ROW_PARTS, part = i % ROW_PARTS;
        list->cu_seqlens[i] = (int32_t)(row * s->length + (part ? cut : 0));
        list->in[i] = part ? (int32_t)row : -1;
    }
    list->cu_seqlens[list->count] = (int32_t)(s->batch * s->length);
    status = make_states(r->trial, &r->states, s->batch, error);
    if (status == FPA_OK)
        status = make_states(r->trial, &r->before, list->count, error);
    return status == FPA_OK ? make_states(r->trial, &r->behind, list->count, error) : status;
}

/* Gradients of the states behind sequences: of a row's first part what its second one gave, else zeros. */
static void hand_back(ragged *r)
{
    const fpa_field *from = &r->before;
    for (int64_t i = 0; i < r->sequences.count; i++)
        for (int64_t h = 0; h < from->heads; h++)
            for (int64_t e = 0; e < from->entries; e++)
                field_put(&r->behind, i, 0, h, e,
                          i % ROW_PARTS ? 0 : field_get(from, i + ROW_PARTS - 1, 0, h, e));
}

/* The one of no tokens has the gradient that comes from behind. */
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

static fpa_status check(const ragged *r, fpa_form_index form, fpa_error *error)
{
    static const char how[] = " (sequences of different lengths)";
    if (field_scan(&r->before).poison)
        return gradient_refuse(r->trial, form, how, "an element of d_state_in was not written", error);
    if (!passes_on(r))
        return gradient_refuse(r->trial, form, how, "a sequence of no tokens changed its state's gradient",
                               error);
    if (!(field_guards_hold(&r->before) && field_guards_hold(&r->behind) && field_guards_hold(&r->states)))
        return gradient_refuse(r->trial, form, how, "the module wrote outside the elements of a state",
                               error);
    return FPA_OK;
}

/* Once for the gradients of states, then for all others. */
static fpa_status run_twice(ragged *r, const fpa_module *module, const fpa_gradient_run *run,
                            fpa_gradient_outputs *outputs, fpa_error *error)
{
    const fpa_gradient_run first = {.form = run->form,
                                    .to = run->to,
                                    .state_in = &r->states,
                                    .d_state_in = &r->before,
                                    .sequences = &r->sequences};
    fpa_gradient_run second = *run;
    fpa_status status = gradient_run(r->trial, module, &first, outputs, error);

    if (status == FPA_OK)
        status = check(r, run->form, error);
    if (status != FPA_OK)
        return status;
    hand_back(r);
    second.state_in = &r->states;
    second.d_state_out = &r->behind;
    second.sequences = &r->sequences;
    return gradient_run(r->trial, module, &second, outputs, error);
}

fpa_status gradient_make_states(const fpa_gradient_trial *trial, const fpa_module *forward, fpa_field *states,
                                fpa_error *error)
{
    const fpa_form_index form = trial->inputs.head->causal ? FORM_RECURRENT : FORM_CHUNKED;

    return trial_run(&trial->inputs, forward, form, 0, trial->cut, NULL, NULL, states, error);
}

fpa_status gradient_run_ragged(const fpa_gradient_trial *trial, const fpa_module *backward,
                               const fpa_module *forward, const fpa_gradient_run *run,
                               fpa_gradient_outputs *outputs, fpa_error *error)
{
    ragged r = {.trial = trial};
    fpa_status status = make(&r, trial->cut, error);

    if (status == FPA_OK)
        status = gradient_make_states(trial, forward, &r.states, error);
    if (status == FPA_OK)
        status = run_twice(&r, backward, run, outputs, error);
    free(r.sequences.cu_seqlens);
    free(r.sequences.in);
    field_free(&r.states);
    field_free(&r.before);
    field_free(&r.behind);
    return status;
}

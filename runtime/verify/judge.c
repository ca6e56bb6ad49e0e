#include "judge.h"

#include <math.h>
#include <stdio.h>

/* One output of a trial, for messages: indices from 1, as everywhere. */
typedef struct element {
    int64_t b, t, h;
    int c;
} element;

fpa_status check_refuse(const fpa_trial *trial, fpa_form_index form, const char *how, const char *what,
                        fpa_error *error)
{
    char text[TRIAL_TEXT];
    trial_describe(trial, form, text);
    return fail(error, FPA_REFUSED, trial->head->name, "%s%s: %s", text, how, what);
}

static fpa_status refuse_element(const fpa_trial *trial, fpa_form_index form, const char *how, element at,
                                 const char *what, fpa_error *error)
{
    char text[384];
    snprintf(text, sizeof text, "o at batch %lld, token %lld, head %lld, column %d %s", (long long)at.b + 1,
             (long long)at.t + 1, (long long)at.h + 1, at.c + 1, what);
    return check_refuse(trial, form, how, text, error);
}

static void note(fpa_measure *m, double difference, double allowed, double tau, double reference)
{
    double share = difference / allowed;
    if (share > m->worst || m->tau == 0) {
        m->worst = share;
        m->tau = tau;
    }
    m->error = fmax(m->error, difference);
    m->largest = fmax(m->largest, fabs(reference));
    m->judged++;
}

void measure_add(fpa_measure *all, const fpa_measure *m)
{
    if (m->worst > all->worst || all->tau == 0) {
        all->worst = m->worst;
        all->tau = m->tau;
    }
    all->error = fmax(all->error, m->error);
    all->largest = fmax(all->largest, m->largest);
    all->judged += m->judged;
    all->outputs += m->outputs;
    all->squares += m->squares;
    all->plain_squares += m->plain_squares;
    all->count += m->count;
    all->rms_ratio = fmax(all->rms_ratio, m->rms_ratio);
    all->trials += m->trials;
    all->longest = m->longest > all->longest ? m->longest : all->longest;
}

/* Criterion 1 for one element, with what can be wrong before it can be compared. */
static fpa_status check_element(const fpa_trial *trial, fpa_form_index form, const char *how, element at,
                                const fpa_field *o, const fpa_bound *bound, fpa_measure *m, fpa_error *error)
{
    int64_t output = (at.b * trial->shape.length + at.t) * trial->shape.query_heads + at.h;
    int64_t index = output * trial->head->dv + at.c;
    double value = field_get(o, at.b, at.t, at.h, at.c);
    double expected = trial->reference[index];
    double allowed = bound_allows(bound, trial->magnitude[index], expected);
    char text[256];
    m->outputs++;
    if (field_is_poison(o, at.b, at.t, at.h, at.c))
        return refuse_element(trial, form, how, at, "was not written", error);
    if (trial->loose[output])
        return FPA_OK;
    if (!isfinite(value)) {
        return refuse_element(trial, form, how, at, isnan(value) ? "is not a number" : "is infinite", error);
    }
    if (!trial->judged[output])
        return FPA_OK;
    note(m, fabs(value - expected), allowed, bound->tau, expected);
    if (fabs(value - expected) <= allowed)
        return FPA_OK;
    snprintf(text, sizeof text, "is %.9g, but the formula gives %.9g: off by %.3g, allowed is %.3g", value,
             expected, fabs(value - expected), allowed);
    return refuse_element(trial, form, how, at, text, error);
}

fpa_status check_values(const fpa_trial *trial, fpa_form_index form, const char *how, const fpa_field *o,
                        int64_t from, int64_t end, const fpa_bound *bound, fpa_measure *m, fpa_error *error)
{
    fpa_status status = FPA_OK;
    element at;
    for (at.b = 0; at.b < trial->shape.batch; at.b++)
        for (at.t = from; at.t < end; at.t++)
            for (at.h = 0; at.h < trial->shape.query_heads; at.h++)
                for (at.c = 0; at.c < trial->head->dv && status == FPA_OK; at.c++)
                    status = check_element(trial, form, how, at, o, bound, m, error);
    return status;
}

fpa_status check_guards(const fpa_trial *trial, fpa_form_index form, const char *how, const char *name,
                        const fpa_field *field, fpa_error *error)
{
    char text[96];
    if (field_guards_hold(field))
        return FPA_OK;
    snprintf(text, sizeof text, "the module wrote outside the elements of %s", name);
    return check_refuse(trial, form, how, text, error);
}

fpa_status check_make_output(const fpa_trial *t, fpa_field *o, fpa_error *error)
{
    return field_make(o, t->blocks, t->head->dtype, t->shape.layout, t->shape.batch, t->shape.length,
                      t->shape.query_heads, t->head->dv, error);
}

fpa_status check_make_state(const fpa_trial *t, fpa_layout layout, fpa_field *state, fpa_error *error)
{
    return field_make(state, t->blocks, t->head->state_dtype, layout, t->shape.batch, 1, t->shape.heads,
                      t->facts->state_elements, error);
}

fpa_status check_state(const fpa_trial *t, fpa_form_index form, const char *how, const fpa_field *state,
                       int64_t tokens, fpa_error *error)
{
    fpa_scan scan = field_scan(state);
    if (scan.infinite && !scan.poison && state->dtype == FPA_F16)
        return check_refuse(
            t, form, how,
            "an element of the final state is not finite: state_dtype f16 ends at 65504, so sums "
            "of these weights need bf16 or f32",
            error);
    if (scan.poison)
        return check_refuse(t, form, how, "an element of the final state was not written", error);
    if (scan.infinite)
        return check_refuse(t, form, how, "an element of the final state is not finite", error);
    if (tokens == 0 && scan.nonzero)
        return check_refuse(t, form, how, "the state after no token is not zero", error);
    return FPA_OK;
}

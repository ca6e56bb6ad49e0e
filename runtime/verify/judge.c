/* judge: compares outputs with the formula, and checks guards and states. */
#include "judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* One element of o; messages count from 1. */
typedef struct element {
    int64_t b, t, h;
    int c;
} element;

void check_refuse(fpa_check *c, const char *format, ...)
{
    char text[TRIAL_TEXT], what[384];
    va_list arguments;
    if (c->status != FPA_OK)
        return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    trial_describe(c->trial, c->form, text);
    c->status = fail(c->error, FPA_REFUSED, c->trial->head->name, "%s%s: %s", text, c->how, what);
}

void check_make_output(fpa_check *c, fpa_field *o)
{
    const fpa_trial *t = c->trial;
    *o = (fpa_field){0};
    if (c->status == FPA_OK)
        c->status = field_make(o, t->blocks, t->head->dtype, t->shape.layout, t->shape.batch, t->shape.length,
                               t->shape.query_heads, t->head->dv, c->error);
}

void check_make_states(fpa_check *c, fpa_layout layout, int64_t count, fpa_field *states)
{
    const fpa_trial *t = c->trial;
    *states = (fpa_field){0};
    if (c->status == FPA_OK)
        c->status = field_make(states, t->blocks, t->head->state_dtype, layout, count, 1, t->shape.heads,
                               t->facts->state_elements, c->error);
}

void check_run(fpa_check *c, fpa_run run)
{
    run.form = c->form;
    if (c->status == FPA_OK)
        c->status = trial_run(c->trial, c->module, &run, c->error);
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

static void refuse_element(fpa_check *c, element at, const char *what)
{
    check_refuse(c, "o at batch %lld, token %lld, head %lld, column %d %s", (long long)at.b + 1,
                 (long long)at.t + 1, (long long)at.h + 1, at.c + 1, what);
}

/* Criterion 1 for one element, after checking that it was written and is finite. */
static void check_element(fpa_check *c, element at, const fpa_field *o, const fpa_bound *bound)
{
    const fpa_trial *t = c->trial;
    const int64_t output = (at.b * t->shape.length + at.t) * t->shape.query_heads + at.h;
    const int64_t index = output * t->head->dv + at.c;
    const double value = field_get(o, at.b, at.t, at.h, at.c), expected = t->reference[index];
    const double allowed = bound_allows(bound, t->magnitude[index], expected), off = fabs(value - expected);
    char text[256];
    c->measure->outputs++;
    if (field_is_poison(o, at.b, at.t, at.h, at.c)) {
        refuse_element(c, at, "was not written");
        return;
    }
    if (t->loose[output])
        return;
    if (!isfinite(value))
        refuse_element(c, at, isnan(value) ? "is not a number" : "is infinite");
    if (!isfinite(value) || !t->judged[output])
        return;
    note(c->measure, off, allowed, bound->tau, expected);
    if (off <= allowed)
        return;
    snprintf(text, sizeof text, "is %.9g, but the formula gives %.9g: off by %.3g, allowed is %.3g", value,
             expected, off, allowed);
    refuse_element(c, at, text);
}

void check_values(fpa_check *c, const fpa_field *o, int64_t from, int64_t end, const fpa_bound *bound)
{
    const fpa_trial *t = c->trial;
    element at;
    for (at.b = 0; at.b < t->shape.batch; at.b++)
        for (at.t = from; at.t < end; at.t++)
            for (at.h = 0; at.h < t->shape.query_heads; at.h++)
                for (at.c = 0; at.c < t->head->dv && c->status == FPA_OK; at.c++)
                    check_element(c, at, o, bound);
}

void check_guards(fpa_check *c, const char *name, const fpa_field *field)
{
    if (c->status == FPA_OK && !field_guards_hold(field))
        check_refuse(c, "the module wrote outside the elements of %s", name);
}

void check_state(fpa_check *c, const fpa_field *state, int64_t tokens)
{
    if (c->status != FPA_OK)
        return;
    const fpa_scan scan = field_scan(state);
    if (scan.infinite && !scan.poison && state->dtype == FPA_F16)
        check_refuse(c, "an element of the final state is not finite: state_dtype f16 ends at 65504, so sums "
                        "of these weights need bf16 or f32");
    if (scan.poison)
        check_refuse(c, "an element of the final state was not written");
    if (scan.infinite)
        check_refuse(c, "an element of the final state is not finite");
    if (tokens == 0 && scan.nonzero)
        check_refuse(c, "the state after a call without tokens is not zero");
}

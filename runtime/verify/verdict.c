/* verdict: conclusions from the results of a form's trials. */
#include "verdict.h"

#include <stdio.h>

#include "check.h"

fpa_status verdict_conclude(const fpa_head *head, fpa_form_index form, const fpa_measure *m,
                            fpa_form_verdict *verdict, fpa_error *error)
{
    if (m->judged == 0 && m->count == 0)
        return fail(error, FPA_REFUSED, head->name,
                    "%s form: no output could be compared with the formula: scores of both signs cancel in "
                    "the normaliser, "
                    "or eps is 0, on all inputs that were tried; use a larger eps, coordinates whose map is "
                    "positive%s, or "
                    "normalize = \"none\"",
                    form_name(form), head->state_dtype == FPA_F32 ? "" : ", state_dtype = \"f32\"");
    *verdict = (fpa_form_verdict){
        .checked = true,
        .worst = m->worst,
        .tau = m->tau,
        .error = m->largest > 0 ? m->error / m->largest : 0,
    };
    return check_rms(head, form, m, &verdict->rms_ratio, error);
}

void verdict_write(const fpa_measure measures[FORMS], fpa_verdict *verdict)
{
    size_t used = 0;
    for (int form = 0; form < FORMS; form++) {
        const fpa_form_verdict *v = &verdict->form[form];
        const fpa_measure *m = &measures[form];
        int length;
        if (!v->checked)
            continue;
        length = snprintf(
            verdict->text + used, sizeof verdict->text - used,
            "%s%s: %d shapes to %lld tokens, %lld of %lld values, worst %.2g of bound %.2g, error %.2g",
            used ? "; " : "", form_name((fpa_form_index)form), m->trials, (long long)m->longest,
            (long long)m->judged, (long long)m->outputs, v->worst, v->tau, v->error);
        used += (size_t)length;
        if (m->count && used < sizeof verdict->text)
            used += (size_t)snprintf(verdict->text + used, sizeof verdict->text - used, ", RMS %.2g of plain",
                                     v->rms_ratio);
        if (used >= sizeof verdict->text)
            return;
    }
}

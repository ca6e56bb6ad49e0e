#include "gradient_judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "bound.h"

enum { TEXT = 384 };

/* ---- bounds ---- */

/* A gradient is a product of scores, or of their derivatives, and sums of what outputs have: twice the roundings of an
 * output, and those of dots over dv. What is stored is rounded once more. */
static fpa_bound bound(const fpa_gradient_judgement *j, int kind)
{
    const fpa_head *head = j->head;
    const double stored = head->dtype == FPA_F32 ? 0 : dtype_roundoff(head->dtype);
    fpa_bound b = bound_of(head, j->facts, FORM_CHUNKED, j->trial->known, j->resumes);

    b.tau = 2 * (b.tau - stored) + (8 * sqrt(head->dv) + 16) * dtype_roundoff(FPA_F32);
    b.rounding = kind < OF_GATE ? stored : 0;
    return b;
}

/* ---- comparing ---- */

typedef struct comparison {
    const fpa_gradient_judgement *judgement;
    fpa_bound bound;
    fpa_gradient_squares *squares; /* added to */
} comparison;

static fpa_status refuse(const fpa_gradient_judgement *j, const char *what, fpa_error *error)
{
    return gradient_refuse(j->trial, j->form, j->how, what, error);
}

/* One number; what: names it. stored: the type that it was rounded to. */
static fpa_status compare(comparison *c, double value, const double *const evaluations[EVALUATIONS],
                          int64_t at, fpa_dtype stored, const char *what, fpa_error *error)
{
    const double exact = evaluations[EXACT][at], magnitude = evaluations[MAGNITUDE][at];
    const double allowed = bound_allows(&c->bound, magnitude, exact), off = fabs(value - exact);
    char text[TEXT];

    if (stored == FPA_F16 && magnitude > 30000) /* where half precision ends */
        return FPA_OK;
    if (!isfinite(value)) {
        snprintf(text, sizeof text, "%s is %s", what, isnan(value) ? "not a number" : "infinite");
        return refuse(c->judgement, text, error);
    }
    if (!(off <= allowed)) {
        snprintf(text, sizeof text, "%s is %.9g, but the formula gives %.9g: off by %.3g, allowed is %.3g",
                 what, value, exact, off, allowed);
        return refuse(c->judgement, text, error);
    }
    c->judgement->found->judged++;
    c->judgement->found->worst = fmax(c->judgement->found->worst, off / allowed);
    if (!(magnitude > 1e-30))
        return FPA_OK;
    const double plain = (dtype_round(stored, evaluations[PLAIN][at]) - exact) / magnitude;
    c->squares->found += off / magnitude * (off / magnitude);
    c->squares->plain += plain * plain;
    c->squares->count++;
    return FPA_OK;
}

fpa_status gradient_check_rms(const fpa_head *head, fpa_form_index form, const fpa_gradient_squares *s,
                              const char *name, fpa_gradient_findings *to, fpa_error *error)
{
    const double count = (double)s->count, found = sqrt(s->found / count);
    const double plain = fmax(sqrt(s->plain / count), dtype_roundoff(FPA_F32) / 2);

    if (!s->count)
        return FPA_OK;
    to->ratio = fmax(to->ratio, found / plain);
    if (found <= 2 * plain)
        return FPA_OK;
    return fail(error, FPA_REFUSED, head->name,
                "gradients, %s form: the RMS error of %s is %.3g of its magnitude, more than twice the plain "
                "evaluation's %.3g",
                form_name(form), name, found, plain);
}

static const double *evaluated(const fpa_gradient_trial *g, int kind, int evaluation)
{
    const fpa_gradients *to = &g->to[evaluation];

    return kind == OF_Q ? to->q : kind == OF_K ? to->k : kind == OF_V ? to->v : to->log_gate;
}

static fpa_status compare_field(comparison *c, int kind, const fpa_field *field, fpa_error *error)
{
    const fpa_gradient_trial *g = c->judgement->trial;
    const double *all[EVALUATIONS];
    char what[160];
    fpa_status status = FPA_OK;

    for (int i = 0; i < EVALUATIONS; i++)
        all[i] = evaluated(g, kind, i);
    for (int64_t b = 0; b < field->batch; b++)
        for (int64_t t = 0; t < g->judged; t++)
            for (int64_t h = 0; h < field->heads; h++)
                for (int64_t e = 0; e < field->entries && status == FPA_OK; e++) {
                    const int64_t at = ((b * g->known + t) * field->heads + h) * field->entries + e;

                    snprintf(what, sizeof what, "%s at batch %lld, token %lld, head %lld, column %lld",
                             gradient_name(kind), (long long)b + 1, (long long)t + 1, (long long)h + 1,
                             (long long)e + 1);
                    if (field_is_poison(field, b, t, h, e)) {
                        strncat(what, " was not written", sizeof what - strlen(what) - 1);
                        return refuse(c->judgement, what, error);
                    }
                    status = compare(c, field_get(field, b, t, h, e), all, at, field->dtype, what, error);
                }
    return status;
}

static fpa_status compare_matrix(comparison *c, int index, const float *matrix, fpa_error *error)
{
    const fpa_head *head = c->judgement->head;
    const double *all[EVALUATIONS];
    char what[160];
    fpa_status status = FPA_OK;
    int m = 0;

    for (int left = index; left > 0 || head->matrices[m].kind == FPA_MATRIX_CONSTANT; m++)
        left -= head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    for (int i = 0; i < EVALUATIONS; i++)
        all[i] = c->judgement->trial->weights[i][m];
    for (int64_t i = 0; i < gradient_entries(c->judgement->trial, index) && status == FPA_OK; i++) {
        snprintf(what, sizeof what, "d_weights[%d] (%.40s), entry %lld", index, head->matrices[m].name,
                 (long long)i + 1);
        status = compare(c, (double)matrix[i], all, i, FPA_F32, what, error);
    }
    return status;
}

fpa_status gradient_judge(fpa_gradient_judgement j, const fpa_gradient_run *run,
                          const fpa_gradient_outputs *outputs, fpa_gradient_squares *sums, fpa_error *error)
{
    comparison c = {.judgement = &j};
    char text[TEXT];
    fpa_status status = FPA_OK;

    for (int kind = 0; kind < GRADIENT_KINDS && status == FPA_OK; kind++) {
        if (!(run->kinds & 1 << kind) || (kind == OF_GATE && !j.head->gate))
            continue;
        c.bound = bound(&j, kind);
        c.squares = &sums[kind];
        status = compare_field(&c, kind, &outputs->field[kind], error);
        if (status == FPA_OK && !field_guards_hold(&outputs->field[kind])) {
            snprintf(text, sizeof text, "the module wrote outside the elements of %s", gradient_name(kind));
            status = refuse(&j, text, error);
        }
    }
    for (int i = 0; run->matrices && i < gradient_matrices(j.head) && status == FPA_OK; i++) {
        c.bound = bound(&j, GRADIENT_KINDS);
        c.squares = &sums[GRADIENT_KINDS];
        status = compare_matrix(&c, i, outputs->matrices[i], error);
    }
    return status;
}

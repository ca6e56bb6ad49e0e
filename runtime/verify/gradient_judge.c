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

/* A number of a gradient: of a kind, or of matrix number `index`. */
typedef struct place {
    int kind, index;
    int64_t b, t, h, e; /* e: column, or entry of a matrix */
} place;

enum { NAME = 160 };

/* Matrix number `index` of those that are given at run time, among all. */
static int run_time_matrix(const fpa_head *head, int index)
{
    int m = 0;
    for (int left = index; left > 0 || head->matrices[m].kind == FPA_MATRIX_CONSTANT; m++)
        left -= head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    return m;
}

static void name_place(const fpa_head *head, const place *at, char name[NAME])
{
    if (at->kind < GRADIENT_KINDS) {
        snprintf(name, NAME, "%s at batch %lld, token %lld, head %lld, column %lld", gradient_name(at->kind),
                 (long long)at->b + 1, (long long)at->t + 1, (long long)at->h + 1, (long long)at->e + 1);
        return;
    }
    snprintf(name, NAME, "d_weights[%d] (%.40s), entry %lld", at->index,
             head->matrices[run_time_matrix(head, at->index)].name, (long long)at->e + 1);
}

static fpa_status refuse_number(const comparison *c, const place *at, double value, double exact,
                                double allowed, fpa_error *error)
{
    char text[TEXT], what[NAME];
    name_place(c->judgement->head, at, what);
    if (isfinite(value))
        snprintf(text, sizeof text, "%s is %.9g, but the formula gives %.9g: off by %.3g, allowed is %.3g",
                 what, value, exact, fabs(value - exact), allowed);
    else
        snprintf(text, sizeof text, "%s is %s", what, isnan(value) ? "not a number" : "infinite");
    return refuse(c->judgement, text, error);
}

/* One number; i: where its evaluations are. stored: the type that it was rounded to. */
static fpa_status compare(comparison *c, double value, const double *const evaluations[EVALUATIONS],
                          int64_t i, fpa_dtype stored, const place *at, fpa_error *error)
{
    const double exact = evaluations[EXACT][i], magnitude = evaluations[MAGNITUDE][i];
    const double allowed = bound_allows(&c->bound, magnitude, exact), off = fabs(value - exact);
    if (stored == FPA_F16 && magnitude > 30000) /* where half precision ends */
        return FPA_OK;
    if (!isfinite(value) || !(off <= allowed))
        return refuse_number(c, at, value, exact, allowed, error);
    c->judgement->found->judged++;
    c->judgement->found->worst = fmax(c->judgement->found->worst, off / allowed);
    if (!(magnitude > 1e-30))
        return FPA_OK;
    const double plain = (dtype_round(stored, evaluations[PLAIN][i]) - exact) / magnitude;
    c->squares->found += off / magnitude * (off / magnitude);
    c->squares->plain += plain * plain;
    c->squares->count++;
    return FPA_OK;
}

fpa_status gradient_check_rms(const fpa_head *head, fpa_form_index form, const fpa_gradient_squares *s,
                              const char *name, fpa_gradient_findings *to, fpa_error *error)
{
    /* Where the plain evaluation is exact (a normaliser's difference of one value and o, say), a rounding is still no fault. */
    const double count = (double)s->count, rounding = dtype_roundoff(FPA_F32);
    const double found = sqrt(s->found / count), plain = sqrt(s->plain / count);
    if (!s->count)
        return FPA_OK;
    to->ratio = fmax(to->ratio, found / fmax(plain, rounding / 2));
    if (found <= 2 * plain + rounding)
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

static fpa_status refuse_unwritten(const comparison *c, const place *at, fpa_error *error)
{
    char text[TEXT], what[NAME];
    name_place(c->judgement->head, at, what);
    snprintf(text, sizeof text, "%s was not written", what);
    return refuse(c->judgement, text, error);
}

static fpa_status compare_field(comparison *c, int kind, const fpa_field *field, fpa_error *error)
{
    const fpa_gradient_trial *g = c->judgement->trial;
    const double *all[EVALUATIONS];
    place at = {.kind = kind};
    fpa_status status = FPA_OK;
    for (int i = 0; i < EVALUATIONS; i++)
        all[i] = evaluated(g, kind, i);
    for (at.b = 0; at.b < field->batch; at.b++)
        for (at.t = 0; at.t < g->judged; at.t++)
            for (at.h = 0; at.h < field->heads; at.h++)
                for (at.e = 0; at.e < field->entries && status == FPA_OK; at.e++) {
                    const int64_t i =
                        ((at.b * g->known + at.t) * field->heads + at.h) * field->entries + at.e;
                    if (field_is_poison(field, at.b, at.t, at.h, at.e))
                        return refuse_unwritten(c, &at, error);
                    status = compare(c, field_get(field, at.b, at.t, at.h, at.e), all, i, field->dtype, &at,
                                     error);
                }
    return status;
}

static fpa_status compare_matrix(comparison *c, int index, const float *matrix, fpa_error *error)
{
    const fpa_gradient_trial *g = c->judgement->trial;
    const double *all[EVALUATIONS];
    place at = {.kind = GRADIENT_KINDS, .index = index};
    fpa_status status = FPA_OK;
    for (int i = 0; i < EVALUATIONS; i++)
        all[i] = g->weights[i][run_time_matrix(c->judgement->head, index)];
    for (at.e = 0; at.e < gradient_entries(g, index) && status == FPA_OK; at.e++)
        status = compare(c, (double)matrix[at.e], all, at.e, FPA_F32, &at, error);
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

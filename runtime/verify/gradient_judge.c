/* gradient_judge: compares each number of a gradient with the formula's, and sums errors for the RMS. */
#include "gradient_judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/dtype.h"
#include "bound.h"

void gradient_refuse(fpa_gradient_check *c, const char *format, ...)
{
    char what[384];
    va_list arguments;
    if (c->status != FPA_OK)
        return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    c->status = gradient_trial_refuse(c->trial, c->form, c->how, what, c->error);
}

void gradient_check_run(fpa_gradient_check *c, fpa_gradient_run run, fpa_gradient_outputs *outputs)
{
    run.form = c->form;
    if (c->status == FPA_OK)
        c->status = gradient_run(c->trial, c->backward, &run, outputs, c->error);
}

/* ---- bounds ---- */

/* The bound of a gradient, which is a product of scores or their derivatives and of sums like an output's: twice an output's roundings,
 * and those of dots over dv. Storing rounds once more. */
static fpa_bound bound(const fpa_gradient_check *c, int kind)
{
    const fpa_head *head = c->trial->inputs.head;
    const double stored = head->dtype == FPA_F32 ? 0 : dtype_roundoff(head->dtype);
    fpa_bound b = bound_of(head, c->trial->inputs.facts, FORM_CHUNKED, c->trial->known, c->resumes);
    b.tau = 2 * (b.tau - stored) + (8 * sqrt(head->dv) + 16) * dtype_roundoff(FPA_F32);
    b.rounding = kind < OF_GATE ? stored : 0;
    return b;
}

/* ---- comparing ---- */

typedef struct comparison {
    fpa_gradient_check *check;
    fpa_bound bound;
    fpa_gradient_squares *squares; /* the errors are added to these */
    const fpa_gradients *gates;    /* the plain evaluation, if log-gates are compared; else NULL */
} comparison;

/* The position of a gradient's number: of a kind, or of matrix `index`. */
typedef struct place {
    int kind, index;
    int64_t b, t, h, e; /* e: column, or entry of a matrix */
} place;

enum { NAME = 160 };

static const char *name_place(const comparison *c, const place *at, char name[NAME])
{
    if (at->kind < GRADIENT_KINDS)
        snprintf(name, NAME, "%s at batch %lld, token %lld, head %lld, column %lld", gradient_name(at->kind),
                 (long long)at->b + 1, (long long)at->t + 1, (long long)at->h + 1, (long long)at->e + 1);
    else
        snprintf(name, NAME, "d_weights[%d] (%.40s), entry %lld", at->index,
                 gradient_matrix(c->check->trial->inputs.head, at->index)->name, (long long)at->e + 1);
    return name;
}

static void refuse_number(const comparison *c, const place *at, double value, double exact, double allowed)
{
    char name[NAME];
    name_place(c, at, name);
    if (isfinite(value))
        gradient_refuse(c->check, "%s is %.9g, but the formula gives %.9g: off by %.3g, allowed is %.3g",
                        name, value, exact, fabs(value - exact), allowed);
    else
        gradient_refuse(c->check, "%s is %s", name, isnan(value) ? "not a number" : "infinite");
}

/* The expected squared error of a plain log-gate gradient: the error of the operands, which all terms share, and that of each term. */
static double expected_square(const fpa_gradients *plain, int64_t i, double exact)
{
    const double shared = plain->log_gate_whole[i] - exact;
    return shared * shared + plain->log_gate_carried[i];
}

/* Compares one number; i: its index in the evaluations; stored: the type to which it was rounded. */
static void compare(comparison *c, double value, const double *const evaluations[EVALUATIONS], int64_t i,
                    fpa_dtype stored, const place *at)
{
    const double exact = evaluations[EXACT][i], magnitude = evaluations[MAGNITUDE][i];
    const double allowed = bound_allows(&c->bound, magnitude, exact), off = fabs(value - exact);
    fpa_gradient_findings *found = c->check->found;
    if (stored == FPA_F16 && magnitude > 30000) /* near the end of f16's range */
        return;
    if (!isfinite(value) || !(off <= allowed)) {
        refuse_number(c, at, value, exact, allowed);
        return;
    }
    found->judged++;
    found->worst = fmax(found->worst, off / allowed);
    if (!(magnitude > 1e-30))
        return;
    const double plain = (dtype_round(stored, evaluations[PLAIN][i]) - exact) / magnitude;
    c->squares->found += off / magnitude * (off / magnitude);
    c->squares->plain += plain * plain;
    c->squares->expected += c->gates ? expected_square(c->gates, i, exact) / (magnitude * magnitude) : 0;
    c->squares->count++;
}

fpa_status gradient_check_rms(const fpa_head *head, fpa_form_index form, const fpa_gradient_squares *s,
                              const char *name, fpa_gradient_findings *to, fpa_error *error)
{
    /* If the plain evaluation is exact (say, a normaliser's difference of one value and o), a rounding is no fault. */
    const double count = (double)s->count, rounding = dtype_roundoff(FPA_F32);
    const double found = sqrt(s->found / count);
    const double plain = sqrt(fmax(s->plain, s->expected) / count);
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

static void compare_field(comparison *c, int kind, const fpa_field *field)
{
    const fpa_gradient_trial *g = c->check->trial;
    const double *all[EVALUATIONS];
    char name[NAME];
    place at = {.kind = kind};
    for (int i = 0; i < EVALUATIONS; i++)
        all[i] = evaluated(g, kind, i);
    for (at.b = 0; at.b < field->batch; at.b++)
        for (at.t = 0; at.t < g->judged; at.t++)
            for (at.h = 0; at.h < field->heads; at.h++)
                for (at.e = 0; at.e < field->entries && c->check->status == FPA_OK; at.e++) {
                    const int64_t i =
                        ((at.b * g->known + at.t) * field->heads + at.h) * field->entries + at.e;
                    if (field_is_poison(field, at.b, at.t, at.h, at.e))
                        gradient_refuse(c->check, "%s was not written", name_place(c, &at, name));
                    else
                        compare(c, field_get(field, at.b, at.t, at.h, at.e), all, i, field->dtype, &at);
                }
    if (!field_guards_hold(field))
        gradient_refuse(c->check, "the module wrote outside the elements of %s", gradient_name(kind));
}

static void compare_matrix(comparison *c, int index, const float *matrix)
{
    const fpa_gradient_trial *g = c->check->trial;
    const fpa_head *head = g->inputs.head;
    const double *all[EVALUATIONS];
    place at = {.kind = GRADIENT_KINDS, .index = index};
    for (int i = 0; i < EVALUATIONS; i++)
        all[i] = g->weights[i][gradient_matrix(head, index) - head->matrices];
    for (at.e = 0; at.e < gradient_entries(g, index) && c->check->status == FPA_OK; at.e++)
        compare(c, (double)matrix[at.e], all, at.e, FPA_F32, &at);
}

void gradient_judge(fpa_gradient_check *check, const fpa_gradient_run *run,
                    const fpa_gradient_outputs *outputs, fpa_gradient_squares *sums)
{
    const fpa_head *head = check->trial->inputs.head;
    comparison c = {.check = check};
    for (int kind = 0; kind < GRADIENT_KINDS && check->status == FPA_OK; kind++) {
        if (!(run->kinds & 1 << kind) || (kind == OF_GATE && !head->gate))
            continue;
        c.bound = bound(check, kind);
        c.squares = &sums[kind];
        c.gates = kind == OF_GATE ? &check->trial->to[PLAIN] : NULL;
        compare_field(&c, kind, &outputs->field[kind]);
    }
    for (int i = 0; run->matrices && i < head_run_time_matrices(head) && check->status == FPA_OK; i++) {
        c.bound = bound(check, GRADIENT_KINDS);
        c.gates = NULL;
        c.squares = &sums[GRADIENT_KINDS];
        compare_matrix(&c, i, outputs->matrices[i]);
    }
}

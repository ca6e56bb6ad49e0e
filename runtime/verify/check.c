#include "check.h"

#include <math.h>
#include <stdio.h>

#include "base/dtype.h"
#include "bound.h"
#include "draft.h"
#include "handover.h"
#include "piece.h"
#include "ragged.h"
#include "recent.h"

/* What storing a value may have done to it: half of its last place. */
static double half_place(fpa_dtype dtype, double value)
{
    int exponent;
    frexp(value, &exponent); /* value in [2^(exponent-1), 2^exponent) */
    if (dtype == FPA_F16 && exponent < -13)
        exponent = -13;
    return ldexp(dtype_roundoff(dtype), exponent - 1);
}

/* In narrow arithmetic, where the errors of storing would hide those of computing, without them. */
static fpa_errors errors_of(const fpa_trial *t, const fpa_field *o)
{
    int64_t outputs = t->shape.batch * t->shape.length * t->shape.query_heads;
    bool narrow = t->facts->arithmetic != FPA_F32;
    fpa_errors errors = {0};
    for (int64_t i = 0; i < outputs; i++)
        for (int c = 0; c < t->plain.columns; c++) {
            int64_t token = i / t->shape.query_heads, head = i % t->shape.query_heads;
            double value = field_get(o, token / t->shape.length, token % t->shape.length, head, c);
            errors_add(t, i, c, value, narrow ? half_place(t->head->dtype, value) : 0, &errors);
        }
    return errors;
}

/* Few samples scatter: what an RMS of so many may be above that of as many others. Where scores are
 * summed their errors are in all columns of an output, which then is one sample; errors of a copy of a
 * state are in many outputs, but each in one column. */
static double scatter(int64_t count)
{
    return 1 + 8 / sqrt((double)count);
}

/* The plain evaluation's RMS error, by which a form's is judged. Of scores of pairs: where there are three factors and more, rows of
 * their dots may be products of rows (bound.c), which are rounded as those of features are, but to the arithmetic type, and features'
 * sums are copied in bf16. */
static double yardstick(const fpa_trial *t, fpa_form_index form, int part)
{
    const fpa_errors *const of_form[FORMS] = {&t->plain.pairs, &t->plain.narrow, &t->plain.floats};
    double rms = errors_rms(of_form[form], part);
    if (form == FORM_PARALLEL && head_degree(t->head) > 2)
        rms = fmax(rms, errors_rms(&t->plain.narrow, part) * dtype_roundoff(t->facts->arithmetic) /
                            dtype_roundoff(FPA_BF16));
    return rms + dtype_roundoff(FPA_F32);
}

/* Criterion 2 in narrow arithmetic: trial by trial, and apart for later chunks, because errors over
 * the magnitude differ by orders of magnitude, and the small ones see most. */
static fpa_status check_narrow(const fpa_trial *t, fpa_form_index form, const fpa_errors *errors,
                               fpa_measure *m, fpa_error *error)
{
    enum { FEWEST_VALUES = 64 };
    static const char *const names[PARTS] = {"of the first chunk", "after the first chunk"};
    char text[256];
    for (int part = 0; part < PARTS; part++) {
        double rms = errors_rms(errors, part);
        double unit = yardstick(t, form, part);
        if (errors->count[part] < FEWEST_VALUES)
            continue;
        m->count += errors->count[part];
        m->rms_ratio = fmax(m->rms_ratio, rms / unit);
        bool by_scores = (part == PART_FIRST && t->head->causal) || form == FORM_PARALLEL;
        int64_t samples = errors->count[part] / (by_scores ? t->plain.columns : 1);
        if (rms <= 2 * unit * scatter(samples))
            continue;
        snprintf(text, sizeof text,
                 "the RMS error of tokens %s is %.3g of the magnitude, more than twice the %.3g of a plain "
                 "evaluation in the same precision",
                 names[part], rms, unit);
        return check_refuse(t, form, "", text, error);
    }
    return FPA_OK;
}

static fpa_status check_errors(const fpa_trial *t, fpa_form_index form, const fpa_field *o, fpa_measure *m,
                               fpa_error *error)
{
    fpa_errors errors;
    if (!t->plain.known)
        return FPA_OK;
    errors = errors_of(t, o);
    if (t->facts->arithmetic != FPA_F32)
        return check_narrow(t, form, &errors, m, error);
    m->squares += errors.squares[PART_FIRST];
    m->plain_squares += t->plain.floats.squares[PART_FIRST];
    m->count += errors.count[PART_FIRST];
    return FPA_OK;
}

/* The sum of an output's scores as its normaliser. */
static double divisor(const fpa_head *head, double den)
{
    switch (head->normalize) {
    case FPA_NORMALIZE_SUM:
        return den + head->eps;
    case FPA_NORMALIZE_MAX:
        return fmax(den, head->eps);
    default:
        return 1 + den;
    }
}

/* What a kernel's sums of scores are to be multiplied by. With eps = 0 a far factor of all weights, which a quotient has not,
 * is left out of them as a power of two (gen/simplify/range.c): that of the first output. */
static double unit_of(const fpa_trial *t, const fpa_field *den)
{
    const fpa_shape *s = &t->shape;
    const double far = 0x1p50;
    if (t->head->eps != 0 || t->head->normalize == FPA_NORMALIZE_ONE_PLUS_SUM)
        return 1;
    for (int64_t i = 0; i < s->batch * s->length * s->query_heads; i++) {
        const double ratio =
            t->normalizer[i] / field_get(den, i / s->query_heads / s->length, i / s->query_heads % s->length,
                                         i % s->query_heads, 0);
        if (t->judged[i] && isfinite(ratio) && ratio > 0)
            return ratio > far || ratio < 1 / far ? exp2(round(log2(ratio))) : 1;
    }
    return 1;
}

/* What gradients will be made with: sums of scores are judged as the normalisers that they make. */
static fpa_status check_den(const fpa_trial *t, fpa_form_index form, const fpa_field *den, fpa_error *error)
{
    const fpa_bound bound = bound_of(t->head, t->facts, form, t->shape.length, 0);
    const fpa_shape *s = &t->shape;
    const double unit = unit_of(t, den);
    char text[160];
    for (int64_t i = 0; i < s->batch * s->length * s->query_heads; i++) {
        const int64_t b = i / s->query_heads / s->length, token = i / s->query_heads % s->length,
                      h = i % s->query_heads;
        const double value = divisor(t->head, unit * field_get(den, b, token, h, 0)),
                     exact = t->normalizer[i];
        if (field_is_poison(den, b, token, h, 0) ||
            (t->judged[i] &&
             !(fabs(value - exact) <= bound.tau * t->condition[i] * fabs(exact) + bound.smallest))) {
            snprintf(
                text, sizeof text,
                "the normaliser at batch %lld, token %lld, head %lld is %.9g, but the formula gives %.9g",
                (long long)b + 1, (long long)token + 1, (long long)h + 1, value, exact);
            return check_refuse(t, form, "", text, error);
        }
    }
    return field_guards_hold(den)
               ? FPA_OK
               : check_refuse(t, form, "", "the module wrote outside the sums of scores", error);
}

static fpa_status check_repeat(const fpa_trial *t, const fpa_module *module, fpa_form_index form,
                               const fpa_field *once, fpa_error *error)
{
    const bool saves = module->saves_den && t->normalizer && !t->head->window;
    fpa_field again = {0}, den = {0};
    fpa_status status = check_make_output(t, &again, error);
    if (status == FPA_OK && saves)
        status = field_make(&den, t->blocks, FPA_F32, t->shape.layout, t->shape.batch, t->shape.length,
                            t->shape.query_heads, 1, error);
    if (status == FPA_OK)
        status = trial_run_saving(t, module, form, &again, saves ? &den : NULL, error);
    if (status == FPA_OK && !field_equal(once, &again, 0, t->shape.length))
        status = check_refuse(t, form, "", "the same call twice gave different bits", error);
    if (status == FPA_OK && saves)
        status = check_den(t, form, &den, error);
    field_free(&den);
    field_free(&again);
    return status;
}

/* Criterion 3, first part. The inputs are as before afterwards. */
static fpa_status check_future(fpa_trial *t, const fpa_module *module, fpa_form_index form,
                               const fpa_field *once, fpa_error *error)
{
    int64_t from = (t->shape.length + 1) / 2;
    fpa_field changed = {0};
    char text[128];
    fpa_status status = check_make_output(t, &changed, error);
    trial_change_future(t, from);
    if (status == FPA_OK)
        status = trial_run(t, module, form, 0, t->shape.length, &changed, NULL, NULL, error);
    trial_restore(t);
    if (status == FPA_OK && !field_equal(once, &changed, 0, from)) {
        snprintf(text, sizeof text, "changing tokens %lld and later changed an earlier output",
                 (long long)from + 1);
        status = check_refuse(t, form, "", text, error);
    }
    field_free(&changed);
    return status;
}

static fpa_status check_same_state(const fpa_trial *t, fpa_form_index form, const char *how,
                                   const fpa_field *a, const fpa_field *b, fpa_error *error)
{
    if (field_equal(a, b, 0, 1))
        return FPA_OK;
    for (int64_t batch = 0; batch < a->batch; batch++) /* zeros of either sign are one value */
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->entries; i++)
                if (field_get(a, batch, 0, h, i) != field_get(b, batch, 0, h, i))
                    return check_refuse(t, form, how, "a call of no tokens changed the state", error);
    return FPA_OK;
}

/* Three runs: the producer's from nothing, one in place, none over no tokens (a copy), and one
 * without a final state. */
static fpa_status run_parts(const fpa_trial *t, const fpa_module *module, fpa_form_index form,
                            fpa_form_index producer, handover *x, fpa_error *error)
{
    fpa_status status = trial_run(t, module, producer, 0, x->cut[0], &x->o, NULL, &x->state, error);
    if (status == FPA_OK)
        status = check_state(t, form, x->how, &x->state, x->cut[0], error);
    if (status == FPA_OK)
        status = trial_run(t, module, form, x->cut[0], x->cut[1], &x->o, &x->state, &x->state, error);
    if (status == FPA_OK)
        status = check_state(t, form, x->how, &x->state, x->cut[1], error);
    if (status == FPA_OK)
        status = trial_run(t, module, form, x->cut[1], x->cut[1], &x->o, &x->state, &x->other, error);
    if (status == FPA_OK)
        status = check_same_state(t, form, x->how, &x->state, &x->other, error);
    if (status == FPA_OK)
        status = trial_run(t, module, form, x->cut[1], t->shape.length, &x->o, &x->other, NULL, error);
    return status;
}

/* Criterion 3, second part. Without a mask only the last run sees all keys. */
static fpa_status check_resume(const fpa_trial *t, const fpa_module *module, fpa_form_index form,
                               fpa_form_index producer, fpa_measure *m, fpa_error *error)
{
    handover x;
    const fpa_bound bound = handover_bound(t, form, producer);
    fpa_status status = handover_make(t, LAYOUT_PLAIN, &x, error);
    snprintf(x.how, sizeof x.how, " (cut after %lld and %lld, the first by the %s form)", (long long)x.cut[0],
             (long long)x.cut[1], form_name(producer));
    if (status == FPA_OK)
        status = run_parts(t, module, form, producer, &x, error);
    if (status == FPA_OK)
        status = check_values(t, form, x.how, &x.o, t->head->causal ? 0 : x.cut[1], t->shape.length, &bound,
                              m, error);
    if (status == FPA_OK)
        status = check_guards(t, form, x.how, "o", &x.o, error);
    if (status == FPA_OK)
        status = check_guards(t, form, x.how, "the final state", &x.state, error);
    if (status == FPA_OK)
        status = check_guards(t, form, x.how, "the final state", &x.other, error);
    handover_free(&x);
    return status;
}

/* The form whose state `form` takes over in a chain of all that the module has. */
static int form_before(const fpa_trial *t, fpa_form_index form)
{
    int before = (int)form;
    do
        before = (before + FORMS - 1) % FORMS;
    while (!(t->facts->forms & 1 << before));
    return before;
}

/* Whether `form` is to go on from a state that `producer` made. In a chain every form makes a state for another one,
 * takes one over, and goes on from its own: whoever writes or reads states wrongly meets one who does not. */
static bool takes_over(const fpa_trial *t, fpa_form_index form, int producer)
{
    const int checks = t->shape.checks;
    if (!(t->facts->forms & 1 << producer))
        return false;
    return checks & CHECK_HANDOVER || (checks & CHECK_RESUME && producer == (int)form) ||
           (checks & CHECK_CHAIN && producer == form_before(t, form));
}

/* As states for recent tokens. */
static bool is_followed_by_recent(const fpa_trial *t, int producer)
{
    return t->facts->forms & 1 << producer && t->shape.checks & CHECK_RECENT &&
           (!(t->shape.checks & CHECK_CHAIN) || producer == form_before(t, FORM_RECURRENT));
}

fpa_status check_trial(fpa_trial *t, const fpa_module *module, fpa_form_index form, fpa_measure *m,
                       fpa_error *error)
{
    fpa_bound bound = bound_of(t->head, t->facts, form, t->shape.length, 0);
    fpa_field o = {0};
    fpa_status status = check_make_output(t, &o, error);
    if (status == FPA_OK)
        status = trial_run(t, module, form, 0, t->shape.length, &o, NULL, NULL, error);
    if (status == FPA_OK)
        status = check_values(t, form, "", &o, 0, t->shape.length, &bound, m, error);
    if (status == FPA_OK)
        status = check_guards(t, form, "", "o", &o, error);
    if (status == FPA_OK)
        status = check_errors(t, form, &o, m, error);
    if (status != FPA_OK)
        goto out;
    if (t->shape.checks & CHECK_REPEAT)
        status = check_repeat(t, module, form, &o, error);
    if (status == FPA_OK && t->shape.checks & CHECK_FUTURE && t->head->causal)
        status = check_future(t, module, form, &o, error);
    for (int producer = 0; producer < FORMS && status == FPA_OK; producer++)
        if (takes_over(t, form, producer))
            status = check_resume(t, module, form, (fpa_form_index)producer, m, error);
    for (int producer = 0; producer < FORMS && status == FPA_OK; producer++)
        if (form == FORM_RECURRENT && module->decodes_recent && is_followed_by_recent(t, producer))
            status = check_recent(t, module, (fpa_form_index)producer, m, error);
    if (status == FPA_OK && form == FORM_RECURRENT && module->draft &&
        t->shape.checks & (CHECK_RECENT | CHECK_RAGGED))
        status = check_draft(t, module, m, error);
    if (status == FPA_OK && form == FORM_CHUNKED && module->piece && t->head->causal && !t->head->window &&
        t->shape.checks & (CHECK_RESUME | CHECK_RAGGED))
        status = check_piece(t, module, m, error);
    if (status == FPA_OK && t->shape.checks & CHECK_RAGGED && module->takes_sequences)
        status = check_ragged(t, module, form, m, error);
    m->trials++;
    m->longest = t->shape.length > m->longest ? t->shape.length : m->longest;
out:
    field_free(&o);
    return status;
}

fpa_status check_rms(const fpa_head *head, fpa_form_index form, const fpa_measure *m, double *ratio,
                     fpa_error *error)
{
    /* Where the plain evaluation is exact, a few roundings are still no fault. */
    double floor = 2 * (dtype_roundoff(FPA_F32) + (head->dtype == FPA_F32 ? 0 : dtype_roundoff(head->dtype)));
    double rms, plain;
    *ratio = m->rms_ratio;
    if (m->count == 0 || m->rms_ratio > 0)
        return FPA_OK;
    rms = sqrt(m->squares / (double)m->count);
    plain = sqrt(m->plain_squares / (double)m->count);
    *ratio = rms / fmax(plain, floor / 2);
    if (rms <= 2 * plain + floor)
        return FPA_OK;
    return fail(
        error, FPA_REFUSED, head->name,
        "%s form: the RMS error is %.3g of the magnitude, more than twice the %.3g of a plain evaluation "
        "in the same precision",
        form_name(form), rms, plain);
}

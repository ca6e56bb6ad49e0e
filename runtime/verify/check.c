/* check: all checks of a module's form on one trial: outputs against the formula, and runs against each other. */
#include "check.h"

#include <math.h>

#include "base/dtype.h"
#include "bound.h"
#include "draft.h"
#include "handover.h"
#include "ragged.h"

/* The largest error of storing a value: half of its last place. */
static double half_place(fpa_dtype dtype, double value)
{
    int exponent;
    frexp(value, &exponent); /* value in [2^(exponent-1), 2^exponent) */
    if (dtype == FPA_F16 && exponent < -13)
        exponent = -13;
    return ldexp(dtype_roundoff(dtype), exponent - 1);
}

/* Errors of all outputs. In narrow arithmetic less the largest error of storing, which would hide those of computing. */
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

/* By what factor an RMS of `count` samples may exceed another one by chance. If scores are summed, their errors are in all columns of an
 * output, which then is one sample; errors of a copy of a state are in many outputs, but each in one column. */
static double scatter(int64_t count)
{
    return 1 + 8 / sqrt((double)count);
}

/* The plain evaluation's RMS error, against which a form is judged. The parallel form with three factors and more may multiply rows to
 * products of rows (bound.c): these are rounded like features, but to the arithmetic type, while the plain evaluation of features copies
 * their sums in bf16. */
static double yardstick(const fpa_trial *t, fpa_form_index form, int part)
{
    const fpa_errors *const of_form[FORMS] = {&t->plain.pairs, &t->plain.narrow, &t->plain.floats};
    double rms = errors_rms(of_form[form], part);
    if (form == FORM_PARALLEL && head_degree(t->head) > 2)
        rms = fmax(rms, errors_rms(&t->plain.narrow, part) * dtype_roundoff(t->facts->arithmetic) /
                            dtype_roundoff(FPA_BF16));
    return rms + dtype_roundoff(FPA_F32);
}

/* Criterion 2 in narrow arithmetic: for each trial alone, and separately for later chunks, because errors relative to the magnitude
 * differ by orders of magnitude, and small ones reveal the most. */
static void check_narrow(fpa_check *c, const fpa_errors *errors)
{
    enum { FEWEST_VALUES = 64 };
    static const char *const names[PARTS] = {"of the first chunk", "after the first chunk"};
    const fpa_trial *t = c->trial;
    fpa_measure *m = c->measure;
    for (int part = 0; part < PARTS; part++) {
        double rms = errors_rms(errors, part);
        double unit = yardstick(t, c->form, part);
        if (errors->count[part] < FEWEST_VALUES)
            continue;
        m->count += errors->count[part];
        m->rms_ratio = fmax(m->rms_ratio, rms / unit);
        bool by_scores = (part == PART_FIRST && t->head->causal) || c->form == FORM_PARALLEL;
        int64_t samples = errors->count[part] / (by_scores ? t->plain.columns : 1);
        if (!(rms <= 2 * unit * scatter(samples))) /* true for NaN, too */
            check_refuse(
                c,
                "the RMS error of tokens %s is %.3g of the magnitude, more than twice the %.3g of a plain "
                "evaluation in the same precision",
                names[part], rms, unit);
    }
}

static void check_errors(fpa_check *c, const fpa_field *o)
{
    const fpa_trial *t = c->trial;
    fpa_measure *m = c->measure;
    if (c->status != FPA_OK || !t->plain.known)
        return;
    const fpa_errors errors = errors_of(t, o);
    if (t->facts->arithmetic != FPA_F32) {
        check_narrow(c, &errors);
        return;
    }
    m->squares += errors.squares[PART_FIRST];
    m->plain_squares += t->plain.floats.squares[PART_FIRST];
    m->count += errors.count[PART_FIRST];
}

/* The normaliser of an output from its sum of scores. */
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

/* The factor of a kernel's sums of scores. With eps = 0 a kernel may leave out a common factor of all weights that is far from 1, since
 * it cancels in the quotient (gen/simplify/range.c). It is a power of two, found from the first output. */
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

/* Checks the sums of scores that gradients read: their normalisers are compared with the formula's. */
static void check_den(fpa_check *c, const fpa_field *den)
{
    const fpa_trial *t = c->trial;
    const fpa_shape *s = &t->shape;
    if (c->status != FPA_OK)
        return;
    const fpa_bound bound = bound_of(t->head, t->facts, c->form, s->length, 0);
    const double unit = unit_of(t, den);
    for (int64_t i = 0; i < s->batch * s->length * s->query_heads; i++) {
        const int64_t b = i / s->query_heads / s->length, token = i / s->query_heads % s->length,
                      h = i % s->query_heads;
        const double value = divisor(t->head, unit * field_get(den, b, token, h, 0)),
                     exact = t->normalizer[i];
        if (field_is_poison(den, b, token, h, 0) ||
            (t->judged[i] &&
             !(fabs(value - exact) <= bound.tau * t->condition[i] * fabs(exact) + bound.smallest)))
            check_refuse(
                c, "the normaliser at batch %lld, token %lld, head %lld is %.9g, but the formula gives %.9g",
                (long long)b + 1, (long long)token + 1, (long long)h + 1, value, exact);
    }
    if (!field_guards_hold(den))
        check_refuse(c, "the module wrote outside the sums of scores");
}

static void check_repeat(fpa_check *c, const fpa_field *once)
{
    const fpa_trial *t = c->trial;
    const bool saves = c->module->saves_den && t->normalizer && !t->head->window;
    fpa_field again, den = {0};
    check_make_output(c, &again);
    if (c->status == FPA_OK && saves)
        c->status = field_make(&den, t->blocks, FPA_F32, t->shape.layout, t->shape.batch, t->shape.length,
                               t->shape.query_heads, 1, c->error);
    check_run(c, (fpa_run){.to = t->shape.length, .o = &again, .den = saves ? &den : NULL});
    if (c->status == FPA_OK && !field_equal(once, &again, 0, t->shape.length))
        check_refuse(c, "the same call twice gave different bits");
    if (saves)
        check_den(c, &den);
    field_free(&den);
    field_free(&again);
}

/* Criterion 3, first part: later tokens have no effect on earlier outputs. Restores the inputs. */
static void check_future(fpa_check *c, const fpa_field *once)
{
    const int64_t length = c->trial->shape.length, from = (length + 1) / 2;
    fpa_field changed;
    check_make_output(c, &changed);
    trial_change_future(c->trial, from);
    check_run(c, (fpa_run){.to = length, .o = &changed});
    trial_restore(c->trial);
    if (c->status == FPA_OK && !field_equal(once, &changed, 0, from))
        check_refuse(c, "changing tokens %lld and later changed an earlier output", (long long)from + 1);
    field_free(&changed);
}

/* The form before `form` in a cycle of all forms that the module has. */
static int form_before(const fpa_trial *t, fpa_form_index form)
{
    int before = (int)form;
    do
        before = (before + FORMS - 1) % FORMS;
    while (!(t->facts->forms & 1 << before));
    return before;
}

/* Whether `form` continues from a state that `producer` computed. In a chain, each form computes a state for the
 * next one, continues from the state of the one before it, and continues from its own: so a form that reads or
 * writes the state's layout wrongly meets one that does it correctly. */
static bool takes_over(const fpa_trial *t, fpa_form_index form, int producer)
{
    const int checks = t->shape.checks;
    if (!(t->facts->forms & 1 << producer))
        return false;
    return checks & CHECK_HANDOVER || (checks & CHECK_RESUME && producer == (int)form) ||
           (checks & CHECK_CHAIN && producer == form_before(t, form));
}

/* The same for states that lack recent tokens. */
static bool is_followed_by_recent(const fpa_trial *t, int producer)
{
    return t->facts->forms & 1 << producer && t->shape.checks & CHECK_RECENT &&
           (!(t->shape.checks & CHECK_CHAIN) || producer == form_before(t, FORM_RECURRENT));
}

/* Criterion 3, second part: states handed over from run to run; drafts, pieces and packed batches. */
static void check_handovers(fpa_check *c)
{
    const fpa_trial *t = c->trial;
    const fpa_module *module = c->module;
    const int checks = t->shape.checks;
    for (int producer = 0; producer < FORMS; producer++)
        if (takes_over(t, c->form, producer))
            check_resume(c, (fpa_form_index)producer);
    for (int producer = 0; producer < FORMS; producer++)
        if (c->form == FORM_RECURRENT && module->decodes_recent && is_followed_by_recent(t, producer))
            check_recent(c, (fpa_form_index)producer);
    if (c->form == FORM_RECURRENT && module->draft && checks & (CHECK_RECENT | CHECK_RAGGED))
        check_draft(c);
    if (c->form == FORM_CHUNKED && module->piece && t->head->causal && !t->head->window &&
        checks & (CHECK_RESUME | CHECK_RAGGED))
        check_piece(c);
    if (checks & CHECK_RAGGED && module->takes_sequences)
        check_ragged(c);
}

fpa_status check_trial(fpa_trial *t, const fpa_module *module, fpa_form_index form, fpa_measure *m,
                       fpa_error *error)
{
    const fpa_bound bound = bound_of(t->head, t->facts, form, t->shape.length, 0);
    fpa_check c = {t, module, form, "", m, error, FPA_OK};
    fpa_field o;
    check_make_output(&c, &o);
    check_run(&c, (fpa_run){.to = t->shape.length, .o = &o});
    check_values(&c, &o, 0, t->shape.length, &bound);
    check_guards(&c, "o", &o);
    check_errors(&c, &o);
    if (c.status == FPA_OK && t->shape.checks & CHECK_REPEAT)
        check_repeat(&c, &o);
    if (c.status == FPA_OK && t->shape.checks & CHECK_FUTURE && t->head->causal)
        check_future(&c, &o);
    if (c.status == FPA_OK)
        check_handovers(&c);
    m->trials++;
    m->longest = t->shape.length > m->longest ? t->shape.length : m->longest;
    field_free(&o);
    return c.status;
}

fpa_status check_rms(const fpa_head *head, fpa_form_index form, const fpa_measure *m, double *ratio,
                     fpa_error *error)
{
    /* If the plain evaluation is exact, a few roundings are no fault. */
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

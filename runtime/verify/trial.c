/* trial: draws inputs, evaluates the formula, and decides which outputs can be compared with it. */
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "runtime/reference/reference.h"
#include "inputs.h"
#include "place.h"
#include "tokens.h"

/* Operations of the reference for one trial: a few hundredths of a second. If all tokens would need more, the formula is evaluated only
 * at some. */
static const double reference_budget = 3e7;

enum {
    FEWEST_TOKENS = 6,
    UNSEEN = 64, /* factor by which outputs that were not evaluated may exceed those that were */
};

static const double tame_condition =
    64; /* condition of a normaliser up to which plain evaluations still have correct digits */

static int64_t outputs(const fpa_trial *t)
{
    return t->shape.batch * t->shape.length * t->shape.query_heads;
}

fpa_problem trial_problem(const fpa_trial *t)
{
    return (fpa_problem){
        .head = t->head,
        .batch = t->shape.batch,
        .length = t->shape.length,
        .query_heads = t->shape.query_heads,
        .heads = t->shape.heads,
        .q = t->q,
        .k = t->k,
        .v = t->v,
        .log_gate = t->gate,
        .positions = t->positions,
        .key_mask = t->key_mask,
        .weights = (const double *const *)t->weights,
        .wanted = t->compared,
        .arithmetic = t->facts->arithmetic,
        .coordinates = t->facts->arithmetic,
    };
}

/* Operations of one key of one query in the reference. */
static double pair_cost(const fpa_trial *t)
{
    return t->size.score + 4 * t->head->dv + 20;
}

/* Chooses all tokens if that is affordable; otherwise the ends of the sequence, the tokens around the first chunk's end, and others
 * evenly spread. */
static void choose_judged(fpa_trial *t)
{
    int64_t length = t->shape.length, chunk = t->facts->chunk;
    double row =
        ((double)length * pair_cost(t) + t->size.token) * (double)(t->shape.batch * t->shape.query_heads);
    double affordable = fmax(FEWEST_TOKENS, floor(reference_budget / fmax(row, 1)));
    int64_t step = affordable >= (double)length ? 1 : (int64_t)((double)length / affordable) + 1;
    for (int64_t b = 0; b < t->shape.batch; b++)
        for (int64_t token = 0; token < length; token++) {
            bool kept = token % step == 0 || token == length - 1 || llabs(token - chunk) <= 1;
            memset(t->judged + (b * length + token) * t->shape.query_heads, kept,
                   (size_t)t->shape.query_heads);
        }
    memcpy(t->compared, t->judged, (size_t)outputs(t));
}

/* Excludes outputs whose normaliser is so near zero that the first-order bound does not hold. In narrow arithmetic that happens long
 * before errors are out of proportion, and inputs of both signs distinguish features best: such outputs are still compared with plain
 * evaluations. */
static fpa_status drop_loose(fpa_trial *t, fpa_error *error)
{
    fpa_problem problem = trial_problem(t);
    fpa_bound bound = bound_of(t->head, t->facts, FORM_CHUNKED, t->shape.length, 2);
    double *value, *condition;
    fpa_status status;
    if (t->head->normalize == FPA_NORMALIZE_NONE)
        return FPA_OK;
    t->normalizer = value = calloc((size_t)outputs(t) + 1, sizeof *value);
    t->condition = condition = calloc((size_t)outputs(t) + 1, sizeof *condition);
    status =
        value && condition ? reference_normalizer(&problem, value, condition, error) : fail_memory(error);
    for (int64_t i = 0; status == FPA_OK && i < outputs(t); i++)
        if (t->judged[i] && !(condition[i] * bound.tau <= bound_condition(t->facts))) {
            t->judged[i] = 0;
            t->loose[i] = 1;
            t->compared[i] = t->facts->arithmetic != FPA_F32 && condition[i] <= tame_condition;
        } else if (!t->judged[i]) {
            t->loose[i] = 1; /* the bound was not evaluated here */
        }
    return status;
}

static void drop(fpa_trial *t, int64_t output)
{
    t->judged[output] = t->compared[output] = 0;
    t->loose[output] = 1;
}

/* Excludes results near the end of their type's range, which is 65504 for f16. In narrow arithmetic, whose bound is far below the
 * magnitude, the result plus its bound counts. If evaluated results come near the limit, those that were not evaluated may exceed it. */
static void drop_overflows(fpa_trial *t)
{
    static const double most[FPA_DTYPES] = {1e38, 1e38, 32768};
    fpa_bound bound = bound_of(t->head, t->facts, FORM_CHUNKED, t->shape.length, 2);
    bool narrow = t->facts->arithmetic != FPA_F32;
    double limit = most[t->head->dtype], largest = 0;
    for (int64_t i = 0; i < outputs(t); i++)
        for (int c = 0; c < t->head->dv && t->compared[i]; c++) {
            double magnitude = t->magnitude[i * t->head->dv + c], value = t->reference[i * t->head->dv + c];
            double farthest = narrow ? fabs(value) + bound_allows(&bound, magnitude, value) : magnitude;
            largest = fmax(largest, farthest);
            if (!(farthest < limit))
                drop(t, i);
        }
    for (int64_t i = 0; i < outputs(t) && !(largest < limit / UNSEEN); i++)
        t->loose[i] |= !t->compared[i];
}

/* Excludes outputs whose scores or features may overflow in f16, which happens before results do; also those of large inputs whose map is
 * an exponential. Outputs that were not evaluated may overflow, too. */
static fpa_status drop_peaks(fpa_trial *t, fpa_error *error)
{
    const double limit = t->facts->arithmetic == FPA_F16 ? 32768 : 1e37;
    fpa_problem problem = trial_problem(t);
    double *peak;
    fpa_status status;
    if (t->facts->arithmetic != FPA_F16 && t->shape.inputs != INPUTS_LARGE)
        return FPA_OK;
    peak = calloc((size_t)outputs(t) + 1, sizeof *peak);
    status = peak ? reference_peak(&problem, peak, error) : fail_memory(error);
    for (int64_t i = 0; status == FPA_OK && i < outputs(t); i++)
        if (!t->compared[i] || !(peak[i] < limit))
            drop(t, i);
    free(peak);
    return status;
}

void trial_restore(fpa_trial *t)
{
    field_fill(&t->q_field, t->q);
    field_fill(&t->k_field, t->k);
    field_fill(&t->v_field, t->v);
    if (t->head->gate)
        field_fill(&t->gate_field, t->gate);
    tokens_restore(t);
    field_stamp(&t->k_field);
    field_stamp(&t->v_field);
    field_stamp(&t->position_field);
}

static fpa_status fill_fields(fpa_trial *t, fpa_error *error)
{
    const fpa_shape *s = &t->shape;
    const fpa_head *head = t->head;
    const struct {
        fpa_field *field;
        fpa_dtype dtype;
        int64_t heads, entries;
    } all[] = {{&t->q_field, head->dtype, s->query_heads, head_width(head)},
               {&t->k_field, head->dtype, s->heads, head_width(head)},
               {&t->v_field, head->dtype, s->heads, head->dv},
               {&t->gate_field, FPA_F32, s->heads, 1}};
    fpa_status status = FPA_OK;
    for (int i = 0; i < (head->gate ? 4 : 3) && status == FPA_OK; i++)
        status = field_make(all[i].field, NULL, all[i].dtype, s->layout, s->batch, s->length, all[i].heads,
                            all[i].entries, error);
    if (status == FPA_OK)
        status = tokens_place(t, error);
    if (status == FPA_OK)
        trial_restore(t);
    return status;
}

fpa_status trial_make(fpa_trial *t, const fpa_head *head, const fpa_facts *facts, fpa_shape shape,
                      uint64_t seed, fpa_error *error)
{
    size_t count = (size_t)(shape.batch * shape.length * shape.query_heads) + 1;
    fpa_problem problem;
    fpa_status status;
    *t = (fpa_trial){.head = head, .facts = facts, .shape = shape};
    t->spares = calloc(1, sizeof *t->spares);
    t->judged = calloc(count, 1);
    t->compared = calloc(count, 1);
    t->loose = calloc(count, 1);
    t->reference = calloc(count * (size_t)head->dv, sizeof(double));
    t->magnitude = calloc(count * (size_t)head->dv, sizeof(double));
    if (!t->spares || !t->judged || !t->compared || !t->loose || !t->reference || !t->magnitude)
        return fail_memory(error);
    status = inputs_draw(t, seed, error);
    if (status == FPA_OK)
        status = tokens_draw(t, seed, error);
    if (status == FPA_OK)
        status = fill_fields(t, error);
    if (status == FPA_OK)
        status = reference_size(head, &t->size, error);
    if (status != FPA_OK)
        return status;
    choose_judged(t);
    status = drop_loose(t, error);
    problem = trial_problem(t);
    if (status == FPA_OK)
        status = reference_forward(&problem, t->reference, t->magnitude, error);
    if (status != FPA_OK)
        return status;
    drop_overflows(t);
    status = drop_peaks(t, error);
    return status == FPA_OK ? plain_measure(t, problem, error) : status;
}

void trial_free(fpa_trial *t)
{
    inputs_free(t);
    if (t->spares)
        spares_free(t->spares);
    free(t->spares);
    trial_free_fields(t);
    free(t->positions);
    free(t->key_mask);
    free(t->judged);
    free(t->compared);
    free(t->loose);
    free(t->normalizer);
    free(t->condition);
    free(t->reference);
    free(t->magnitude);
    *t = (fpa_trial){0};
}

void trial_free_fields(fpa_trial *t)
{
    field_free(&t->q_field);
    field_free(&t->k_field);
    field_free(&t->v_field);
    field_free(&t->gate_field);
    field_free(&t->position_field);
    free(t->mask.bytes);
}

void trial_without_fields(const fpa_trial *trial, fpa_trial *other)
{
    *other = *trial;
    other->q_field = other->k_field = other->v_field = other->gate_field = other->position_field =
        (fpa_field){0};
    other->mask = (fpa_mask){0};
}

fpa_status trial_borrow(const fpa_trial *trial, fpa_trial *other, struct fpa_spares *spares, fpa_error *error)
{
    trial_without_fields(trial, other);
    other->spares = spares;
    return fill_fields(other, error);
}

void trial_return(fpa_trial *other)
{
    spares_forget(other->spares);
    trial_free_fields(other);
}

int64_t trial_matrix_entries(const fpa_trial *t, const fpa_matrix *matrix)
{
    return (int64_t)(matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? 1 : matrix->rows) * matrix->cols *
           (matrix->per_head ? t->shape.heads : 1);
}

/* Sets NaN at odd tokens, infinity at even ones. */
static void spoil(fpa_field *field, int64_t b, int64_t token, int64_t heads, int entries)
{
    for (int64_t h = 0; h < heads; h++)
        for (int i = 0; i < entries; i++)
            field_put(field, b, token, h, i, token % 2 ? (double)NAN : (double)INFINITY);
}

/* NaN and infinities show in every product, even with zero. */
void trial_change_future(fpa_trial *t, int64_t from)
{
    tokens_change_future(t, from);
    for (int64_t b = 0; b < t->shape.batch; b++)
        for (int64_t token = from; token < t->shape.length; token++) {
            spoil(&t->q_field, b, token, t->shape.query_heads, head_width(t->head));
            spoil(&t->k_field, b, token, t->shape.heads, head_width(t->head));
            spoil(&t->v_field, b, token, t->shape.heads, t->head->dv);
            if (t->head->gate)
                spoil(&t->gate_field, b, token, t->shape.heads, 1);
        }
}

void trial_describe(const fpa_trial *t, fpa_form_index form, char text[TRIAL_TEXT])
{
    static const char *const layouts[LAYOUTS] = {"contiguous", "padded", "head-major", "by pieces"};
    static const char *const inputs[] = {"dense",     "positive",          "sparse", "extreme-gate", "large",
                                         "slow-gate", "positive slow-gate"};

    snprintf(text, TRIAL_TEXT, "%s form, %lld x %lld tokens, %lld heads, %lld query heads, %s, %s inputs",
             form_name(form), (long long)t->shape.batch, (long long)t->shape.length,
             (long long)t->shape.heads, (long long)t->shape.query_heads, layouts[t->shape.layout],
             inputs[t->shape.inputs]);
}

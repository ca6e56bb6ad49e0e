/* plain: plain evaluations of a trial, and their errors. */
#include "plain.h"

#include <math.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "trial.h"

/* Operations of plain evaluations for one trial: a few hundredths of a second. Narrow arithmetic has wider bounds, so that this criterion
 * matters more there, and for long trials. */
static const double float_budget = 4e7, narrow_budget = 3e8;

enum { FLOAT_COLUMNS = 4, NARROW_COLUMNS = 16 };

void errors_add(const fpa_trial *t, int64_t output, int column, double value, double stored,
                fpa_errors *errors)
{
    int64_t index = output * t->head->dv + column, token = output / t->shape.query_heads % t->shape.length;
    bool narrow = t->facts->arithmetic != FPA_F32;
    fpa_part part = narrow && token >= t->facts->chunk ? PART_LATER : PART_FIRST;
    double error = fabs(value - t->reference[index]) - stored;

    if (!t->compared[output])
        return;
    errors->count[part]++;
    if (t->magnitude[index] > 0 && !(error < 0))
        errors->squares[part] += pow(error / t->magnitude[index], 2);
}

double errors_rms(const fpa_errors *errors, fpa_part part)
{
    return errors->count[part] ? sqrt(errors->squares[part] / (double)errors->count[part]) : 0;
}

static int64_t outputs(const fpa_trial *t)
{
    return t->shape.batch * t->shape.length * t->shape.query_heads;
}

/* Errors of an evaluation's first columns, in narrow arithmetic before these are stored; keeps the larger of these and those in *worst. */
static void keep_worse(const fpa_trial *t, const float *o, int stride, fpa_errors *worst)
{
    fpa_dtype stored = t->facts->arithmetic == FPA_F32 ? t->head->dtype : FPA_F32;
    fpa_errors errors = {0};
    for (int64_t i = 0; i < outputs(t); i++)
        for (int c = 0; c < t->plain.columns; c++)
            errors_add(t, i, c, dtype_round(stored, o[i * stride + c]), 0, &errors);
    for (int part = 0; part < PARTS; part++) {
        worst->squares[part] = fmax(worst->squares[part], errors.squares[part]);
        worst->count[part] = errors.count[part];
    }
}

/* Evaluates score by score, and feature by feature. */
static fpa_status evaluate(const fpa_trial *t, const fpa_problem *problem, fpa_errors *pairs,
                           fpa_errors *both, fpa_error *error)
{
    float *scores = calloc((size_t)outputs(t) * (size_t)t->head->dv + 1, sizeof *scores);
    float *columns = calloc((size_t)outputs(t) * (size_t)t->plain.columns + 1, sizeof *columns);
    fpa_status status = scores && columns ? FPA_OK : fail_memory(error);
    if (status == FPA_OK)
        status = reference_plain(problem, scores, error);
    if (status == FPA_OK)
        status = reference_plain_features(problem, t->plain.columns, columns, error);
    if (status == FPA_OK) {
        keep_worse(t, scores, t->head->dv, pairs);
        *both = *pairs;
        keep_worse(t, columns, t->plain.columns, both);
    }
    free(scores);
    free(columns);
    return status;
}

/* A trial with too many features for the second evaluation is not judged by this criterion: the first one's errors alone would be too
 * small to judge a long sum of features. */
fpa_status plain_measure(fpa_trial *t, fpa_problem problem, fpa_error *error)
{
    bool narrow = t->facts->arithmetic != FPA_F32;
    int most = narrow ? NARROW_COLUMNS : FLOAT_COLUMNS, degree = head_degree(t->head);
    double features = fmax((double)outputs(t), 1) * t->size.features;
    fpa_errors pairs = {0};
    fpa_status status;
    t->plain = (fpa_plain){.columns = t->head->dv < most ? t->head->dv : most};
    t->plain.known =
        t->shape.inputs != INPUTS_EXTREME_GATE &&
        features * (3 * t->plain.columns + 3 + 4 * degree) + 2 * (double)outputs(t) * t->size.token <=
            (narrow ? narrow_budget : float_budget);
    if (!t->plain.known)
        return FPA_OK;
    if (narrow) {
        status = evaluate(t, &problem, &t->plain.pairs, &t->plain.narrow, error);
        if (status != FPA_OK)
            return status;
    }
    problem.arithmetic = FPA_F32;
    return evaluate(t, &problem, &pairs, &t->plain.floats, error);
}

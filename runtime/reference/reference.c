/* reference: the formula in double, score by score, from the head as written. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "lift.h"
#include "rows.h"
#include "window.h"

/* Sums of a query over the keys that it sees. */
typedef struct sums {
    double *value; /* [dv] sum of scores times v */
    double *size;  /* [dv] the same of magnitudes, without cancellation */
    double den, den_size;
    double peak;   /* the largest score, or product of one key's rows */
    double shrink; /* e^-m, by which all weights of a head with a window are multiplied; else 1 */
} sums;

/* The data of an evaluation. Outputs that are NULL are not computed. */
typedef struct evaluation {
    const fpa_problem *problem;
    fpa_rows rows;
    bool turns;         /* may_turn */
    double *matrix;     /* rows_matrices of one key/value head */
    double *q, *q_size; /* [total] one projected query */
    double *k, *k_size; /* [length][total] projected keys of one (batch, head) */
    double *k_peak;     /* [length] the largest product of a key's rows, one of each branch */
    sums sums;
    double *o, *magnitude;          /* [batch, length, query_heads, dv] */
    double *normalizer, *condition; /* [batch, length, query_heads] */
    double *peak;                   /* the same shape */
} evaluation;

/* In half precision, numbers below this have the same absolute rounding error as this one. */
static const double smallest_normal = 0x1p-14;

/* Whether a term multiplies coordinates by rows of a constant matrix. A kernel may transform both to a basis in
 * which they are diagonal; its rows then contain a part of each coordinate, and of its error. */
static bool may_turn(const fpa_head *head)
{
    for (int t = 0; t < head->term_count; t++) {
        bool input = false, constant = false;

        for (int l = 0; l < head->terms[t].branch_count; l++) {
            const int source = head->terms[t].branches[l].source;

            input = input || source == FPA_INPUT;
            constant =
                constant || (source != FPA_INPUT && head->matrices[source].kind == FPA_MATRIX_CONSTANT);
        }
        if (input && constant)
            return true;
    }
    return false;
}

/* Computes the products with one matrix, and the magnitudes to which their errors are relative. w: [d][rows] */
static void project_matrix(const double *restrict w, int d, int rows, const double *restrict x,
                           double *restrict sum, double *restrict size)
{
    for (int r = 0; r < rows; r++)
        sum[r] = size[r] = 0;
    for (int c = 0; c < d; c++)
        for (int r = 0; r < rows; r++) {
            const double product = w[(int64_t)c * rows + r] * x[c];

            sum[r] += product;
            size[r] += product * product;
        }
    for (int r = 0; r < rows; r++)
        size[r] = fmax(fabs(sum[r]), sqrt(size[r]));
}

/* Computes the rows of a token. size: the magnitude to which a rounding error of a row is relative: |row x|, or
 * the root of the summed squares of its products if these cancel; for a coordinate that a kernel may transform to
 * another basis, at least its average share of |x|. */
static void project_rows(const evaluation *e, double scale, const double *x, double *value, double *size)
{
    const fpa_head *shape = e->problem->head;

    double squared = 0;

    for (int c = 0; c < shape->d; c++) {
        value[c] = scale * x[c];
        squared += value[c] * value[c];
    }
    const double share = e->turns ? sqrt(squared / shape->d) : 0;
    for (int c = 0; c < shape->d; c++)
        size[c] = fmax(fabs(value[c]), share);
    for (int m = 0; m < shape->matrix_count; m++) {
        const int64_t at = e->rows.offset[m + 1];

        project_matrix(e->matrix + (at - shape->d) * shape->d, shape->d, shape->matrices[m].rows, value,
                       value + at, size + at);
    }
}

/* Computes all that scores use of token (b, t), with key/value head h: coordinates, or the vector and its rows. */
static void project(const evaluation *e, int64_t b, int64_t t, int64_t h, fpa_side side, const double *x,
                    double *value, double *size)
{
    const fpa_head *head = e->problem->head;

    if (head->lift) {
        const fpa_lift_token token = lift_token(e->problem, b, t, h, side, x);
        lift_exact(&token, value, size);
    } else {
        project_rows(e, side == FPA_QUERY ? head->scale : 1, x, value, size);
    }
}

/* (W q).(W k) of one branch. */
static double dot(const fpa_rows_dot *rows, const double *q, const double *k)
{
    double sum = 0;

    for (int w = 0; w < rows->count; w++) {
        double product = q[rows->at[w]] * k[rows->at[w]];

        sum += rows->weight ? rows->weight[w] * product : product;
    }
    return sum;
}

/* Computes each dot once, however many terms contain it. */
static void evaluate_dots(const evaluation *e, const double *q, const double *k)
{
    for (int i = 0; i < e->rows.dot_count; i++)
        e->rows.value[i] = dot(&e->rows.dots[i], q, k);
}

/* The sum over terms of the weight times the product of the term's dots. */
static double sum_terms(const evaluation *e, double (*weight)(double))
{
    double sum = 0;

    for (int t = 0; t < e->rows.term_count; t++) {
        const fpa_rows_term *term = &e->rows.terms[t];
        double product = weight(term->weight);

        for (int l = 0; l < term->count; l++)
            product *= e->rows.value[term->dot[l]];
        sum += product;
    }
    return sum;
}

static double as_written(double x)
{
    return x;
}

static double at_least_one(double x)
{
    return fmax(1, fabs(x));
}

/* k(q,k) of projected tokens; absolute: of magnitudes, with |weight|. */
static double score(const evaluation *e, const double *q, const double *k, bool absolute)
{
    evaluate_dots(e, q, k);
    return sum_terms(e, absolute ? fabs : as_written);
}

static double weight_of(const fpa_rows_dot *rows, int w)
{
    return rows->weight ? rows->weight[w] : 1;
}

/* The factor of the absolute rounding errors of numbers below the normal ones: each factor and each product of
 * factors may have such an error, and other factors enlarge it if they are above 1. */
static double spread(const evaluation *e, const double *q, const double *k)
{
    for (int i = 0; i < e->rows.dot_count; i++) {
        const fpa_rows_dot *rows = &e->rows.dots[i];
        double sum = 0;

        for (int w = 0; w < rows->count; w++)
            sum += at_least_one(weight_of(rows, w)) * at_least_one(q[rows->at[w]]) *
                   at_least_one(k[rows->at[w]]);
        e->rows.value[i] = sum;
    }
    return 1 + sum_terms(e, at_least_one); /* 1: the error of the score itself */
}

/* The largest product of a token's rows, one of each branch, with weights: the largest feature. */
static double feature_peak(const evaluation *e, const double *x)
{
    double peak = 0;

    for (int i = 0; i < e->rows.dot_count; i++) {
        const fpa_rows_dot *rows = &e->rows.dots[i];

        e->rows.value[i] = 1;
        for (int w = 0; w < rows->count; w++)
            e->rows.value[i] = fmax(e->rows.value[i], fabs(weight_of(rows, w) * x[rows->at[w]]));
    }
    for (int t = 0; t < e->rows.term_count; t++) {
        const fpa_rows_term *term = &e->rows.terms[t];
        double product = at_least_one(term->weight);

        for (int l = 0; l < term->count; l++)
            product *= e->rows.value[term->dot[l]];
        peak = fmax(peak, product);
    }
    return peak;
}

/* The largest coordinate of the query, which a kernel stores, and which a map may have enlarged; or its largest
 * feature, by which a state is read even if it is empty. */
static double query_peak(const evaluation *e)
{
    double peak = feature_peak(e, e->q);

    for (int64_t r = 0; r < e->rows.total; r++)
        peak = fmax(peak, fabs(e->q[r]));
    return peak;
}

/* The magnitude to which a rounding error of a key's score is relative. Half precision adds the error of numbers
 * below the normal ones, whatever the gate is, but never more than the whole. */
static double part_size(const evaluation *e, const double *k, const double *k_size, double decay)
{
    double size = decay * score(e, e->q_size, k_size, true);

    if (e->problem->arithmetic == FPA_F16)
        size += fmin(smallest_normal * spread(e, e->q, k), size / dtype_roundoff(FPA_F16));
    return size;
}

/* Adds a key's weight times its value. */
static void add_weighted(evaluation *e, double value, double size, const double *v)
{
    e->sums.den += value;
    e->sums.den_size += size;
    if (!e->o)
        return;
    for (int c = 0; c < e->problem->head->dv; c++) {
        e->sums.value[c] += value * v[c];
        e->sums.size[c] += size * fabs(v[c]);
    }
}

static void add_key(evaluation *e, int64_t j, double decay, const double *v)
{
    const double *k = e->k + j * e->rows.total, *k_size = e->k_size + j * e->rows.total;
    bool sized = e->magnitude || e->condition;
    const double whole = score(e, e->q, k, false);
    double value = decay * whole;
    double size = sized ? part_size(e, k, k_size, decay) : 0;

    if (e->peak) /* with a window: the score before it is multiplied by shrink */
        e->sums.peak = fmax(e->sums.peak, fmax(fabs(e->problem->head->window ? whole : value), e->k_peak[j]));
    add_weighted(e, value, size, v);
}

/* Adds a key of the window. An exponent is a dot product in float, whatever the arithmetic is; its error, relative
 * to `size`, is a relative error of the exponential. The difference from the largest exponent is rounded once
 * more. */
static void add_window_key(evaluation *e, const fpa_window_query *query, int64_t j, double largest,
                           const double *v)
{
    const fpa_dtype arithmetic = e->problem->arithmetic;
    const double share = arithmetic == FPA_F32 ? 1 : 0x1p-8;
    double size;
    const double exponent = window_exponent(query, j, &size) - largest, value = exp(exponent);

    if (e->peak)
        e->sums.peak = fmax(e->sums.peak, value);
    size = value * (1 + share * (size + fabs(exponent) / 8));
    add_weighted(e, value, arithmetic == FPA_F16 ? size + smallest_normal : size, v);
}

/* Sums over the keys that token t sees. Log-gates are summed backwards from t: zeros of exp (log-gates of -inf)
 * remain exact zeros, and nothing cancels. */
static void gather(evaluation *e, int64_t b, int64_t t, int64_t h, const double *q)
{
    const fpa_problem *p = e->problem;
    const fpa_window_query query = {p, b, t, h, q};
    const double largest = window_largest(&query);
    double log_decay = 0;

    memset(e->sums.value, 0, (size_t)p->head->dv * sizeof(double));
    memset(e->sums.size, 0, (size_t)p->head->dv * sizeof(double));
    e->sums.den = e->sums.den_size = 0;
    e->sums.peak = e->peak && p->head->lift ? query_peak(e) : 0;
    e->sums.shrink = exp(-largest);
    for (int64_t j = p->head->causal ? t : p->length - 1; j >= 0; j--) {
        int64_t token = (b * p->length + j) * p->heads + h;
        double decay = rows_fade(log_decay - largest);

        if (problem_keeps(p, b, j) && window_has(p->head, t, j))
            add_window_key(e, &query, j, largest, p->v + token * p->head->dv);
        else if (decay > 0 && problem_keeps(p, b, j))
            add_key(e, j, decay, p->v + token * p->head->dv);
        if (p->log_gate)
            log_decay += p->log_gate[token];
    }
}

/* The normaliser, multiplied by shrink, as the sum is. */
static double normalizer(const fpa_head *head, double den, double shrink)
{
    switch (head->normalize) {
    case FPA_NORMALIZE_SUM:
        return den + shrink * head->eps;
    case FPA_NORMALIZE_MAX:
        return fmax(den, shrink * head->eps);
    case FPA_NORMALIZE_ONE_PLUS_SUM:
        return shrink + den;
    default:
        return 1;
    }
}

/* The magnitude to which an error of the normaliser is relative. In max(den, eps), a den that is clearly below eps
 * has no effect. */
static double normalizer_size(const fpa_head *head, double den, double den_size, double shrink)
{
    const double eps = shrink * head->eps;

    if (head->normalize == FPA_NORMALIZE_NONE)
        return 0;
    if (head->normalize == FPA_NORMALIZE_ONE_PLUS_SUM)
        return den_size + shrink;
    if (head->normalize == FPA_NORMALIZE_MAX && eps - den > 0x1p-7 * den_size)
        return eps;
    return den_size + eps;
}

/* o = num/n: |err(o)| <= (err(num) + |o| err(n)) / |n|, each error a multiple of its size. */
static fpa_status write_token(evaluation *e, int64_t b, int64_t t, int64_t hq, fpa_error *error)
{
    const fpa_problem *p = e->problem;
    int64_t token = (b * p->length + t) * p->query_heads + hq;
    double n = normalizer(p->head, e->sums.den, e->sums.shrink);
    double n_size = normalizer_size(p->head, e->sums.den, e->sums.den_size, e->sums.shrink);

    if (e->normalizer)
        e->normalizer[token] = n;
    if (e->condition)
        e->condition[token] = n_size / fabs(n);
    if (e->peak)
        e->peak[token] = e->sums.peak;
    if (!e->o)
        return FPA_OK;
    if (n == 0)
        return fail(error, FPA_INVALID, "o",
                    "the normaliser of token %lld (batch %lld, head %lld) is zero: scores of both signs "
                    "cancel, or eps is 0",
                    (long long)t + 1, (long long)b + 1, (long long)hq + 1);
    for (int c = 0; c < p->head->dv; c++) {
        double o = e->sums.value[c] / n;

        e->o[token * p->head->dv + c] = o;
        if (e->magnitude)
            e->magnitude[token * p->head->dv + c] = (e->sums.size[c] + fabs(o) * n_size) / fabs(n);
    }
    return FPA_OK;
}

/* Projects all keys of a head that are not masked. */
static void project_keys(evaluation *e, int64_t b, int64_t h)
{
    const fpa_problem *p = e->problem;

    for (int64_t j = 0; j < p->length; j++) {
        const double *x = p->k + ((b * p->length + j) * p->heads + h) * head_width(p->head);

        if (!problem_keeps(p, b, j))
            continue;
        project(e, b, j, h, FPA_KEY, x, e->k + j * e->rows.total, e->k_size + j * e->rows.total);
        e->k_peak[j] = e->peak ? feature_peak(e, e->k + j * e->rows.total) : 0;
    }
}

static fpa_status evaluate_head(evaluation *e, int64_t b, int64_t hq, fpa_error *error)
{
    const fpa_problem *p = e->problem;
    const int64_t group = p->query_heads / p->heads, h = hq / group;
    fpa_status status = FPA_OK;

    if (hq % group == 0) {
        rows_matrices(p, h, e->matrix);
        project_keys(e, b, h);
    }
    for (int64_t t = 0; t < p->length && status == FPA_OK; t++) {
        if (!problem_wants(p, b, t, hq))
            continue;
        const double *x = p->q + ((b * p->length + t) * p->query_heads + hq) * head_width(p->head);
        project(e, b, t, h, FPA_QUERY, x, e->q, e->q_size);
        gather(e, b, t, h, x);
        status = write_token(e, b, t, hq, error);
    }
    return status;
}

static fpa_status evaluate(evaluation *e, fpa_error *error)
{
    const fpa_problem *p = e->problem;
    fpa_status status = rows_make(p->head, &e->rows, error);
    size_t tokens = (size_t)(p->length ? p->length : 1), total = (size_t)e->rows.total;

    if (status != FPA_OK)
        return status;
    e->turns = !p->head->lift && may_turn(p->head);
    e->matrix = calloc((total - (size_t)p->head->d) * (size_t)p->head->d + 1, sizeof(double));
    e->q = calloc(total, sizeof(double));
    e->q_size = calloc(total, sizeof(double));
    e->k = calloc(tokens * total, sizeof(double));
    e->k_size = calloc(tokens * total, sizeof(double));
    e->k_peak = calloc(tokens, sizeof(double));
    e->sums.value = calloc((size_t)p->head->dv, sizeof(double));
    e->sums.size = calloc((size_t)p->head->dv, sizeof(double));
    if (!e->matrix || !e->q || !e->q_size || !e->k || !e->k_size || !e->k_peak || !e->sums.value ||
        !e->sums.size) {
        status = fail_memory(error);
        goto out;
    }
    for (int64_t b = 0; b < p->batch && status == FPA_OK; b++)
        for (int64_t hq = 0; hq < p->query_heads && status == FPA_OK; hq++)
            status = evaluate_head(e, b, hq, error);
out:
    free(e->matrix);
    free(e->q);
    free(e->q_size);
    free(e->k);
    free(e->k_size);
    free(e->k_peak);
    free(e->sums.value);
    free(e->sums.size);
    rows_free(&e->rows);
    return status;
}

fpa_status reference_forward(const fpa_problem *problem, double *o, double *magnitude, fpa_error *error)
{
    evaluation e = {.problem = problem, .o = o, .magnitude = magnitude};

    return evaluate(&e, error);
}

fpa_status reference_normalizer(const fpa_problem *problem, double *value, double *condition,
                                fpa_error *error)
{
    evaluation e = {.problem = problem, .normalizer = value, .condition = condition};

    return evaluate(&e, error);
}

fpa_status reference_peak(const fpa_problem *problem, double *peak, fpa_error *error)
{
    evaluation e = {.problem = problem, .peak = peak};

    return evaluate(&e, error);
}

fpa_status reference_size(const fpa_head *head, fpa_reference_size *size, fpa_error *error)
{
    fpa_rows rows;
    fpa_status status = rows_make(head, &rows, error);

    if (status != FPA_OK)
        return status;
    *size = (fpa_reference_size){.features = rows_features(&rows), .token = lift_work(head)};
    for (int i = 0; i < rows.dot_count; i++)
        size->score += 2 * rows.dots[i].count;
    for (int t = 0; t < rows.term_count; t++)
        size->score += 2 + rows.terms[t].count;
    rows_free(&rows);
    return FPA_OK;
}

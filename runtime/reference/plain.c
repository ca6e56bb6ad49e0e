/* reference_plain: the formula as written, in float, rounded at every operation. An emitted kernel's error may be
 * at most twice that of this evaluation (docs/numerics.md). */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lift.h"
#include "round.h"
#include "rows.h"
#include "window.h"

typedef struct plain {
    const fpa_problem *problem;
    /* arithmetic: type of keys and scores; copy: type of features and state when queries read them */
    fpa_dtype arithmetic, copy;
    fpa_rows rows;
    float *matrix; /* rows_matrices of one key/value head */
    double *exact; /* the same in double, as given */
    float *q, *k;  /* [length][total] projected tokens of one (batch, head) */
    float *gate;   /* [length] running sum of log-gates */
    float *sum;    /* [dv + 1] the last one is the sum of scores */
} plain;

static void plain_free(plain *p)
{
    free(p->matrix);
    free(p->exact);
    free(p->q);
    free(p->k);
    free(p->gate);
    free(p->sum);
    rows_free(&p->rows);
}

static fpa_status plain_make(const fpa_problem *problem, plain *p, fpa_error *error)
{
    size_t tokens = (size_t)(problem->length ? problem->length : 1);
    fpa_status status;
    *p = (plain){.problem = problem,
                 .arithmetic = problem->arithmetic,
                 .copy = problem->arithmetic == FPA_F32 ? FPA_F32 : FPA_BF16};
    status = rows_make(problem->head, &p->rows, error);
    if (status != FPA_OK)
        return status;
    const size_t entries = (size_t)(p->rows.total - problem->head->d) * (size_t)problem->head->d + 1;
    p->matrix = calloc(entries, sizeof(float));
    p->exact = calloc(entries, sizeof(double));
    p->q = calloc(tokens * (size_t)p->rows.total, sizeof(float));
    p->k = calloc(tokens * (size_t)p->rows.total, sizeof(float));
    p->gate = calloc(tokens, sizeof(float));
    p->sum = calloc((size_t)problem->head->dv + 1, sizeof(float));
    if (p->matrix && p->exact && p->q && p->k && p->gate && p->sum)
        return FPA_OK;
    plain_free(p);
    return fail_memory(error);
}

static void load_matrices(plain *p, int64_t head)
{
    const int64_t d = p->problem->head->d, entries = (p->rows.total - d) * d;
    rows_matrices(p->problem, head, p->exact);
    for (int64_t i = 0; i < entries; i++)
        p->matrix[i] = (float)p->exact[i];
}

/* w: [d][rows] */
static void project_matrix(const float *restrict w, int d, int rows, const float *restrict x,
                           float *restrict sum)
{
    for (int r = 0; r < rows; r++)
        sum[r] = 0;
    for (int c = 0; c < d; c++)
        for (int r = 0; r < rows; r++)
            sum[r] += w[(int64_t)c * rows + r] * x[c];
}

static void project_rows(const plain *p, float scale, const double *x, float *row)
{
    const fpa_head *head = p->problem->head;
    const int d = head->d;
    for (int c = 0; c < d; c++)
        row[c] = scale * (float)x[c];
    round_floats(p->arithmetic, row, d);
    for (int m = 0; m < head->matrix_count; m++) {
        const int64_t at = p->rows.offset[m + 1];
        project_matrix(p->matrix + (at - d) * d, d, head->matrices[m].rows, row, row + at);
    }
    round_floats(p->arithmetic, row + d, p->rows.total - d);
}

static void project(const plain *p, int64_t b, int64_t t, int64_t h, fpa_side side, const double *x,
                    float *row)
{
    const fpa_head *head = p->problem->head;
    if (head->lift) {
        const fpa_lift_token token = lift_token(p->problem, b, t, h, side, x);
        lift_plain(&token, row);
    } else {
        project_rows(p, side == FPA_QUERY ? (float)head->scale : 1, x, row);
    }
}

/* A row of a key times its kernel weight. */
static float weighted(const plain *p, const fpa_rows_dot *rows, int w, float key)
{
    return rows->weight ? round_float(p->arithmetic, (float)rows->weight[w] * key) : key;
}

/* Projects every token of one (batch, query head), and computes the running sums of log-gates. */
static void load_tokens(plain *p, int64_t b, int64_t hq)
{
    const fpa_problem *problem = p->problem;
    int64_t h = hq / (problem->query_heads / problem->heads), width = head_width(problem->head);
    float gate = 0;
    load_matrices(p, h);
    for (int64_t t = 0; t < problem->length; t++) {
        int64_t token = b * problem->length + t;
        project(p, b, t, h, FPA_QUERY, problem->q + (token * problem->query_heads + hq) * width,
                p->q + t * p->rows.total);
        if (problem_keeps(problem, b, t))
            project(p, b, t, h, FPA_KEY, problem->k + (token * problem->heads + h) * width,
                    p->k + t * p->rows.total);
        if (problem->log_gate)
            gate += (float)problem->log_gate[token * problem->heads + h];
        p->gate[t] = gate;
    }
}

static float score(const plain *p, const float *q, const float *k)
{
    const fpa_rows *rows = &p->rows;
    float sum = 0;
    for (int i = 0; i < rows->dot_count; i++) {
        const fpa_rows_dot *dot = &rows->dots[i];
        float product = 0;
        for (int w = 0; w < dot->count; w++)
            product += q[dot->at[w]] * weighted(p, dot, w, k[dot->at[w]]);
        rows->value[i] = product;
    }
    for (int t = 0; t < rows->term_count; t++) {
        float product = (float)rows->terms[t].weight;
        for (int l = 0; l < rows->terms[t].count; l++)
            product *= (float)rows->value[rows->terms[t].dot[l]];
        sum += product;
    }
    return sum;
}

static float normalizer(const fpa_head *head, float den, float shrink)
{
    switch (head->normalize) {
    case FPA_NORMALIZE_SUM:
        return den + shrink * (float)head->eps;
    case FPA_NORMALIZE_MAX:
        return fmaxf(den, shrink * (float)head->eps);
    case FPA_NORMALIZE_ONE_PLUS_SUM:
        return shrink + den;
    default:
        return 1;
    }
}

static const double *value_of(const plain *p, int64_t b, int64_t j, int64_t h)
{
    const fpa_problem *problem = p->problem;
    return problem->v + ((b * problem->length + j) * problem->heads + h) * problem->head->dv;
}

/* The query (t, hq) as given. */
static fpa_window_query query_of(const plain *p, int64_t b, int64_t t, int64_t hq)
{
    const fpa_problem *problem = p->problem;
    const int64_t row = (b * problem->length + t) * problem->query_heads + hq;
    return (fpa_window_query){problem, b, t, hq / (problem->query_heads / problem->heads),
                              problem->q + row * head_width(problem->head)};
}

/* Adds a key's value times its weight to the first `columns` sums, and the weight to the last one. */
static void add_value(plain *p, float weight, const double *v, int columns)
{
    for (int c = 0; c < columns; c++)
        p->sum[c] += weight * (float)v[c];
    p->sum[columns] += weight;
}

/* The number that is subtracted from the exponents of a window's keys. A 16-bit kernel may have subtracted an
 * earlier maximum, so that even the largest weight is rounded; 0.3 is added here so that the largest weight is not
 * exactly 1. */
static float largest_of(const plain *p, const fpa_window_query *query)
{
    const float off = p->problem->head->window && p->arithmetic != FPA_F32 ? 0.3f : 0;
    return window_largest_plain(query) + off;
}

/* Adds the keys in the window. */
static void add_window(plain *p, const fpa_window_query *query, float largest, int columns)
{
    for (int64_t j = query->t; j >= 0 && window_has(p->problem->head, query->t, j); j--)
        if (problem_keeps(p->problem, query->b, j))
            add_value(p, round_float(p->arithmetic, expf(window_exponent_plain(query, j) - largest)),
                      value_of(p, query->b, j, query->head), columns);
}

static void plain_token(plain *p, int64_t b, int64_t t, int64_t hq, float *o)
{
    const fpa_problem *problem = p->problem;
    const fpa_head *head = problem->head;
    const fpa_window_query query = query_of(p, b, t, hq);
    const float largest = largest_of(p, &query), shrink = expf(-largest);
    int64_t keys = head->causal ? t + 1 - head->window : problem->length;
    memset(p->sum, 0, ((size_t)head->dv + 1) * sizeof(float));
    for (int64_t j = 0; j < keys; j++) {
        if (!problem_keeps(problem, b, j))
            continue;
        float value = shrink * score(p, p->q + t * p->rows.total, p->k + j * p->rows.total);
        if (problem->log_gate)
            value *= t == j ? 1 : expf(p->gate[t] - p->gate[j]);
        add_value(p, round_float(p->arithmetic, value), value_of(p, b, j, query.head), head->dv);
    }
    add_window(p, &query, largest, head->dv);
    for (int c = 0; c < head->dv; c++)
        o[c] = p->sum[c] / normalizer(head, p->sum[head->dv], shrink);
}

fpa_status reference_plain(const fpa_problem *problem, float *o, fpa_error *error)
{
    plain p;
    fpa_status status = plain_make(problem, &p, error);
    if (status != FPA_OK)
        return status;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t hq = 0; hq < problem->query_heads; hq++) {
            load_tokens(&p, b, hq);
            for (int64_t t = 0; t < problem->length; t++)
                if (problem_wants(problem, b, t, hq))
                    plain_token(&p, b, t, hq,
                                o + ((b * problem->length + t) * problem->query_heads + hq) *
                                        problem->head->dv);
        }
    plain_free(&p);
    return FPA_OK;
}

/* phi of a projected token: for each term the Kronecker product of its branches, the last one fastest; on the key
 * side with the kernel weights. Weights are exact, and are not separate factors: the first rounding is that of
 * weight times row. */
static void write_features(const plain *p, const float *row, bool key, float *phi)
{
    fpa_dtype type = key ? p->arithmetic : p->copy;
    for (int t = 0; t < p->rows.term_count; t++) {
        const fpa_rows_term *term = &p->rows.terms[t];
        int64_t count = 1;
        phi[0] = key ? (float)term->weight : 1;
        for (int l = 0; l < term->count; l++) {
            const fpa_rows_dot *dot = &p->rows.dots[term->dot[l]];
            for (int64_t f = count - 1; f >= 0; f--)
                for (int w = dot->count - 1; w >= 0; w--) {
                    float factor = row[dot->at[w]];
                    factor = key ? weighted(p, dot, w, factor) : round_float(p->copy, factor);
                    phi[f * dot->count + w] = phi[f] * factor;
                }
            count *= dot->count;
            round_floats(type, phi, count);
        }
        round_floats(type, phi, term->count ? 0 : 1);
        phi += count;
    }
}

/* The state and features of one (batch, query head). */
typedef struct running {
    int64_t features;
    int width;    /* columns of v, then one for the sum of scores */
    float *phi;   /* [features] */
    float *state; /* [features][width] */
    float *read;  /* the state as queries read it: the same array, or a rounded copy */
} running;

/* Adds token t to the state. v is NULL if the key is masked. */
static void add_token(plain *p, const running *r, int64_t t, float gate, const double *v)
{
    for (int64_t i = 0; !v && i < r->features * r->width; i++)
        r->state[i] *= gate;
    if (!v)
        return;
    write_features(p, p->k + t * p->rows.total, true, r->phi);
    for (int64_t f = 0; f < r->features; f++) {
        float *state = r->state + f * r->width;
        for (int c = 0; c + 1 < r->width; c++)
            state[c] = gate * state[c] + r->phi[f] * (float)v[c];
        state[r->width - 1] = gate * state[r->width - 1] + r->phi[f];
    }
}

static void query_token(plain *p, const running *r, int64_t b, int64_t t, int64_t hq, float *o)
{
    const fpa_window_query query = query_of(p, b, t, hq);
    const float largest = largest_of(p, &query), shrink = expf(-largest);
    write_features(p, p->q + t * p->rows.total, false, r->phi);
    if (r->read != r->state) {
        memcpy(r->read, r->state, (size_t)r->features * (size_t)r->width * sizeof(float));
        round_floats(p->copy, r->read, r->features * r->width);
    }
    memset(p->sum, 0, (size_t)r->width * sizeof(float));
    for (int64_t f = 0; f < r->features; f++)
        for (int c = 0; c < r->width; c++)
            p->sum[c] += r->phi[f] * r->read[f * r->width + c];
    for (int c = 0; c < r->width; c++)
        p->sum[c] *= shrink;
    add_window(p, &query, largest, r->width - 1);
    for (int c = 0; c + 1 < r->width; c++)
        o[c] = p->sum[c] / normalizer(p->problem->head, p->sum[r->width - 1], shrink);
}

/* Adds token t to the state, if t >= 0. */
static void enter_token(plain *p, const running *r, int64_t b, int64_t t, int64_t h)
{
    const fpa_problem *problem = p->problem;
    if (t < 0)
        return;
    add_token(p, r, t,
              problem->log_gate
                  ? expf((float)problem->log_gate[(b * problem->length + t) * problem->heads + h])
                  : 1,
              problem_keeps(problem, b, t) ? value_of(p, b, t, h) : NULL);
}

/* Processes the tokens of one (batch, query head). With a window, the newest keys are not in the state when their
 * query reads it. */
static void run_features(plain *p, const running *r, int64_t b, int64_t hq, float *o)
{
    const fpa_problem *problem = p->problem;
    int64_t h = hq / (problem->query_heads / problem->heads);
    bool causal = problem->head->causal;
    memset(r->state, 0, (size_t)r->features * (size_t)r->width * sizeof(float));
    load_tokens(p, b, hq);
    for (int pass = causal ? 1 : 0; pass < 2; pass++)
        for (int64_t t = 0; t < problem->length; t++) {
            if (causal || pass == 0)
                enter_token(p, r, b, t - problem->head->window, h);
            if (pass == 1 && problem_wants(problem, b, t, hq))
                query_token(p, r, b, t, hq,
                            o + ((b * problem->length + t) * problem->query_heads + hq) * (r->width - 1));
        }
}

fpa_status reference_plain_features(const fpa_problem *problem, int columns, float *o, fpa_error *error)
{
    running r = {.width = columns + 1};
    plain p;
    fpa_status status = plain_make(problem, &p, error);
    if (status != FPA_OK)
        return status;
    r.features = (int64_t)rows_features(&p.rows);
    size_t room = (size_t)r.features * (size_t)r.width + 1;
    r.phi = calloc((size_t)r.features + 1, sizeof(float));
    r.state = calloc(room, sizeof(float));
    r.read = p.copy == FPA_F32 ? r.state : calloc(room, sizeof(float));
    if (r.phi && r.state && r.read)
        for (int64_t b = 0; b < problem->batch; b++)
            for (int64_t hq = 0; hq < problem->query_heads; hq++)
                run_features(&p, &r, b, hq, o);
    else
        status = fail_memory(error);
    free(r.phi);
    if (r.read != r.state)
        free(r.read);
    free(r.state);
    plain_free(&p);
    return status;
}

/* gradient_walk: the loop over pairs of tokens for gradients, in double for gradient.c and in float for gradient_plain.c: `real` is
 * the type of all numbers. Included once by each of them, nowhere else.
 *
 * A pair (t, j) with decay w, s = k(q_t, k_j) and ds = d_o'.v', where v' = [v, 1] and
 * d_o' = [d_o / n, -(o.d_o) n'(den) / n], adds w s d_o' to the gradient of v_j, and w ds times its derivative to the gradient
 * of each dot of the score. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lift.h"
#include "rows.h"

typedef struct walk {
    const fpa_problem *problem;
    const fpa_saved *given;
    fpa_gradients to;
    bool absolute; /* magnitudes are computed: sums of absolute values */
    fpa_rows rows;
    real *matrix; /* [total - d][d] matrices of one key/value head */
    /* [d][total - d] the same transposed, so that vectors process several rows at a time, each in the order of d */
    real *columns;
    real *squares;       /* [total - d] */
    real *back;          /* [d] */
    real *lifted;        /* [d] with a lift: coordinates, if the row has their sizes, or vice versa */
    real *q, *k;         /* [total], [length][total] projected tokens of one (batch, head) */
    real *dq, *dk;       /* gradients of these rows */
    real *value, *slope; /* [dots] dot products of a pair, and their gradients */
    real *out;           /* [dv + 1] d_o' of a query; the last element belongs to the column of ones */
    real *sum;           /* [dv + 1] sums from which o is computed */
    real *v, *dv;        /* [length][dv] */
    /* [length] score times its gradient, summed over a query's keys, and over a key's queries */
    real *read, *written;
    real *crossing; /* [length] the same, summed over pairs with the token's gate between them */
    /* [length] in the plain computation, if wanted: `read` less `written` without roundings, whose running sum in
     * double is `crossing`; squares of the roundings of a token's terms; and of the terms of pairs on both sides
     * of the gate of a span's first token */
    double *whole, *rounding, *crossing_rounding;
} walk;

/* narrow_row: rounds a row, a factor of products, to the type of plain arithmetic. narrow: rounds a score, its
 * gradient or that of an output, which are multiplied by copies of states. */
static real narrow_row(const walk *w, real x);
/* Computes the coordinates of a token by the lift; for magnitudes, the numbers to which their errors are relative. */
static void lift_row(const walk *w, const fpa_lift_token *token, real *row);
static real narrow(const walk *w, real x);
/* Adds the rounding errors of the products of a pair's decayed score and the score's gradient. */
static void add_roundings(const walk *w, int64_t t, int64_t j, real seen, real gradient);

static real size_of(const walk *w, real x)
{
    return w->absolute && x < 0 ? -x : x;
}

static void walk_free(walk *w)
{
    real *const all[] = {w->columns, w->squares, w->back, w->lifted, w->matrix,  w->q,
                         w->k,       w->dq,      w->dk,   w->value,  w->slope,   w->out,
                         w->sum,     w->v,       w->dv,   w->read,   w->written, w->crossing};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(w->whole);
    rows_free(&w->rows);
}

static fpa_status make_roundings(walk *w, size_t tokens, fpa_error *error)
{
    if (!w->to.log_gate_whole)
        return FPA_OK;
    w->whole = calloc(3 * tokens, sizeof *w->whole);
    if (!w->whole) {
        walk_free(w);
        return fail_memory(error);
    }
    w->rounding = w->whole + tokens;
    w->crossing_rounding = w->rounding + tokens;
    return FPA_OK;
}

static fpa_status walk_make(walk *w, fpa_error *error)
{
    const fpa_problem *p = w->problem;
    fpa_status status = rows_make(p->head, &w->rows, error);
    const size_t tokens = (size_t)p->length + 1, total = (size_t)w->rows.total;
    const size_t dv = (size_t)p->head->dv, dots = (size_t)w->rows.dot_count + 1;
    const size_t rows = total - (size_t)p->head->d;
    if (status != FPA_OK)
        return status;
    struct {
        real **array;
        size_t count;
    } const all[] = {{&w->matrix, rows * (size_t)p->head->d + 1},
                     {&w->columns, rows * (size_t)p->head->d + 1},
                     {&w->squares, total + 1},
                     {&w->back, (size_t)p->head->d + 1},
                     {&w->lifted, (size_t)p->head->d + 1},
                     {&w->q, total},
                     {&w->k, tokens * total},
                     {&w->dq, total},
                     {&w->dk, tokens * total},
                     {&w->value, dots},
                     {&w->slope, dots},
                     {&w->out, dv + 1},
                     {&w->sum, dv + 1},
                     {&w->v, tokens * dv},
                     {&w->dv, tokens * dv},
                     {&w->read, tokens},
                     {&w->written, tokens},
                     {&w->crossing, tokens}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].array = calloc(all[i].count, sizeof(real));
        if (!*all[i].array) {
            walk_free(w);
            return fail_memory(error);
        }
    }
    return make_roundings(w, tokens, error);
}

/* ---- rows of a token, and back ---- */

static void load_matrices(walk *w, int64_t head)
{
    const fpa_head *shape = w->problem->head;
    real *to = w->matrix;
    for (int m = 0; m < shape->matrix_count && !shape->lift; m++)
        for (int r = 0; r < shape->matrices[m].rows; r++)
            for (int c = 0; c < shape->d; c++)
                *to++ = (real)rows_entry(w->problem, m, head, r, c);
    const int64_t rows = w->rows.total - shape->d;
    for (int64_t r = 0; r < rows; r++)
        for (int c = 0; c < shape->d; c++)
            w->columns[c * rows + r] = w->matrix[r * shape->d + c];
}

/* w: [d][rows] */
static void add_products(const real *restrict w, int d, int64_t rows, const real *restrict x,
                         real *restrict sums)
{
    memset(sums, 0, sizeof(real) * (size_t)rows);
    for (int c = 0; c < d; c++)
        for (int64_t r = 0; r < rows; r++)
            sums[r] += w[c * rows + r] * x[c];
}

static void add_squares(const real *restrict w, int d, int64_t rows, const real *restrict x,
                        real *restrict squares)
{
    memset(squares, 0, sizeof(real) * (size_t)rows);
    for (int c = 0; c < d; c++)
        for (int64_t r = 0; r < rows; r++)
            squares[r] += w[c * rows + r] * x[c] * w[c * rows + r] * x[c];
}

/* Computes a token's rows. For magnitudes: the number to which a rounding error of a row is relative, at least the
 * root of the squares of its products, which may cancel. */
static void project_token(const walk *w, real scale, const double *x, real *row)
{
    const int d = w->problem->head->d;
    for (int c = 0; c < d; c++)
        row[c] = narrow_row(w, scale * (real)x[c]);
    add_products(w->columns, d, w->rows.total - d, row, row + d);
    if (w->absolute)
        add_squares(w->columns, d, w->rows.total - d, row, w->squares);
    for (int64_t r = d; r < w->rows.total; r++)
        row[r] = w->absolute ? (real)fmax(fabs((double)row[r]), sqrt((double)w->squares[r - d]))
                             : narrow_row(w, row[r]);
    for (int c = 0; w->absolute && c < d; c++)
        row[c] = size_of(w, row[c]);
}

/* Computes the gradients of a token's coordinates, and adds those of the matrices, from the gradients of its rows. */
static void matrices_back(const walk *w, int64_t head, real scale, const real *row, const real *gradient,
                          double *dx)
{
    const fpa_head *shape = w->problem->head;
    const int d = shape->d;
    int64_t r = d;
    memcpy(w->back, gradient, sizeof(real) * (size_t)d);
    for (int64_t at = d; dx && at < w->rows.total; at++)
        for (int c = 0; c < d; c++)
            w->back[c] += size_of(w, w->matrix[(at - d) * d + c]) * gradient[at];
    for (int c = 0; dx && c < d; c++)
        dx[c] = (double)(size_of(w, scale) * w->back[c]);
    for (int m = 0; m < shape->matrix_count; r += shape->matrices[m++].rows) {
        const fpa_matrix *matrix = &shape->matrices[m];
        const bool diagonal = matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
        double *to = w->to.weights ? w->to.weights[m] : NULL;
        if (!to)
            continue;
        to += matrix->per_head ? head * d * (diagonal ? 1 : matrix->rows) : 0;
        for (int i = 0; i < matrix->rows; i++)
            for (int c = diagonal ? i : 0; c < (diagonal ? i + 1 : d); c++) {
                double *entry = to + (diagonal ? c : i * d + c);
                *entry = (double)((real)*entry + gradient[r + i] * row[c]);
            }
    }
}

#include "gradient_lift.h"

/* Computes the rows of a token, or for magnitudes the numbers to which their errors are relative. */
static void make_row(const walk *w, const fpa_lift_token *token, real *row)
{
    if (w->problem->head->lift)
        lift_row(w, token, row);
    else
        project_token(w, (real)(token->side == FPA_QUERY ? w->problem->head->scale : 1), token->x, row);
}

/* Computes the gradient of a token's vector, and adds those of matrices, from the gradients of its rows. row: used
 * by heads without a lift only. */
static void pass_back(const walk *w, const fpa_lift_token *token, const real *row, const real *gradient,
                      double *dx)
{
    if (w->problem->head->lift)
        lift_back(w, token, gradient, dx);
    else
        matrices_back(w, token->head, (real)(token->side == FPA_QUERY ? w->problem->head->scale : 1), row,
                      gradient, dx);
}

/* ---- one pair ---- */

static real score_of(walk *w, const real *q, const real *k)
{
    real sum = 0;
    for (int i = 0; i < w->rows.dot_count; i++) {
        const fpa_rows_dot *dot = &w->rows.dots[i];
        real value = 0;
        if (dot->weight)
            for (int n = 0; n < dot->count; n++)
                value += (real)dot->weight[n] * q[dot->at[n]] * k[dot->at[n]];
        else
            for (int n = 0; n < dot->count; n++)
                value += q[dot->at[n]] * k[dot->at[n]];
        w->value[i] = value;
    }
    for (int t = 0; t < w->rows.term_count; t++) {
        const fpa_rows_term *term = &w->rows.terms[t];
        real product = size_of(w, (real)term->weight);
        for (int l = 0; l < term->count; l++)
            product *= w->value[term->dot[l]];
        sum += product;
    }
    return sum;
}

/* slope: derivatives of the score by each dot, times `gradient`. */
static void score_slopes(walk *w, real gradient)
{
    memset(w->slope, 0, sizeof(real) * (size_t)w->rows.dot_count);
    for (int t = 0; t < w->rows.term_count; t++) {
        const fpa_rows_term *term = &w->rows.terms[t];
        for (int l = 0; l < term->count; l++) {
            real product = size_of(w, (real)term->weight) * gradient;
            for (int other = 0; other < term->count; other++)
                product *= other == l ? 1 : w->value[term->dot[other]];
            w->slope[term->dot[l]] += product;
        }
    }
}

/* Adds the gradients of both rows of a dot. */
static void add_dot_pair(const walk *w, const fpa_rows_dot *dot, real slope, const real *k, real *dk)
{
    const real *const q = w->q, whole = narrow(w, slope);
    real *const dq = w->dq;

    for (int n = 0; n < dot->count; n++) {
        const int64_t at = dot->at[n];
        const real own = dot->weight ? narrow(w, (real)dot->weight[n] * slope) : whole;
        dq[at] += own * k[at];
        dk[at] += own * q[at];
    }
}

static void add_pair(walk *w, int64_t t, int64_t j, real decay)
{
    const int dv = w->problem->head->dv;
    const real *k = w->k + j * w->rows.total, *v = w->v + j * dv;
    real *dk = w->dk + j * w->rows.total;
    const real score = score_of(w, w->q, k), weight = narrow(w, decay * score);
    const real *const out = w->out;
    real *const dv_of_key = w->dv + j * dv;
    real gradient = out[dv];
    for (int c = 0; c < dv; c++)
        gradient += out[c] * v[c];
    for (int c = 0; c < dv; c++)
        dv_of_key[c] += weight * out[c];
    score_slopes(w, decay * gradient);
    for (int i = 0; i < w->rows.dot_count; i++)
        add_dot_pair(w, &w->rows.dots[i], narrow(w, w->slope[i]), k, dk);
    const real seen = decay * score, narrow_seen = narrow(w, seen), narrow_gradient = narrow(w, gradient);
    /* kernels compute them from different states, and so round other factors */
    w->read[t] += narrow_seen * gradient;
    w->written[j] += seen * narrow_gradient;
    for (int64_t u = j + 1; w->problem->log_gate && u <= t; u++)
        w->crossing[u] += narrow_seen * narrow_gradient;
    if (w->whole)
        add_roundings(w, t, j, seen, gradient);
}

/* ---- one query ---- */

static real log_gate_of(const fpa_problem *p, int64_t b, int64_t t, int64_t h)
{
    return p->log_gate ? (real)p->log_gate[(b * p->length + t) * p->heads + h] : 0;
}

/* Computes the sums from which o and den follow, if these were not saved. */
static void gather_output(walk *w, int64_t b, int64_t t, int64_t h)
{
    const fpa_problem *p = w->problem;
    const int dv = p->head->dv;
    real log_decay = 0;
    memset(w->sum, 0, sizeof(real) * ((size_t)dv + 1));
    for (int64_t j = p->head->causal ? t : p->length - 1; j >= 0; j--) {
        const real score = (real)exp((double)log_decay) * score_of(w, w->q, w->k + j * w->rows.total);
        for (int c = 0; c < dv; c++)
            w->sum[c] += score * w->v[j * dv + c];
        w->sum[dv] += score;
        log_decay += log_gate_of(p, b, j, h);
    }
}

/* The normaliser for a sum of scores, and its derivative. */
static real divisor(const fpa_head *head, real den, real *slope)
{
    *slope = 1;
    switch (head->normalize) {
    case FPA_NORMALIZE_SUM:
        return den + (real)head->eps;
    case FPA_NORMALIZE_MAX:
        *slope = den > (real)head->eps;
        return *slope > 0 ? den : (real)head->eps;
    case FPA_NORMALIZE_ONE_PLUS_SUM:
        return 1 + den;
    default:
        *slope = 0;
        return 1;
    }
}

/* The effect of eps, which kernels round to float32, if the sum nearly cancels it: for magnitudes the
 * factor by which they increase, else 1. */
static real shared_with_eps(const walk *w, real n)
{
    const fpa_head *head = w->problem->head;
    return w->absolute && head->normalize == FPA_NORMALIZE_SUM ? 1 + size_of(w, (real)head->eps / n) : 1;
}

/* Computes d_o' of a query. Magnitudes use the saved o and den, which have signs. */
static void set_output(walk *w, int64_t b, int64_t t, int64_t hq)
{
    const fpa_problem *p = w->problem;
    const int64_t token = (b * p->length + t) * p->query_heads + hq;
    const int dv = p->head->dv;
    const double *d_o = w->given->d_o + token * dv;
    real slope, n, product = 0;
    if (p->head->normalize != FPA_NORMALIZE_NONE && !w->given->o)
        gather_output(w, b, t, hq / (p->query_heads / p->heads));
    n = divisor(p->head, w->given->den ? (real)w->given->den[token] : w->sum[dv], &slope);
    const real larger = shared_with_eps(w, n);
    for (int c = 0; c < dv; c++) {
        const real o = w->given->o ? (real)w->given->o[token * dv + c] : w->sum[c] / n;
        w->out[c] = narrow(w, larger * size_of(w, (real)d_o[c] / n));
        product += larger * size_of(w, slope > 0 ? o * (real)d_o[c] / n : 0);
    }
    w->out[dv] = narrow(w, w->absolute ? slope * product : -slope * product);
}

static void walk_query(walk *w, int64_t b, int64_t t, int64_t hq)
{
    const fpa_problem *p = w->problem;
    const int64_t h = hq / (p->query_heads / p->heads), token = (b * p->length + t) * p->query_heads + hq;
    const int width = head_width(p->head);
    const fpa_lift_token query = lift_token(p, b, t, h, FPA_QUERY, p->q + token * width);
    real log_decay = 0;
    make_row(w, &query, w->q);
    set_output(w, b, t, hq);
    memset(w->dq, 0, sizeof(real) * (size_t)w->rows.total);
    for (int64_t j = p->head->causal ? t : p->length - 1; j >= 0; j--) {
        const real decay = (real)rows_fade((double)log_decay);
        if (decay == 0)
            break;
        add_pair(w, t, j, decay);
        log_decay += log_gate_of(p, b, j, h);
    }
    for (int c = 0; w->absolute && !p->head->lift && c < width; c++)
        w->q[c] = size_of(w, (real)(p->head->scale * p->q[token * width + c]));
    pass_back(w, &query, w->q, w->dq, w->to.q ? w->to.q + token * width : NULL);
}

/* ---- one key/value head ---- */

static void walk_keys(walk *w, int64_t b, int64_t h)
{
    const fpa_problem *p = w->problem;
    const int width = head_width(p->head), dv = p->head->dv;
    load_matrices(w, h);
    for (int64_t j = 0; j < p->length; j++) {
        const int64_t token = (b * p->length + j) * p->heads + h;
        const fpa_lift_token key = lift_token(p, b, j, h, FPA_KEY, p->k + token * width);

        const bool kept = problem_keeps(p, b, j);

        if (kept)
            make_row(w, &key, w->k + j * w->rows.total);
        else
            memset(w->k + j * w->rows.total, 0, sizeof(real) * (size_t)w->rows.total);
        for (int c = 0; c < dv; c++)
            w->v[j * dv + c] = kept ? size_of(w, (real)p->v[token * dv + c]) : 0;
    }
    memset(w->dk, 0, sizeof(real) * (size_t)(p->length * w->rows.total));
    memset(w->dv, 0, sizeof(real) * (size_t)(p->length * dv));
    memset(w->read, 0, sizeof(real) * (size_t)p->length);
    memset(w->written, 0, sizeof(real) * (size_t)p->length);
    memset(w->crossing, 0, sizeof(real) * (size_t)p->length);
    if (w->whole)
        memset(w->whole, 0, 3 * sizeof *w->whole * ((size_t)p->length + 1));
}

/* The gradient of log-gate t: w->crossing[t], as each of the two files computes it. */
static real gate_of(const walk *w, int64_t t, real running[2]);

/* Whether the running sum is begun anew at token t, with the pairs on both sides of the gate after it. */
static bool begins_anew(const walk *w, int64_t t)
{
    return t + 1 == w->problem->length || (t + 1) % w->given->span == 0;
}

static void store_keys(walk *w, int64_t b, int64_t h)
{
    const fpa_problem *p = w->problem;
    const int width = head_width(p->head), dv = p->head->dv;
    real running[2] = {0};
    double whole = 0, carried = 0;
    for (int64_t j = p->length - 1; j >= 0; j--) {
        const int64_t token = (b * p->length + j) * p->heads + h;
        const fpa_lift_token key = lift_token(p, b, j, h, FPA_KEY, p->k + token * width);

        double *dk = w->to.k ? w->to.k + token * width : NULL;

        if (problem_keeps(p, b, j))
            pass_back(w, &key, w->k + j * w->rows.total, w->dk + j * w->rows.total, dk);
        else if (dk)
            memset(dk, 0, sizeof *dk * (size_t)width);
        for (int c = 0; w->to.v && c < dv; c++)
            w->to.v[token * dv + c] = (double)w->dv[j * dv + c];
        if (w->to.log_gate)
            w->to.log_gate[token] = (double)gate_of(w, j, running);
        if (w->whole) {
            carried = begins_anew(w, j) ? w->crossing_rounding[j + 1] : carried;
            carried += w->rounding[j];
            whole += w->whole[j];
            w->to.log_gate_whole[token] = whole;
            w->to.log_gate_carried[token] = carried;
        }
    }
}

static void clear_weights(const walk *w)
{
    const fpa_problem *p = w->problem;
    for (int m = 0; w->to.weights && m < p->head->matrix_count; m++) {
        const fpa_matrix *matrix = &p->head->matrices[m];
        const int64_t entries = (int64_t)(matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? 1 : matrix->rows) *
                                matrix->cols * (matrix->per_head ? p->heads : 1);
        if (w->to.weights[m])
            memset(w->to.weights[m], 0, sizeof(double) * (size_t)entries);
    }
}

static fpa_status walk_all(const fpa_problem *p, const fpa_saved *given, const fpa_gradients *to,
                           bool absolute, fpa_error *error)
{
    walk w = {.problem = p, .given = given, .to = *to, .absolute = absolute};
    fpa_status status;
    if (p->head->window)
        return fail(error, FPA_UNSUPPORTED, p->head->name,
                    "has a window: the reference has no gradients of it yet");
    status = walk_make(&w, error);
    if (status != FPA_OK)
        return status;
    clear_weights(&w);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads; h++) {
            walk_keys(&w, b, h);
            for (int64_t g = 0; g < p->query_heads / p->heads; g++)
                for (int64_t t = 0; t < p->length; t++)
                    walk_query(&w, b, t, h * (p->query_heads / p->heads) + g);
            store_keys(&w, b, h);
        }
    walk_free(&w);
    return FPA_OK;
}

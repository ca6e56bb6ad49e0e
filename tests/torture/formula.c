#include "formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const normalizers[] = {"none", "sum", "max", "one_plus_sum"};
static const char *const dtypes[] = {"f32", "bf16", "f16"};
static const double roundoffs[] = {0x1p-24, 0x1p-9, 0x1p-12};

/* ---- a random head, as text and as numbers ---- */

static double few_bits(random_source *random)
{
    return random_between(random, -16, 16) / 8.0;
}

static double *rows_of_zeros(int rows)
{
    double *w = calloc((size_t)rows * MOST_WIDTH, sizeof *w);
    if (!w)
        abort();
    return w;
}

static void random_select(random_source *random, const formula *f, branch *b, FILE *spec)
{
    const int step = random_between(random, 1, 3), first = random_between(random, 0, f->d - 1);
    b->rows = random_between(random, 1, f->d < MOST_ROWS ? f->d : MOST_ROWS);
    while (f->d % step == 0 && step > 1 && b->rows > f->d / step)
        b->rows--; /* so that no index comes twice */
    b->w = rows_of_zeros(b->rows);
    fprintf(spec, "select { ");
    for (int r = 0; r < b->rows; r++) {
        const int index = (first + r * step) % f->d;
        b->w[r * f->d + index] = 1;
        fprintf(spec, "%d, ", index + 1);
    }
    fprintf(spec, "}");
}

static void random_diagonal(random_source *random, const formula *f, branch *b, FILE *spec)
{
    b->rows = f->d;
    b->w = rows_of_zeros(f->d);
    fprintf(spec, "diagonal { ");
    for (int i = 0; i < f->d; i++) {
        const double x = i && random_chance(random, 0.3) ? 0 : random_between(random, 1, 16) / 4.0;
        b->w[i * f->d + i] = x;
        fprintf(spec, "%g, ", x);
    }
    fprintf(spec, "}");
}

static void random_dense(random_source *random, const formula *f, branch *b, FILE *spec)
{
    b->rows = random_between(random, 1, MOST_ROWS);
    b->w = rows_of_zeros(b->rows);
    fprintf(spec, "dense { ");
    for (int r = 0; r < b->rows; r++) {
        fprintf(spec, "{ ");
        for (int c = 0; c < f->d; c++) {
            const double x = c == r % f->d ? 1 : few_bits(random);
            b->w[r * f->d + c] = x;
            fprintf(spec, "%g, ", x);
        }
        fprintf(spec, "}, ");
    }
    fprintf(spec, "}");
}

static void random_trainable(random_source *random, formula *f, branch *b, FILE *spec)
{
    b->weight = f->weights++;
    b->rows = f->weight_rows[b->weight] = random_between(random, 1, MOST_ROWS);
    f->shared[b->weight] = random_chance(random, 0.5);
    fprintf(spec, "trainable { name = \"w%d\", rows = %d%s }", b->weight, b->rows,
            f->shared[b->weight] ? ", shared = true" : "");
}

static void random_identity(const formula *f, branch *b, FILE *spec)
{
    b->rows = f->d;
    b->w = rows_of_zeros(f->d);
    for (int i = 0; i < f->d; i++)
        b->w[i * f->d + i] = 1;
    fprintf(spec, "identity()");
}

static void random_branch(random_source *random, formula *f, branch *b, FILE *spec)
{
    b->weight = -1;
    switch (random_between(random, 0, 4)) {
    case 0:
        random_select(random, f, b, spec);
        return;
    case 1:
        random_diagonal(random, f, b, spec);
        return;
    case 2:
        random_dense(random, f, b, spec);
        return;
    case 3:
        random_trainable(random, f, b, spec);
        return;
    default:
        random_identity(f, b, spec);
    }
}

static void random_terms(random_source *random, formula *f, FILE *spec)
{
    f->terms = random_between(random, 1, MOST_TERMS);
    fprintf(spec, "terms = {\n");
    for (int i = 0; i < f->terms; i++) {
        term *x = &f->term[i];
        x->branches = random_between(random, random_chance(random, 0.8), MOST_BRANCHES);
        x->weight = random_between(random, 1, 12) / 8.0;
        if (!f->normalize && random_chance(random, 0.3))
            x->weight = -x->weight;
        fprintf(spec, "  term { weight = %g, ", x->weight);
        for (int l = 0; l < x->branches; l++) {
            random_branch(random, f, &x->branch[l], spec);
            fprintf(spec, ", ");
        }
        fprintf(spec, "},\n");
    }
    fprintf(spec, "} ");
}

/* A family of the prelude: a polynomial of q.k. */
static void random_family(random_source *random, formula *f, FILE *spec)
{
    double *p = f->polynomial;
    const int degree = random_between(random, 1, 3), block = random_between(random, 1, f->d);
    switch (random_between(random, 0, 4)) {
    case 0:
        p[degree] = 0.5;
        fprintf(spec, "terms = power { degree = %d, weight = 0.5 } ", degree);
        return;
    case 1:
        p[degree] = 1;
        fprintf(spec, "terms = tspow { d = %d, degree = %d, block = %d } ", f->d, degree, block);
        return;
    case 2:
        p[0] = p[1] = 1, p[2] = 0.5;
        fprintf(spec, "terms = taylor { degree = 2 } ");
        return;
    case 3:
        p[0] = 4, p[1] = 4, p[2] = 1;
        fprintf(spec, "terms = inhomogeneous { degree = 2, constant = 2 } ");
        return;
    default:
        p[1] = 3;
        fprintf(spec, "terms = linear { weight = 3 } ");
    }
}

/* Polynomials of even degree here are squares, or have no zero: normalisers of others may vanish. */
static bool may_be_negative(const formula *f)
{
    for (int i = 0; i < f->terms; i++)
        if (f->term[i].branches)
            return true;
    return f->terms == 0 && f->polynomial[2] == 0;
}

void formula_random(random_source *random, formula *f, FILE *spec)
{
    memset(f, 0, sizeof *f);
    f->d = random_between(random, 1, MOST_WIDTH);
    f->dv = random_between(random, 1, MOST_WIDTH);
    f->scale = random_chance(random, 0.5) ? 1 : random_between(random, 2, 16) / 8.0;
    f->eps = 1.0 / 1024;
    f->causal = random_chance(random, 0.8);
    f->gate = f->causal && random_chance(random, 0.4);
    f->dtype = random_chance(random, 0.7) ? 0 : random_between(random, 1, 2);
    f->normalize = random_chance(random, 0.3) ? random_between(random, 1, 3) : 0;
    fprintf(spec,
            "return head { name = \"random\", d = %d, dv = %d, scale = %g, causal = %s, gate = %s, dtype = "
            "\"%s\",\n",
            f->d, f->dv, f->scale, f->causal ? "true" : "false", f->gate ? "true" : "false",
            dtypes[f->dtype]);
    if (random_chance(random, 0.6))
        random_terms(random, f, spec);
    else
        random_family(random, f, spec);
    if (may_be_negative(f))
        f->normalize = 0;
    if (f->normalize)
        fprintf(spec, ", normalize = { \"%s\"%s }", normalizers[f->normalize],
                f->normalize < 3 ? ", eps = 1 / 1024" : "");
    if (random_chance(random, 0.6))
        fprintf(spec, ", chunk = %d", random_between(random, 1, 48));
    fprintf(spec, " }\n");
}

/* ---- the formula ---- */

typedef struct value {
    double x, size; /* size: what x would be if nothing cancelled */
} value;

static value dot_of(const formula *f, const branch *b, const double *w, const double *q, const double *k)
{
    value dot = {0, 0};
    for (int r = 0; r < b->rows; r++) {
        value a = {0, 0}, c = {0, 0};
        for (int i = 0; i < f->d; i++) {
            const double x = w[r * f->d + i];
            a.x += x * f->scale * q[i], a.size += fabs(x * f->scale * q[i]);
            c.x += x * k[i], c.size += fabs(x * k[i]);
        }
        dot.x += a.x * c.x, dot.size += a.size * c.size;
    }
    return dot;
}

static value polynomial_of(const formula *f, const double *q, const double *k)
{
    value s = {0, 0}, sum = {0, 0};
    for (int i = 0; i < f->d; i++)
        s.x += f->scale * q[i] * k[i], s.size += fabs(f->scale * q[i] * k[i]);
    for (int n = 4; n >= 0; n--) {
        sum.x = sum.x * s.x + f->polynomial[n];
        sum.size = sum.size * s.size + fabs(f->polynomial[n]);
    }
    return sum;
}

static value kernel_of(const formula *f, const call_numbers *c, int head, const double *q, const double *k)
{
    value sum = polynomial_of(f, q, k);
    for (int i = 0; i < f->terms; i++) {
        const term *x = &f->term[i];
        value product = {x->weight, fabs(x->weight)};
        for (int l = 0; l < x->branches; l++) {
            const branch *b = &x->branch[l];
            const double *w = b->w;
            if (b->weight >= 0)
                w = c->weight[b->weight] + (f->shared[b->weight] ? 0 : head * b->rows * f->d);
            const value dot = dot_of(f, b, w, q, k);
            product.x *= dot.x, product.size *= dot.size;
        }
        sum.x += product.x, sum.size += product.size;
    }
    return sum;
}

/* Features as written bound the number of additions of the forms with a state. */
static double features_of(const formula *f)
{
    double features = pow(f->d + 1, 3) * (f->terms == 0);
    for (int i = 0; i < f->terms; i++) {
        double product = 1;
        for (int l = 0; l < f->term[i].branches; l++)
            product *= f->term[i].branch[l].rows;
        features += product;
    }
    return features;
}

/* Relative to sizes. Roundings of storage come with each factor, those of float32 with each addition. */
static double tolerance(const formula *f, int length)
{
    const double sums = 64 + 4 * 3 * (f->d + 4) + 2 * length + 8 * sqrt(features_of(f));
    return roundoffs[0] * sums + (f->dtype ? roundoffs[f->dtype] * 12 : 0);
}

static void finish_token(const formula *f, double tau, value den, const value *sums, double *o, double *bound)
{
    double n = 1, n_error = 0;
    if (f->normalize) {
        n = f->normalize == 1 ? den.x + f->eps : f->normalize == 2 ? fmax(den.x, f->eps) : 1 + den.x;
        n_error = tau * (den.size + f->eps + 1) + roundoffs[0];
    }
    for (int e = 0; e < f->dv; e++) {
        o[e] = sums[e].x / n;
        bound[e] = (tau * sums[e].size + fabs(o[e]) * n_error) / fmax(fabs(n) - n_error, 0) + 1e-30 +
                   roundoffs[f->dtype] * 2 * fabs(o[e]) + (f->dtype == 2 ? 0x1p-24 : 0);
    }
}

static void one_token(const formula *f, const call_numbers *c, int b, int t, int h, double tau, double *o,
                      double *bound)
{
    const int head = h / (c->query_heads / c->heads);
    const double *q = c->q + (size_t)((b * c->length + t) * c->query_heads + h) * (size_t)f->d;
    value sums[MOST_WIDTH] = {{0, 0}}, den = {0, 0};
    double decay = 1;
    for (int j = f->causal ? t : c->length - 1; j >= 0; j--) {
        const int at = (b * c->length + j) * c->heads + head;
        value k = kernel_of(f, c, head, q, c->k + (size_t)at * (size_t)f->d);
        k.x *= decay, k.size *= decay;
        den.x += k.x, den.size += k.size;
        for (int e = 0; e < f->dv; e++) {
            const double v = c->v[(size_t)at * (size_t)f->dv + (size_t)e];
            sums[e].x += k.x * v, sums[e].size += k.size * fabs(v);
        }
        if (f->gate) /* the gate of step j is on everything before token j */
            decay *= exp(c->log_gate[at]);
    }
    finish_token(f, tau, den, sums, o, bound);
}

void formula_output(const formula *f, const call_numbers *c, double *o, double *bound)
{
    const double tau = tolerance(f, c->length);
    for (int b = 0; b < c->batch; b++)
        for (int t = 0; t < c->length; t++)
            for (int h = 0; h < c->query_heads; h++) {
                const size_t at = (size_t)((b * c->length + t) * c->query_heads + h) * (size_t)f->dv;
                one_token(f, c, b, t, h, tau, o + at, bound + at);
            }
}

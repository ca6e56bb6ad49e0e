#include "rounded_module.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "runtime/reference/round.h"
#include "hand_module.h"

static const fpa_head *the_head;
static const fpa_facts *the_facts;
static rounded_fault the_fault;

/* One (batch, key/value head) of a call. */
typedef struct unit {
    const struct fpa_launch *a;
    int64_t b, h, features;
    int columns;            /* dv, then the denominator */
    fpa_dtype type, copy;   /* of keys and scores, of what queries read */
    bool exact;             /* recurrent: all in float */
    float *state, *read;    /* [features][columns] */
    float *phi;             /* [features] */
    float x[1024], y[1024]; /* a query and a key */
    float v[65], sum[65];
} unit;

static float narrow(const unit *u, float x)
{
    return u->exact ? x : round_float(u->type, x);
}

static void load(const void *from, int64_t at, int width, float *x)
{
    size_t size = dtype_size(the_head->dtype);
    for (int c = 0; c < width; c++)
        x[c] = (float)dtype_load(the_head->dtype, (const char *)from + (size_t)(at + c) * size);
}

static int64_t place(const int64_t stride[3], int64_t b, int64_t t, int64_t h)
{
    return b * stride[0] + t * stride[1] + h * stride[2];
}

static void load_query(unit *u, int64_t t, int64_t hq)
{
    load(u->a->q, place(u->a->q_stride, u->b, t, hq), the_head->d, u->x);
    for (int c = 0; c < the_head->d; c++)
        u->x[c] = narrow(u, (float)the_head->scale * u->x[c]);
}

static void load_key(unit *u, int64_t j)
{
    load(u->a->k, place(u->a->k_stride, u->b, j, u->h), the_head->d, u->y);
}

static void load_value(unit *u, int64_t j)
{
    load(u->a->v, place(u->a->v_stride, u->b, j, u->h), the_head->dv, u->v);
    u->v[u->columns - 1] = 1;
}

static float gate_of(const unit *u, int64_t t)
{
    return u->a->log_gate ? u->a->log_gate[place(u->a->gate_stride, u->b, t, u->h)] : 0;
}

static float row_of(const unit *u, const fpa_branch *branch, int w, const float *x)
{
    const fpa_matrix *matrix;
    int64_t slot = 0, row = branch->row[w], h;
    float sum = 0;
    if (branch->source == FPA_INPUT)
        return x[row];
    matrix = &the_head->matrices[branch->source];
    for (int m = 0; m < branch->source; m++)
        slot += the_head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    h = matrix->per_head ? u->h : 0;
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        return narrow(u, u->a->weights[slot][h * matrix->cols + row] * x[row]);
    for (int c = 0; c < matrix->cols; c++)
        sum += x[c] * (matrix->data ? (float)matrix->data[row * matrix->cols + c]
                                    : u->a->weights[slot][(h * matrix->rows + row) * matrix->cols + c]);
    return narrow(u, sum);
}

static float key_row(const unit *u, const fpa_branch *branch, int w)
{
    return narrow(u, row_of(u, branch, w, u->y) * (branch->gram ? (float)branch->gram[w].value : 1));
}

/* The score of x^T y to the fourth, by rows x_i x_j and y_i y_j of narrow arithmetic. */
static float score_of_halves(const unit *u)
{
    const fpa_term *term = &the_head->terms[0];
    const fpa_branch *branch = &term->branches[0];
    float dot = 0;
    for (int i = 0; i < branch->width; i++)
        for (int j = 0; j < branch->width; j++)
            dot += narrow(u, row_of(u, branch, i, u->x) * row_of(u, branch, j, u->x)) *
                   narrow(u, key_row(u, branch, i) * key_row(u, branch, j));
    return (float)term->weight.value * dot * dot;
}

static float score(const unit *u)
{
    float sum = 0;
    if (the_fault == ROUNDED_HALVES)
        return score_of_halves(u);

    for (int t = 0; t < the_head->term_count; t++) {
        const fpa_term *term = &the_head->terms[t];
        float product = (float)term->weight.value;
        for (int l = 0; l < term->branch_count; l++) {
            float dot = 0;
            for (int w = 0; w < term->branches[l].width; w++)
                dot += row_of(u, &term->branches[l], w, u->x) * key_row(u, &term->branches[l], w);
            product *= dot;
        }
        sum += product;
    }
    return sum;
}

/* Half precision to bf16 where queries read a state, and every product rounded. */
static float product_of(const unit *u, bool key, float a, float b)
{
    fpa_dtype type = key ? u->type : u->copy;
    return u->exact ? a * b : round_float(type, round_float(type, a) * round_float(type, b));
}

/* rows: each branch's behind the one before. */
static void write_rows(const unit *u, const fpa_term *term, bool key, float *rows)
{
    for (int l = 0; l < term->branch_count; l++)
        for (int w = 0; w < term->branches[l].width; w++)
            *rows++ = key ? key_row(u, &term->branches[l], w) : row_of(u, &term->branches[l], w, u->x);
}

/* Features of a term behind `at`, from those of its last factor on: another order of products than the plain evaluation's.
 * Each factor more multiplies what is there by its rows, the first one's last, in whose place the factors before lay. */
static void multiply_rows(const unit *u, const fpa_term *term, bool key, const float *end, float *at)
{
    int64_t count = term->branch_count ? term->branches[term->branch_count - 1].width : 1;
    at[0] = 1;
    for (int l = term->branch_count - 1; l >= 0; l--) {
        const int width = term->branches[l].width;
        end -= width;
        if (l == term->branch_count - 1) {
            memcpy(at, end, (size_t)width * sizeof *at);
            continue;
        }
        for (int w = width - 1; w >= 0; w--)
            for (int64_t i = 0; i < count; i++)
                at[w * count + i] = product_of(u, key, at[i], end[w]);
        count *= width;
    }
}

static void write_features(const unit *u, bool key)
{
    float *at = u->phi;
    for (int t = 0; t < the_head->term_count; t++) {
        const fpa_term *term = &the_head->terms[t];
        const float weight = key ? (float)term->weight.value : 1;
        int64_t count = 1, width = 0;
        for (int l = 0; l < term->branch_count; l++) {
            count *= term->branches[l].width;
            width += term->branches[l].width;
        }
        float rows[width + 1];
        write_rows(u, term, key, rows);
        multiply_rows(u, term, key, rows + width, at);
        for (int64_t f = 0; f < count; f++) {
            const float feature = at[f] * weight;
            at[f] = u->exact ? feature : round_float(key ? u->type : u->copy, feature);
        }
        at += count;
    }
}

static void spoil_features(const unit *u)
{
    int64_t at = u->features / 2;
    if (the_fault == ROUNDED_WEIGHT)
        u->phi[at] *= 0.5F;
    for (int64_t f = at; f < at + 8 && the_fault == ROUNDED_TILE; f++)
        u->phi[f] *= 0.5F;
    if (the_fault == ROUNDED_MISSING)
        u->phi[at] = 0;
}

static void add_key(unit *u, int64_t j, float decay)
{
    load_key(u, j);
    load_value(u, j);
    write_features(u, true);
    spoil_features(u);
    for (int64_t f = 0; f < u->features; f++) {
        float phi = narrow(u, decay * u->phi[f]);
        for (int c = 0; c < u->columns; c++)
            u->state[f * u->columns + c] += phi * u->v[c];
    }
}

static void decay_state(const unit *u, float decay)
{
    for (int64_t i = 0; i < u->features * u->columns; i++)
        u->state[i] *= decay;
}

/* What the own chunk's keys add to one query. */
static void add_pairs(unit *u, int64_t first, int64_t t, int64_t end)
{
    int64_t last = the_head->causal ? t : end - 1;
    float decay = 0;
    if (the_fault == ROUNDED_LEAK && t + 1 < end)
        last++;
    for (int64_t j = last; j >= first; j--) {
        float value;
        load_key(u, j);
        load_value(u, j);
        value = narrow(u, expf(decay) * score(u));
        if (the_fault == ROUNDED_SCORE)
            value = round_fraction(value, 19);
        for (int c = 0; c < u->columns && !(the_fault == ROUNDED_MASK && j == t && t > first); c++)
            u->sum[c] += value * u->v[c];
        decay += j <= t ? gate_of(u, j) : 0;
    }
}

static void add_state(unit *u, float decay)
{
    write_features(u, false);
    for (int64_t f = 0; f < u->features; f++)
        for (int c = 0; c < u->columns; c++)
            u->sum[c] += decay * u->phi[f] * u->read[f * u->columns + c];
}

static void write_output(const unit *u, int64_t t, int64_t hq)
{
    float den = u->sum[u->columns - 1];
    const float by_kind[FPA_NORMALIZE_KINDS] = {1, den + (float)the_head->eps,
                                                fmaxf(den, (float)the_head->eps), 1 + den};
    size_t size = dtype_size(the_head->dtype);
    for (int c = 0; c + 1 < u->columns; c++)
        dtype_store(the_head->dtype,
                    (char *)u->a->o + (size_t)(place(u->a->o_stride, u->b, t, hq) + c) * size,
                    u->sum[c] / by_kind[the_head->normalize]);
}

static void copy_state(const unit *u)
{
    for (int64_t i = 0; i < u->features * u->columns; i++) {
        u->read[i] = u->exact ? u->state[i] : round_float(u->copy, u->state[i]);
        if (the_fault == ROUNDED_COARSE)
            u->read[i] = round_fraction(u->read[i], 19);
    }
}

/* The keys of a chunk, after which gates have decayed by `sum`. */
static void add_chunk(unit *u, int64_t first, int64_t end, float sum)
{
    float kept = 0;
    decay_state(u, expf(sum));
    for (int64_t j = end - 1; j >= first; j--) {
        if (!(the_fault == ROUNDED_EDGE && j == end - 1))
            add_key(u, j, expf(kept + (the_fault == ROUNDED_DECAY && j == first ? gate_of(u, j) : 0)));
        kept += gate_of(u, j);
    }
}

/* Queries of tokens [first, end), then their keys. */
static void run_chunk(unit *u, int64_t first, int64_t end, bool stateful)
{
    int64_t group = u->a->query_heads / u->a->heads;
    float sum = 0;
    copy_state(u);
    for (int64_t t = first; t < end; t++) {
        sum += gate_of(u, t);
        for (int64_t hq = u->h * group; hq < (u->h + 1) * group; hq++) {
            memset(u->sum, 0, sizeof u->sum);
            load_query(u, t, hq);
            if (stateful)
                add_state(u, expf(sum));
            add_pairs(u, first, t, end);
            write_output(u, t, hq);
        }
    }
    if (stateful || u->a->state_out)
        add_chunk(u, first, end, sum);
}

/* Without a mask: the keys of all chunks, then all queries. */
static void run_open(unit *u, int64_t chunk)
{
    const int64_t length = u->a->length, group = u->a->query_heads / u->a->heads;
    for (int64_t first = 0; first < length; first += chunk)
        add_chunk(u, first, first + chunk < length ? first + chunk : length, 0);
    copy_state(u);
    for (int64_t t = 0; t < length; t++)
        for (int64_t hq = u->h * group; hq < (u->h + 1) * group; hq++) {
            memset(u->sum, 0, sizeof u->sum);
            load_query(u, t, hq);
            add_state(u, 1);
            write_output(u, t, hq);
        }
}

static void run_tokens(unit *u)
{
    int64_t group = u->a->query_heads / u->a->heads;
    for (int64_t t = 0; t < u->a->recent + u->a->length; t++) {
        decay_state(u, expf(gate_of(u, t)));
        add_key(u, t, 1);
        copy_state(u);
        for (int64_t hq = u->h * group; hq < (u->h + 1) * group && t >= u->a->recent; hq++) {
            memset(u->sum, 0, sizeof u->sum);
            load_query(u, t - u->a->recent, hq);
            add_state(u, 1);
            write_output(u, t - u->a->recent, hq);
        }
    }
}

/* S row-major, then z when normalised. */
static void move_state(const unit *u, bool out)
{
    const int64_t *stride = out ? u->a->state_out_stride : u->a->state_in_stride;
    char *base = out ? u->a->state_out : (void *)(uintptr_t)u->a->state_in;
    int64_t at = u->b * stride[0] + u->h * stride[1], size = (int64_t)dtype_size(the_head->state_dtype);
    int dv = the_head->dv, columns = dv + (the_head->normalize != FPA_NORMALIZE_NONE);
    for (int64_t f = 0; f < u->features; f++)
        for (int c = 0; c < columns; c++) {
            char *entry = base + (at + (c < dv ? f * dv + c : u->features * dv + f)) * size;
            if (out)
                dtype_store(the_head->state_dtype, entry, u->state[f * u->columns + c]);
            else
                u->state[f * u->columns + c] = (float)dtype_load(the_head->state_dtype, entry);
        }
}

static void run_unit(unit *u, int form)
{
    const struct fpa_launch *a = u->a;
    int64_t chunk = form == FORM_CHUNKED ? the_facts->chunk : a->length;
    memset(u->state, 0, (size_t)u->features * (size_t)u->columns * sizeof(float));
    if (a->state_in)
        move_state(u, false);
    const bool open = form == FORM_CHUNKED && !the_head->causal;
    if (form == FORM_RECURRENT)
        run_tokens(u);
    if (open)
        run_open(u, chunk);
    for (int64_t first = 0; first < a->length && form != FORM_RECURRENT && !open; first += chunk)
        run_chunk(u, first, first + chunk < a->length ? first + chunk : a->length,
                  a->state_in || form == FORM_CHUNKED);
    if (a->state_out)
        move_state(u, true);
}

static size_t workspace_of(const fpa_module *module, int form, const struct fpa_launch *a,
                           const fpa_candidate *candidate)
{
    (void)module, (void)form, (void)a, (void)candidate;
    return (size_t)the_facts->features * (size_t)(2 * (the_head->dv + 1) + 1) * sizeof(float);
}

static fpa_status run_module(const fpa_module *module, int form, const struct fpa_launch *a,
                             const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    unit *u = calloc(1, sizeof *u);
    (void)module, (void)candidate, (void)stream;
    if (!u)
        return fail_memory(error);
    *u = (unit){.a = a,
                .features = the_facts->features,
                .columns = the_head->dv + 1,
                .type = the_facts->arithmetic,
                .copy = FPA_BF16,
                .exact = form == FORM_RECURRENT,
                .state = a->workspace};
    u->read = u->state + u->features * u->columns;
    u->phi = u->read + u->features * u->columns;
    for (u->b = 0; u->b < a->batch; u->b++)
        for (u->h = 0; u->h < a->heads; u->h++)
            run_unit(u, form);
    free(u);
    return FPA_OK;
}

static const fpa_backend rounded_backend = {.name = "rounded"}; /* in the process's own memory */

fpa_module rounded_module(const fpa_head *head, const fpa_facts *facts, rounded_fault kind)
{
    the_head = head;
    the_facts = facts;
    the_fault = kind;
    return (fpa_module){.backend = &rounded_backend,
                        .decodes_recent = true,
                        .workspace = workspace_of,
                        .forward = run_module};
}

fpa_facts rounded_facts(const fpa_head *head, int forms)
{
    fpa_facts facts = hand_facts(head);
    facts.arithmetic = head->dtype;
    facts.forms &= forms;
    return facts;
}

fpa_status rounded_verify(const fpa_head *head, int forms, rounded_fault kind, fpa_verdict *verdict,
                          fpa_error *error)
{
    fpa_facts facts = rounded_facts(head, forms);
    fpa_module module = rounded_module(head, &facts, kind);
    return verify_module(head, &facts, &module, verdict, error);
}

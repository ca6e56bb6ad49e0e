#include "hand_module.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "claims.h"
#include "hand_lift.h"

/* A test has one module at a time; launches carry no user data. */
static const fpa_head *module_head;
static fault module_fault;
int module_calls, module_unloads;

static double row_of(const fpa_branch *branch, int w, int64_t h, const struct fpa_launch *a, const double *x)
{
    const fpa_matrix *matrix;
    double sum = 0;
    int slot = 0, row = branch->row[w];
    if (branch->source == FPA_INPUT)
        return x[row];
    matrix = &module_head->matrices[branch->source];
    for (int m = 0; m < branch->source; m++)
        slot += module_head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    h = matrix->per_head ? h : 0;
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        return (double)a->weights[slot][h * matrix->cols + row] * x[row];
    for (int c = 0; c < matrix->cols; c++)
        sum += x[c] * (matrix->data ? matrix->data[row * matrix->cols + c]
                                    : (double)a->weights[slot][(h * matrix->rows + row) * matrix->cols + c]);
    return sum;
}

/* phi, feature by feature: the index of a feature is a number whose digits are rows. */
static void features_of(const struct fpa_launch *a, int64_t h, const double *x, bool key, double *phi)
{
    int64_t at = 0;
    for (int t = 0; t < module_head->term_count; t++) {
        const fpa_term *term = &module_head->terms[t];
        int64_t count = 1;
        for (int l = 0; l < term->branch_count; l++)
            count *= term->branches[l].width;
        for (int64_t f = 0; f < count; f++) {
            double product = key ? term->weight.value : 1;
            int64_t rest = f;
            for (int l = term->branch_count - 1; l >= 0; l--) {
                const fpa_branch *branch = &term->branches[l];
                int w = (int)(rest % branch->width);
                rest /= branch->width;
                product *= row_of(branch, w, h, a, x) * (key && branch->gram ? branch->gram[w].value : 1);
            }
            phi[at++] = product;
        }
    }
    if (key && module_fault == FAULT_WEIGHT)
        phi[at / 2] *= 0.5;
}

static void read_vector(const void *from, int64_t at, int width, double scale, double *x)
{
    for (int c = 0; c < width; c++)
        x[c] = scale * dtype_load(module_head->dtype,
                                  (const char *)from + (at + c) * (int64_t)dtype_size(module_head->dtype));
}

static int64_t place(const int64_t stride[3], int64_t b, int64_t t, int64_t h)
{
    return b * stride[0] + t * stride[1] + h * stride[2];
}

enum { MOST_COORDINATES = 512 };

/* The memory of one (batch, key head). */
typedef struct memory {
    int64_t features;
    double *state; /* [features][dv + 1] */
    double *phi;   /* [features] */
    double x[MOST_COORDINATES], v[64];
} memory;

/* The coordinates of a vector, in its place. */
static void lift(const struct fpa_launch *a, fpa_side side, int64_t b, int64_t t, int64_t h, double *x)
{
    double coordinates[MOST_COORDINATES];
    const hand_token token = {module_head, a, module_fault, side, b, t, h, x};
    if (!module_head->lift)
        return;
    assert_true(module_head->d <= MOST_COORDINATES);
    hand_lift(&token, coordinates);
    memcpy(x, coordinates, (size_t)module_head->d * sizeof *x);
}

/* All that a masked key does: its gate. */
static void pass_key(memory *m, double gate)
{
    for (int64_t i = 0; i < m->features * (module_head->dv + 1); i++)
        m->state[i] *= module_fault == FAULT_MASKED_GATE ? 1 : gate;
}

static void add_key(const struct fpa_launch *a, memory *m, int64_t b, int64_t t, int64_t h)
{
    int columns = module_head->dv + 1;
    const bool kept = hand_keeps(a, b, t, module_fault);
    double gate = a->log_gate ? exp((double)a->log_gate[place(a->gate_stride, b, t, h)]) : 1;
    double own = module_fault == FAULT_GATE ? gate : 1;
    if (!kept && module_fault != FAULT_MASKED_VALUE) {
        pass_key(m, gate);
        return;
    }
    read_vector(a->k, place(a->k_stride, b, t, h), head_width(module_head), 1, m->x);
    read_vector(a->v, place(a->v_stride, b, t, h), module_head->dv, 1, m->v);
    m->v[columns - 1] = 1;
    lift(a, FPA_KEY, b, t, h, m->x);
    for (int c = 0; c < module_head->d && !kept; c++)
        m->x[c] = 0;
    features_of(a, h, m->x, true, m->phi);
    for (int64_t f = 0; f < m->features; f++)
        for (int c = 0; c < columns; c++)
            m->state[f * columns + c] = gate * m->state[f * columns + c] + own * m->phi[f] * m->v[c];
}

static double divisor(double den)
{
    const double by_kind[FPA_NORMALIZE_KINDS] = {1, den + module_head->eps, fmax(den, module_head->eps),
                                                 1 + den};
    return by_kind[module_head->normalize];
}

/* The faults of one output. */
static double spoil(const struct fpa_launch *a, int64_t b, int64_t t, int64_t h, int c, double o)
{
    double next[64] = {0};
    switch (module_fault) {
    case FAULT_NAN:
        return t == 6 && c == 0 ? NAN : o;
    case FAULT_NOISE:
        return o * (1 + 4e-6 * sin((double)(1000 * t + 100 * h + c)));
    case FAULT_REPEAT:
        return o * (1 + 1e-6 * (module_calls % 2));
    case FAULT_LATE:
        return t >= 17 ? 1.01 * o : o;
    case FAULT_FUTURE:
        if (t + 1 < a->length)
            read_vector(a->v, place(a->v_stride, b, t + 1, h * a->heads / a->query_heads), module_head->dv, 1,
                        next);
        return o * (1 + 1e-6 * tanh(next[0]));
    default:
        return o;
    }
}

static void write_output(const struct fpa_launch *a, memory *m, int64_t b, int64_t t, int64_t hq)
{
    int dv = module_head->dv;
    int64_t q = place(a->q_stride, b, t, hq), o = place(a->o_stride, b, t, hq);
    size_t element = dtype_size(module_head->dtype);
    double sums[64] = {0};
    if (module_fault == FAULT_UNWRITTEN && t == a->length - 1)
        return;
    if (module_fault == FAULT_STRIDES)
        q = ((b * a->length + t) * a->query_heads + hq) * head_width(module_head);
    read_vector(a->q, q, head_width(module_head), module_head->scale, m->x);
    lift(a, FPA_QUERY, b, a->recent + t, hq * a->heads / a->query_heads, m->x);
    features_of(a, hq * a->heads / a->query_heads, m->x, false, m->phi);
    for (int64_t f = 0; f < m->features; f++)
        for (int c = 0; c <= dv; c++)
            sums[c] += m->phi[f] * m->state[f * (dv + 1) + c];
    for (int c = 0; c < dv; c++)
        dtype_store(module_head->dtype, (char *)a->o + (o + c) * (int64_t)element,
                    spoil(a, b, t, hq, c, sums[c] / divisor(sums[dv])));
    if (module_fault == FAULT_PAST_END && t == a->length - 1)
        dtype_store(module_head->dtype, (char *)a->o + (o + dv) * (int64_t)element, 0);
}

static void query_group(const struct fpa_launch *a, memory *m, int64_t b, int64_t t, int64_t h)
{
    int64_t group = a->query_heads / a->heads;
    for (int64_t i = 0; i < group; i++)
        write_output(a, m, b, t, module_fault == FAULT_GROUP ? i * a->heads + h : h * group + i);
}

/* S row-major, then z when normalised. */
static int64_t state_index(int64_t f, int c)
{
    int dv = module_head->dv;
    return c < dv ? f * dv + c : (int64_t)head_features(module_head) * dv + f;
}

static void move_state(const struct fpa_launch *a, memory *m, int64_t b, int64_t h, bool out)
{
    const int64_t *stride = out ? a->state_out_stride : a->state_in_stride;
    char *base = out ? a->state_out : (void *)(uintptr_t)a->state_in;
    int64_t at = b * stride[0] + h * stride[1], element = (int64_t)dtype_size(module_head->state_dtype);
    int columns = module_head->dv + (module_head->normalize != FPA_NORMALIZE_NONE);
    for (int64_t f = 0; f < m->features; f++)
        for (int c = 0; c < columns; c++) {
            double *value = &m->state[f * (module_head->dv + 1) + c];
            char *entry = base + (at + state_index(f, c)) * element;
            if (!out)
                *value = dtype_load(module_head->state_dtype, entry);
            else if (module_fault != FAULT_STATE_MISSING || f + 1 < m->features || c + 1 < columns)
                dtype_store(module_head->state_dtype, entry, *value);
        }
    if (out && module_fault == FAULT_STATE_PAST_END)
        dtype_store(module_head->state_dtype, base + (at + m->features * columns) * element, 0);
}

static void run_sequence(const struct fpa_launch *a, memory *m, int64_t b, int64_t h)
{
    bool causal = module_head->causal;
    memset(m->state, 0, (size_t)m->features * (size_t)(module_head->dv + 1) * sizeof(double));
    if (a->state_in && !(module_fault == FAULT_STATE_PLACE && a->state_in == a->state_out) &&
        !(module_fault == FAULT_STATE_EMPTY && a->length == 0))
        move_state(a, m, b, h, false);
    for (int64_t t = 0; t < a->recent; t++)
        add_key(a, m, b, t, h);
    for (int64_t t = 0; t < a->length && !causal; t++)
        add_key(a, m, b, t, h);
    for (int64_t t = 0; t < a->length; t++) {
        if (module_fault == FAULT_MASK)
            query_group(a, m, b, t, h);
        if (module_fault == FAULT_STATE_OLD && a->state_out && t == a->length - 1 && a->length > 1) {
            move_state(a, m, b, h, true);
        }
        if (causal)
            add_key(a, m, b, a->recent + t, h);
        if (module_fault != FAULT_MASK)
            query_group(a, m, b, t, h);
    }
    if (a->state_out && !(module_fault == FAULT_STATE_OLD && a->length > 1))
        move_state(a, m, b, h, true);
}

static size_t workspace_of(const fpa_module *module, int form, const struct fpa_launch *a,
                           const fpa_candidate *candidate)
{
    (void)module, (void)form, (void)a, (void)candidate;
    return (size_t)head_features(module_head) * (size_t)(module_head->dv + 2) * sizeof(double);
}

/* error.h's fail(), which cmocka.h hides. */
static fpa_status refuse(fpa_error *error, fpa_status status, const char *where, const char *message)
{
    return (fail)(error, status, where, "%s", message);
}

static fpa_status run_module(const fpa_module *module, int form, const struct fpa_launch *a,
                             const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    memory m = {.features = (int64_t)head_features(module_head), .state = a->workspace};
    fault kept = module_fault;
    (void)module, (void)candidate;
    assert_null(stream);
    assert_int_equal((uintptr_t)a->workspace % 64, 0);
    module_calls++;
    if (module_fault == FAULT_TOO_SMALL)
        return refuse(error, FPA_INVALID, "workspace", "is too small");
    if (module_fault == FAULT_FORM)
        module_fault = form == FORM_CHUNKED ? FAULT_MASK : NO_FAULT;
    m.phi = m.state + m.features * (module_head->dv + 1);
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            run_sequence(a, &m, b, h);
    if (module_fault == FAULT_WORKSPACE)
        ((char *)a->workspace)[a->workspace_size] = 0;
    module_fault = kept;
    return FPA_OK;
}

static void unload_module(fpa_module *module)
{
    module_unloads++;
}

static const fpa_backend test_backend = {.name = "test", .device_type = kDLCPU, .unload = unload_module};

fpa_module hand_module(const fpa_head *head, fault kind)
{
    module_head = head;
    module_fault = kind;
    module_calls = 0;
    return (fpa_module){
        .backend = &test_backend, .decodes_recent = true, .workspace = workspace_of, .forward = run_module};
}

fpa_facts hand_facts(const fpa_head *head)
{
    double features = head_features(head);
    fpa_facts facts = {
        .target = "test", .features = (int64_t)features, .chunk = head->chunk ? head->chunk : 8};

    snprintf(facts.name, sizeof facts.name, "%s", head->name);
    facts.state_elements = facts.features * (head->dv + (head->normalize != FPA_NORMALIZE_NONE));
    facts.forms = 1 << FORM_PARALLEL | 1 << FORM_CHUNKED | (head->causal ? 1 << FORM_RECURRENT : 0);
    for (int form = 0; form < FORMS; form++)
        facts.flop[form] = 4 * features * head->dv;
    return facts;
}

fpa_status hand_verify(const fpa_head *head, fault kind, fpa_verdict *verdict, fpa_error *error)
{
    fpa_module module = hand_module(head, kind);
    fpa_facts facts = hand_facts(head);
    return verify_module(head, &facts, &module, verdict, error);
}

fpa_head *tspow_head(int d, int dv, int block)
{
    fpa_head *head = head_new();
    assert_non_null(head);
    head->name = arena_string(&head->memory, "tspow2");
    head->d = d;
    head->dv = dv;
    head->chunk = 8;
    head->term_count = d / block;
    head->terms = arena_array(&head->memory, (size_t)head->term_count, sizeof *head->terms);
    for (int t = 0; t < head->term_count; t++) {
        fpa_branch *branches = arena_array(&head->memory, 2, sizeof *branches);
        head->terms[t] = (fpa_term){.weight = number_int(1), .branch_count = 2, .branches = branches};
        for (int l = 0; l < 2; l++) {
            branches[l] = (fpa_branch){.kind = FPA_BRANCH_DIAGONAL, .source = FPA_INPUT};
            branches[l].width = l ? d - t * block : block;
            branches[l].row = arena_array(&head->memory, (size_t)branches[l].width, sizeof(int));
            branches[l].gram = arena_array(&head->memory, (size_t)branches[l].width, sizeof(fpa_number));
            for (int w = 0; w < branches[l].width; w++) {
                branches[l].row[w] = t * block + w;
                branches[l].gram[w] = number_int(w < block ? 1 : 2);
            }
        }
    }
    return head;
}

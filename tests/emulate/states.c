#include "states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../hand_lift.h"
#include "base/dtype.h"
#include "base/error.h"
#include "gen/simplify/simplify.h"

/* Features are those of the simplified head, coordinates and gates those of the head as it is written. */
typedef struct states {
    const fpa_head *head;
    fpa_simplified simple;
    int *slot; /* of each of the simplified head's matrices: that of a launch; -1: a constant */
} states;

/* The state of one (batch, key head) on its way. */
typedef struct walk {
    const states *s;
    const struct fpa_launch *a;
    int64_t b, h, features;
    int columns;   /* dv, and one of the normaliser */
    double *state; /* [features][columns] */
    double *phi;   /* [features] */
    double *rows;  /* of a factor: at most as many as it has features */
    double *x, *v; /* a key, its coordinates behind it; a value, and one */
} walk;

static void read_vector(const void *from, const int64_t stride[3], const walk *w, int64_t t, int width,
                        double *x)
{
    const fpa_dtype type = w->s->head->dtype;
    const int64_t at = w->b * stride[0] + t * stride[1] + w->h * stride[2];
    for (int c = 0; c < width; c++)
        x[c] = dtype_load(type, (const char *)from + (size_t)(at + c) * dtype_size(type));
}

static double row_of(const walk *w, const fpa_branch *branch, int row, const double *x)
{
    double sum = 0;
    if (branch->source == FPA_INPUT)
        return x[row];
    const fpa_matrix *matrix = &w->s->simple.head->matrices[branch->source];
    const int slot = w->s->slot[branch->source];
    const int64_t h = matrix->per_head ? w->h : 0;
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        return (double)w->a->weights[slot][h * matrix->cols + row] * x[row];
    for (int c = 0; c < matrix->cols; c++)
        sum += x[c] * (slot < 0 ? matrix->data[row * matrix->cols + c]
                                : (double)w->a->weights[slot][(h * matrix->rows + row) * matrix->cols + c]);
    return sum;
}

/* phi[0 .. count - 1] times each of the branch's rows, whose number is the faster digit. */
static int64_t multiply_rows(walk *w, const fpa_branch *branch, const double *x, int64_t count, double *phi)
{
    for (int r = 0; r < branch->width; r++)
        w->rows[r] = row_of(w, branch, branch->row[r], x) * (branch->gram ? branch->gram[r].value : 1);
    for (int64_t i = count - 1; i >= 0; i--)
        for (int r = branch->width - 1; r >= 0; r--)
            phi[i * branch->width + r] = phi[i] * w->rows[r];
    return count * branch->width;
}

static void make_features(walk *w, const double *x)
{
    const fpa_head *head = w->s->simple.head;
    double *phi = w->phi;
    for (int t = 0; t < head->term_count; t++) {
        int64_t count = 1;
        *phi = head->terms[t].weight.value;
        for (int l = 0; l < head->terms[t].branch_count; l++)
            count = multiply_rows(w, &head->terms[t].branches[l], x, count, phi);
        phi += count;
    }
}

/* Its coordinates, behind it where the head makes some. */
static const double *lifted(const walk *w, int64_t t)
{
    const fpa_head *head = w->s->head;
    if (!head->lift)
        return w->x;
    double *coordinates = w->x + head->lift->width;
    hand_lift(&(hand_token){head, w->a, NO_FAULT, FPA_KEY, w->b, t, w->h, w->x}, coordinates);
    return coordinates;
}

static void add_key(walk *w, int64_t t)
{
    const struct fpa_launch *a = w->a;
    const int64_t gate = w->b * a->gate_stride[0] + t * a->gate_stride[1] + w->h * a->gate_stride[2];
    const double fade = a->log_gate ? exp((double)a->log_gate[gate]) : 1;
    const bool kept = hand_keeps(a, w->b, t, NO_FAULT);
    memset(w->phi, 0, (size_t)w->features * sizeof *w->phi);
    if (kept) {
        read_vector(a->k, a->k_stride, w, t, head_width(w->s->head), w->x);
        make_features(w, lifted(w, t));
    }
    read_vector(a->v, a->v_stride, w, t, w->s->head->dv, w->v);
    for (int64_t f = 0; f < w->features; f++)
        for (int c = 0; c < w->columns; c++)
            w->state[f * w->columns + c] =
                fade * w->state[f * w->columns + c] + (kept ? w->phi[f] * w->v[c] : 0);
}

/* S row-major, then z when normalised. */
static void write_state(const walk *w)
{
    const struct fpa_launch *a = w->a;
    const fpa_dtype type = w->s->head->state_dtype;
    const int dv = w->s->head->dv;
    const int64_t at = w->b * a->state_out_stride[0] + w->h * a->state_out_stride[1];
    for (int64_t f = 0; f < w->features; f++)
        for (int c = 0; c < w->columns; c++) {
            const int64_t place = c < dv ? f * dv + c : w->features * dv + f;
            dtype_store(type, (char *)a->state_out + (size_t)(at + place) * dtype_size(type),
                        w->state[f * w->columns + c]);
        }
}

static int columns_of(const fpa_head *head)
{
    return head->dv + (head->normalize != FPA_NORMALIZE_NONE);
}

static int64_t features_of(const fpa_module *module)
{
    return (int64_t)head_features(((const states *)module->handle)->simple.head);
}

/* Doubles behind each other, as a walk has them. */
static size_t workspace_of(const fpa_module *module, int form, const struct fpa_launch *a,
                           const fpa_candidate *candidate)
{
    const fpa_head *head = ((const states *)module->handle)->head;
    (void)form, (void)a, (void)candidate;
    return ((size_t)features_of(module) * (size_t)(columns_of(head) + 2) + (size_t)head_width(head) +
            (size_t)head->d + (size_t)head->dv + 1) *
           sizeof(double);
}

static fpa_status run(const fpa_module *module, int form, const struct fpa_launch *a,
                      const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    const states *s = module->handle;
    walk w = {.s = s, .a = a, .features = features_of(module), .columns = columns_of(s->head)};
    (void)form, (void)candidate, (void)stream;
    if (a->state_in || a->cu_seqlens || a->recent || a->state_out_index)
        return fail(error, FPA_INVALID, s->head->name, "tests/emulate/states.c makes states of keys alone");
    w.state = a->workspace;
    w.phi = w.state + w.features * w.columns;
    w.rows = w.phi + w.features;
    w.v = w.rows + w.features;
    w.x = w.v + s->head->dv + 1;
    w.v[s->head->dv] = 1;
    for (w.b = 0; w.b < a->batch; w.b++)
        for (w.h = 0; w.h < a->heads; w.h++) {
            memset(w.state, 0, (size_t)(w.features * w.columns) * sizeof *w.state);
            for (int64_t t = 0; t < a->length; t++)
                add_key(&w, t);
            write_state(&w);
        }
    return FPA_OK;
}

/* By names, which both heads have in common. */
static int slot_of(const fpa_head *written, const fpa_matrix *matrix)
{
    int slot = 0;
    for (int i = 0; i < written->matrix_count && matrix->kind != FPA_MATRIX_CONSTANT; i++) {
        if (written->matrices[i].name && strcmp(written->matrices[i].name, matrix->name) == 0)
            return slot;
        slot += written->matrices[i].kind != FPA_MATRIX_CONSTANT;
    }
    return -1;
}

fpa_status states_open(const fpa_head *head, fpa_module *module, fpa_error *error)
{
    static const fpa_backend backend = {.name = "states"}; /* in the process's own memory */
    states *s = calloc(1, sizeof *s);
    if (!s)
        return fail_memory(error);
    s->head = head;
    fpa_status status = simplify(head, &s->simple, error);
    if (!status)
        s->slot = calloc((size_t)s->simple.head->matrix_count + 1, sizeof *s->slot);
    if (!status && !s->slot)
        status = fail_memory(error);
    *module = (fpa_module){.backend = &backend, .handle = s, .workspace = workspace_of, .forward = run};
    if (status)
        states_close(module);
    for (int i = 0; !status && i < s->simple.head->matrix_count; i++)
        s->slot[i] = slot_of(head, &s->simple.head->matrices[i]);
    return status;
}

void states_close(fpa_module *module)
{
    states *s = module->handle;
    if (!s)
        return;
    simplified_free(&s->simple);
    free(s->slot);
    free(s);
    *module = (fpa_module){0};
}

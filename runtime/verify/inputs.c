/* inputs: draws a trial's inputs from a seed. */
#include "inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/splitmix.h"
#include "head/lift.h"

static double uniform(uint64_t *state)
{
    return ((double)(splitmix_bits(state) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

static bool are_positive(const fpa_trial *t)
{
    return t->shape.inputs == INPUTS_POSITIVE || t->shape.inputs == INPUTS_SLOW_POSITIVE;
}

static double entry(const fpa_trial *t, double deviation, uint64_t *state)
{
    double value = deviation * normal(state);
    return dtype_round(t->head->dtype, are_positive(t) ? fabs(value) : value);
}

/* Zeroes all but degree + 1 coordinates of a token. Which ones remain depends on the token, not on the head, so that queries and keys
 * have common ones. Over many tokens every pair of coordinates occurs. */
static void thin(const fpa_trial *t, int64_t token, double *x)
{
    int d = head_width(t->head), kept = head_degree(t->head) + 1;
    uint64_t state = 77 + (uint64_t)token;
    for (int c = 0, left = d; c < d; c++, left--) {
        if (splitmix_bits(&state) % (uint64_t)left < (uint64_t)kept)
            kept--;
        else
            x[c] = 0;
    }
}

static bool has_coordinate(const fpa_head *head, int coordinate)
{
    for (int t = 0; t < head->term_count; t++)
        for (int b = 0; b < head->terms[t].branch_count; b++)
            for (int w = 0; w < head->terms[t].branches[b].width; w++)
                if (head->terms[t].branches[b].row[w] == coordinate)
                    return true;
    return false;
}

/* Zeroes coordinates that no branch reads, for heads that require this. */
static void clear(const fpa_trial *t, double *x)
{
    const fpa_head *head = t->head;
    for (int c = 0; c < head->d; c++)
        if (!has_coordinate(head, c))
            x[c] = 0;
}

static double *draw_vectors(const fpa_trial *t, int64_t heads, int width, double deviation, bool key,
                            uint64_t *state)
{
    int64_t tokens = t->shape.batch * t->shape.length * heads;
    double *x = calloc((size_t)(tokens * width) + 1, sizeof *x);
    for (int64_t i = 0; x && i < tokens * width; i++)
        x[i] = entry(t, deviation, state);
    for (int64_t i = 0; x && key && t->shape.inputs == INPUTS_SPARSE && i < tokens; i++)
        thin(t, i / heads % t->shape.length, x + i * width);
    for (int64_t i = 0; x && key && t->head->zeros && i < tokens; i++)
        clear(t, x + i * width);
    return x;
}

/* Log-gates: from -0.5 to 0, an eighth of them exactly 0, so that a chunk has next to no effect two chunks later.
 * Slow: from -1/64 to 0, so that much of it remains. Extreme: some gates erase the past entirely or nearly, and
 * products of a few gates, or a single one, are outside the range of f32. */
static double *draw_gate(const fpa_trial *t, uint64_t *state)
{
    const bool slow = t->shape.inputs == INPUTS_SLOW_GATE || t->shape.inputs == INPUTS_SLOW_POSITIVE;
    const double step = slow ? -1.0 / 64 : -0.5;
    int64_t count = t->shape.batch * t->shape.length * t->shape.heads;
    double *gate = calloc((size_t)count + 1, sizeof *gate);
    for (int64_t i = 0; gate && i < count; i++) {
        uint64_t kind = splitmix_bits(state);
        gate[i] = kind % 8 ? (double)(float)(step * uniform(state)) : 0;
        if (t->shape.inputs == INPUTS_EXTREME_GATE && kind % 32 == 1)
            gate[i] = -1e4;
        if (t->shape.inputs == INPUTS_EXTREME_GATE && kind % 16 == 9)
            gate[i] = -40;
    }
    return gate;
}

/* The use of a matrix: a projection, or part of a function of the position. */
typedef enum fpa_role { PROJECTION, ANGLE, PHASE, AMPLITUDE } fpa_role;

static fpa_role role_of(const fpa_head *head, int m)
{
    fpa_role found = PROJECTION;
    for (int i = 0; head->lift && i < head->lift->part_count; i++) {
        const fpa_lift_part *part = &head->lift->parts[i];
        found = part->angle == m       ? ANGLE
                : part->phase == m     ? PHASE
                : part->amplitude == m ? AMPLITUDE
                                       : found;
    }
    return found;
}

/* Positive inputs keep a normaliser from zero: a function of the position is then near its amplitude, which is positive, for most
 * distances. */
static double draw_entry(const fpa_trial *t, fpa_role role, double deviation, uint64_t *state)
{
    const bool positive = are_positive(t);
    const double value = normal(state);
    switch (role) {
    case ANGLE:
        return positive ? value / (2 * (double)(t->shape.length + 1)) : value;
    case PHASE:
        return positive ? value / 4 : 2 * value;
    case AMPLITUDE:
        return positive ? 0.25 + fabs(value) : value;
    default:
        return deviation * value;
    }
}

/* Draws a matrix with which a branch's dot is near 1: entries of deviation (d rows)^(-1/4), diagonals of 1. */
static fpa_status draw_matrix(fpa_trial *t, int m, int slot, uint64_t *state, fpa_error *error)
{
    const fpa_matrix *shape = &t->head->matrices[m];
    bool diagonal = shape->kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
    double deviation = diagonal ? 1 : pow((double)shape->cols * shape->rows, -0.25);
    size_t count = (size_t)shape->cols * (size_t)(diagonal ? 1 : shape->rows) *
                   (size_t)(shape->per_head ? t->shape.heads : 1);
    const fpa_role role = role_of(t->head, m);
    float *single = calloc(count, sizeof *single);
    t->launch_weights[slot] = single;
    t->weights[m] = calloc(count, sizeof **t->weights);
    if (!single || !t->weights[m])
        return fail_memory(error);
    for (size_t i = 0; i < count; i++) {
        single[i] = (float)draw_entry(t, role, deviation, state);
        t->weights[m][i] = single[i];
    }
    return FPA_OK;
}

static fpa_status draw_weights(fpa_trial *t, uint64_t *state, fpa_error *error)
{
    size_t count = (size_t)t->head->matrix_count + 1;
    int slot = 0;
    fpa_status status = FPA_OK;
    t->weights = calloc(count, sizeof *t->weights);
    t->launch_weights = calloc(count, sizeof *t->launch_weights);
    if (!t->weights || !t->launch_weights)
        return fail_memory(error);
    for (int m = 0; m < t->head->matrix_count && status == FPA_OK; m++)
        if (t->head->matrices[m].kind != FPA_MATRIX_CONSTANT)
            status = draw_matrix(t, m, slot++, state, error);
    return status;
}

/* The divisor of queries, so that scores are near 1 if the scale is like that of common widths. Extreme scales compensate for a weight,
 * and the trials of one layout use inputs as callers have them: no divisor. */
static double query_divisor(const fpa_trial *t)
{
    const double scale = fabs(t->head->scale);
    return scale > 0x1p-20 && scale < 0x1p20 && t->shape.layout != LAYOUT_HEAD_MAJOR ? scale : 1;
}

/* Zeroes the query of one token, as for padding: all of its scores may be zero, and the divisor eps alone. */
static void clear_query(fpa_trial *t)
{
    const size_t vector = (size_t)t->shape.query_heads * (size_t)head_width(t->head);
    if (t->shape.inputs == INPUTS_SPARSE && t->head->normalize != FPA_NORMALIZE_NONE && t->head->eps > 0)
        memset(t->q + (size_t)t->shape.length / 2 * vector, 0, vector * sizeof *t->q);
}

/* The factor of queries. For large inputs the largest exponents are beyond the range of exponentials. */
static double query_factor(const fpa_trial *t)
{
    return t->shape.inputs == INPUTS_LARGE ? 64 : 1;
}

fpa_status inputs_draw(fpa_trial *t, uint64_t seed, fpa_error *error)
{
    const fpa_head *head = t->head;
    uint64_t state = seed;
    /* q.k is near 1 when entries have deviation d^(-1/4); fewer entries are larger */
    const int width = head_width(head);
    double present = t->shape.inputs == INPUTS_SPARSE ? fmin(width, head_degree(head) + 1) : width;
    double deviation = pow(present, -0.25);
    t->q = draw_vectors(t, t->shape.query_heads, width, query_factor(t) * deviation / query_divisor(t), true,
                        &state);
    t->k = draw_vectors(t, t->shape.heads, width, deviation, true, &state);
    t->v = draw_vectors(t, t->shape.heads, head->dv, 1, false, &state);
    if (head->gate)
        t->gate = draw_gate(t, &state);
    if (!t->q || !t->k || !t->v || (head->gate && !t->gate))
        return fail_memory(error);
    clear_query(t);
    return draw_weights(t, &state, error);
}

void inputs_free(fpa_trial *t)
{
    for (int m = 0; t->head && m < t->head->matrix_count; m++) {
        if (t->weights)
            free(t->weights[m]);
        if (t->launch_weights)
            free((void *)(uintptr_t)t->launch_weights[m]);
    }
    free(t->weights);
    free(t->launch_weights);
    free(t->q);
    free(t->k);
    free(t->v);
    free(t->gate);
}

#include "hand_lift.h"

#include <complex.h>

static double entry(const hand_token *x, int m, int r, int c)
{
    const fpa_matrix *matrix = &x->head->matrices[m];
    const int64_t h = matrix->per_head ? x->h : 0;
    int slot = 0;
    for (int i = 0; i < m; i++)
        slot += x->head->matrices[i].kind != FPA_MATRIX_CONSTANT;
    if (matrix->kind == FPA_MATRIX_CONSTANT)
        return matrix
            ->data[((x->kind == FAULT_CONSTANT_HEADS ? 0 : h) * matrix->rows + r) * matrix->cols + c];
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        return r == c ? (double)x->launch->weights[slot][h * matrix->cols + c] : 0;
    return (double)x->launch->weights[slot][(h * matrix->rows + r) * matrix->cols + c];
}

static double row(const hand_token *x, int m, int r)
{
    double sum = 0;
    for (int c = 0; c < x->head->lift->width; c++)
        sum += entry(x, m, r, c) * x->x[c];
    return lift_has_constants(x->head->lift, &x->head->matrices[m])
               ? sum + entry(x, m, r, x->head->lift->width)
               : sum;
}

static double complex product(const hand_token *x, const fpa_lift_part *part, int r)
{
    double complex y = 1;
    for (int f = 0; f < part->factor_count; f++) {
        const fpa_lift_factor *factor = &part->factors[f];
        y *= factor->source == FPA_INPUT ? x->x[factor->row[r]]
             : part->is_complex          ? row(x, factor->source, r) + I * row(x, factor->imaginary, r)
                                         : row(x, factor->source, r);
    }
    return y;
}

static double position(const hand_token *x, int number)
{
    const struct fpa_launch *a = x->launch;
    int64_t t = x->t - (x->kind == FAULT_RECENT_POSITION && x->side == FPA_QUERY ? a->recent : 0);
    if (x->kind == FAULT_FUTURE_POSITION && t + 1 < a->recent + a->length && x->side == FPA_QUERY)
        t++;
    const int64_t stride = x->kind == FAULT_POSITION_STRIDE ? 1 : a->position_stride[2];
    const double value =
        (double)a->positions[x->b * a->position_stride[0] + t * a->position_stride[1] + number * stride];
    return x->kind == FAULT_POSITION ? (double)x->t : value;
}

static double phase(const hand_token *x, const fpa_lift_part *part, int r)
{
    double sum = 0;
    for (int p = 0; p < x->head->lift->positions; p++) {
        const double more = entry(x, part->angle, r, p) * position(x, p);
        sum = x->kind == FAULT_PHASE ? (double)((float)sum + (float)more) : sum + more;
    }
    return x->side == FPA_QUERY && part->phase != FPA_NO_MATRIX ? sum + entry(x, part->phase, r, 0) : sum;
}

static double amplitude(const hand_token *x, const fpa_lift_part *part, int r)
{
    const bool has = x->side == FPA_QUERY || x->kind == FAULT_AMPLITUDE;
    return has && part->amplitude != FPA_NO_MATRIX ? entry(x, part->amplitude, r, 0) : 1;
}

/* A coordinate without its position; of a complex part two. */
static double complex mapped(const hand_token *x, const fpa_lift_part *part, int r)
{
    const double complex y = product(x, part, r);
    const fpa_side side = x->kind == FAULT_MAP ? FPA_QUERY : x->side;
    double norm = 0;
    if (part->is_complex)
        return part->gain[x->side] * (x->kind == FAULT_CONJUGATE && x->side == FPA_KEY ? conj(y) : y);
    for (int c = 0; c < x->head->lift->width; c++)
        norm += x->x[c] * x->x[c];
    return part->gain[x->side] *
           lift_map(part->map[side], part->inner * creal(y) - part->square * norm - part->shift);
}

void hand_lift(const hand_token *x, double *u)
{
    for (int i = 0; i < x->head->lift->part_count; u += lift_coordinates(&x->head->lift->parts[i++])) {
        const fpa_lift_part *part = &x->head->lift->parts[i];
        for (int r = 0; r < part->rows; r++) {
            double complex y = mapped(x, part, r);
            if (part->angle != FPA_NO_MATRIX)
                y *= amplitude(x, part, r) * cexp(I * phase(x, part, r));
            u[r] = creal(y);
            if (lift_coordinates(part) > part->rows)
                u[part->rows + r] = cimag(y);
        }
    }
}

bool hand_keeps(const struct fpa_launch *a, int64_t b, int64_t t, fault kind)
{
    if (!a->key_mask || kind == FAULT_NO_KEY_MASK)
        return true;
    const unsigned char byte = a->key_mask[b * a->key_mask_stride[0] + t * a->key_mask_stride[1]];
    return kind == FAULT_MASK_BIT ? byte & 1 : byte != 0;
}

#include "lift.h"

#include <math.h>

#include "round.h"

static const double turn = 6.283185307179586;

bool problem_keeps(const fpa_problem *problem, int64_t b, int64_t j)
{
    return !problem->key_mask || problem->key_mask[b * problem->length + j];
}

fpa_lift_token lift_token(const fpa_problem *problem, int64_t b, int64_t t, int64_t head, fpa_side side,
                          const double *x)
{
    const int numbers = problem->head->lift ? problem->head->lift->positions : 0;
    return (fpa_lift_token){
        .problem = problem,
        .head = head,
        .side = side,
        .x = x,
        .position = numbers ? problem->positions + (b * problem->length + t) * numbers : NULL,
    };
}

const double *lift_entries(const fpa_lift_token *token, int matrix)
{
    const fpa_matrix *m = &token->problem->head->matrices[matrix];
    const bool diagonal = m->kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
    const int64_t size = (int64_t)(diagonal ? 1 : m->rows) * m->cols;
    const double *all = m->kind == FPA_MATRIX_CONSTANT ? m->data : token->problem->weights[matrix];
    return all + (m->per_head ? token->head * size : 0);
}

static bool is_diagonal(const fpa_lift_token *token, int matrix)
{
    return token->problem->head->matrices[matrix].kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
}

double lift_phase(const fpa_lift_token *token, const fpa_lift_part *part, int r)
{
    const int numbers = token->problem->head->lift->positions;
    const double *angle = lift_entries(token, part->angle) + (int64_t)r * numbers;
    double sum = 0;
    for (int p = 0; p < numbers; p++)
        sum += angle[p] * token->position[p];
    return token->side == FPA_QUERY && part->phase != FPA_NO_MATRIX
               ? sum + lift_entries(token, part->phase)[r]
               : sum;
}

double lift_amplitude(const fpa_lift_token *token, const fpa_lift_part *part, int r)
{
    const bool has = token->side == FPA_QUERY && part->amplitude != FPA_NO_MATRIX;
    return has ? lift_entries(token, part->amplitude)[r] : 1;
}

static double scale_of(const fpa_lift_token *token)
{
    return token->side == FPA_QUERY ? token->problem->head->scale : 1;
}

/* ---- in double ---- */

/* A real or complex number, and the magnitude to which its rounding error is relative. */
typedef struct sized {
    double re, im, size;
} sized;

/* Row r of a matrix times x, with the constant if there is one. */
static sized project(const fpa_lift_token *token, const double *x, int matrix, int r)
{
    const int cols = token->problem->head->matrices[matrix].cols;
    const double *row = lift_entries(token, matrix);
    double sum = 0, squares = 0;
    if (is_diagonal(token, matrix)) {
        sum = row[r] * x[r];
        return (sized){sum, 0, fabs(sum)};
    }
    row += (int64_t)r * cols;
    for (int c = 0; c < cols; c++) {
        sum += row[c] * x[c];
        squares += row[c] * x[c] * row[c] * x[c];
    }
    return (sized){sum, 0, fmax(fabs(sum), sqrt(squares))};
}

static sized factor_of(const fpa_lift_token *token, const double *x, const fpa_lift_factor *factor, int r)
{
    if (factor->source == FPA_INPUT)
        return (sized){x[factor->row[r]], 0, fabs(x[factor->row[r]])};
    sized y = project(token, x, factor->source, r);
    if (factor->imaginary != FPA_NO_MATRIX) {
        const sized imaginary = project(token, x, factor->imaginary, r);
        y.im = imaginary.re;
        y.size = hypot(y.size, imaginary.size);
    }
    return y;
}

static sized product_of(const fpa_lift_token *token, const double *x, const fpa_lift_part *part, int r)
{
    sized y = {1, 0, 1};
    for (int f = 0; f < part->factor_count; f++) {
        const sized factor = factor_of(token, x, &part->factors[f], r);
        y = (sized){y.re * factor.re - y.im * factor.im, y.re * factor.im + y.im * factor.re,
                    y.size * factor.size};
    }
    return y;
}

double lift_slope_near(fpa_map map, double y, double size)
{
    return map == FPA_MAP_RELU && fabs(y) <= 0x1p-12 * size ? 1 : fabs(lift_map_slope(map, y));
}

/* The gain times the map of a product. */
static sized mapped(const fpa_lift_token *token, const fpa_lift_part *part, sized y, double norm)
{
    const fpa_map map = part->map[token->side];
    const double gain = part->gain[token->side];
    const double argument = part->inner * y.re - part->square * norm - part->shift;
    const double size = fabs(part->inner) * y.size + fabs(part->square) * norm + fabs(part->shift);
    const double value = lift_map(map, argument);
    const double slope = lift_slope_near(map, argument, size);
    return (sized){gain * value, 0, fabs(gain) * fmax(fabs(value), slope > 0 ? slope * size : 0)};
}

static void exact_part(const fpa_lift_token *token, const double *x, double norm, const fpa_lift_part *part,
                       double *value, double *size)
{
    for (int r = 0; r < part->rows; r++) {
        sized y = product_of(token, x, part, r);
        if (part->is_complex) {
            const double gain = part->gain[token->side];
            y = (sized){gain * y.re, gain * y.im, fabs(gain) * y.size};
        } else {
            y = mapped(token, part, y, norm);
        }
        if (part->angle != FPA_NO_MATRIX) {
            const double phase = lift_phase(token, part, r), u = y.re * lift_amplitude(token, part, r);
            y = (sized){u * cos(phase), u * sin(phase), y.size * fabs(lift_amplitude(token, part, r))};
        }
        value[r] = y.re;
        size[r] = y.size;
        if (lift_coordinates(part) == part->rows)
            continue;
        value[part->rows + r] = y.im;
        size[part->rows + r] = y.size;
    }
}

void lift_exact(const fpa_lift_token *token, double *value, double *size)
{
    const fpa_lift *lift = token->problem->head->lift;
    double x[HEAD_MAX_WIDTH + 1], norm = 0; /* x, then 1, which is multiplied by constants */
    for (int c = 0; c < lift->width; c++) {
        x[c] = scale_of(token) * token->x[c];
        norm += x[c] * x[c];
    }
    x[lift->width] = 1;
    for (int i = 0, at = 0; i < lift->part_count; at += lift_coordinates(&lift->parts[i++]))
        exact_part(token, x, norm, &lift->parts[i], value + at, size + at);
}

/* ---- in float ---- */

typedef struct rounded {
    float re, im;
} rounded;

static float plain_project(const fpa_lift_token *token, const float *x, int matrix, int r)
{
    const int cols = token->problem->head->matrices[matrix].cols;
    const double *row = lift_entries(token, matrix);
    float sum = 0;
    if (is_diagonal(token, matrix))
        return (float)row[r] * x[r];
    row += (int64_t)r * cols;
    for (int c = 0; c < cols; c++)
        sum += (float)row[c] * x[c];
    return sum;
}

static rounded plain_product(const fpa_lift_token *token, const float *x, const fpa_lift_part *part, int r)
{
    rounded y = {1, 0};
    for (int f = 0; f < part->factor_count; f++) {
        const fpa_lift_factor *factor = &part->factors[f];
        const float re =
            factor->source == FPA_INPUT ? x[factor->row[r]] : plain_project(token, x, factor->source, r);
        const float im =
            factor->imaginary == FPA_NO_MATRIX ? 0 : plain_project(token, x, factor->imaginary, r);
        y = (rounded){y.re * re - y.im * im, y.re * im + y.im * re};
    }
    return y;
}

static float plain_map(fpa_map map, float y)
{
    switch (map) {
    case FPA_MAP_RELU:
        return fmaxf(y, 0);
    case FPA_MAP_ELU_PLUS_ONE:
        return y > 0 ? y + 1 : expf(y);
    case FPA_MAP_SOFTPLUS:
        return fmaxf(y, 0) + log1pf(expf(-fabsf(y)));
    case FPA_MAP_EXP:
        return expf(y);
    case FPA_MAP_SILU:
        return y / (1 + expf(-y));
    case FPA_MAP_ONE:
        return 1;
    default:
        return y;
    }
}

/* u times the cosine and sine of the angle. */
static rounded plain_turn(const fpa_lift_token *token, const fpa_lift_part *part, int r, float u)
{
    const double phase = lift_phase(token, part, r);
    const float reduced = (float)(phase - turn * rint(phase / turn));
    u *= (float)lift_amplitude(token, part, r);
    return (rounded){u * cosf(reduced), u * sinf(reduced)};
}

static void plain_part(const fpa_lift_token *token, const float *x, float norm, const fpa_lift_part *part,
                       float *value)
{
    const float gain = (float)part->gain[token->side];
    for (int r = 0; r < part->rows; r++) {
        rounded y = plain_product(token, x, part, r);
        if (!part->is_complex)
            y.re = plain_map(part->map[token->side],
                             (float)part->inner * y.re - (float)part->square * norm - (float)part->shift);
        y = (rounded){gain * y.re, gain * y.im};
        if (part->angle != FPA_NO_MATRIX)
            y = plain_turn(token, part, r, y.re);
        value[r] = y.re;
        if (lift_coordinates(part) > part->rows)
            value[part->rows + r] = y.im;
    }
}

void lift_plain(const fpa_lift_token *token, float *value)
{
    const fpa_lift *lift = token->problem->head->lift;
    float x[HEAD_MAX_WIDTH + 1], norm = 0;
    for (int c = 0; c < lift->width; c++) {
        x[c] = (float)scale_of(token) * (float)token->x[c];
        norm += x[c] * x[c];
    }
    x[lift->width] = 1;
    for (int i = 0, at = 0; i < lift->part_count; at += lift_coordinates(&lift->parts[i++]))
        plain_part(token, x, norm, &lift->parts[i], value + at);
    round_floats(token->problem->coordinates, value, token->problem->head->d);
}

double lift_work(const fpa_head *head)
{
    /* operations of a product with its magnitude; of a map; of cosine and sine */
    enum { PRODUCT = 3, MAP = 30, POSITION = 60 };
    double work = 0;
    for (int i = 0; head->lift && i < head->lift->part_count; i++) {
        const fpa_lift_part *part = &head->lift->parts[i];
        double row = MAP + (part->angle == FPA_NO_MATRIX ? 0 : POSITION + 2 * head->lift->positions);
        for (int f = 0; f < part->factor_count; f++)
            if (part->factors[f].source != FPA_INPUT &&
                head->matrices[part->factors[f].source].kind != FPA_MATRIX_TRAINABLE_DIAGONAL)
                row += (part->is_complex ? 2 : 1) * PRODUCT * head->matrices[part->factors[f].source].cols;
        work += part->rows * row;
    }
    return work;
}

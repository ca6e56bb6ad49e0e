#include "lift.h"

#include <math.h>

static const char *const names[FPA_MAPS] = {"identity", "relu", "elu_plus_one", "softplus",
                                            "exp",      "silu", "one"};

const char *map_name(fpa_map map)
{
    return (unsigned)map < FPA_MAPS ? names[map] : "?";
}

int lift_coordinates(const fpa_lift_part *part)
{
    return part->is_complex || part->angle != FPA_NO_MATRIX ? 2 * part->rows : part->rows;
}

bool lift_has_constants(const fpa_lift *lift, const fpa_matrix *matrix)
{
    return matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL && matrix->cols == lift->width + 1;
}

int lift_heads(const fpa_head *head)
{
    for (int m = 0; m < head->matrix_count; m++)
        if (head->matrices[m].heads)
            return head->matrices[m].heads;
    return 0;
}

bool lift_maps_only(const fpa_lift *lift)
{
    const fpa_lift_part *part = lift->parts;
    if (lift->part_count != 1 || lift->key_mask || part->rows != lift->width || part->factor_count != 1 ||
        part->factors->source != FPA_INPUT || part->is_complex || part->square != 0 || part->angle >= 0)
        return false;
    for (int r = 0; r < part->rows; r++)
        if (part->factors->row[r] != r)
            return false;
    return true;
}

double lift_map(fpa_map map, double y)
{
    switch (map) {
    case FPA_MAP_RELU:
        return y > 0 ? y : 0;
    case FPA_MAP_ELU_PLUS_ONE:
        return y > 0 ? y + 1 : exp(y);
    case FPA_MAP_SOFTPLUS:
        return fmax(y, 0) + log1p(exp(-fabs(y)));
    case FPA_MAP_EXP:
        return exp(y);
    case FPA_MAP_SILU:
        return y / (1 + exp(-y));
    case FPA_MAP_ONE:
        return 1;
    default:
        return y;
    }
}

double lift_map_slope(fpa_map map, double y)
{
    const double logistic = 1 / (1 + exp(-y));
    switch (map) {
    case FPA_MAP_RELU:
        return y > 0;
    case FPA_MAP_ELU_PLUS_ONE:
        return y > 0 ? 1 : exp(y);
    case FPA_MAP_SOFTPLUS:
        return logistic;
    case FPA_MAP_EXP:
        return exp(y);
    case FPA_MAP_SILU:
        return logistic * (1 + y * (1 - logistic));
    case FPA_MAP_ONE:
        return 0;
    default:
        return 1;
    }
}

double lift_map_bend(fpa_map map, double y)
{
    switch (map) {
    case FPA_MAP_ELU_PLUS_ONE:
        return exp(fmin(y, 0));
    case FPA_MAP_SOFTPLUS:
        return 0.25;
    case FPA_MAP_EXP:
        return exp(y);
    case FPA_MAP_SILU:
        return 0.5;
    default:
        return 0;
    }
}

/* ---- rules ---- */

static const char *place(const fpa_head *head)
{
    return head->origin ? head->origin : head->name;
}

/* A matrix of a part, by its number in head->matrices. */
static fpa_status check_matrix(const fpa_head *head, int part, const char *what, int matrix, int rows,
                               int cols, fpa_error *error)
{
    if (matrix < 0 || matrix >= head->matrix_count)
        return fail(error, FPA_INVALID, place(head),
                    "the %s of part %d is matrix %d, but the head has %d matrices", what, part, matrix + 1,
                    head->matrix_count);
    const fpa_matrix *m = &head->matrices[matrix];
    if (m->rows != rows || m->cols != cols)
        return fail(error, FPA_INVALID, place(head), "the %s of part %d is %d x %d, but %d x %d is needed",
                    what, part, m->rows, m->cols, rows, cols);
    return FPA_OK;
}

/* The matrix of a factor, which may have one more column, of constants. */
static fpa_status check_projection(const fpa_head *head, int part, int matrix, int rows, fpa_error *error)
{
    const fpa_lift *lift = head->lift;
    const bool more =
        matrix >= 0 && matrix < head->matrix_count && lift_has_constants(lift, &head->matrices[matrix]);
    return check_matrix(head, part, "projection", matrix, rows, lift->width + more, error);
}

static fpa_status check_rows(const fpa_head *head, int part, const fpa_lift_factor *factor, int rows,
                             fpa_error *error)
{
    if (!factor->row)
        return fail(error, FPA_INVALID, place(head), "a factor of part %d has no rows", part);
    for (int r = 0; r < rows; r++)
        if (factor->row[r] < 0 || factor->row[r] >= head->lift->width)
            return fail(error, FPA_INVALID, place(head), "part %d reads coordinate %d, but q and k have %d",
                        part, factor->row[r] + 1, head->lift->width);
    return FPA_OK;
}

static fpa_status check_factor(const fpa_head *head, int number, const fpa_lift_part *part,
                               const fpa_lift_factor *factor, fpa_error *error)
{
    if (part->is_complex != (factor->imaginary != FPA_NO_MATRIX) || (part->is_complex && factor->source < 0))
        return fail(error, FPA_INVALID, place(head),
                    "a factor of part %d: complex parts have two matrices a factor, others one", number);
    if (factor->source == FPA_INPUT)
        return check_rows(head, number, factor, part->rows, error);
    fpa_status status = check_projection(head, number, factor->source, part->rows, error);
    if (!status && part->is_complex)
        status = check_projection(head, number, factor->imaginary, part->rows, error);
    if (!status && part->is_complex &&
        head->matrices[factor->source].cols != head->matrices[factor->imaginary].cols)
        return fail(error, FPA_INVALID, place(head),
                    "a factor of part %d has constants in one of its two matrices only", number);
    return status;
}

static bool is_plain(const fpa_lift_part *part)
{
    return part->map[FPA_QUERY] == FPA_MAP_IDENTITY && part->map[FPA_KEY] == FPA_MAP_IDENTITY &&
           part->inner == 1 && part->square == 0 && part->shift == 0;
}

static fpa_status check_numbers(const fpa_head *head, int number, const fpa_lift_part *part, fpa_error *error)
{
    const double list[] = {part->inner, part->square, part->shift, part->gain[0], part->gain[1]};
    for (int i = 0; i < 5; i++)
        if (!isfinite(list[i]))
            return fail(error, FPA_INVALID, place(head),
                        "part %d has a factor or shift of %g, but it must be finite", number, list[i]);
    for (int side = 0; side < FPA_SIDES; side++)
        if ((unsigned)part->map[side] >= FPA_MAPS)
            return fail(error, FPA_INVALID, place(head), "part %d has the unknown map %d", number,
                        (int)part->map[side]);
    if (part->is_complex && (!is_plain(part) || part->angle != FPA_NO_MATRIX))
        return fail(error, FPA_INVALID, place(head),
                    "part %d is complex: it has no map, no norm, no shift and no position", number);
    return FPA_OK;
}

static fpa_status check_position(const fpa_head *head, int number, const fpa_lift_part *part,
                                 fpa_error *error)
{
    fpa_status status = FPA_OK;
    if (part->angle == FPA_NO_MATRIX) {
        if (part->phase != FPA_NO_MATRIX || part->amplitude != FPA_NO_MATRIX)
            return fail(error, FPA_INVALID, place(head), "part %d has a phase or an amplitude, but no angle",
                        number);
        return FPA_OK;
    }
    if (head->lift->positions < 1)
        return fail(error, FPA_INVALID, place(head), "part %d has an angle, but the head has no positions",
                    number);
    status = check_matrix(head, number, "angle", part->angle, part->rows, head->lift->positions, error);
    if (!status && part->phase != FPA_NO_MATRIX)
        status = check_matrix(head, number, "phase", part->phase, part->rows, 1, error);
    if (!status && part->amplitude != FPA_NO_MATRIX)
        status = check_matrix(head, number, "amplitude", part->amplitude, part->rows, 1, error);
    return status;
}

static fpa_status check_part(const fpa_head *head, int number, fpa_error *error)
{
    const fpa_lift_part *part = &head->lift->parts[number - 1];
    if (part->rows < 1 || part->rows > HEAD_MAX_COORDINATES || part->factor_count < 1 ||
        part->factor_count > HEAD_MAX_BRANCHES)
        return fail(error, FPA_INVALID, place(head),
                    "part %d has %d rows and %d factors (allowed are 1..%d and 1..%d)", number, part->rows,
                    part->factor_count, HEAD_MAX_COORDINATES, HEAD_MAX_BRANCHES);
    fpa_status status = check_numbers(head, number, part, error);
    for (int f = 0; f < part->factor_count && !status; f++)
        status = check_factor(head, number, part, &part->factors[f], error);
    return status ? status : check_position(head, number, part, error);
}

static fpa_status check_heads(const fpa_head *head, fpa_error *error)
{
    const int heads = lift_heads(head);
    for (int m = 0; m < head->matrix_count; m++) {
        const fpa_matrix *matrix = &head->matrices[m];
        if (matrix->heads &&
            (matrix->heads != heads || !matrix->per_head || matrix->kind != FPA_MATRIX_CONSTANT))
            return fail(error, FPA_INVALID, place(head),
                        "matrix %d is for %d heads, another one for %d: all matrices that are given per head "
                        "must be for the same number of heads",
                        m + 1, matrix->heads, heads);
    }
    return FPA_OK;
}

fpa_status lift_validate(const fpa_head *head, fpa_error *error)
{
    const fpa_lift *lift = head->lift;
    fpa_status status = check_heads(head, error);
    int64_t coordinates = 0;
    if (lift->width < 1 || lift->width > HEAD_MAX_WIDTH || lift->part_count < 1 ||
        lift->part_count > LIFT_MAX_PARTS || lift->positions < 0 || lift->positions > LIFT_MAX_POSITIONS)
        return fail(error, FPA_INVALID, place(head),
                    "the lift has width %d, %d parts and %d positions (allowed are 1..%d, 1..%d and 0..%d)",
                    lift->width, lift->part_count, lift->positions, HEAD_MAX_WIDTH, LIFT_MAX_PARTS,
                    LIFT_MAX_POSITIONS);
    for (int i = 0; i < lift->part_count && !status; i++) {
        status = check_part(head, i + 1, error);
        coordinates += lift_coordinates(&lift->parts[i]);
    }
    if (!status && coordinates != head->d)
        status =
            fail(error, FPA_INVALID, place(head), "the lift makes %lld coordinates, but branches take %d",
                 (long long)coordinates, head->d);
    return status;
}

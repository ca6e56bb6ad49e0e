#include "lift_numbers.h"

#include "parts.h"
#include "work.h"

#include <math.h>

enum { LANES = 32 };

bool lift_is_whole(const fpa_matrix *matrix, int width, fpa_dtype dtype)
{
    const int64_t rows = (int64_t)(matrix->heads ? matrix->heads : 1) * matrix->rows;
    if (matrix->kind != FPA_MATRIX_CONSTANT)
        return false;
    for (int64_t i = 0; i < rows * matrix->cols; i++)
        if (i % matrix->cols < width && dtype_round(dtype, matrix->data[i]) != matrix->data[i])
            return false;
    return true;
}

bool lift_is_ordinary(const fpa_matrix *matrix, int width)
{
    const double most = 0x1p15, least = 0x1p-12;
    for (int64_t row = 0; matrix->kind == FPA_MATRIX_CONSTANT && row < matrix->rows; row++) {
        double largest = 0;
        for (int i = 0; i < width; i++)
            largest = fmax(largest, fabs(matrix->data[row * matrix->cols + i]));
        if (largest >= most || (largest > 0 && largest < least))
            return false;
    }
    return matrix->kind == FPA_MATRIX_CONSTANT;
}

/* Instructions of a map: half: by the special function unit; else by fp32 functions. */
static int map_instructions(const fpa_lift_part *part, bool half)
{
    static const int map[2][FPA_MAPS] = {{[FPA_MAP_RELU] = 1,
                                          [FPA_MAP_ELU_PLUS_ONE] = 12,
                                          [FPA_MAP_SOFTPLUS] = 45,
                                          [FPA_MAP_EXP] = 10,
                                          [FPA_MAP_SILU] = 25},
                                         {[FPA_MAP_RELU] = 1,
                                          [FPA_MAP_ELU_PLUS_ONE] = 5,
                                          [FPA_MAP_SOFTPLUS] = 10,
                                          [FPA_MAP_EXP] = 2,
                                          [FPA_MAP_SILU] = 5}};
    return largest(map[half][part->map[FPA_QUERY]], map[half][part->map[FPA_KEY]]);
}

/* Instructions for one row and token: products of factors, the map, rotation by an angle, stores. */
int lift_finishing(const fpa_lift *lift, const fpa_lift_part *part, bool half)
{
    enum { STORE = 1, PRODUCT = 1, TURN = 30, NUMBER = 3, HALF_TURN = 7, HALF_NUMBER = 4 };
    const int number = half ? HALF_NUMBER : NUMBER;
    const int turn = part->angle == FPA_NO_MATRIX ? 0 : (half ? HALF_TURN : TURN) + number * lift->positions;
    return map_instructions(part, half) + turn + STORE * lift_coordinates(part) / part->rows +
           PRODUCT * part->factor_count * (part->is_complex ? 4 : 1);
}

int work_maps(const fpa_plan *plan)
{
    enum { CONVERT = 4, SHARE = 2 };
    const fpa_lift_part *part = plan->written->lift->parts;
    return SHARE * 16 * 2 * part->rows * (map_instructions(part, true) + CONVERT) / LANES;
}

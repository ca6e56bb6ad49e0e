/* Counts the operations that compute coordinates from q and k (templates/c/lift.c.in). */
#include "head/lift.h"
#include "parts.h"

/* Operations on vectors for each map, as counted in that template. */
static const double map_operations[FPA_MAPS] = {
    [FPA_MAP_IDENTITY] = 0,  [FPA_MAP_RELU] = 3, [FPA_MAP_ELU_PLUS_ONE] = 31,
    [FPA_MAP_SOFTPLUS] = 52, [FPA_MAP_EXP] = 27, [FPA_MAP_SILU] = 38,
    [FPA_MAP_ONE] = 0};

/* Counts rows that are read, combined with others and written, with so many operations per vector. */
static void count_vectors(const fpa_counting *to, double rows, int count, double operations, double loads)
{
    counting_once(to, (fpa_cpu_loop){.name = "lift",
                                     .runs = rows * counting_vectors(to->plan, count),
                                     .step = {.arithmetic = operations, .loads = loads, .stores = 1},
                                     .others = 3});
}

static void count_factor(const fpa_counting *to, const fpa_lift_part *part, int source, int count)
{
    const fpa_matrix *matrices = to->plan->written->matrices;
    if (source == FPA_INPUT || matrices[source].kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        count_vectors(to, part->rows, count, source != FPA_INPUT, 1);
    else
        counting_projection(to, "lift", &matrices[source], count);
}

/* Counts the last loop: maps, gains, functions of the position. A vector of doubles has half as many lanes, so
 * angles take two vectors. */
static void count_end(const fpa_counting *to, const fpa_lift_part *part, int count)
{
    const int positions = to->plan->written->lift->positions;
    double operations = 1 + (part->inner != 1) + (part->square != 0) + (part->shift != 0) +
                        (part->gain[FPA_QUERY] != 1 || part->gain[FPA_KEY] != 1);
    operations += (map_operations[part->map[FPA_QUERY]] + map_operations[part->map[FPA_KEY]]) / 2;
    if (part->angle != FPA_NO_MATRIX)
        operations += 26 + 2 * (2 * positions + 12);
    count_vectors(to, part->is_complex ? 2 * part->rows : part->rows, count, operations, 1);
}

void parts_lift(const fpa_counting *to, int count)
{
    const fpa_lift *lift = to->plan->written->lift;
    bool norm = false;
    for (int i = 0; i < lift->part_count; i++) {
        const fpa_lift_part *part = &lift->parts[i];
        for (int f = 0; f < part->factor_count; f++) {
            count_factor(to, part, part->factors[f].source, count);
            if (part->is_complex)
                count_factor(to, part, part->factors[f].imaginary, count);
            if (f)
                count_vectors(to, part->rows, count, part->is_complex ? 6 : 1, part->is_complex ? 4 : 2);
        }
        count_end(to, part, count);
        norm = norm || part->square != 0;
    }
    if (norm)
        count_vectors(to, lift->width, count, 1, 2);
}

int parts_lift_rows(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    int most = 0;
    for (int i = 0; lift && i < lift->part_count; i++) {
        const fpa_lift_part *part = &lift->parts[i];
        const int rows = part->factor_count > 1 ? part->is_complex ? 2 * part->rows : part->rows : 0;
        most = rows > most ? rows : most;
    }
    return lift ? lift->width + 3 + lift->positions + most : 0;
}

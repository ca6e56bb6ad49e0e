#include "random_lift.h"

#include <math.h>

#include "head/lift.h"

enum { MOST_PARTS = 3, MOST_FACTORS = 3, MOST_ROWS = 4, MOST_MATRICES = MOST_PARTS * (2 * MOST_FACTORS + 3) };

/* A head whose lift is being drawn. */
typedef struct drawing {
    random_source *random;
    fpa_head *head;
    int heads; /* that some constants are given for; 0: none */
    bool failed;
} drawing;

static void *take(drawing *d, size_t count, size_t size)
{
    void *memory = arena_array(&d->head->memory, count, size);
    d->failed = d->failed || !memory;
    return memory;
}

static int add_matrix(drawing *d, fpa_matrix matrix)
{
    fpa_head *head = d->head;
    const double scale = 1 / sqrt(matrix.cols);
    if (matrix.kind == FPA_MATRIX_CONSTANT) {
        const int count = (matrix.heads ? matrix.heads : 1) * matrix.rows * matrix.cols;
        matrix.data = take(d, (size_t)count, sizeof *matrix.data);
        for (int i = 0; matrix.data && i < count; i++)
            matrix.data[i] = scale * random_normal(d->random);
    } else {
        matrix.name = arena_format(&head->memory, "w%d", head->matrix_count + 1);
        matrix.per_head = random_chance(d->random, 0.5);
        d->failed = d->failed || !matrix.name;
    }
    head->matrices[head->matrix_count] = matrix;
    return head->matrix_count++;
}

static int constant_matrix(drawing *d, int rows, int cols)
{
    fpa_matrix matrix = {.kind = FPA_MATRIX_CONSTANT, .rows = rows, .cols = cols};
    if (d->heads && random_chance(d->random, 0.5)) {
        matrix.heads = d->heads;
        matrix.per_head = true;
    }
    return add_matrix(d, matrix);
}

/* A projection may be a diagonal. */
static int any_matrix(drawing *d, int rows, int cols, bool projection)
{
    if (random_chance(d->random, 0.5))
        return constant_matrix(d, rows, cols);
    const bool diagonal = projection && rows == cols && cols == d->head->lift->width;
    return add_matrix(d, (fpa_matrix){.kind = diagonal ? FPA_MATRIX_TRAINABLE_DIAGONAL : FPA_MATRIX_TRAINABLE,
                                      .rows = rows,
                                      .cols = cols});
}

static void fill_factor(drawing *d, const fpa_lift_part *part, fpa_lift_factor *factor)
{
    const int width = d->head->lift->width, cols = width + random_chance(d->random, 0.3);
    *factor = (fpa_lift_factor){FPA_INPUT, FPA_NO_MATRIX, NULL};
    if (part->is_complex) {
        factor->source = constant_matrix(d, part->rows, cols);
        factor->imaginary = constant_matrix(d, part->rows, cols);
    } else if (random_chance(d->random, 0.5)) {
        factor->source = any_matrix(d, part->rows, cols, true);
    } else {
        factor->row = take(d, (size_t)part->rows, sizeof *factor->row);
        for (int r = 0; factor->row && r < part->rows; r++)
            factor->row[r] = random_between(d->random, 0, width - 1);
    }
}

static void fill_maps(drawing *d, fpa_lift_part *part)
{
    for (int side = 0; side < FPA_SIDES; side++) {
        part->map[side] = (fpa_map)random_between(d->random, 0, FPA_MAPS - 1);
        part->gain[side] = random_between(d->random, 1, 8) / 4.0;
    }
    if (random_chance(d->random, 0.5))
        part->map[FPA_KEY] = part->map[FPA_QUERY];
    part->inner = random_between(d->random, 1, 4) / (random_chance(d->random, 0.2) ? -2.0 : 2.0);
    part->square = random_chance(d->random, 0.3) ? random_unit(d->random) : 0;
    part->shift = random_chance(d->random, 0.3) ? random_normal(d->random) : 0;
}

/* Angles are float32, since positions may be far. */
static void round_matrix(fpa_matrix *matrix)
{
    const int count = (matrix->heads ? matrix->heads : 1) * matrix->rows * matrix->cols;
    for (int i = 0; matrix->data && i < count; i++)
        matrix->data[i] = (double)(float)matrix->data[i];
}

static void fill_part(drawing *d, fpa_lift_part *part)
{
    const int positions = d->head->lift->positions;
    *part = (fpa_lift_part){
        .rows = random_between(d->random, 1, MOST_ROWS),
        .factor_count = random_chance(d->random, 0.7) ? 1 : random_between(d->random, 2, MOST_FACTORS),
        .is_complex = random_chance(d->random, 0.25),
        .inner = 1,
        .gain = {1, 1},
        .angle = FPA_NO_MATRIX,
        .phase = FPA_NO_MATRIX,
        .amplitude = FPA_NO_MATRIX};
    if (!part->is_complex)
        fill_maps(d, part);
    part->factors = take(d, (size_t)part->factor_count, sizeof *part->factors);
    for (int f = 0; part->factors && f < part->factor_count; f++)
        fill_factor(d, part, &part->factors[f]);
    if (part->is_complex || !positions || random_chance(d->random, 0.4))
        return;
    part->angle = any_matrix(d, part->rows, positions, false);
    round_matrix(&d->head->matrices[part->angle]);
    if (random_chance(d->random, 0.5))
        part->phase = any_matrix(d, part->rows, 1, false);
    if (random_chance(d->random, 0.5))
        part->amplitude = any_matrix(d, part->rows, 1, false);
}

bool random_lift(random_source *random, fpa_head *head)
{
    drawing d = {.random = random, .head = head, .heads = random_chance(random, 0.3) ? 2 : 0};
    fpa_lift *lift = head->lift = take(&d, 1, sizeof *lift);
    head->matrices = take(&d, MOST_MATRICES, sizeof *head->matrices);
    if (d.failed)
        return false;
    lift->width = head->d;
    lift->positions = random_chance(random, 0.4) ? random_between(random, 1, 3) : 0;
    lift->key_mask = random_chance(random, 0.3);
    lift->part_count = random_between(random, 1, MOST_PARTS);
    lift->parts = take(&d, MOST_PARTS, sizeof *lift->parts);
    head->d = 0;
    for (int i = 0; lift->parts && i < lift->part_count; i++) {
        fill_part(&d, &lift->parts[i]);
        head->d += lift_coordinates(&lift->parts[i]);
    }
    return !d.failed;
}

#include "lift_made.h"

#include "base/round.h"
#include "head/lift.h"
#include "lift_numbers.h"
#include "lift_rows.h"
#include "work.h"

enum {
    SLAB_NUMBERS = 64,
    PIECE = 8, /* numbers in 16 bytes */
    TURNED_ROWS =
        32 /* divides the rows: both halves of the coordinates are whole pieces, without zeros after them */
};

/* Whether a lift has one part with one real factor, and no mask of keys. */
static bool has_one_factor(const fpa_lift *lift)
{
    const fpa_lift_part *part = lift->parts;
    return lift->part_count == 1 && !lift->key_mask && part->factor_count == 1 && !part->is_complex;
}

static bool takes_the_vector(const fpa_lift *lift)
{
    const fpa_lift_part *part = lift->parts;
    if (part->factors->source != FPA_INPUT || part->rows != lift->width)
        return false;
    for (int r = 0; r < part->rows; r++)
        if (part->factors->row[r] != r)
            return false;
    return true;
}

/* Whether coordinates are rotated by positions, without a gate: one warp fetches positions, which in gated
 * heads sums log-gates. */
static bool is_turned(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    const fpa_lift_part *part = lift->parts;
    return part->angle != FPA_NO_MATRIX && takes_the_vector(lift) && part->square == 0 &&
           part->rows % TURNED_ROWS == 0 && lift->positions * PIECE <= LIFT_MOST_TURNS && !plan->head->gate;
}

/* Whether coordinates are maps of a product whose operands are slabs: one slab of x, one for each 64 rows of
 * each part of the matrix. */
static bool is_product(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    const fpa_lift_part *part = lift->parts;
    const int source = part->factors->source;
    if (source == FPA_INPUT || part->angle != FPA_NO_MATRIX)
        return false;
    const fpa_matrix *matrix = &plan->written->matrices[source];
    return matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL && !lift_has_constants(lift, matrix) &&
           lift->width % PIECE == 0 && lift->width <= SLAB_NUMBERS;
}

fpa_lift_made lift_made(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    if (lift_in_place(plan))
        return LIFT_MAPS;
    if (!lift || !has_one_factor(lift) || plan->head->dv % PIECE)
        return LIFT_BEFORE;
    return is_turned(plan) ? LIFT_TURNS : is_product(plan) ? LIFT_PRODUCT : LIFT_BEFORE;
}

static int slabs_of(int numbers)
{
    return divide_up(numbers, SLAB_NUMBERS);
}

int lift_given_slabs(const fpa_plan *plan)
{
    return slabs_of(lift_made(plan) == LIFT_BEFORE ? plan->head->d : plan->written->lift->width);
}

int lift_made_slabs(const fpa_plan *plan)
{
    return slabs_of(plan->head->d);
}

int lift_matrix_parts(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    const fpa_matrix *matrix = &plan->written->matrices[lift->parts->factors->source];
    return lift_is_whole(matrix, lift->width, plan->head->dtype) ? 1 : 2;
}

bool lift_made_by_head(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    const fpa_lift_part *part = lift->parts;
    const fpa_matrix *matrix =
        part->factors->source == FPA_INPUT ? NULL : &plan->written->matrices[part->factors->source];
    return matrix && (matrix->heads || matrix->per_head);
}

int lift_turn_bytes(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    const fpa_lift_part *part = lift->parts;
    const int numbers =
        2 * lift->positions + (part->phase != FPA_NO_MATRIX || part->amplitude != FPA_NO_MATRIX ? 2 : 0);
    return numbers * part->rows * (int)sizeof(float);
}

/* ---- counts ---- */

enum { TOKENS = 16, LANES = 32, SIDES = 2 };

/* Rotating a row's query and key takes 4 instructions each, their angle 4 for each number of the position,
 * and each side one more. */
static struct fpa_cuda_work count_turns(const fpa_plan *plan)
{
    enum { TURN = 8, POSITION = 4 };
    const fpa_lift *lift = plan->written->lift;
    const int rows = lift->parts->rows, pair = TURN + POSITION * lift->positions + SIDES;
    return (struct fpa_cuda_work){.shared = SIDES * TOKENS * rows * 3 * 2 / 128,
                                  .instructions = work_maps(plan) / 2 + TOKENS * rows * pair / LANES,
                                  .bytes = TOKENS * lift->positions * (int)sizeof(float)};
}

/* Each part of the matrix is read once for 64 tokens, x once; keys' coordinates are stored. A number is half
 * a pair, and takes one instruction of its product. Loading tokens as operands, and the sum of squares, take
 * the given numbers of instructions for 16 numbers of 16 tokens; heads without squares do not take less
 * (docs/decisions/0176-totals-whose-coordinates-stay-in-registers.md). */
static struct fpa_cuda_work count_product(const fpa_plan *plan)
{
    enum { PANEL = 64, NORM = 24, FORMED = 20, NUMBERS = 2, PAIR = 3 };
    const fpa_lift *lift = plan->written->lift;
    const int parts = lift_matrix_parts(plan), slabs = slabs_of(lift->parts->rows),
              rows = slabs * SLAB_NUMBERS, steps = (lift->width + 15) / 16;
    return (struct fpa_cuda_work){
        .products = SIDES * (rows / 8 * steps * parts),
        .shared = SIDES * (rows * parts * TOKENS / PANEL + TOKENS) + 2 * TOKENS * rows / 128,
        .instructions = work_maps(plan) / 2 + SIDES * TOKENS * rows * PAIR / NUMBERS / LANES +
                        SIDES * (NORM + FORMED * steps)};
}

struct fpa_cuda_work work_made(const fpa_plan *plan)
{
    switch (lift_made(plan)) {
    case LIFT_TURNS:
        return count_turns(plan);
    case LIFT_PRODUCT:
        return count_product(plan);
    case LIFT_MAPS:
        return (struct fpa_cuda_work){.instructions = work_maps(plan)};
    default:
        return (struct fpa_cuda_work){0};
    }
}

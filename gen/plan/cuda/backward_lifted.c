/* Coordinates that a lift makes before the other kernels of gradients run, and what their gradients are to q, k and run-time matrices:
 * sizes of backward_project, backward_unproject and backward_products (templates/cuda/backward_lifted.cu.in; by warpgroups
 * templates/hopper/backward_lifted_groups.cu.in). */
#include "backward.h"

#include <string.h>

#include "head/lift.h"
#include "parts.h"

enum { STEP = 16, PIECE = 16 /* bytes */, LANES = 32 };

/* ---- what a lift has of matrices ---- */

typedef struct matrix_use {
    const fpa_matrix *matrix;
    int index, rows;
    bool dense; /* rows of a product of x; else numbers of a row each */
    bool again; /* whose numbers in fp32 are those of the use before */
} matrix_use;

typedef void visitor(void *user, const matrix_use *use);

static bool is_dense(const fpa_matrix *matrix)
{
    return matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL;
}

static void visit(const fpa_head *written, int index, const fpa_lift_part *part, bool projects, bool again,
                  visitor *each, void *user)
{
    if (index < 0)
        return;
    const fpa_matrix *matrix = &written->matrices[index];
    each(user, &(matrix_use){matrix, index, part->rows, projects && is_dense(matrix), again});
}

static bool is_learned(const fpa_head *written, int index)
{
    return index >= 0 && written->matrices[index].kind != FPA_MATRIX_CONSTANT;
}

/* In the order in which their gradients lie: of each part factors, then angles, phases and amplitudes. A phase has the angle's numbers. */
static void each_use(const fpa_head *written, visitor *each, void *user)
{
    const fpa_lift *lift = written->lift;
    for (int i = 0; i < lift->part_count; i++) {
        const fpa_lift_part *part = &lift->parts[i];
        for (int f = 0; f < part->factor_count; f++) {
            visit(written, part->factors[f].source, part, true, false, each, user);
            visit(written, part->factors[f].imaginary, part, true, false, each, user);
        }
        visit(written, part->angle, part, false, false, each, user);
        visit(written, part->phase, part, false, is_learned(written, part->angle), each, user);
        visit(written, part->amplitude, part, false, false, each, user);
    }
}

static bool is_constant(const matrix_use *use)
{
    return use->matrix->kind == FPA_MATRIX_CONSTANT;
}

static int entries_of(const fpa_matrix *matrix)
{
    return is_dense(matrix) ? matrix->rows * matrix->cols : matrix->rows;
}

static void count_entries(void *user, const matrix_use *use)
{
    *(int *)user += is_constant(use) ? 0 : entries_of(use->matrix);
}

int backward_lifted_entries(const fpa_head *written)
{
    int entries = 0;
    each_use(written, count_entries, &entries);
    return entries;
}

/* ---- sizes ---- */

typedef struct counts {
    int element;
    int kept_pairs,
        kept_numbers; /* of learned matrices' gradients of rows, of a token: as operands, and in fp32 */
    int sums;         /* of the latter, where a block adds its tokens' up */
    int sides;        /* blocks of backward_products that share a strip */
    bool per_head;    /* a dense matrix is a head's own */
} counts;

static int sides_of(int numbers)
{
    return divide_up(numbers, FPA_CUDA_MADE_SIDE);
}

static void count_kept(void *user, const matrix_use *use)
{
    counts *c = user;
    c->per_head = c->per_head || (use->dense && (use->matrix->per_head || use->matrix->heads));
    if (is_constant(use))
        return;
    c->sides += use->dense ? sides_of(use->rows) * sides_of(use->matrix->cols) : 1;
    if (use->dense)
        c->kept_pairs += (int)round_up(use->rows, PIECE / c->element);
    else
        c->sums += entries_of(use->matrix);
    if (!use->dense && !use->again)
        c->kept_numbers += (int)round_up(use->rows, PIECE / 4);
}

static bool takes_the_vector(const fpa_lift_factor *factor, int rows)
{
    for (int r = 1; r < rows; r++)
        if (factor->row[r] != factor->row[0] + r)
            return false;
    return true;
}

/* Lists the matrices by which the gradients of a part's factors are multiplied, in order: dense ones, and one for
 * rows of the vector in arbitrary order that no other factor has. list: may be NULL. Returns how many. */
static int list_multiplied(const fpa_head *written, int number, int *list)
{
    const fpa_lift_part *part = &written->lift->parts[number];
    int count = 0;
    for (int f = 0; f < part->factor_count; f++) {
        const fpa_lift_factor *factor = &part->factors[f];
        const bool given = factor->source == FPA_INPUT;
        const int matrix[] = {given ? -1 - number : factor->source, factor->imaginary};
        const bool wanted[] = {given ? !takes_the_vector(factor, part->rows)
                                     : is_dense(&written->matrices[factor->source]),
                               factor->imaginary >= 0 && is_dense(&written->matrices[factor->imaginary])};
        for (int i = 0; i < 2; i++) {
            if (wanted[i] && list)
                list[count] = matrix[i];
            count += wanted[i];
        }
    }
    return count;
}

/* Numbers of 16 bits of all matrices that are multiplied, high and low parts, as lanes have them; each once. */
static int count_operand(const fpa_head *written, int element)
{
    const fpa_lift *lift = written->lift;
    int bytes = 0;
    if (element == 4) /* which are read where they lie */
        return 0;
    for (int i = 0; i < lift->part_count; i++)
        bytes += list_multiplied(written, i, NULL) * (int)round_up(lift->parts[i].rows, STEP) *
                 (int)round_up(lift->width, STEP) * 2 * 2;
    return bytes;
}

static int most_multiplied(const fpa_head *written)
{
    int most = 0;
    for (int i = 0; i < written->lift->part_count; i++)
        most = largest(most, list_multiplied(written, i, NULL));
    return most;
}

/* Turns of rows by positions, in two parts, and phases: of 16-bit heads a block makes them once, of others each token in fp64. */
static int turn_bytes(const fpa_lift *lift, int element)
{
    int bytes = 0;
    for (int i = 0; i < lift->part_count && element == 2; i++)
        if (lift->parts[i].angle != FPA_NO_MATRIX)
            bytes += (int)round_up(lift->parts[i].rows * 4 * (2 * lift->positions + 1), PIECE);
    return bytes;
}

/* A warp has 16 tokens: x, sums of its gradient in fp32, and gradients of some rows of each factor that is multiplied. */
static int place(const fpa_plan *plan, int rows, fpa_cuda_backward_plan *back)
{
    const int element = plan->cuda.rows->element, given = (int)round_up(plan->made.lifted->lift->width, STEP);
    back->lift_rows = rows;
    back->lift_turns = turn_bytes(plan->made.lifted->lift, element);
    back->lift_x_pitch = cuda_odd_pitch(given * element);
    back->lift_dx_pitch = given * 4 + PIECE;
    back->lift_df_pitch = cuda_odd_pitch(rows * element);
    return back->lift_turns + STEP * back->warps *
                                  (back->lift_x_pitch + back->lift_dx_pitch +
                                   most_multiplied(plan->made.lifted) * back->lift_df_pitch);
}

/* Numbers of 16 bits are high parts and low ones, so that products with x are exact. */
static int operand_parts(int element)
{
    return element == 2 ? 2 : 1;
}

/* ---- by warpgroups ---- */

enum {
    GROUP_WARPS = 4,
    GROUP_TOKENS = STEP * GROUP_WARPS,
    MOST_MULTIPLIED = 8, /* factors of a part, whose sums of 16 rows have registers; */
    MOST_GIVEN = 128     /* numbers of a token, whose gradient's do, too */
};

static bool multiplies_as(const fpa_head *written, int number, int other)
{
    int own[MOST_MULTIPLIED], its[MOST_MULTIPLIED];
    const int count = list_multiplied(written, number, own);
    return count == list_multiplied(written, other, its) && !memcmp(own, its, (size_t)count * sizeof *own);
}

/* Pieces of 16 bytes of all matrices in one part of 16 bits; parts of the same ones share them. */
static int count_group_pieces(const fpa_head *written)
{
    const fpa_lift *lift = written->lift;
    int pieces = 0;
    for (int i = 0; i < lift->part_count; i++) {
        int j = 0;
        while (j < i && !multiplies_as(written, i, j))
            j++;
        if (j == i)
            pieces += list_multiplied(written, i, NULL) * (int)round_up(lift->parts[i].rows, STEP) *
                      (int)round_up(lift->width, STEP) * 2 / PIECE;
    }
    return pieces;
}

/* What rows are turned by, in two parts, their phases and amplitudes. */
static int group_turn_bytes(const fpa_lift *lift)
{
    int bytes = 0;
    for (int i = 0; i < lift->part_count; i++)
        if (lift->parts[i].angle != FPA_NO_MATRIX)
            bytes += (int)round_up(lift->parts[i].rows, STEP) * 8 * (lift->positions + 1);
    return bytes;
}

/* Whether any factor's gradients are added to those of numbers of the vector, or multiplied by a diagonal. */
static bool adds_numbers(const fpa_head *written)
{
    for (int i = 0; i < written->lift->part_count; i++) {
        const fpa_lift_part *part = &written->lift->parts[i];
        int halves = 0;
        for (int f = 0; f < part->factor_count; f++)
            halves += 1 + (part->factors[f].imaginary >= 0);
        if (halves > list_multiplied(written, i, NULL))
            return true;
    }
    return false;
}

/* A block has matrices, in both parts, of gradients of f16 in bf16, too; of 64 tokens what is given and coordinates, and of `stages` times that many
 * on their way; sums of gradients that no product has in registers; and sums of a number a row. */
static int group_bytes(const fpa_plan *plan, const fpa_cuda_backward_plan *back, bool gradients, int stages)
{
    const fpa_head *written = plan->made.lifted;
    const int copies = gradients && written->dtype == FPA_F16 ? 2 : 1;
    const int rows =
        back->lift_x_pitch * (gradients ? stages : 2) + back->lift_rows_pitch * (gradients ? stages : 1);
    const int sums = gradients ? (adds_numbers(written) ? GROUP_TOKENS * back->lift_dx_pitch : 0) +
                                     GROUP_WARPS * (int)round_up(back->lift_sums * 4, PIECE)
                               : 0;
    return 2 * copies * back->lift_pieces * PIECE + group_turn_bytes(written->lift) + GROUP_TOKENS * rows +
           sums;
}

/* Tokens of a block: a strip's are whole blocks'. Matrices are fetched once for them. */
static int choose_tiles(int pieces)
{
    enum { LARGE = 16 << 10, MANY = 8, SOME = 4 };
    return 2 * pieces * PIECE > LARGE ? MANY : SOME;
}

static bool suits_groups(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    const fpa_head *written = plan->made.lifted;
    return plan->target->warpgroups && back->warps == GROUP_WARPS && plan->cuda.rows->element == 2 &&
           round_up(written->lift->width, STEP) <= MOST_GIVEN && most_multiplied(written) <= MOST_MULTIPLIED;
}

/* False: nothing is changed. */
static bool plan_groups(const fpa_plan *plan, const counts *c, fpa_cuda_backward_plan *back)
{
    enum { RESERVED = 1024 };
    fpa_cuda_backward_plan own = *back;
    const int most = plan->target->shared_memory, given = (int)round_up(plan->made.lifted->lift->width, STEP);
    if (!suits_groups(plan, back))
        return false;
    own.lift_groups = 1;
    own.lift_rows = STEP;
    own.lift_pieces = count_group_pieces(plan->made.lifted);
    own.lift_tiles = choose_tiles(own.lift_pieces);
    own.lift_turns = group_turn_bytes(plan->made.lifted->lift);
    own.lift_x_pitch = cuda_odd_pitch(given * 2);
    own.lift_dx_pitch = given * 4 + PIECE;
    own.lift_rows_pitch = cuda_odd_pitch(plan->made.width * 2);
    own.lift_kept = own.lift_kept_pairs * 2;
    own.lift_sums = c->sums;
    own.lift_stages = 2;
    const int two = group_bytes(plan, &own, true, 2), one = group_bytes(plan, &own, true, 1);
    if (two > most || (two > most / 2 - RESERVED && one <= most / 2 - RESERVED))
        own.lift_stages = 1;
    if (one > most || group_bytes(plan, &own, false, 2) > most)
        return false;
    *back = own;
    return true;
}

int plan_backward_lifted(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    enum { MOST = 64, FEW = 72 << 10 };
    counts c = {.element = plan->cuda.rows->element};
    each_use(plan->made.lifted, count_kept, &c);
    back->lift_kept_pairs = c.kept_pairs * operand_parts(c.element);
    back->lift_kept = back->lift_kept_pairs * c.element + c.kept_numbers * 4;
    back->lift_per_head = c.per_head;
    back->lift_sides = c.sides;
    if (plan_groups(plan, &c, back))
        return group_bytes(plan, back, true, back->lift_stages);
    int bytes = place(plan, MOST, back);
    while (bytes > FEW && back->lift_rows > STEP)
        bytes = place(plan, back->lift_rows / 2, back);
    return bytes;
}

/* What is read of x beside gradients of rows, each for a panel's tokens, of two panels. */
static int products_bytes(int element)
{
    const int panel = FPA_CUDA_MADE_PANEL * (FPA_CUDA_MADE_SIDE * element + PIECE);
    return 2 * (1 + operand_parts(element)) * panel;
}

void fill_backward_lifted(const fpa_plan *plan, const fpa_cuda_backward_plan *back,
                          struct fpa_cuda_geometry *g)
{
    const fpa_head *written = plan->made.lifted;
    const int threads = LANES * back->warps, element = plan->cuda.rows->element;
    const bool groups = back->lift_groups;
    fpa_cuda_backward_plan warps = {.warps = back->warps};
    const int project = groups ? group_bytes(plan, back, false, 2)
                               : STEP * back->warps * back->lift_x_pitch + back->lift_turns;
    const int unproject =
        groups ? group_bytes(plan, back, true, back->lift_stages) : place(plan, back->lift_rows, &warps);
    g->made_width = plan->made.width;
    g->made_tokens = STEP * back->warps * (groups ? back->lift_tiles : 1);
    g->made_operand = groups ? 2 * back->lift_pieces * PIECE : count_operand(written, element);
    g->made_per_head = back->lift_per_head;
    g->made_sides = back->lift_sides;
    g->made_kept = back->lift_kept;
    g->made_sums = (int)round_up(back->lift_sums * 4, PIECE);
    if (g->made_operand)
        g->kernel[CUDA_BACKWARD_SPLIT] = (struct fpa_cuda_block){threads, 0, 0};
    g->kernel[CUDA_BACKWARD_PROJECT] = (struct fpa_cuda_block){threads, project, 0};
    g->kernel[CUDA_BACKWARD_UNPROJECT] = (struct fpa_cuda_block){threads, unproject, 0};
    if (g->made_sides)
        g->kernel[CUDA_BACKWARD_PRODUCTS] =
            (struct fpa_cuda_block){threads,
                                    back->lift_kept_pairs ? products_bytes(element)
                                    : groups              ? 0
                                                          : threads * 4,
                                    0};
}

/* Coordinates that a lift makes before the other kernels of gradients run, and the gradients of q, k and
 * run-time matrices from theirs: sizes of backward_project, backward_unproject and backward_products
 * (templates/cuda/backward_lifted.cu.in; by warpgroups templates/hopper/backward_lifted_groups.cu.in). */
#include "backward.h"

#include <string.h>

#include "head/lift.h"
#include "parts.h"

enum { STEP = 16, PIECE = 16 /* bytes */, LANES = 32 };

/* ---- the uses of matrices in a lift ---- */

typedef struct matrix_use {
    const fpa_matrix *matrix;
    int index, rows;
    bool dense; /* a matrix that multiplies x; else one number for each row */
    bool again; /* its fp32 numbers are those of the previous use */
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

/* Calls `each` for all uses, in the order in which their gradients are stored: of each part factors, then
 * angles, phases and amplitudes. A phase has the angle's numbers. */
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
    /* of a token, gradients of rows of learned matrices: as operands, and in fp32 */
    int kept_pairs, kept_numbers;
    int sums;      /* of the latter, if a block sums them over its tokens */
    int sides;     /* blocks of backward_products that share a strip */
    bool per_head; /* each head has dense matrices of its own */
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

/* Bytes of all matrices that are multiplied, high and low 16-bit parts in the order of lanes; each once. */
static int count_operand(const fpa_head *written, int element)
{
    const fpa_lift *lift = written->lift;
    int bytes = 0;
    if (element == 4) /* read as stored in memory */
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

/* Bytes of rows' turns by positions, in two parts, and phases: in 16 bits a block computes them once; in fp32
 * each token's are computed in fp64. */
static int turn_bytes(const fpa_lift *lift, int element)
{
    int bytes = 0;
    for (int i = 0; i < lift->part_count && element == 2; i++)
        if (lift->parts[i].angle != FPA_NO_MATRIX)
            bytes += (int)round_up(lift->parts[i].rows * 4 * (2 * lift->positions + 1), PIECE);
    return bytes;
}

/* Assigns shared memory; a warp has 16 tokens: x, sums of dx in fp32, and df of some rows of each factor that
 * is multiplied. Returns the bytes of a block. */
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

/* 16-bit operands have high and low parts, so that products with x are exact. */
static int operand_parts(int element)
{
    return element == 2 ? 2 : 1;
}

/* ---- by warpgroups ---- */

enum {
    GROUP_WARPS = 4,
    GROUP_TOKENS = STEP * GROUP_WARPS,
    MOST_MULTIPLIED = 8, /* matrices of a part for whose sums of 16 rows a thread has registers */
    MOST_GIVEN = 128     /* numbers of x for whose gradient it has, too */
};

static bool multiplies_as(const fpa_head *written, int number, int other)
{
    int own[MOST_MULTIPLIED], its[MOST_MULTIPLIED];
    const int count = list_multiplied(written, number, own);
    return count == list_multiplied(written, other, its) && !memcmp(own, its, (size_t)count * sizeof *own);
}

/* Pieces of 16 bytes of all matrices, one of two parts; parts of a lift with the same matrices share them. */
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

/* Bytes of rows' turns, in two parts, phases and amplitudes. */
static int group_turn_bytes(const fpa_lift *lift)
{
    int bytes = 0;
    for (int i = 0; i < lift->part_count; i++)
        if (lift->parts[i].angle != FPA_NO_MATRIX)
            bytes += (int)round_up(lift->parts[i].rows, STEP) * 8 * (lift->positions + 1);
    return bytes;
}

/* Whether some factor is no product with a matrix (rows of x, or a diagonal), so that its gradients are added
 * to dx number by number. */
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

/* Bytes of a block: matrices in both parts, for gradients of f16 also in bf16; of 64 tokens x and
 * coordinates, of as many tiles as are in flight; the part of dx that is not computed by products; sums of
 * one number a row. */
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

/* Tiles of a block, a whole number of which makes a strip. Matrices are loaded once for them. */
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

/* Plans the kernels by warpgroups; false, with nothing changed, if they do not suit. */
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

/* Shared memory of backward_products: x and gradients of rows of two panels of tokens. */
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

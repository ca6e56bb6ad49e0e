/* Coordinates that a lift makes before the other kernels of gradients run, and what their gradients are to q, k and run-time matrices:
 * sizes of backward_project, backward_unproject and backward_products (templates/cuda/backward_lifted.cu.in). */
#include "backward.h"

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
    else if (!use->again)
        c->kept_numbers += (int)round_up(use->rows, PIECE / 4);
}

static bool takes_the_vector(const fpa_lift_factor *factor, int rows)
{
    for (int r = 1; r < rows; r++)
        if (factor->row[r] != factor->row[0] + r)
            return false;
    return true;
}

/* Factors whose gradients are multiplied by a matrix: those of dense ones, and of rows of the vector in no order. */
static int count_multiplied(const fpa_head *written, const fpa_lift_part *part)
{
    int count = 0;
    for (int f = 0; f < part->factor_count; f++) {
        const fpa_lift_factor *factor = &part->factors[f];
        count += factor->source == FPA_INPUT ? !takes_the_vector(factor, part->rows)
                                             : is_dense(&written->matrices[factor->source]);
        count += factor->imaginary >= 0 && is_dense(&written->matrices[factor->imaginary]);
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
        bytes += count_multiplied(written, &lift->parts[i]) * (int)round_up(lift->parts[i].rows, STEP) *
                 (int)round_up(lift->width, STEP) * 2 * 2;
    return bytes;
}

static int most_multiplied(const fpa_head *written)
{
    int most = 0;
    for (int i = 0; i < written->lift->part_count; i++)
        most = largest(most, count_multiplied(written, &written->lift->parts[i]));
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

int plan_backward_lifted(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    enum { MOST = 64, FEW = 72 << 10 };
    counts c = {.element = plan->cuda.rows->element};
    each_use(plan->made.lifted, count_kept, &c);
    back->lift_kept_pairs = c.kept_pairs * operand_parts(c.element);
    back->lift_kept = back->lift_kept_pairs * c.element + c.kept_numbers * 4;
    back->lift_per_head = c.per_head;
    back->lift_sides = c.sides;
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
    const int bytes = place(plan, back->lift_rows, &(fpa_cuda_backward_plan){.warps = back->warps});
    g->made_width = plan->made.width;
    g->made_tokens = STEP * back->warps;
    g->made_operand = count_operand(written, element);
    g->made_per_head = back->lift_per_head;
    g->made_sides = back->lift_sides;
    g->made_kept = back->lift_kept;
    if (g->made_operand)
        g->kernel[CUDA_BACKWARD_SPLIT] = (struct fpa_cuda_block){threads, 0, 0};
    g->kernel[CUDA_BACKWARD_PROJECT] =
        (struct fpa_cuda_block){threads, STEP * back->warps * back->lift_x_pitch + back->lift_turns, 0};
    g->kernel[CUDA_BACKWARD_UNPROJECT] = (struct fpa_cuda_block){threads, bytes, 0};
    if (g->made_sides)
        g->kernel[CUDA_BACKWARD_PRODUCTS] = (struct fpa_cuda_block){
            threads, back->lift_kept_pairs ? products_bytes(element) : threads * 4, 0};
}

/* Rows that matrices make before the other kernels of gradients run: sizes of backward_project and
 * backward_unproject, and blocks of backward_products for run-time matrices. */
#include "backward.h"

#include "parts.h"

enum {
    GROUP = 64,     /* rows that are computed together, at most, */
    TILE = 8,       /* and at least */
    WARPGROUP = 4,  /* warps */
    BARRIERS = 128, /* bytes */
    STEP = 16,      /* numbers of the index that is summed over */
    /* instructions of a warp for a step of 16 tokens; for moving a word in each lane: */
    STEP_INSTRUCTIONS = 50,
    MOVED_INSTRUCTIONS = 10
};

/* Blocks of `rows` rows that contain rows of a matrix; given: of a matrix that is given at run time. */
static int count_blocks(const fpa_plan *plan, int rows, bool given)
{
    bool has[ROW_HEAD_MOST / TILE] = {false};
    int count = 0;
    for (int i = 0; i < plan->made.projection_count; i++) {
        const fpa_projection *projection = &plan->made.projections[i];
        const fpa_matrix *matrix = &plan->head->matrices[projection->matrix];
        const int last = (projection->first_row + matrix->rows - 1) / rows;
        if (given && matrix->kind == FPA_MATRIX_CONSTANT)
            continue;
        for (int block = projection->first_row / rows; block <= last; block++) {
            count += !has[block];
            has[block] = true;
        }
    }
    return count;
}

/* Bytes of a block beside its tokens: the ring of matrices, barriers, and results before they are stored. */
static int bytes_beside(const fpa_cuda_backward_plan *back)
{
    return FPA_CUDA_MADE_RING + back->made_barriers + 16 * back->warps * FPA_CUDA_MADE_LEAVE;
}

/* Whether some of `rows` rows from `first` on is a matrix's, or is a coordinate of step `step`. */
static bool has_numbers(const fpa_plan *plan, int first, int rows, int step)
{
    const fpa_row_head *made = &plan->made;
    for (int i = 0; i < made->projection_count; i++) {
        const fpa_projection *projection = &made->projections[i];
        const int end = projection->first_row + plan->head->matrices[projection->matrix].rows;
        if (projection->first_row < first + rows && end > first)
            return true;
    }
    for (int row = first; row < first + rows && row < made->coordinate_count; row++)
        if (made->coordinates[row] >= 0 && made->coordinates[row] / STEP == step)
            return true;
    return false;
}

/* The steps of W, of 32 rows each, if rows of coordinates are multiplied, too. */
static int count_all_steps(const fpa_plan *plan)
{
    const int steps = divide_up(head_width(plan->written), STEP);
    int count = 0;
    for (int row = 0; row < plan->made.width; row += 4 * TILE)
        for (int step = 0; step < steps; step++)
            count += has_numbers(plan, row, 4 * TILE, step);
    return count;
}

/* Whether rows that are coordinates are moved instead of multiplied: if that takes at most half of the
 * instructions of their products. */
static bool moves(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    const int by_matrix =
        divide_up(back->made_row_tiles, GROUP / TILE) * divide_up(head_width(plan->written), STEP);
    const int saved = (count_all_steps(plan) - by_matrix) * STEP_INSTRUCTIONS;
    /* a word in each of 32 lanes at a time */
    const int moved = divide_up(plan->made.width, 64) * STEP * MOVED_INSTRUCTIONS;
    return back->made_row_tiles > 0 && !plan->made.weighs && saved >= 2 * moved;
}

static void plan_moved(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    const int given = (int)round_up(head_width(plan->written), 16),
              rows = (int)round_up(plan->made.width, 16);
    back->project_pitch = cuda_odd_pitch((given + TILE * (back->made_row_tiles + 1)) * 2);
    back->unproject_pitch = cuda_odd_pitch((rows + TILE) * 2);
    const int pitch = largest(back->project_pitch, back->unproject_pitch);
    const int two = 2 * 16 * back->warps * pitch + bytes_beside(back);
    back->made_tiles = two <= plan->target->shared_memory / 2 ? 2 : 1;
}

/* A block holds x and rows of its tokens; if coordinates are moved, only the operands of products, and a zero
 * after them. */
void plan_backward_made(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    back->made_groups = plan->target->warpgroups && back->warps == WARPGROUP;
    back->made_barriers = back->made_groups ? BARRIERS : 0;
    back->given_pitch = cuda_odd_pitch(round_up(head_width(plan->written), 16) * 2);
    back->rows_pitch = cuda_odd_pitch(round_up(plan->made.width, 16) * 2);
    const int pitch = largest(back->given_pitch, back->rows_pitch);
    const int two = 2 * 2 * 16 * back->warps * pitch + FPA_CUDA_MADE_RING + back->made_barriers;
    back->made_tiles = two <= plan->target->shared_memory / 2 ? 2 : 1;
    back->made_row_tiles = count_blocks(plan, TILE, false);
    back->made_moves = moves(plan, back);
    if (back->made_moves)
        plan_moved(plan, back);
}

static bool is_per_head(const fpa_plan *plan)
{
    for (int i = 0; i < plan->made.projection_count; i++)
        if (plan->head->matrices[plan->made.projections[i].matrix].per_head)
            return true;
    return false;
}

void fill_backward_made(const fpa_plan *plan, const fpa_cuda_backward_plan *back, struct fpa_cuda_geometry *g)
{
    const int given = round_up(head_width(plan->written), 16), rows = round_up(plan->made.width, 16);
    const int threads = 32 * back->warps, tokens = 16 * back->warps * back->made_tiles;
    g->made_width = plan->made.width;
    g->made_tokens = tokens;
    g->made_operand =
        /* keys have a W of their own */
        round_up(given, GROUP) * round_up(rows, GROUP) * 4 * (plan->made.weighs ? 2 : 1);
    g->made_per_head = is_per_head(plan);
    g->made_sides = count_blocks(plan, FPA_CUDA_MADE_SIDE, true) *
                    divide_up(head_width(plan->written), FPA_CUDA_MADE_SIDE);
    g->kernel[CUDA_BACKWARD_SPLIT] = (struct fpa_cuda_block){threads, 0, 0};
    const int both =
        tokens * (back->given_pitch + back->rows_pitch) + FPA_CUDA_MADE_RING + back->made_barriers;
    const int project = tokens * back->project_pitch + FPA_CUDA_MADE_RING + back->made_barriers;
    const int unproject = tokens * back->unproject_pitch + bytes_beside(back);
    g->kernel[CUDA_BACKWARD_PROJECT] = (struct fpa_cuda_block){threads, back->made_moves ? project : both, 0};
    g->kernel[CUDA_BACKWARD_UNPROJECT] =
        (struct fpa_cuda_block){threads, back->made_moves ? unproject : both, 0};
    if (g->made_sides)
        g->kernel[CUDA_BACKWARD_PRODUCTS] =
            (struct fpa_cuda_block){threads, 4 * FPA_CUDA_MADE_PANEL * FPA_CUDA_MADE_PITCH, 0};
}

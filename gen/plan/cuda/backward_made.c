/* Rows that matrices make before the other kernels of gradients run: blocks, and work of run-time matrices. */
#include "backward.h"

#include "parts.h"

enum {
    GROUP = 64, /* numbers that are made together, at most, */
    TILE = 8    /* and at least */
};

/* Tiles of 8 rows that have rows of a matrix. */
static int count_row_tiles(const fpa_plan *plan)
{
    bool has[ROW_HEAD_MOST / TILE] = {false};
    int tiles = 0;
    for (int i = 0; i < plan->made.projection_count; i++) {
        const fpa_projection *projection = &plan->made.projections[i];
        const int rows = plan->head->matrices[projection->matrix].rows;
        for (int tile = projection->first_row / TILE; tile <= (projection->first_row + rows - 1) / TILE;
             tile++) {
            tiles += !has[tile];
            has[tile] = true;
        }
    }
    return tiles;
}

/* What a block has beside its tokens: parts of matrices on their way, and what leaves. */
static int bytes_beside(const fpa_cuda_backward_plan *back)
{
    return FPA_CUDA_MADE_RING + 16 * back->warps * FPA_CUDA_MADE_LEAVE;
}

/* Blocks have what their tokens' products are made of; backward_project also has rows by matrices, which lie together. A zero is behind all. */
void plan_backward_made(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    const int given = (int)round_up(head_width(plan->written), 16),
              rows = (int)round_up(plan->made.width, 16);
    back->made_row_tiles = count_row_tiles(plan);
    back->project_pitch = cuda_odd_pitch((given + TILE * (back->made_row_tiles + 1)) * 2);
    back->unproject_pitch = cuda_odd_pitch((rows + TILE) * 2);
    const int pitch = largest(back->project_pitch, back->unproject_pitch);
    const int two = 2 * 16 * back->warps * pitch + bytes_beside(back);
    back->made_tiles = two <= plan->target->shared_memory / 2 ? 2 : 1;
}

/* Sides of the stacked matrix that have rows of run-time matrices, times those of its columns. */
static int count_sides(const fpa_plan *plan)
{
    bool has[ROW_HEAD_MOST / FPA_CUDA_MADE_SIDE] = {false};
    int sides = 0;
    for (int i = 0; i < plan->made.projection_count; i++) {
        const fpa_projection *projection = &plan->made.projections[i];
        const fpa_matrix *matrix = &plan->head->matrices[projection->matrix];
        const int first = projection->first_row / FPA_CUDA_MADE_SIDE;
        const int last = (projection->first_row + matrix->rows - 1) / FPA_CUDA_MADE_SIDE;
        for (int side = first; matrix->kind != FPA_MATRIX_CONSTANT && side <= last; side++) {
            sides += !has[side];
            has[side] = true;
        }
    }
    return sides * (divide_up(head_width(plan->written), FPA_CUDA_MADE_SIDE));
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
    g->made_operand = round_up(given, GROUP) * round_up(rows, GROUP) * 4;
    g->made_per_head = is_per_head(plan);
    g->made_sides = count_sides(plan);
    g->kernel[CUDA_BACKWARD_SPLIT] = (struct fpa_cuda_block){threads, 0, 0};
    g->kernel[CUDA_BACKWARD_PROJECT] =
        (struct fpa_cuda_block){threads, tokens * back->project_pitch + FPA_CUDA_MADE_RING, 0};
    g->kernel[CUDA_BACKWARD_UNPROJECT] =
        (struct fpa_cuda_block){threads, tokens * back->unproject_pitch + bytes_beside(back), 0};
    if (g->made_sides)
        g->kernel[CUDA_BACKWARD_PRODUCTS] =
            (struct fpa_cuda_block){threads, 4 * FPA_CUDA_MADE_PANEL * FPA_CUDA_MADE_PITCH, 0};
}

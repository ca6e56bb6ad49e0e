/* The kernel that packs vectors: where a token's rows lie in shared memory, and how many tokens at a time. */
#include "parts.h"
#include "split_outer.h"

enum { STEP = 16, BLOCK = OUTER_BLOCK };

/* Rows get places one after the other. */
typedef struct places {
    const fpa_cuda_rows *rows;
    int *place; /* [row_count] of a packed row, -1: none yet */
    int next;
} places;

/* Rows that a block of a vector has first lie as they do there, so that it is copied as a whole. Product rows are formed as the
 * vector is. */
static void place_block(places *p, const int *source, int first_product)
{
    bool any = false;
    for (int j = 0; j < BLOCK; j++)
        if (source[j] >= first_product)
            return;
    for (int j = 0; j < BLOCK; j++)
        any |= source[j] != p->rows->zero_row && p->place[source[j]] < 0;
    if (!any)
        return;
    for (int j = 0; j < BLOCK; j++)
        if (source[j] != p->rows->zero_row && p->place[source[j]] < 0)
            p->place[source[j]] = p->next + j;
    p->next += BLOCK;
}

/* Rows of a run-time diagonal follow each other, as in vectors that have them. */
static void place_diagonal(places *p, const fpa_projection *projection, const int *row, const fpa_head *head)
{
    const fpa_matrix *matrix = &head->matrices[projection->matrix];
    const int first = row[projection->first_row];
    if (matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL || p->place[first] >= 0)
        return;
    for (int i = 0; i < matrix->rows; i++)
        p->place[first + i] = p->next + i;
    p->next = round_up(p->next + matrix->rows, BLOCK);
}

/* A row that no vector has, of which another is made. */
static void place_row(places *p, int row)
{
    if (p->place[row] < 0)
        p->place[row] = p->next++;
}

/* What product rows are made of, dot by dot. */
static void place_factors(places *p, const fpa_split_outer *split)
{
    for (int l = 0; l < split->product_factors; l++)
        for (int i = 0; i < BLOCK * split->outer.row_blocks; i++)
            place_row(p, split->product_row[i * split->product_factors + l]);
}

/* Coordinates as they come, with zeros up to whole steps; then what vectors have besides, and what that is made of. Other
 * projected rows have no place: -1. */
static void place_rows(const fpa_cuda_inputs *in, const fpa_split_outer *split, places *p)
{
    const fpa_plan *plan = in->plan;
    const int *row = in->rows->row;
    for (int i = 0; i < in->rows->row_count; i++)
        p->place[i] = i < plan->head->d ? i : -1;
    p->next = round_up(plan->head->d, STEP);
    for (int b = 0; b < split->outer.row_blocks; b++)
        place_block(p, split->source + b * BLOCK, split->first_product);
    for (int i = 0; i < plan->projection_count; i++)
        place_diagonal(p, &plan->projections[i], row, plan->head);
    for (int i = 0; i < plan->weighted_count; i++) {
        place_row(p, row[plan->weighted[i].from]);
        place_row(p, row[plan->weighted[i].row]);
    }
    place_factors(p, split);
    place_row(p, in->rows->ones_row);
    place_row(p, in->rows->zero_row);
    p->next = round_up(p->next, BLOCK);
}

/* Fragments of the matrices, in 8 rows and 16 columns: two 16-bit numbers for each, 512 bytes. */
static int matrix_bytes(const fpa_plan *plan)
{
    const int steps = (plan->head->d + 15) / 16;
    int tiles = 0;
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_matrix *matrix = &plan->head->matrices[plan->projections[i].matrix];
        if (matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL)
            tiles += (matrix->rows + 7) / 8;
    }
    return tiles * steps * 512;
}

/* A tile is fetched while the one before it is packed, where there are two. */
static bool choose_tile(fpa_pack_kernel *pack, int matrices, int buffers, int most, int limit)
{
    pack->buffers = buffers;
    for (pack->tile = most; pack->tile >= 16; pack->tile /= 2) {
        pack->bytes = buffers * pack->tile * pack->pitch + matrices;
        if (pack->bytes <= limit)
            return true;
    }
    return false;
}

/* Two blocks a multiprocessor fetch while others multiply; but matrices that are split anew for each tile of tokens
 * take longer than what a second block, or a second tile, gains. */
static bool choose_sizes(const fpa_plan *plan, fpa_pack_kernel *pack)
{
    enum { TILE = 64, LARGE_TILE = 128 };
    const int limit = plan->target->shared_memory, two = limit / 2 - 1024, matrices = matrix_bytes(plan);
    pack->keeps_matrices = true;
    if (choose_tile(pack, matrices, 2, TILE, two) || choose_tile(pack, matrices, 2, TILE, limit))
        return true;
    pack->keeps_matrices = false;
    return choose_tile(pack, 0, 1, LARGE_TILE, limit);
}

/* As many warps as hide each other's waits. */
static void choose_threads(const fpa_plan *plan, fpa_pack_kernel *pack)
{
    enum { WARPS = 16 };
    pack->blocks = 2 * (pack->bytes + 1024) <= plan->target->shared_memory ? 2 : 1;
    pack->threads = 32 * WARPS / pack->blocks;
}

fpa_status plan_pack(const fpa_cuda_inputs *in, fpa_split_outer *split, char *why, fpa_error *error)
{
    fpa_pack_kernel *pack = &split->pack;
    pack->direct = in->plan->projection_count == 0 && !split->product_factors;
    pack->threads = CUDA_THREADS;
    if (pack->direct)
        return FPA_OK;
    places p = {.rows = in->rows};
    p.place = pack->place = arena_array(in->memory, in->rows->row_count, sizeof *p.place);
    if (!p.place)
        return fail_memory(error);
    pack->places = in->rows->row_count;
    place_rows(in, split, &p);
    pack->rows = p.next;
    pack->pitch = 16 * ((2 * pack->rows + 15) / 16 | 1);
    if (!choose_sizes(in->plan, pack))
        return unsuited(why, "a block of its packed rows does not fit into shared memory");
    choose_threads(in->plan, pack);
    return FPA_OK;
}

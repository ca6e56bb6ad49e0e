/* The kernel that packs vectors: where a token's rows lie in shared memory, and how many tokens at a time. */
#include "parts.h"
#include "split_outer.h"

enum { STEP = 16, BLOCK = OUTER_BLOCK };

/* Rows get places one after the other. */
typedef struct places {
    const fpa_cuda_inputs *in;
    const fpa_split_outer *split;
    int *place; /* [row_count] of a packed row, -1: none yet */
    int next;
} places;

/* The row that a weighted one is made of; any other one as it is. */
static int unweighted(const places *p, int row)
{
    const fpa_plan *plan = p->in->plan;
    for (int i = 0; i < plan->weighted_count; i++)
        if (p->in->rows->row[plan->weighted[i].row] == row)
            return p->in->rows->row[plan->weighted[i].from];
    return row;
}

/* A tile has zeros where no row has its place. */
static bool is_free(const places *p, int place)
{
    for (int i = 0; i < p->in->rows->row_count; i++)
        if (p->place[i] == place)
            return false;
    return true;
}

/* Row of the tile that such a block begins with, whose rows have places already; -1: they lie here and there. */
static int find_block(const places *p, const int *source)
{
    int first = -1;
    for (int j = 0; j < BLOCK && first < 0; j++)
        if (source[j] != p->in->rows->zero_row)
            first = p->place[source[j]] - j;
    if (first < 0 || first % BLOCK)
        return -1;
    for (int j = 0; j < BLOCK; j++)
        if (source[j] == p->in->rows->zero_row ? !is_free(p, first + j) : p->place[source[j]] != first + j)
            return -1;
    return first;
}

/* Rows that a block of a vector has first lie as they do there, so that it is stored as it lies. Of others -1: products, weighted rows, rows
 * that lie elsewhere. */
static int place_block(places *p, const int *source)
{
    bool placed = false;
    for (int j = 0; j < BLOCK; j++) {
        const int row = source[j];
        if (row >= p->split->first_product || unweighted(p, row) != row)
            return -1;
        placed |= row != p->in->rows->zero_row && p->place[row] >= 0;
    }
    if (placed)
        return find_block(p, source);
    for (int j = 0; j < BLOCK; j++)
        if (source[j] != p->in->rows->zero_row)
            p->place[source[j]] = p->next + j;
    p->next += BLOCK;
    return p->next - BLOCK;
}

/* Rows of a run-time diagonal follow each other, as in vectors that have them. */
static void place_diagonal(places *p, const fpa_projection *projection)
{
    const fpa_matrix *matrix = &p->in->plan->head->matrices[projection->matrix];
    const int first = p->in->rows->row[projection->first_row];
    if (matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL || p->place[first] >= 0)
        return;
    for (int i = 0; i < matrix->rows; i++)
        p->place[first + i] = p->next + i;
    p->next = round_up(p->next + matrix->rows, BLOCK);
}

/* What a formed row is made of. */
static void place_source(places *p, int row)
{
    row = unweighted(p, row);
    if (row != p->in->rows->zero_row && row != p->in->rows->ones_row && p->place[row] < 0)
        p->place[row] = p->next++;
}

static void place_sources(places *p, int block)
{
    const fpa_split_outer *split = p->split;
    for (int i = block * BLOCK; i < (block + 1) * BLOCK; i++)
        for (int l = 0; l < split->product_factors; l++)
            place_source(p, split->product_row[i * split->product_factors + l]);
    for (int i = block * BLOCK; i < (block + 1) * BLOCK; i++)
        if (split->source[i] < split->first_product)
            place_source(p, split->source[i]);
}

/* Coordinates as they come, with zeros up to whole steps, or a word of 16 bytes more where they begin amid one; then blocks of vectors as
 * they lie there, what other blocks are formed of, and these. Projected rows that nothing needs have no place: -1. */
static void place_rows(places *p, fpa_pack_kernel *pack)
{
    const fpa_split_outer *split = p->split;
    const int d = p->in->plan->head->d, blocks = pack->blocks_of_vector;
    for (int i = 0; i < p->in->rows->row_count; i++)
        p->place[i] = i < d ? i : -1;
    p->next = largest(round_up(d, STEP), BLOCK * ((2 * d + 14 + 15) / 16));
    p->next = round_up(p->next, BLOCK);
    for (int b = 0; b < blocks; b++)
        pack->block[b] = place_block(p, split->source + b * BLOCK);
    for (int i = 0; i < p->in->plan->projection_count; i++)
        place_diagonal(p, &p->in->plan->projections[i]);
    for (int b = 0; b < blocks; b++)
        if (pack->block[b] < 0)
            place_sources(p, b);
    p->next = round_up(p->next, BLOCK);
    pack->first_formed = p->next;
    for (int b = 0; b < blocks; b++)
        if (pack->block[b] < 0) {
            pack->block[b] = p->next;
            p->next += BLOCK;
        }
    pack->rows = p->next;
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

static bool take_tile(fpa_pack_kernel *pack, int matrices, int buffers, int tile, int limit)
{
    pack->buffers = buffers, pack->tile = tile;
    pack->bytes = buffers * tile * pack->pitch + matrices;
    return pack->bytes <= limit;
}

/* Of two blocks of a multiprocessor one multiplies or stores while the other waits for tokens or for its slowest warp, with two tiles each
 * or one (docs/decisions/0054-packing-by-lanes.md): a tile of as many tokens as warps have work for comes before a second one, which is fetched
 * while the first is packed (0061-heads-beside-each-other.md). A block by itself needs the second one. But matrices that are split anew for each tile
 * of tokens take longer than what a second block, or a second tile, gains. */
static bool choose_sizes(const fpa_plan *plan, fpa_pack_kernel *pack)
{
    static const struct {
        int blocks, buffers, tile;
    } sizes[] = {{2, 2, 64}, {2, 1, 64}, {2, 2, 32}, {2, 1, 32},
                 {1, 2, 64}, {1, 2, 32}, {1, 1, 64}, {1, 1, 32}};
    static const int anew[] = {128, 64, 32};
    const int limit = plan->target->shared_memory, matrices = matrix_bytes(plan);
    pack->keeps_matrices = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (take_tile(pack, matrices, sizes[i].buffers, sizes[i].tile,
                      sizes[i].blocks > 1 ? limit / sizes[i].blocks - 1024 : limit))
            return true;
    pack->keeps_matrices = false;
    for (size_t i = 0; i < sizeof anew / sizeof *anew; i++)
        if (take_tile(pack, 0, 1, anew[i], limit))
            return true;
    return false;
}

/* As many warps as hide each other's waits; fewer where sums of many tokens need registers. */
static void choose_threads(const fpa_plan *plan, fpa_pack_kernel *pack)
{
    const int warps = pack->keeps_matrices ? 32 : 16;
    pack->blocks = 2 * (pack->bytes + 1024) <= plan->target->shared_memory ? 2 : 1;
    pack->threads = 32 * warps / pack->blocks;
}

static const fpa_pack_kernel directly = {
    .direct = true, .tokens = PACK_PIECE_TOKENS, .threads = CUDA_THREADS};

/* False: a block does not fit into shared memory. */
static bool choose_pack(const fpa_cuda_inputs *in, const fpa_split_outer *split, fpa_pack_kernel *pack)
{
    places p = {.in = in, .split = split, .place = pack->place};
    place_rows(&p, pack);
    pack->pitch = 16 * ((2 * pack->rows + 15) / 16 | 1);
    if (!choose_sizes(in->plan, pack))
        return false;
    choose_threads(in->plan, pack);
    return true;
}

/* Rows that begin amid 16 bytes would be read number by number if they were read directly. */
fpa_status plan_pack(const fpa_cuda_inputs *in, fpa_split_outer *split, char *why, fpa_error *error)
{
    const bool as_they_lie = in->plan->projection_count == 0 && !split->product_factors;
    fpa_pack_kernel *pack = &split->pack;
    *pack = directly;
    if (as_they_lie && in->plan->head->d % BLOCK == 0)
        return FPA_OK;
    *pack = (fpa_pack_kernel){.tokens = PACK_TOKENS,
                              .places = in->rows->row_count,
                              .blocks_of_vector = split->outer.vector_rows / BLOCK};
    pack->place = arena_array(in->memory, pack->places, sizeof *pack->place);
    pack->block = arena_array(in->memory, pack->blocks_of_vector, sizeof *pack->block);
    if (!pack->place || !pack->block)
        return fail_memory(error);
    if (choose_pack(in, split, pack))
        return FPA_OK;
    if (!as_they_lie)
        return unsuited(why, "a block of its packed rows does not fit into shared memory");
    *pack = directly;
    return FPA_OK;
}

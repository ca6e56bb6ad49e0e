/* plan_pack: the kernel pack_rows of sm_90a (templates/hopper/pack_rows.cu.in): which row of a tile in shared memory
 * has which packed row, how matrices are stored, and how many warpgroups and buffers a block has. */
#include "lift_numbers.h"
#include "parts.h"
#include "split_outer.h"

enum { STEP = 16, BLOCK = OUTER_BLOCK };

/* Places of rows in a tile, which are assigned one after the other. */
typedef struct places {
    const fpa_cuda_inputs *in;
    const fpa_split_outer *split;
    int *place; /* [row_count] of a packed row, -1: none yet */
    int next;
} places;

/* The row of which a weighted row is a multiple; any other row itself. */
static int unweighted(const places *p, int row)
{
    const fpa_plan *plan = p->in->plan;
    for (int i = 0; i < plan->weighted_count; i++)
        if (p->in->rows->row[plan->weighted[i].row] == row)
            return p->in->rows->row[plan->weighted[i].from];
    return row;
}

/* Whether no row has that place, so that the tile has zeros there. */
static bool is_free(const places *p, int place)
{
    for (int i = 0; i < p->in->rows->row_count; i++)
        if (p->place[i] == place)
            return false;
    return true;
}

/* For a block whose rows have places already: the row of the tile from which on these are consecutive; -1: they are not. */
static int find_block(const places *p, const int *source)
{
    int first = -1;
    for (int j = 0; j < BLOCK && first < 0; j++)
        if (source[j] != p->in->rows->zero_row)
            first = p->place[source[j]] - j;
    for (int j = 0; j < BLOCK && first >= 0; j++)
        if (source[j] == p->in->rows->zero_row ? !is_free(p, first + j) : p->place[source[j]] != first + j)
            first = -1;
    return first;
}

/* Gives the rows of a vector's block consecutive places, so that it can be stored from there, and returns the first;
 * -1: the block must be formed, since it has products or weighted rows, or its rows have other places already. */
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

/* Whether a row is a product with a dense matrix. */
static bool is_projected(const places *p, int row)
{
    for (int i = 0; i < p->in->plan->projection_count; i++) {
        const fpa_projection *projection = &p->in->plan->projections[i];
        const fpa_matrix *matrix = &p->in->plan->head->matrices[projection->matrix];
        const int first = p->in->rows->row[projection->first_row];
        if (matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL && row >= first && row < first + matrix->rows)
            return true;
    }
    return false;
}

/* Whether a block has only projected rows, at least one, and zeros. */
static bool is_projected_block(const places *p, const int *source)
{
    bool some = false;
    for (int j = 0; j < BLOCK; j++) {
        if (source[j] != p->in->rows->zero_row && !is_projected(p, source[j]))
            return false;
        some |= source[j] != p->in->rows->zero_row;
    }
    return some;
}

/* Gives the rows of a run-time diagonal consecutive places. */
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

/* Gives a place to a row of which a formed row is made. projected: only if it is a projected row. */
static void place_source(places *p, int row, bool projected)
{
    row = unweighted(p, row);
    if (row != p->in->rows->zero_row && row != p->in->rows->ones_row && p->place[row] < 0 &&
        (!projected || is_projected(p, row)))
        p->place[row] = p->next++;
}

/* The same for all rows of which a block is formed. */
static void place_sources(places *p, int block, bool projected)
{
    const fpa_split_outer *split = p->split;
    for (int i = block * BLOCK; i < (block + 1) * BLOCK; i++)
        for (int l = 0; l < split->product_factors; l++)
            place_source(p, split->product_row[i * split->product_factors + l], projected);
    for (int i = block * BLOCK; i < (block + 1) * BLOCK; i++)
        if (split->source[i] < split->first_product)
            place_source(p, split->source[i], projected);
}

/* Coordinates in their order, with zeros up to whole steps of 16; room for the words of 16 bytes that a row at any
 * address touches. */
static void place_coordinates(places *p, fpa_pack_kernel *pack)
{
    const int d = p->in->plan->head->d;
    for (int i = 0; i < p->in->rows->row_count; i++)
        p->place[i] = i < d ? i : -1;
    p->next = largest(round_up(d, STEP), BLOCK * ((2 * d + 14 + 15) / 16));
    pack->given = p->next;
}

/* Rows of a chunk, in whole blocks, at most `most`: those that minimise the rows of all chunks together, with a
 * chunk's waits counted as a block of rows in two parts. */
static int best_chunk(int rows, int most, int parts)
{
    const int wait = 2 * BLOCK / parts;
    int best = BLOCK;
    for (int chunk = BLOCK; chunk <= most; chunk += BLOCK)
        if (divide_up(rows, chunk) * (chunk + wait) <= divide_up(rows, best) * (best + wait))
            best = chunk;
    return best;
}

/* Places of projected rows, after coordinates, in chunks of at most `most` rows: blocks that vectors have as a whole,
 * then rows that formed blocks need; zeros between. A projected row that nothing needs has place -1. */
static void place_projected(places *p, fpa_pack_kernel *pack, int most)
{
    for (int b = 0; b < pack->blocks_of_vector; b++) {
        const int *source = p->split->source + b * BLOCK;
        pack->block[b] = is_projected_block(p, source) ? place_block(p, source) : -1;
    }
    for (int b = 0; b < pack->blocks_of_vector; b++)
        if (pack->block[b] < 0)
            place_sources(p, b, true);
    const int rows = p->next - pack->given;
    pack->chunk_rows = rows ? best_chunk(rows, most, pack->parts) : 0;
    pack->chunks = rows ? (int)divide_up(rows, pack->chunk_rows) : 0;
    p->next = pack->given + pack->chunks * pack->chunk_rows;
}

/* After these: other blocks that vectors have as a whole, rows of which blocks are formed, then the formed blocks. */
static void place_others(places *p, fpa_pack_kernel *pack)
{
    const int blocks = pack->blocks_of_vector;
    for (int b = 0; b < blocks; b++)
        if (pack->block[b] < 0)
            pack->block[b] = place_block(p, p->split->source + b * BLOCK);
    for (int i = 0; i < p->in->plan->projection_count; i++)
        place_diagonal(p, &p->in->plan->projections[i]);
    for (int b = 0; b < blocks; b++)
        if (pack->block[b] < 0)
            place_sources(p, b, false);
    p->next = round_up(p->next, BLOCK);
    pack->first_formed = p->next;
    for (int b = 0; b < blocks; b++)
        if (pack->block[b] < 0) {
            pack->block[b] = p->next;
            p->next += BLOCK;
        }
    pack->rows = p->next;
}

static void place_rows(const fpa_cuda_inputs *in, const fpa_split_outer *split, fpa_pack_kernel *pack,
                       int most)
{
    places p = {.in = in, .split = split, .place = pack->place};
    place_coordinates(&p, pack);
    place_projected(&p, pack, most);
    place_others(&p, pack);
    pack->raw_pitch = cuda_odd_pitch(2 * pack->given);
    pack->pitch = cuda_odd_pitch(2 * (pack->rows - pack->given));
}

/* Bytes of `rows` rows of matrices, in slabs of 64 columns, in one part or two. */
static int chunk_bytes(const fpa_plan *plan, const fpa_pack_kernel *pack, int rows)
{
    return pack->parts * divide_up(plan->head->d, 64) * rows * 128;
}

/* Warpgroups for which a multiprocessor has registers: sums of a chunk in all parts, tokens, the rest. */
static int most_groups(const fpa_plan *plan, const fpa_pack_kernel *pack)
{
    enum { REGISTERS = 65536 / WARPGROUP_THREADS, REST = 48, MOST = 6 };
    const int own = pack->chunks
                        ? pack->parts * pack->chunk_rows / 2 + 4 * (int)divide_up(plan->head->d, STEP) + REST
                        : REST;
    return REGISTERS / own < MOST ? REGISTERS / own : MOST;
}

/* Bytes of a warpgroup's tiles, with so many buffers for coordinates. */
static int group_bytes(const fpa_pack_kernel *pack, int stages)
{
    return pack_tile(pack) * (stages * pack->raw_pitch + pack->pitch);
}

/* The most warpgroups with so many stages that fit beside `taken` bytes. 16 bytes more, since unaligned blocks read a
 * word behind the last row. */
static int room_for_groups(const fpa_plan *plan, const fpa_pack_kernel *pack, int taken, int stages)
{
    const int most = most_groups(plan, pack),
              room = (plan->target->shared_memory - taken - 2 * BLOCK) / group_bytes(pack, stages);
    return room < most ? room : most;
}

/* Chooses the number of warpgroups, and of their buffers for coordinates (stages). Two stages, even if fewer
 * warpgroups fit then, unless fewer than two or less than half of them do, or matrices are streamed in chunks that
 * all warpgroups share. Further stages take the room that is left. */
static void choose_stages(const fpa_plan *plan, fpa_pack_kernel *pack, int taken)
{
    enum { MOST_STAGES = 4, ENOUGH = 2 };
    const int single = room_for_groups(plan, pack, taken, 1), both = room_for_groups(plan, pack, taken, 2);
    const bool one = both < single && (both < ENOUGH || !pack->kept || single > 2 * both);
    pack->groups = one ? single : both;
    pack->stages = one ? 1 : 2;
    while (!one && pack->stages < MOST_STAGES &&
           room_for_groups(plan, pack, taken, pack->stages + 1) >= pack->groups)
        pack->stages++;
}

/* A packer is one warp, so that warps do not wait for each other, if three warpgroups of two stages fit that way and
 * matrices stay in shared memory; else two warps share its tokens. */
static void choose_groups(const fpa_plan *plan, fpa_pack_kernel *pack)
{
    enum { BARRIERS = 32, ENOUGH = 3 }; /* BARRIERS: bytes of those of two buffers */
    pack->chunk_bytes = chunk_bytes(plan, pack, pack->chunk_rows);
    const int matrices = pack->chunk_places * pack->chunk_bytes + (pack->kept ? 0 : BARRIERS);
    pack->warps = 1;
    choose_stages(plan, pack, matrices);
    if (pack->groups < ENOUGH || pack->stages == 1 || !pack->kept) {
        pack->warps = 2;
        choose_stages(plan, pack, matrices);
    }
    pack->bytes = matrices + pack->groups * group_bytes(pack, pack->stages) + 2 * BLOCK;
    pack->threads = WARPGROUP_THREADS * pack->groups;
}

/* Streams matrices in chunks of at most `most` rows through two buffers; if all rows are one chunk, it stays in
 * shared memory. */
static void take_turns(const fpa_cuda_inputs *in, const fpa_split_outer *split, fpa_pack_kernel *pack,
                       int most)
{
    place_rows(in, split, pack, most);
    pack->kept = pack->chunks == 1, pack->chunk_places = pack->kept ? 1 : 2;
    choose_groups(in->plan, pack);
}

/* Chooses how matrices are stored: all in shared memory, if that leaves room for two warpgroups; else streamed in
 * chunks, as large as leaves that room. False: not even one tile fits. */
static bool choose_pack(const fpa_cuda_inputs *in, const fpa_split_outer *split, fpa_pack_kernel *pack)
{
    enum { MOST_COLUMNS = 128, TURN_BYTES = 32 << 10, ENOUGH = 2 };
    const int most = MOST_COLUMNS / pack->parts;
    const int turn = TURN_BYTES / chunk_bytes(in->plan, pack, 1) / BLOCK * BLOCK;
    place_rows(in, split, pack, most);
    pack->kept = true, pack->chunk_places = pack->chunks;
    choose_groups(in->plan, pack);
    if (pack->groups >= ENOUGH || !pack->chunks)
        return pack->groups > 0;
    for (int rows = largest(turn < most ? turn : most, BLOCK); rows >= BLOCK && pack->groups < ENOUGH;
         rows -= BLOCK)
        take_turns(in, split, pack, rows);
    return pack->groups > 0;
}

static const fpa_matrix *matrix_of(const fpa_plan *plan, int projection)
{
    return &plan->head->matrices[plan->projections[projection].matrix];
}

static bool has_own_matrices(const fpa_plan *plan)
{
    for (int i = 0; i < plan->projection_count; i++)
        if (matrix_of(plan, i)->per_head)
            return true;
    return false;
}

/* The parts of an element of the matrices: one number of 16 bits, if these have all of its bits; or one of f16
 * (narrows), whose precision is three bits more than that of bf16 rows, so that its rounding is an eighth of theirs.
 * Else two. Not f16 with few rows: tensor cores then do not limit the kernel, and converting tokens to f16 takes
 * instructions. */
static void choose_parts(const fpa_plan *plan, fpa_pack_kernel *pack)
{
    enum { LEAST_ROWS = 128 };
    bool whole = true, ordinary = plan->head->dtype == FPA_BF16;
    int64_t rows = 0;
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_matrix *matrix = matrix_of(plan, i);
        if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
            continue;
        whole = whole && lift_is_whole(matrix, matrix->cols, plan->head->dtype);
        ordinary = ordinary && lift_is_ordinary(matrix, matrix->cols);
        rows += matrix->rows;
    }
    pack->narrows = !whole && ordinary && rows >= LEAST_ROWS;
    pack->parts = whole || pack->narrows ? 1 : 2;
}

bool plan_pack(const fpa_cuda_inputs *in, fpa_split_outer *split)
{
    fpa_pack_kernel *pack = &split->pack;
    *pack = (fpa_pack_kernel){.places = in->rows->row_count,
                              .blocks_of_vector = split->outer.vector_rows / BLOCK,
                              .per_head = has_own_matrices(in->plan)};
    choose_parts(in->plan, pack);
    pack->place = arena_array(in->memory, pack->places, sizeof *pack->place);
    pack->block = arena_array(in->memory, pack->blocks_of_vector, sizeof *pack->block);
    return choose_pack(in, split, pack);
}

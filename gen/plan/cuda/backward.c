/* plan_cuda_backward: blocks, pitches and shared memory of the kernels of gradients. */
#include "backward.h"

#include <math.h>

#include "gen/plan/plan.h"
#include "head/lift.h"
#include "parts.h"

/* ---- sums ---- */

static bool lies_in_blocks(const fpa_cuda_rows *rows, const fpa_cuda_dot *dot)
{
    const int *row = rows->dot_rows + 16 * dot->first;
    bool run = row[0] % 8 == 0;
    for (int i = 1; i < dot->rows; i++)
        run &= row[i] == row[i - 1] + 1;
    return run;
}

/* Chooses the sums to which gradients of each dot's rows are added. If a dot's rows are consecutive and begin
 * a block of 8, it uses the sums of those blocks: the rows of zeros after its last one add nothing. Other
 * dots have sums of their own, after those. */
static void place_sums(const fpa_cuda_rows *rows, arena *memory, fpa_cuda_backward_plan *back)
{
    back->dots = rows->dot_count;
    back->dot_sums = arena_array(memory, rows->dot_count, sizeof *back->dot_sums);
    back->sum_blocks = (rows->row_count + 7) / 8;
    for (int i = 0; i < rows->dot_count; i++) {
        const fpa_cuda_dot *dot = &rows->dots[i];
        const bool own = !lies_in_blocks(rows, dot);
        back->dot_sums[i] = own ? back->sum_blocks : rows->dot_rows[16 * dot->first] / 8;
        back->sum_blocks += own ? (dot->rows + 7) / 8 : 0;
    }
}

/* Elements of the run-time matrices by which rows are made. */
static int count_entries(const fpa_plan *plan)
{
    if (plan->made.lifted)
        return backward_lifted_entries(plan->made.lifted);
    const fpa_projection *projections = plan->made.width ? plan->made.projections : plan->projections;
    const int count = plan->made.width ? plan->made.projection_count : plan->projection_count;
    int entries = 0;
    for (int i = 0; i < count; i++) {
        const fpa_matrix *matrix = &plan->head->matrices[projections[i].matrix];
        if (matrix->kind != FPA_MATRIX_CONSTANT)
            entries +=
                matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? matrix->rows : matrix->rows * matrix->cols;
    }
    return entries;
}

/* Whether coordinates are operands themselves: linear attention whose sums of d_k and d_v, or of d_q, have
 * registers, by products in bf16. In f16, queries' gradients over n could leave the range. */
static bool suits_coordinates(const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    const fpa_cuda_rows *rows = plan->cuda.rows;
    for (int f = 0; f < plan->features; f++)
        if (rows->weight[f] != 1)
            return false;
    return rows->coordinates && head->dtype == FPA_BF16 && coordinates_fit(head);
}

enum {
    MOST_OF_TWO = 9, /* most tiles of columns for which a warp has registers of 2 x 16 tokens */
    FEW_DOTS = 2     /* most dots for which a thread has registers of pairs with 32 others */
};

/* Chooses the blocks of columns of gradients of values. Pairs are formed once for each block, so blocks are
 * as wide as the registers allow that pairs leave: dots, what is left of keys, scores and their gradients,
 * slopes that wait for a span, and some 48 more. */
static void choose_sides(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    enum { REGISTERS = 255, REST = 48, GATES = 16, A_TILE = 4 };
    const int all = back->columns.blocks * back->columns.tiles;
    const int dots = plan->score->dot_count, others = dots > FEW_DOTS ? 2 : 4; /* tiles of 8 */
    const int pairs = A_TILE * others * (dots + 3) + A_TILE * dots;
    const int most = (REGISTERS - REST - (plan->head->gate ? GATES : 0) - pairs) / A_TILE;
    back->sides = back->columns;
    if (plan->cuda.rows->element == 4)
        return;
    for (int blocks = 1; blocks < back->columns.blocks; blocks++) {
        const int tiles = divide_up(all, blocks);
        if (tiles > most || (tiles > MOST_OF_TWO && back->columns.tiles <= MOST_OF_TWO))
            continue;
        back->sides.blocks = blocks;
        back->sides.tiles = back->sides.all = tiles;
        return;
    }
}

/* Tiles of values that are read: the last block of an odd number reads one more. */
static int count_read(const fpa_columns *columns)
{
    return columns->blocks * columns->tiles + columns->tiles % 2;
}

static void choose_columns(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    fpa_columns *columns = &back->columns;
    *columns = cuda_backward_columns(plan->head, plan->cuda.rows->warp_units);
    choose_sides(plan, back);
    back->coordinates = suits_coordinates(plan) && columns->blocks == 1;
    back->warpgroups = back->coordinates && plan->target->warpgroups;
    back->walks = back->warpgroups ? backward_slabs(plan->head->d) : 0;
    back->value_tiles = back->coordinates
                            ? columns->tiles
                            : round_up(largest(count_read(columns), count_read(&back->sides)), 2);
}

/* ---- blocks ---- */

typedef struct shape {
    int tiles, panel, group;
    int warps;
} shape;

/* The number of others whose gradients of dots are kept before rows get theirs. Rows' sums are in shared
 * memory: for each 16 own tokens and 8 rows, 512 bytes are read and as many written, while a dot's gradients
 * of these tokens and 16 others are 4 registers. */
static int choose_span(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum {
        REGISTERS = 32,
        BESIDE_FACTORS = 8 /* f16: 1 / n of queries is held beside pairs (decision 0200) */
    };
    const bool factors = plan->head->dtype == FPA_F16 && plan->head->normalize != FPA_NORMALIZE_NONE;
    const int room = factors && !plan->target->warpgroups ? BESIDE_FACTORS : REGISTERS;
    int span = back->pairs;
    if (plan->cuda.rows->element == 4)
        return span;
    while (2 * span <= back->panel && 4 * (2 * span / 16) * plan->score->dot_count <= room)
        span *= 2;
    return span;
}

/* With more units in a tile of the state, a warp has more products in flight. */
static void deepen_group(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    enum { DEEP = 4 };
    const int size = back->own.size, group = back->group;
    if (group >= DEEP || back->query_tiles > 1)
        return;
    back->group = DEEP;
    place_backward_own(plan, back);
    if (back->own.size <= size)
        return;
    back->group = group;
    place_backward_own(plan, back);
}

static bool fits(const fpa_plan *plan, const shape *s, int bytes, fpa_cuda_backward_plan *back)
{
    back->warps = s->warps;
    back->query_tiles = s->tiles;
    back->query_tokens = 16 * s->warps * s->tiles;
    back->panel = s->panel;
    back->group = s->group;
    back->stages = 2;
    back->shares = 1;
    back->copies = 0;
    back->pairs =
        plan->score->dot_count > FEW_DOTS || plan->cuda.rows->element == 4 || s->panel < 32 ? 16 : 32;
    if (back->warpgroups)
        back->pairs = back->panel;
    back->span = choose_span(plan, back);
    place_backward(plan, back);
    if (largest(back->own.size, back->state.size) > bytes)
        return false;
    if (back->cells.used) {
        deepen_group(plan, back);
        add_backward_stages(plan, back);
    }
    return true;
}

/* Blocks of backward_state hide their waits only by other blocks on the multiprocessor, so if walks have long
 * panels, too, three blocks must fit. */
static bool walks_fit(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    enum { LONG = 64, WALKS = 3, RESERVED = 1024 };
    return back->panel < LONG || backward_packs_slices(plan, back) ||
           WALKS * (back->state.size + RESERVED) <= plan->target->shared_memory + RESERVED;
}

/* Large blocks read the state rarely; two blocks on a multiprocessor hide each other's waits. Sums of many
 * rows' gradients leave room for the tokens of one or two warps only. */
static bool choose_blocks(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    static const shape shapes[] = {{2, 64, 4, 4}, {2, 64, 2, 4}, {2, 32, 2, 4}, {1, 64, 4, 4},
                                   {1, 64, 2, 4}, {1, 32, 2, 4}, {1, 32, 1, 4}, {1, 16, 2, 4},
                                   {1, 16, 1, 4}, {1, 16, 1, 2}, {1, 16, 1, 1}};
    enum { SHAPES = sizeof shapes / sizeof *shapes, COORDINATES = 3 };
    const int limit = plan->target->shared_memory;
    const int most = plan->cuda.rows->element == 4 || back->sides.tiles > MOST_OF_TWO ||
                             (plan->cuda.rows->factors > 3 && !back->cells.used)
                         ? 1
                         : 2;
    for (int blocks = 2; blocks >= 1; blocks--)
        for (int i = back->coordinates ? COORDINATES : 0; i < (back->coordinates ? COORDINATES + 1 : SHAPES);
             i++)
            if (shapes[i].tiles <= most && (blocks == 1 || shapes[i].warps == CUDA_WARPS) &&
                fits(plan, &shapes[i], limit / blocks - 1024 * (blocks - 1), back) &&
                (blocks > 1 || back->coordinates || walks_fit(plan, back))) {
                back->state_blocks = backward_state_blocks(plan, back, blocks);
                back->own_blocks = blocks;
                choose_backward_shares(plan, back, blocks, limit / blocks - 1024 * (blocks - 1));
                return true;
            }
    return false;
}

/* Elements of all run-time matrices, used or not: of those that heads share, or of those that each head has. */
static int count_numbers(const fpa_head *head, bool per_head)
{
    int numbers = 0;
    for (int m = 0; m < head->matrix_count; m++) {
        const fpa_matrix *matrix = &head->matrices[m];
        if (matrix->kind != FPA_MATRIX_CONSTANT && matrix->per_head == per_head)
            numbers += (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? 1 : matrix->rows) * matrix->cols;
    }
    return numbers;
}

/* The width to which rows are padded; 0: none. Rows are fetched 16 bytes at a time (cp.async), so that
 * products run meanwhile. */
static int padded_width(const fpa_plan *plan, int width)
{
    const int numbers = 16 / plan->cuda.rows->element;
    return width % numbers ? round_up(width, numbers) : 0;
}

/* The same for values: with a mask of keys all values are copied, since those of masked keys become zeros. */
static int padded_value(const fpa_plan *plan)
{
    const bool masked = plan->made.lifted && plan->made.lifted->lift->key_mask;
    const int padded = padded_width(plan, plan->head->dv);
    return masked && !padded ? plan->head->dv : padded;
}

/* Blocks of backward_state for a head and block of columns. */
static int count_slices(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    return back->warpgroups ? 1 : plan->cuda.rows->slices * CUDA_WARPS / back->warps;
}

static void fill_geometry(const fpa_plan *plan, const fpa_cuda_backward_plan *back,
                          struct fpa_cuda_geometry *g)
{
    const fpa_head *head = plan->head;
    const bool normalized = head->normalize != FPA_NORMALIZE_NONE;
    const int walks = back->walks;
    *g = (struct fpa_cuda_geometry){
        .version = FPA_CUDA_VERSION,
        .features = plan->cuda.rows->features,
        .columns = 8 * back->columns.blocks * back->columns.tiles,
        .column_blocks = back->columns.blocks,
        .copy_bytes = plan->cuda.rows->element,
        .chunk = plan->chunk,
        .state_elements = (int)(plan->features * (head->dv + normalized)),
        .state_element = (int)dtype_size(head->state_dtype),
        .weights = head_run_time_matrices(plan->written),
        .element = (int)dtype_size(head->dtype),
        .gate = head->gate,
        .query_tokens = back->query_tokens,
        .chunk_state_slices = count_slices(plan, back),
        .backward_tokens = back->query_tokens,
        .backward_both = back->coordinates,
        .backward_walks = walks,
        .backward_outputs = walks && normalized,
        .backward_boundary = walks && head->gate ? backward_boundary_bytes(head) : 0,
        .backward_columns = back->sides.blocks,
        .backward_entries = back->entries,
        .backward_padded_vector = back->padded_vector,
        .backward_padded_value = back->padded_value,
        .backward_shared = count_numbers(plan->written, false),
        .backward_per_head = count_numbers(plan->written, true),
        .pass_width = plan->passes.width,
        .pass_values = plan->passes.values,
        .pass_kept = back->formed_kept,
        .pass_input = plan->passes.input,
        .pass_d = plan->passes.formed || plan->passes.features ? plan->passes.values : head->d,
        .pass_dv = plan->passes.columns,
        .pass_columns = head->dv,
        .pass_parts = plan->passes.parts,
        .pass_part = plan->passes.part,
        .pass_line = plan->passes.line,
        .pass_weighted = plan->passes.weighted,
        .pass_features = plan->passes.features,
        .pass_numbers = plan->passes.numbers,
        .pass_beside = plan->passes.beside,
        .pass_weighs = plan->passes.weighs,
        .pass_widened = plan->passes.widened,
        .pass_formed = plan->passes.formed,
        .pass_parallel = plan->passes.parallel,
    };
    fill_backward_kernels(plan, back, g);
}

static void weigh_passes(fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    if (!back->passes.weighted && !back->passes.weighs)
        return;
    back->weights = plan->head->d;
    back->pass_weight = arena_array(&plan->memory, back->weights, sizeof *back->pass_weight);
    passes_weigh(plan->score, back->weights, back->pass_weight);
}

static fpa_status plan_lifted(const fpa_plan *plan, fpa_cuda_backward_plan *back, fpa_error *error)
{
    const int bytes = plan_backward_lifted(plan, back), most = plan->target->shared_memory;
    return bytes <= most ? FPA_OK
                         : fail(error, FPA_UNSUPPORTED, plan->head->origin,
                                "gradients of head '%s' need %d bytes of shared memory a block for the "
                                "operands of its coordinates, %s has %d",
                                plan->head->name, bytes, plan->target->name, most);
}

fpa_status plan_cuda_backward(fpa_plan *plan, fpa_error *error)
{
    const fpa_head *head = plan->head;
    fpa_status status = FPA_OK;
    fpa_cuda_backward_plan *back = arena_alloc(&plan->memory, sizeof *back);
    *back = (fpa_cuda_backward_plan){.passes = plan->passes};
    plan->cuda.rows = plan_cuda_rows(plan, &plan->memory);
    plan->cuda.rows = plan_cuda_cells(plan, &back->cells);
    choose_columns(plan, back);
    place_sums(plan->cuda.rows, &plan->memory, back);
    allocate_backward_shares(plan, &plan->memory, back);
    weigh_passes(plan, back);
    plan_backward_formed(plan, back);
    plan_backward_line(plan, back);
    back->padded_vector = padded_width(plan, head->d);
    back->padded_value = padded_value(plan);
    back->entries = count_entries(plan);
    if (!choose_blocks(plan, back))
        return fail(
            error, FPA_UNSUPPORTED, head->origin,
            "gradients of head '%s' need %d bytes of shared memory a block, %s has %d: %d packed rows of "
            "%s a token are too many",
            head->name, largest(back->own.size, back->state.size), plan->target->name,
            plan->target->shared_memory, plan->cuda.rows->row_count, dtype_name(head->dtype));
    if (!plan->made.lifted)
        plan_backward_made(plan, back);
    else if ((status = plan_lifted(plan, back, error)))
        return status;
    plan_backward_chunk(plan, back);
    plan->cuda.backward = back;
    fill_geometry(plan, back, &plan->cuda.geometry);
    return FPA_OK;
}

/* ---- fields that templates read ---- */

#define BACK(member) FIELD(fpa_cuda_backward_plan, member)
#define BACKWARD(member) FIELD_AS(fpa_cuda_backward_plan, "backward_" #member, member)
const fpa_field cuda_backward_fields[] = {
    FIELD_AS(fpa_cuda_backward_plan, "column_blocks", columns.blocks),
    FIELD_AS(fpa_cuda_backward_plan, "column_tiles", columns.tiles),
    FIELD_AS(fpa_cuda_backward_plan, "all_tiles", columns.all),
    FIELD_AS(fpa_cuda_backward_plan, "ones_slabs", columns.ones_slabs),
    FIELD_AS(fpa_cuda_backward_plan, "backward_side_blocks", sides.blocks),
    FIELD_AS(fpa_cuda_backward_plan, "backward_side_tiles", sides.tiles),
    FIELD_PART(fpa_cuda_backward_plan, "cells", cells, cuda_cells_fields),
    BACKWARD(value_tiles),
    BACKWARD(warps),
    BACK(query_tiles),
    BACKWARD(coordinates),
    BACKWARD(warpgroups),
    BACK(query_tokens),
    BACKWARD(shares),
    BACK(share_units),
    FIELD_ARRAY(fpa_cuda_backward_plan, "share_places", share_places, place_count, 1, 0),
    FIELD_ARRAY(fpa_cuda_backward_plan, "copy_blocks", copy_blocks, copies, 1, 0),
    BACK(panel),
    BACKWARD(pairs),
    BACKWARD(span),
    BACKWARD(group),
    BACKWARD(stages),
    BACKWARD(state_places),
    BACK(walk_panel),
    BACK(walk_pieces),
    BACK(walk_suffixes),
    BACK(walk_prefixes),
    BACK(walk_pitch),
    BACK(walk_raw_pitch),
    BACK(walk_value_pitch),
    BACKWARD(sum_blocks),
    FIELD_ARRAY(fpa_cuda_backward_plan, "dot_sums", dot_sums, dots, 1, 0),
    BACKWARD(padded_vector),
    BACKWARD(padded_value),
    BACKWARD(entries),
    BACK(made_tiles),
    BACK(given_pitch),
    BACK(rows_pitch),
    BACK(made_groups),
    BACK(made_barriers),
    BACK(made_moves),
    BACK(project_pitch),
    BACK(unproject_pitch),
    BACK(made_row_tiles),
    BACK(lift_rows),
    BACK(lift_x_pitch),
    BACK(lift_dx_pitch),
    BACK(lift_df_pitch),
    BACK(lift_turns),
    BACK(lift_groups),
    BACK(lift_tiles),
    BACK(lift_stages),
    BACK(lift_pieces),
    BACK(lift_rows_pitch),
    BACK(lift_sums),
    BACK(lift_kept),
    BACK(lift_kept_pairs),
    BACK(lift_sides),
    BACK(lift_per_head),
    BACK(query_pitch),
    BACK(key_pitch),
    BACK(raw_pitch),
    BACK(value_pitch),
    BACK(tile_pitch),
    FIELD_PART(fpa_cuda_backward_plan, "backward_state_memory", state, cuda_memory_fields),
    FIELD_PART(fpa_cuda_backward_plan, "backward_memory", own, cuda_memory_fields),
    FIELD_AS(fpa_cuda_backward_plan, "chunk_state_blocks", state_blocks),
    FIELD_AS(fpa_cuda_backward_plan, "backward_blocks", own_blocks),
    FIELD_AS(fpa_cuda_backward_plan, "pads", no),
    FIELD_AS(fpa_cuda_backward_plan, "pass_width", passes.width),
    FIELD_AS(fpa_cuda_backward_plan, "pass_values", passes.values),
    FIELD_AS(fpa_cuda_backward_plan, "pass_columns", passes.columns),
    FIELD_AS(fpa_cuda_backward_plan, "pass_weighted", passes.weighted),
    FIELD_ARRAY(fpa_cuda_backward_plan, "pass_weights", pass_weight, weights, 1, 0),
    FIELD_AS(fpa_cuda_backward_plan, "pass_features", passes.features),
    FIELD_AS(fpa_cuda_backward_plan, "pass_widened", passes.widened),
    FIELD_AS(fpa_cuda_backward_plan, "pass_numbers", passes.numbers),
    FIELD_AS(fpa_cuda_backward_plan, "pass_beside", passes.beside),
    BACK(line_factors),
    FIELD_ARRAY(fpa_cuda_backward_plan, "line_factor", line_factor, line_entries, 1, 0),
    FIELD_ARRAY(fpa_cuda_backward_plan, "line_weight", line_weight, line_features, 1, 0),
    BACK(line_row_pitch),
    BACK(line_pitch),
    BACK(pass_factors),
    FIELD_ARRAY(fpa_cuda_backward_plan, "pass_factor", pass_factor, pass_entries, 1, 0),
    BACK(formed_pair_pitch),
    BACK(formed_vector_pitch),
    BACK(formed_gradient_pitch),
    BACK(formed_rows),
    BACK(formed_others),
    BACK(formed_kept),
    BACK(formed_numbers),
    BACK(formed_lanes),
    FIELDS_END};

/* ---- explain ---- */

void print_cuda_backward(FILE *out, const fpa_plan *plan)
{
    const fpa_cuda_backward_plan *back = plan->cuda.backward;
    if (back->warpgroups)
        fprintf(out,
                "backward     a block processes a chunk, %d tokens at a time; %.1f KiB of shared memory\n",
                back->panel, back->own.size / 1024.0);
    else
        fprintf(out,
                "backward     %d own tokens a block, %d a warp; the others in panels of %d; %.1f KiB of "
                "shared memory\n",
                back->query_tokens, 16 * back->query_tiles, back->panel, back->own.size / 1024.0);
    if (back->shares > 1)
        fprintf(out, "shares       %d warps process the same tokens, each with %d of %d units of the state\n",
                back->shares, back->share_units, plan->cuda.rows->units);
    if (back->passes.width)
        fprintf(out,
                "passes       without initial and final states%s gradients are computed by forward passes on "
                "rows of %d numbers\n",
                back->passes.parallel ? ", in the parallel form," : "",
                back->passes.width - back->passes.input);
    if (back->passes.parts > 1)
        fprintf(out, "parts        %d of %d values, one pass on rows each, whose results are added\n",
                back->passes.parts, back->passes.part);
    if (back->passes.features)
        fprintf(out, "features     %d products of rows, which passes read in place of q and k\n",
                back->passes.features);
    if (plan->made.lifted)
        fprintf(out,
                "lift         %d coordinates a query or key are computed before other kernels run; from "
                "their gradients those of q and k are computed, %d rows at a time\n",
                plan->made.width, back->lift_rows);
    else if (plan->made.width)
        fprintf(out,
                "rows         %d numbers a query or key are computed before other kernels run: %d are "
                "coordinates%s, the others products with %d matri%s\n",
                plan->made.width, plan->made.coordinate_count, plan->made.weighs ? " with weights" : "",
                plan->made.projection_count, plan->made.projection_count == 1 ? "x" : "ces");
    fprintf(out, "states       %d blocks a head, each warp %d units; %.1f KiB of shared memory\n",
            count_slices(plan, back) * back->columns.blocks,
            back->warpgroups ? 1 : plan->cuda.rows->warp_units, back->state.size / 1024.0);
}

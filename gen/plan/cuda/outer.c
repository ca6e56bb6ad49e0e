/* plan_outer: the order of rows in a vector, the steps of 16 rows of each dot, and the tiles of features
 * (outer_tiles.h); or why tiles do not suit the head. */
#include "outer.h"

#include <stdio.h>

#include "contraction.h"
#include "feature_rows.h"
#include "outer_given.h"
#include "outer_tiles.h"

static void refuse(fpa_outer_plan *outer, const char *why)
{
    *outer = (fpa_outer_plan){.used = false};
    snprintf(outer->why, sizeof outer->why, "%s", why);
}

/* ---- rows ---- */

/* Marks the rows that features or dots use; features of fewer factors use the row of ones. */
static void mark_rows(const fpa_plan *plan, int factors, bool *kept)
{
    for (int p = 0; p < plan->piece_count; p++) {
        const fpa_piece *piece = &plan->pieces[p];
        for (int l = 0; l < piece->prefix_count; l++)
            kept[piece->prefix[l]] = true;
        for (int i = 0; i < piece->width; i++)
            kept[piece->base + i] = true;
        if (piece->prefix_count < factors)
            kept[plan->ones_row] = true;
    }
    for (int i = 0; i < plan->score->dot_count; i++)
        for (int r = 0; r < plan->dots[i].row_count; r++)
            kept[plan->dots[i].rows[r]] = true;
}

/* Places a run of rows that are computed together, as a whole, if any of them is used. Returns the next free vector row. */
static int place_run(fpa_outer_plan *outer, const bool *kept, int first, int count, int next)
{
    bool any = false;
    for (int i = 0; i < count; i++)
        any |= kept[first + i];
    if (!any)
        return next;
    for (int i = 0; i < count; i++)
        outer->row[first + i] = next + i;
    return round_up(next + count, OUTER_STEP);
}

/* Places weighted rows in the plan's order; a new step of 16 rows begins where rows are not consecutive, or belong to
 * different dots. */
static int place_weighted(const fpa_plan *plan, fpa_outer_plan *outer, const bool *kept, int next)
{
    int last = -1;
    for (int i = 0; i < plan->weighted_count; i++) {
        const int row = plan->weighted[i].row;
        if (!kept[row])
            continue;
        if (last < 0 || row != last + 1 || outer_dots_part(plan, last, row))
            next = round_up(next, OUTER_STEP);
        outer->row[row] = next++;
        last = row;
    }
    return round_up(next, OUTER_STEP);
}

/* Places the row of ones, in a block of its own. Returns the number of blocks. */
static int place_ones(const fpa_plan *plan, fpa_outer_plan *outer, const bool *kept, int next)
{
    outer->ones_row = -1;
    if (kept[plan->ones_row]) {
        outer->ones_row = outer->row[plan->ones_row] = next;
        next += OUTER_BLOCK;
    }
    return next / OUTER_BLOCK;
}

/* How many coordinates a slab has if coordinates and the row of ones are all rows: fewer than fit, so that the
 * ones follow them, in steps that dot products do not read. OUTER_TILE if that is not possible: there are other
 * rows, it would take more slabs than packed rows do, or vectors are contracted with states, block by block as
 * they are packed. */
static int choose_box(const fpa_plan *plan, const fpa_outer_plan *outer, const bool *kept)
{
    const int d = plan->head->d, most = OUTER_TILE - OUTER_STEP,
              slabs = divide_up(round_up(d, OUTER_STEP), most);
    bool alone =
        !outer->rows && !outer->products && kept[plan->ones_row] && contraction_of(plan) != CONTRACTS_STATES;
    for (int i = d; i < plan->row_count && alone; i++)
        alone = !kept[i] || i == plan->ones_row;
    return alone && slabs == divide_up(round_up(d, OUTER_STEP) + OUTER_BLOCK, OUTER_TILE)
               ? round_up(divide_up(d, slabs), OUTER_STEP)
               : OUTER_TILE;
}

/* Places coordinates in slabs of vector_box each, and the row of ones behind those of the first slab. Returns the
 * number of blocks, in whole steps of coordinates, as dots read them. */
static int place_boxes(const fpa_plan *plan, fpa_outer_plan *outer)
{
    const int d = plan->head->d, box = outer->vector_box;
    for (int i = 0; i < d; i++)
        outer->row[i] = i / box * OUTER_TILE + i % box;
    outer->ones_row = outer->row[plan->ones_row] = box;
    const int rows = round_up(outer->row[d - 1] + 1, OUTER_STEP);
    return (rows > box ? rows : box + OUTER_BLOCK) / OUTER_BLOCK;
}

/* Places coordinates, projections and weighted rows, each padded with zero rows to a multiple of 16; then the row of
 * ones, which dots do not read. */
static int place_rows(const fpa_plan *plan, fpa_outer_plan *outer, const bool *kept)
{
    for (int i = 0; i < plan->row_count; i++)
        outer->row[i] = -1;
    outer->vector_box = choose_box(plan, outer, kept);
    if (outer->vector_box < OUTER_TILE)
        return place_boxes(plan, outer);
    int next = place_run(outer, kept, 0, plan->head->d, 0);
    for (int i = 0; plan->head->zeros && i < plan->head->d; i++)
        if (!kept[i])
            outer->row[i] = -1;
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_projection *projection = &plan->projections[i];
        const int rows = plan->head->matrices[projection->matrix].rows;
        next = place_run(outer, kept, projection->first_row, rows, next);
    }
    next = place_weighted(plan, outer, kept, next);
    return place_ones(plan, outer, kept, next);
}

static bool has_row(const fpa_dot *dot, int row)
{
    for (int r = 0; r < dot->row_count; r++)
        if (dot->rows[r] == row)
            return true;
    return false;
}

/* Whether a dot is a factor of a product of several dots. */
static bool is_factor(const fpa_plan *plan, int dot)
{
    const fpa_score *score = plan->score;
    for (int k = 0; k < score->monomial_count; k++) {
        int degree = 0;
        for (int i = 0; i < score->dot_count; i++)
            degree += score->monomials[k].power[i];
        if (degree > 1 && score->monomials[k].power[dot])
            return true;
    }
    return false;
}

/* Whether a dot is no factor of a product, but shares rows with one that is: these are then placed with the latter's
 * other rows. */
static bool comes_late(const fpa_plan *plan, int dot)
{
    for (int i = 0; i < plan->score->dot_count && !is_factor(plan, dot); i++)
        for (int r = 0; is_factor(plan, i) && r < plan->dots[dot].row_count; r++)
            if (has_row(&plan->dots[i], plan->dots[dot].rows[r]))
                return true;
    return false;
}

/* Places rows dot by dot, each padded with zero rows to a multiple of 16; late dots (comes_late) after the others;
 * then rows that only features use. Rows that a dot shares with an earlier one are gathered once more (gather_rows). */
static int place_by_dots(const fpa_plan *plan, fpa_outer_plan *outer, const bool *kept)
{
    int next = 0;
    outer->vector_box = OUTER_TILE;
    for (int i = 0; i < plan->row_count; i++)
        outer->row[i] = -1;
    for (int n = 0; n < 2 * plan->score->dot_count; n++) {
        const int i = n % plan->score->dot_count;
        const fpa_dot *dot = &plan->dots[i];
        if ((outer->late && comes_late(plan, i)) != (n >= plan->score->dot_count))
            continue;
        next = round_up(next, OUTER_STEP);
        for (int r = 0; r < dot->row_count; r++)
            if (outer->row[dot->rows[r]] < 0 && !outer_is_given(outer, dot->rows[r]))
                outer->row[dot->rows[r]] = next++;
    }
    next = round_up(next, OUTER_STEP);
    for (int i = 0; i < plan->row_count; i++)
        if (kept[i] && outer->row[i] < 0 && i != plan->ones_row && !outer_is_given(outer, i))
            outer->row[i] = next++;
    return outer_place_given(outer, place_ones(plan, outer, kept, round_up(next, OUTER_STEP)));
}

/* The inverse of vector->row, up to whole steps, with room for rows that dots gather. */
static void invert_rows(const fpa_plan *plan, arena *lasting, fpa_outer_plan *outer)
{
    size_t count = (size_t)round_up(OUTER_BLOCK * outer->row_blocks, OUTER_STEP);
    for (int i = 0; i < plan->score->dot_count; i++)
        count += (size_t)round_up(plan->dots[i].row_count, OUTER_STEP);
    outer->source = arena_array(lasting, count, sizeof *outer->source);
    for (size_t i = 0; i < count; i++)
        outer->source[i] = -1;
    for (int i = 0; i < plan->row_count; i++)
        if (outer->row[i] >= 0)
            outer->source[outer->row[i]] = i;
}

/* How many rows of a vector are in device memory: up to the last one that is not zero, in whole blocks, without
 * rows that are read as given; or the coordinates. */
static int count_stored(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    int rows = outer->given_rows ? OUTER_TILE * outer->given_slab : OUTER_BLOCK * outer->row_blocks;
    while (rows > OUTER_BLOCK && outer->source[rows - 1] < 0)
        rows--;
    return outer->coordinates ? plan->head->d : round_up(rows, OUTER_BLOCK);
}

/* The plan's row in row i of a vector that is the coordinates as given, -1: none. */
static int coordinate_at(const fpa_plan *plan, const fpa_outer_plan *outer, int i)
{
    const int box = outer->vector_box, coordinate = i / OUTER_TILE * box + i % OUTER_TILE;
    if (box < OUTER_TILE && i == box)
        return plan->ones_row;
    return i % OUTER_TILE < box && coordinate < plan->head->d ? coordinate : -1;
}

/* Whether row i of a vector is that row, or zero because that coordinate is zero for every token. */
static bool has_coordinate(const fpa_plan *plan, const fpa_outer_plan *outer, int i)
{
    return outer->source[i] == coordinate_at(plan, outer, i) || (plan->head->zeros && outer->source[i] < 0);
}

static void describe_rows(const fpa_plan *plan, fpa_outer_plan *outer)
{
    const int rows = OUTER_BLOCK * outer->row_blocks;
    outer->zero_row = -1;
    for (int i = rows - 1; i >= 0; i--)
        if (outer->source[i] < 0)
            outer->zero_row = i;
    outer->coordinates = rows >= plan->head->d;
    for (int i = 0; i < rows && outer->coordinates; i++)
        outer->coordinates = has_coordinate(plan, outer, i);
    outer->vector_rows = count_stored(plan, outer);
}

/* ---- dots ---- */

static int count_steps(const fpa_outer_plan *outer)
{
    return round_up(OUTER_BLOCK * outer->row_blocks, OUTER_STEP) / OUTER_STEP;
}

/* Whether a step of 16 rows has no rows but `rows` of a dot, and zeros. */
static bool is_whole(const fpa_outer_plan *outer, int step, int rows)
{
    for (int r = 0; r < OUTER_STEP; r++)
        rows -= outer->source[OUTER_STEP * step + r] >= 0;
    return rows == 0;
}

/* Adds rows of a dot whose steps also have other rows to the vector once more, in new steps; returns how many. */
static int gather_rows(fpa_outer_plan *outer, const fpa_dot *dot, const bool *whole, int *steps)
{
    const int first = count_steps(outer);
    int next = OUTER_STEP * first, count = 0;
    for (int r = 0; r < dot->row_count; r++)
        if (!whole[outer->row[dot->rows[r]] / OUTER_STEP])
            outer->source[next++] = dot->rows[r];
    if (next > OUTER_STEP * first)
        outer->row_blocks = round_up(next, OUTER_STEP) / OUTER_BLOCK;
    for (int s = first; OUTER_STEP * s < next; s++)
        steps[count++] = s;
    return count;
}

/* The steps of a dot: those that have its rows alone, ascending, then gathered ones; returns how many. */
static int dot_steps(fpa_outer_plan *outer, const fpa_dot *dot, int *rows_of, bool *whole, int *steps)
{
    const int most = count_steps(outer);
    int count = 0;
    for (int s = 0; s < most; s++)
        rows_of[s] = 0;
    for (int r = 0; r < dot->row_count; r++)
        rows_of[outer->row[dot->rows[r]] / OUTER_STEP]++;
    for (int s = 0; s < most; s++) {
        whole[s] = rows_of[s] > 0 && is_whole(outer, s, rows_of[s]);
        if (whole[s])
            steps[count++] = s;
    }
    return count + gather_rows(outer, dot, whole, steps + count);
}

static void place_dots(const fpa_plan *plan, arena *memory, arena *lasting, fpa_outer_plan *outer)
{
    const int dots = plan->score->dot_count;
    int most = count_steps(outer);
    for (int i = 0; i < dots; i++)
        most += round_up(plan->dots[i].row_count, OUTER_STEP) / OUTER_STEP;
    int *rows_of = arena_array(memory, most, sizeof *rows_of);
    bool *whole = arena_array(memory, most, sizeof *whole);
    outer->dot_first = arena_array(lasting, dots + 1, sizeof *outer->dot_first);
    outer->dot_step = arena_array(lasting, (size_t)dots * most, sizeof *outer->dot_step);
    for (int i = 0; i < dots; i++)
        outer->dot_first[i + 1] = outer->dot_first[i] + dot_steps(outer, &plan->dots[i], rows_of, whole,
                                                                  outer->dot_step + outer->dot_first[i]);
}

/* ---- the plan ---- */

fpa_prefix_kind outer_prefix_kind(const fpa_outer_plan *outer, int l)
{
    bool block = true, row = true;
    for (int i = 0; i < outer->groups * OUTER_BLOCK; i++) {
        const int *first = outer->prefix + i / OUTER_BLOCK * OUTER_BLOCK * outer->prefix_factors;
        const int own = outer->prefix[i * outer->prefix_factors + l];
        const int prefixes = OUTER_BLOCK / outer->group_parts[i / OUTER_BLOCK];
        block &= first[l] % prefixes == 0 && own == first[l] + i % prefixes;
        row &= own == first[l];
    }
    return block ? PREFIX_BLOCK : row ? PREFIX_ROW : PREFIX_ANY;
}

/* The order of rows in vectors: dot by dot, or by their kind. */
static void lay_vectors(const fpa_plan *plan, const bool *kept, bool by_dots, arena *memory, arena *lasting,
                        fpa_outer_plan *outer)
{
    outer->row = arena_array(lasting, plan->row_count, sizeof *outer->row);
    outer->by_dots = by_dots;
    outer->row_blocks = by_dots ? place_by_dots(plan, outer, kept) : place_rows(plan, outer, kept);
    if (outer->rows) /* whole tiles of 64 rows */
        outer->row_blocks = round_up(outer->row_blocks, OUTER_BLOCK);
    invert_rows(plan, lasting, outer);
    place_dots(plan, memory, lasting, outer);
    describe_rows(plan, outer);
}

/* Whether the rows of each run-time diagonal are consecutive in a vector, as pack_rows computes them. */
static bool keeps_diagonals(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_matrix *matrix = &plan->head->matrices[plan->projections[i].matrix];
        const int *row = outer->row + plan->projections[i].first_row;
        const bool none = outer->products && row[0] < 0; /* they are only factors of product rows */
        for (int r = 1; r < matrix->rows && matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL; r++)
            if (none ? row[r] >= 0 : row[r] != row[0] + r || row[0] < 0)
                return false;
    }
    return true;
}

/* Replaces vectors by ones whose last slabs are coordinates as given (outer_given.h), if these are no longer. */
static void give_rows(const fpa_plan *plan, const bool *kept, arena *memory, arena *lasting,
                      fpa_outer_plan *outer)
{
    fpa_outer_plan other = *outer;
    if (!outer_may_be_given(plan, outer))
        return;
    outer_choose_given(plan, kept, &other);
    if (!other.given_rows)
        return;
    lay_vectors(plan, kept, true, memory, lasting, &other);
    if (outer_is_as_short(plan, &other, outer) && keeps_diagonals(plan, &other))
        *outer = other;
}

/* Vectors that are the coordinates as given, if these are all rows; else the shorter one of both orders. */
static void choose_vectors(const fpa_plan *plan, const bool *kept, arena *memory, arena *lasting,
                           fpa_outer_plan *outer)
{
    fpa_outer_plan other = *outer;
    lay_vectors(plan, kept, outer->products, memory, lasting, outer);
    if (outer->products || outer->coordinates)
        return;
    lay_vectors(plan, kept, true, memory, lasting, &other);
    if (other.row_blocks < outer->row_blocks && keeps_diagonals(plan, &other))
        *outer = other;
}

static void plan_vectors(const fpa_plan *plan, arena *memory, arena *lasting, fpa_outer_plan *outer)
{
    bool *kept = arena_array(memory, plan->row_count, sizeof *kept);
    mark_rows(plan, outer->rows ? 0 : outer->prefix_factors, kept);
    choose_vectors(plan, kept, memory, lasting, outer);
    give_rows(plan, kept, memory, lasting, outer);
}

static bool begins_amid_block(const fpa_outer_plan *outer)
{
    bool amid = false;
    for (int l = 0; l < outer->prefix_factors; l++)
        for (int g = 0; g < outer->groups && outer_prefix_kind(outer, l) == PREFIX_BLOCK; g++)
            amid |= outer->prefix[g * OUTER_BLOCK * outer->prefix_factors + l] % OUTER_BLOCK > 0;
    return amid;
}

static void plan_in(const fpa_plan *plan, int columns, int warpgroup_tiles, int parts, arena *memory,
                    arena *lasting, fpa_outer_plan *outer)
{
    outer_tiling tiling = {0};
    double slots = 0;
    const int most = parts & ~(OUTER_CUT | OUTER_TURNED);
    plan_vectors(plan, memory, lasting, outer);
    if (outer->products && !keeps_diagonals(plan, outer)) {
        refuse(outer, "only some rows of a run-time diagonal matrix are factors");
        return;
    }
    if (outer->rows) {
        plan_row_tiles(plan, warpgroup_tiles, memory, lasting, outer);
        return;
    }
    if (outer->products)
        plan_block_tiles(plan, outer, memory, &tiling, &slots);
    else /* with several suffix blocks a tile, groups of few prefixes need not be merged */
        tiles_form(plan, outer, most == 1 && contraction_of(plan) != CONTRACTS_STATES, parts & OUTER_TURNED,
                   memory, &tiling, &slots);
    if (tiles_are_sparse(plan, slots)) {
        char why[sizeof outer->why];
        snprintf(why, sizeof why, "its features fill only %.0f %% of tiles of 8 x 8",
                 100 * (double)plan->features / slots);
        refuse(outer, why);
        return;
    }
    if (!tiling.tile_count) {
        refuse(outer, "two of its features are the same product");
        return;
    }
    outer->used = true;
    outer_tiling cut = tiling, parted;
    if (parts & OUTER_CUT)
        tiles_cut(&tiling, most, memory, &cut);
    parted = cut;
    if (most > 1)
        tiles_part(&cut, most, memory, &parted);
    tiles_to_strips(plan, &parted, columns, warpgroup_tiles, memory, lasting, outer);
    outer->cut = begins_amid_block(outer);
}

static void plan_with(const fpa_plan *plan, int columns, int warpgroup_tiles, int parts, arena *lasting,
                      fpa_outer_plan *outer)
{
    arena *memory = arena_scratch(lasting);
    plan_in(plan, columns, warpgroup_tiles, parts, memory, lasting, outer);
    arena_free(memory);
}

void plan_outer(const fpa_plan *plan, int columns, int warpgroup_tiles, int parts, arena *lasting,
                fpa_outer_plan *outer)
{
    const int factors = feature_factors(plan) - 1;
    *outer = (fpa_outer_plan){.prefix_factors = factors ? factors : 1, .rows = !factors};
    plan_with(plan, columns, warpgroup_tiles, parts, lasting, outer);
}

void plan_outer_of_products(const fpa_plan *plan, int columns, int warpgroup_tiles, int parts, bool late,
                            arena *lasting, fpa_outer_plan *outer)
{
    *outer = (fpa_outer_plan){
        .prefix_factors = 1, .products = true, .late = late, .rows = feature_factors(plan) == 1};
    plan_with(plan, columns, warpgroup_tiles, parts, lasting, outer);
}

bool outer_has_late_dots(const fpa_plan *plan)
{
    for (int i = 0; i < plan->score->dot_count; i++)
        if (comes_late(plan, i))
            return true;
    return false;
}

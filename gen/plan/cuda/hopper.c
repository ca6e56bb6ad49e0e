/* plan_hopper: rows of a vector, dots by blocks of rows; and whether tiles suit the head at all. */
#include "hopper.h"

#include <stdio.h>

#include "tiles.h"

static fpa_status refuse(fpa_hopper_plan *hopper, const char *why)
{
    *hopper = (fpa_hopper_plan){.used = false};
    snprintf(hopper->why, sizeof hopper->why, "%s", why);
    return FPA_OK;
}

static int centre_factors(const fpa_plan *plan)
{
    int factors = 0;
    for (int i = 0; i < plan->piece_count; i++)
        if (plan->pieces[i].prefix_count > factors)
            factors = plan->pieces[i].prefix_count;
    return factors;
}

/* ---- rows ---- */

/* Which rows features or dots name; shorter features need the row of ones. */
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

/* A run of rows that are computed together is kept as a whole: the first hopper row behind it. */
static int place_run(fpa_hopper_plan *hopper, const bool *kept, int first, int count, int next)
{
    bool any = false;
    for (int i = 0; i < count; i++)
        any |= kept[first + i];
    if (!any)
        return next;
    for (int i = 0; i < count; i++)
        hopper->row[first + i] = next + i;
    return round_up(next + count, HOPPER_STEP);
}

/* True when some dot has one of two rows only: blocks of a dot hold no other dot's rows. */
static bool dots_part(const fpa_plan *plan, int a, int b)
{
    for (int i = 0; i < plan->score->dot_count; i++) {
        int found = 0;
        for (int r = 0; r < plan->dots[i].row_count; r++)
            found += plan->dots[i].rows[r] == a || plan->dots[i].rows[r] == b;
        if (found == 1)
            return true;
    }
    return false;
}

/* Weighted rows follow each other as in the plan; a run that a dot ends or begins starts 16 rows. */
static int place_weighted(const fpa_plan *plan, fpa_hopper_plan *hopper, const bool *kept, int next)
{
    int last = -1;
    for (int i = 0; i < plan->weighted_count; i++) {
        const int row = plan->weighted[i].row;
        if (!kept[row])
            continue;
        if (last < 0 || row != last + 1 || dots_part(plan, last, row))
            next = round_up(next, HOPPER_STEP);
        hopper->row[row] = next++;
        last = row;
    }
    return round_up(next, HOPPER_STEP);
}

/* Coordinates, projections and weighted rows, each padded with zero rows up to 16; the row of ones in a
 * block of its own, which dots do not read. */
static int place_rows(const fpa_plan *plan, fpa_hopper_plan *hopper, const bool *kept)
{
    for (int i = 0; i < plan->row_count; i++)
        hopper->row[i] = -1;
    int next = place_run(hopper, kept, 0, plan->head->d, 0);
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_projection *projection = &plan->projections[i];
        const int rows = plan->head->matrices[projection->matrix].rows;
        next = place_run(hopper, kept, projection->first_row, rows, next);
    }
    next = place_weighted(plan, hopper, kept, next);
    hopper->ones_row = -1;
    if (kept[plan->ones_row]) {
        hopper->ones_row = hopper->row[plan->ones_row] = next;
        next += HOPPER_BLOCK;
    }
    return next / HOPPER_BLOCK;
}

/* The inverse of hopper->row, up to whole steps, with room for rows that dots gather. */
static fpa_status invert_rows(fpa_plan *plan, fpa_hopper_plan *hopper, fpa_error *error)
{
    size_t count = (size_t)round_up(HOPPER_BLOCK * hopper->row_blocks, HOPPER_STEP);
    for (int i = 0; i < plan->score->dot_count; i++)
        count += (size_t)round_up(plan->dots[i].row_count, HOPPER_STEP);
    hopper->source = arena_array(&plan->memory, count, sizeof *hopper->source);
    if (!hopper->source)
        return fail_memory(error);
    for (size_t i = 0; i < count; i++)
        hopper->source[i] = -1;
    for (int i = 0; i < plan->row_count; i++)
        if (hopper->row[i] >= 0)
            hopper->source[hopper->row[i]] = i;
    return FPA_OK;
}

static void describe_rows(const fpa_plan *plan, fpa_hopper_plan *hopper)
{
    const int rows = HOPPER_BLOCK * hopper->row_blocks;
    hopper->zero_row = -1;
    for (int i = rows - 1; i >= 0; i--)
        if (hopper->source[i] < 0)
            hopper->zero_row = i;
    hopper->natural = rows == plan->head->d && rows % HOPPER_STEP == 0;
    for (int i = 0; i < rows && hopper->natural; i++)
        hopper->natural = hopper->source[i] == i;
}

/* ---- dots ---- */

static int count_steps(const fpa_hopper_plan *hopper)
{
    return round_up(HOPPER_BLOCK * hopper->row_blocks, HOPPER_STEP) / HOPPER_STEP;
}

/* True when a step's rows are all the dot's, of which it has `rows`, or zero. */
static bool is_whole(const fpa_hopper_plan *hopper, int step, int rows)
{
    for (int r = 0; r < HOPPER_STEP; r++)
        rows -= hopper->source[HOPPER_STEP * step + r] >= 0;
    return rows == 0;
}

/* Rows of a dot that share their steps with others' are gathered once more, in new steps. */
static int gather_rows(fpa_hopper_plan *hopper, const fpa_dot *dot, const bool *whole, int *steps)
{
    const int first = count_steps(hopper);
    int next = HOPPER_STEP * first, count = 0;
    for (int r = 0; r < dot->row_count; r++)
        if (!whole[hopper->row[dot->rows[r]] / HOPPER_STEP])
            hopper->source[next++] = dot->rows[r];
    if (next > HOPPER_STEP * first)
        hopper->row_blocks = round_up(next, HOPPER_STEP) / HOPPER_BLOCK;
    for (int s = first; HOPPER_STEP * s < next; s++)
        steps[count++] = s;
    return count;
}

/* Steps of a dot: whole ones, ascending, then those that are gathered; returns how many. */
static int dot_steps(fpa_hopper_plan *hopper, const fpa_dot *dot, int *rows_of, bool *whole, int *steps)
{
    const int most = count_steps(hopper);
    int count = 0;
    for (int s = 0; s < most; s++)
        rows_of[s] = 0;
    for (int r = 0; r < dot->row_count; r++)
        rows_of[hopper->row[dot->rows[r]] / HOPPER_STEP]++;
    for (int s = 0; s < most; s++) {
        whole[s] = rows_of[s] > 0 && is_whole(hopper, s, rows_of[s]);
        if (whole[s])
            steps[count++] = s;
    }
    return count + gather_rows(hopper, dot, whole, steps + count);
}

static fpa_status place_dots(fpa_plan *plan, fpa_hopper_plan *hopper, arena *memory, fpa_error *error)
{
    const int dots = plan->score->dot_count;
    int most = count_steps(hopper);
    for (int i = 0; i < dots; i++)
        most += round_up(plan->dots[i].row_count, HOPPER_STEP) / HOPPER_STEP;
    int *rows_of = arena_array(memory, most, sizeof *rows_of);
    bool *whole = arena_array(memory, most, sizeof *whole);
    hopper->dot_first = arena_array(&plan->memory, dots + 1, sizeof *hopper->dot_first);
    hopper->dot_step = arena_array(&plan->memory, (size_t)dots * most, sizeof *hopper->dot_step);
    if (!rows_of || !whole || !hopper->dot_first || !hopper->dot_step)
        return fail_memory(error);
    for (int i = 0; i < dots; i++)
        hopper->dot_first[i + 1] = hopper->dot_first[i] + dot_steps(hopper, &plan->dots[i], rows_of, whole,
                                                                    hopper->dot_step + hopper->dot_first[i]);
    return FPA_OK;
}

/* ---- the plan ---- */

fpa_centre_kind hopper_centre_kind(const fpa_hopper_plan *hopper, int l)
{
    bool block = true, row = true;
    for (int i = 0; i < hopper->groups * HOPPER_BLOCK; i++) {
        const int *first = hopper->centre + i / HOPPER_BLOCK * HOPPER_BLOCK * hopper->centre_factors;
        const int own = hopper->centre[i * hopper->centre_factors + l];
        block &= first[l] % HOPPER_BLOCK == 0 && own == first[l] + i % HOPPER_BLOCK;
        row &= own == first[l];
    }
    return block ? CENTRE_BLOCK : row ? CENTRE_ROW : CENTRE_ANY;
}

static fpa_status plan_vectors(fpa_plan *plan, fpa_hopper_plan *hopper, arena *memory, fpa_error *error)
{
    bool *kept = arena_array(memory, plan->row_count, sizeof *kept);
    hopper->row = arena_array(&plan->memory, plan->row_count, sizeof *hopper->row);
    if (!kept || !hopper->row)
        return fail_memory(error);
    mark_rows(plan, hopper->centre_factors, kept);
    hopper->row_blocks = place_rows(plan, hopper, kept);
    fpa_status status;
    if ((status = invert_rows(plan, hopper, error)) || (status = place_dots(plan, hopper, memory, error)))
        return status;
    describe_rows(plan, hopper);
    return FPA_OK;
}

static fpa_status plan_in(fpa_plan *plan, int warpgroup_tiles, arena *memory, fpa_hopper_plan *hopper,
                          fpa_error *error)
{
    fpa_status status = plan_vectors(plan, hopper, memory, error);
    if (status)
        return status;
    hopper_tiling tiling = {0};
    double slots = 0;
    if ((status = tiles_form(plan, hopper, memory, &tiling, &slots, error)))
        return status;
    if (tiles_are_sparse(plan, slots)) {
        char why[sizeof hopper->why];
        snprintf(why, sizeof why, "its features fill only %.0f %% of tiles of 8 x 8",
                 100 * (double)plan->features / slots);
        return refuse(hopper, why);
    }
    hopper->used = true;
    return tiles_to_stars(plan, &tiling, warpgroup_tiles, memory, hopper, error);
}

fpa_status plan_hopper(fpa_plan *plan, int warpgroup_tiles, fpa_hopper_plan *hopper, fpa_error *error)
{
    *hopper = (fpa_hopper_plan){.centre_factors = centre_factors(plan)};
    if (!hopper->centre_factors)
        return refuse(hopper, "its features are rows themselves");
    arena memory = {0};
    fpa_status status = plan_in(plan, warpgroup_tiles, &memory, hopper, error);
    arena_free(&memory);
    return status;
}

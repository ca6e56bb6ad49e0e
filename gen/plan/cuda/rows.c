/* plan_cuda_rows: where packed rows lie, and which of them features and dots are made of. */
#include "feature_rows.h"
#include "base/round.h"
#include "panel_rows.h"
#include "parts.h"

/* ---- rows ---- */

static bool begins_dot(const fpa_plan *plan, int row)
{
    for (int i = 0; i < plan->score->dot_count; i++)
        if (plan->dots[i].rows[0] == row)
            return true;
    return false;
}

/* Coordinates first, with zero rows up to a whole step of 16; then the matrices, and weighted rows. Of gradients, whose sums are of 8 rows, a dot's
 * begin with a block of them. */
static void place_rows(const fpa_plan *plan, arena *memory, fpa_cuda_rows *rows)
{
    const int d = plan->head->d;
    rows->row = arena_array(memory, plan->row_count, sizeof *rows->row);
    for (int i = 0; i < d; i++)
        rows->row[i] = i;
    int next = round_up(d, 16);
    rows->ones_row = rows->row[plan->ones_row] = next++;
    rows->zero_row = next++;
    next = round_up(next, 2);
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_projection *projection = &plan->projections[i];
        const int count = plan->head->matrices[projection->matrix].rows;
        for (int r = 0; r < count; r++)
            rows->row[projection->first_row + r] = next + r;
        next += count;
    }
    for (int i = 0; i < plan->weighted_count; i++) {
        if (plan->backward && begins_dot(plan, plan->weighted[i].row))
            next = round_up(next, 8);
        rows->row[plan->weighted[i].row] = next++;
    }
    rows->row_count = next;
}

/* ---- features ---- */

/* Row of factor l of a piece's feature i. */
static int piece_row(const fpa_cuda_rows *rows, const fpa_piece *piece, int l, int i)
{
    if (l < piece->prefix_count)
        return rows->row[piece->prefix[l]];
    return l == rows->factors - 1 ? rows->row[piece->base + i] : rows->ones_row;
}

static void fill_features(const fpa_plan *plan, fpa_cuda_rows *rows)
{
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++) {
            int64_t feature = plan->pieces[p].feature + i;
            for (int l = 0; l < rows->factors; l++)
                rows->factor_row[l * rows->features + feature] = piece_row(rows, &plan->pieces[p], l, i);
            rows->weight[feature] = plan->pieces[p].weight;
        }
    for (int l = 0; l < rows->factors; l++)
        for (int f = (int)plan->features; f < rows->features; f++)
            rows->factor_row[l * rows->features + f] = rows->zero_row;
}

/* True when within every run of `run` units factor l has the rows of the run's first unit. */
static bool is_shared(const fpa_cuda_rows *rows, int l, int run)
{
    const int *row = rows->factor_row + l * rows->features;
    for (int f = 0; f < rows->units * CUDA_UNIT; f++)
        if (row[f] != row[f / (run * CUDA_UNIT) * run * CUDA_UNIT + f % CUDA_UNIT])
            return false;
    return true;
}

void cuda_share_factors(arena *memory, fpa_cuda_rows *rows)
{
    rows->shared = arena_array(memory, rows->factors, sizeof *rows->shared);
    for (int l = 0; l < rows->factors; l++)
        rows->shared[l] = is_shared(rows, l, 4) ? 4 : is_shared(rows, l, 2) ? 2 : 1;
}

static void place_features(const fpa_plan *plan, arena *memory, fpa_cuda_rows *rows)
{
    rows->factors = feature_factors(plan);
    const size_t size = (size_t)rows->factors * (size_t)rows->features;
    rows->factor_row = arena_array(memory, size, sizeof *rows->factor_row);
    rows->weight = arena_array(memory, rows->features, sizeof *rows->weight);
    fill_features(plan, rows);
    cuda_share_factors(memory, rows);
}

void cuda_choose_slices(const fpa_plan *plan, int units, fpa_cuda_rows *rows)
{
    rows->units = units;
    const int wanted = divide_up(rows->units, CUDA_WARPS);
    /* fp32 needs registers for addresses of every unit, or for factors in two parts */
    const bool tight =
        cuda_columns(plan->head, PORTABLE_COLUMNS).all > 8 || plan->head->products == FPA_PRODUCTS_TF32X3;
    const int most = rows->element == 4 && tight ? 2 : 4;
    /* coordinates of a block that has all of them need not be packed */
    const bool one = plan->target->warpgroups && plan->features == plan->head->d && wanted <= most;
    rows->warp_units = wanted >= most || (one && wanted > 2) ? most : wanted >= 2 ? 2 : 1;
    if (wanted == 3 && most > 3 && plan->written->window) /* one block has all features */
        rows->warp_units = 3;
    rows->slices = (rows->units + CUDA_WARPS * rows->warp_units - 1) / (CUDA_WARPS * rows->warp_units);
    rows->features = rows->slices * CUDA_WARPS * rows->warp_units * CUDA_UNIT;
}

/* ---- dots ---- */

/* Rows behind the last one of consecutive rows are zero up to the next multiple of 16. */
static bool ends_in_zeros(const fpa_plan *plan, const fpa_dot *dot)
{
    const int first = dot->rows[0], last = dot->rows[dot->row_count - 1];
    return dot->row_count % 16 == 0 || (first % 16 == 0 && last + 1 == plan->head->d);
}

static bool is_consecutive(const fpa_plan *plan, const fpa_cuda_rows *rows, const fpa_dot *dot)
{
    for (int i = 1; i < dot->row_count; i++)
        if (rows->row[dot->rows[i]] != rows->row[dot->rows[i - 1]] + 1)
            return false;
    return ends_in_zeros(plan, dot);
}

static void place_dots(const fpa_plan *plan, arena *memory, fpa_cuda_rows *rows)
{
    rows->dot_count = plan->score->dot_count;
    rows->dots = arena_array(memory, rows->dot_count, sizeof *rows->dots);
    for (int i = 0; i < rows->dot_count; i++) {
        const int count = plan->dots[i].row_count, steps = round_up(count, 16) / 16;
        rows->dots[i] = (fpa_cuda_dot){.first = rows->dot_steps, .steps = steps, .rows = count};
        rows->dot_steps += steps;
    }
    rows->dot_rows = arena_array(memory, 16 * rows->dot_steps, sizeof *rows->dot_rows);
    for (int i = 0; i < rows->dot_count; i++) {
        const fpa_dot *dot = &plan->dots[i];
        int *row = rows->dot_rows + 16 * rows->dots[i].first;
        for (int r = 0; r < 16 * rows->dots[i].steps; r++)
            row[r] = r < dot->row_count ? rows->row[dot->rows[r]] : rows->zero_row;
        rows->dots[i].base = is_consecutive(plan, rows, dot) ? row[0] : -1;
    }
}

/* Linear attention on the coordinates themselves, on tensor cores: rows by 16 are units as they are. */
static bool are_coordinates(const fpa_plan *plan, const fpa_cuda_rows *rows)
{
    const fpa_score *score = plan->score;
    if (rows->element != 2 || rows->factors != 1 || plan->features != plan->head->d ||
        plan->head->d % CUDA_UNIT || plan->projection_count || plan->weighted_count)
        return false;
    if (score->dot_count != 1 || rows->dots[0].base != 0 || plan->dots[0].row_count != plan->head->d ||
        score->monomial_count != 1 || score->monomials[0].power[0] != 1)
        return false;
    for (int f = 0; f < plan->features; f++)
        if (rows->factor_row[f] != f)
            return false;
    return true;
}

const fpa_cuda_rows *plan_cuda_rows(const fpa_plan *plan, arena *memory)
{
    fpa_cuda_rows *rows = arena_alloc(memory, sizeof *rows);
    rows->element = (int)dtype_size(plan->head->dtype);
    cuda_choose_slices(plan, (int)divide_up(plan->features, CUDA_UNIT), rows);
    place_rows(plan, memory, rows);
    place_features(plan, memory, rows);
    place_dots(plan, memory, rows);
    rows->coordinates = are_coordinates(plan, rows);
    plan_panel_rows(plan, memory, rows);
    return rows;
}

/* plan_cuda_rows: where packed rows lie, and which of them features and dots are made of. */
#include "parts.h"

/* ---- rows ---- */

/* Coordinates first, with zero rows up to a whole step of 16; then the matrices, and weighted rows. */
static fpa_status place_rows(fpa_plan *plan, fpa_error *error)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const int d = plan->head->d;
    cuda->row = arena_array(&plan->memory, plan->row_count, sizeof *cuda->row);
    if (!cuda->row)
        return fail_memory(error);
    for (int i = 0; i < d; i++)
        cuda->row[i] = i;
    int next = round_up(d, 16);
    cuda->ones_row = cuda->row[plan->ones_row] = next++;
    cuda->zero_row = next++;
    next = round_up(next, 2);
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_projection *projection = &plan->projections[i];
        const int rows = plan->head->matrices[projection->matrix].rows;
        for (int r = 0; r < rows; r++)
            cuda->row[projection->first_row + r] = next + r;
        next += rows;
    }
    for (int i = 0; i < plan->weighted_count; i++)
        cuda->row[plan->weighted[i].row] = next++;
    cuda->row_count = next;
    return FPA_OK;
}

/* ---- features ---- */

static int count_factors(const fpa_plan *plan)
{
    int factors = 1;
    for (int i = 0; i < plan->piece_count; i++)
        factors = largest(factors, plan->pieces[i].prefix_count + 1);
    return factors;
}

/* Row of factor l of a piece's feature i. */
static int piece_row(const fpa_plan *plan, const fpa_piece *piece, int l, int i)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    if (l < piece->prefix_count)
        return cuda->row[piece->prefix[l]];
    return l == cuda->factors - 1 ? cuda->row[piece->base + i] : cuda->ones_row;
}

static void fill_features(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++) {
            int64_t feature = plan->pieces[p].feature + i;
            for (int l = 0; l < cuda->factors; l++)
                cuda->factor_row[l * cuda->features + feature] = piece_row(plan, &plan->pieces[p], l, i);
            cuda->weight[feature] = plan->pieces[p].weight;
        }
    for (int l = 0; l < cuda->factors; l++)
        for (int f = (int)plan->features; f < cuda->features; f++)
            cuda->factor_row[l * cuda->features + f] = cuda->zero_row;
}

/* True when within every run of `run` units factor l has the rows of the run's first unit. */
static bool is_shared(const fpa_cuda_plan *cuda, int l, int run)
{
    const int *row = cuda->factor_row + l * cuda->features;
    for (int f = 0; f < cuda->units * CUDA_UNIT; f++)
        if (row[f] != row[f / (run * CUDA_UNIT) * run * CUDA_UNIT + f % CUDA_UNIT])
            return false;
    return true;
}

static fpa_status place_features(fpa_plan *plan, fpa_error *error)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    cuda->factors = count_factors(plan);
    size_t size = (size_t)cuda->factors * (size_t)cuda->features;
    cuda->factor_row = arena_array(&plan->memory, (int)size, sizeof *cuda->factor_row);
    cuda->weight = arena_array(&plan->memory, cuda->features, sizeof *cuda->weight);
    cuda->shared = arena_array(&plan->memory, cuda->factors, sizeof *cuda->shared);
    if (!cuda->factor_row || !cuda->weight || !cuda->shared)
        return fail_memory(error);
    fill_features(plan);
    for (int l = 0; l < cuda->factors; l++)
        cuda->shared[l] = is_shared(cuda, l, 4) ? 4 : is_shared(cuda, l, 2) ? 2 : 1;
    return FPA_OK;
}

/* ---- dots ---- */

/* Rows behind the last one of consecutive rows are zero up to the next multiple of 16. */
static bool ends_in_zeros(const fpa_plan *plan, const fpa_dot *dot)
{
    const int first = dot->rows[0], last = dot->rows[dot->row_count - 1];
    return dot->row_count % 16 == 0 || (first % 16 == 0 && last + 1 == plan->head->d);
}

static bool is_consecutive(const fpa_plan *plan, const fpa_dot *dot)
{
    for (int i = 1; i < dot->row_count; i++)
        if (plan->cuda.row[dot->rows[i]] != plan->cuda.row[dot->rows[i - 1]] + 1)
            return false;
    return ends_in_zeros(plan, dot);
}

static fpa_status place_dots(fpa_plan *plan, fpa_error *error)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const int count = plan->score->dot_count;
    cuda->dot_first = arena_array(&plan->memory, count + 1, sizeof *cuda->dot_first);
    cuda->dot_base = arena_array(&plan->memory, count, sizeof *cuda->dot_base);
    if (!cuda->dot_first || !cuda->dot_base)
        return fail_memory(error);
    for (int i = 0; i < count; i++)
        cuda->dot_first[i + 1] = cuda->dot_first[i] + round_up(plan->dots[i].row_count, 16) / 16;
    cuda->dot_rows = arena_array(&plan->memory, 16 * cuda->dot_first[count], sizeof *cuda->dot_rows);
    if (!cuda->dot_rows)
        return fail_memory(error);
    for (int i = 0; i < count; i++) {
        const fpa_dot *dot = &plan->dots[i];
        int *rows = cuda->dot_rows + 16 * cuda->dot_first[i];
        for (int r = 0; r < round_up(dot->row_count, 16); r++)
            rows[r] = r < dot->row_count ? cuda->row[dot->rows[r]] : cuda->zero_row;
        cuda->dot_base[i] = is_consecutive(plan, dot) ? rows[0] : -1;
    }
    return FPA_OK;
}

fpa_status plan_cuda_rows(fpa_plan *plan, fpa_error *error)
{
    fpa_status status = place_rows(plan, error);
    if (!status)
        status = place_features(plan, error);
    return status ? status : place_dots(plan, error);
}

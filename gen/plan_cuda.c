/* plan_cuda: rows, features and shared memory of a head's CUDA kernels. */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int round_up(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

static int largest(int a, int b)
{
    return a > b ? a : b;
}

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

/* ---- shared memory ---- */

/* Bytes from one row to the next such that 8 rows of 16 bytes lie in different banks. */
static int odd_pitch(int bytes)
{
    int pitch = round_up(bytes, 16);
    return pitch / 16 % 2 ? pitch : pitch + 16;
}

static void set_pitches(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const int element = cuda->element;
    cuda->query_pitch = odd_pitch(cuda->query_tokens * element);
    cuda->key_pitch = odd_pitch(cuda->panel * element);
    cuda->raw_pitch = odd_pitch(plan->head->d * element);
    cuda->value_pitch = odd_pitch(8 * cuda->column_tiles * element);
    cuda->tile_pitch = odd_pitch(8 * cuda->all_tiles * element);
    cuda->output_pitch = odd_pitch(8 * cuda->column_tiles * (int)dtype_size(plan->head->dtype));
}

/* Once keys are packed their raw vectors make room for the next ones; values have two tiles, so that
 * loads run ahead. */
static int place_keys(const fpa_cuda_plan *cuda, fpa_cuda_memory *memory, int at)
{
    memory->keys = at;
    memory->raw = memory->keys + cuda->row_count * cuda->key_pitch;
    memory->values = memory->raw + cuda->panel * cuda->raw_pitch;
    return memory->values + 2 * cuda->panel * cuda->value_pitch;
}

static void place_memory(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const int gate = plan->head->gate ? 1 : 0;
    set_pitches(plan);
    fpa_cuda_memory *state = &cuda->state, *attend = &cuda->attend;
    state->gates = place_keys(cuda, state, 0);
    state->size = round_up(state->gates + gate * cuda->panel * 16, 16);
    attend->queries = 0;
    attend->gates = cuda->row_count * cuda->query_pitch;
    int rest = round_up(attend->gates + gate * 8 * (cuda->panel + cuda->query_tokens), 16);
    attend->tiles = rest;
    int size = place_keys(cuda, attend, rest);
    size = largest(size, rest + CUDA_STATE_STAGES * CUDA_GROUP * CUDA_UNIT * cuda->tile_pitch);
    size = largest(size, rest + cuda->query_tokens * cuda->raw_pitch);
    attend->size = largest(size, cuda->query_tokens * cuda->output_pitch);
}

/* Blocks that a multiprocessor should have at a time: few sums leave registers for more of them, which
 * hide each other's waits. tiles: of sums, 4 registers each. */
static int resident_blocks(const fpa_plan *plan, int tiles, int bytes)
{
    const int room = plan->target->shared_memory / (bytes + 1024);
    const int most = plan->cuda.element == 4 ? 1 : tiles <= 10 ? 4 : tiles <= 18 ? 3 : 2;
    return room < 1 ? 1 : room < most ? room : most;
}

/* Linear attention on the coordinates themselves, on tensor cores: rows by 16 are units as they are. */
static bool is_natural(const fpa_plan *plan)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const fpa_score *score = plan->score;
    if (cuda->element != 2 || cuda->factors != 1 || plan->features != plan->head->d ||
        plan->head->d % CUDA_UNIT || plan->projection_count || plan->weighted_count)
        return false;
    if (score->dot_count != 1 || cuda->dot_base[0] != 0 || plan->dots[0].row_count != plan->head->d ||
        score->monomial_count != 1 || score->monomials[0].power[0] != 1)
        return false;
    for (int f = 0; f < plan->features; f++)
        if (cuda->factor_row[f] != f)
            return false;
    return true;
}

/* Vectors of queries and keys that are read as they lie pass through two stages, as values do; o leaves
 * through a place of its own. */
static void place_natural(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    fpa_cuda_memory *flow = &cuda->flow, *state = &cuda->state;
    const int raw = cuda->panel * cuda->raw_pitch, gate = plan->head->gate ? 1 : 0;
    state->raw = 0;
    state->values = 2 * raw;
    state->gates = state->values + 2 * cuda->panel * cuda->value_pitch;
    state->size = state->gates + gate * cuda->panel * 16;
    flow->queries = 0;
    flow->raw = cuda->panel * cuda->output_pitch;
    flow->values = flow->raw + 4 * raw;
    flow->tiles = flow->values + 2 * cuda->panel * cuda->value_pitch;
    flow->gates = flow->tiles + cuda->features * cuda->tile_pitch;
    flow->size = flow->gates + gate * cuda->panel * 16;
}

enum { FLOW_STATIC = 256 }; /* bytes that the kernel of gated heads declares itself */

/* Queries and keys have a panel and raw vectors each; o leaves through the panel of queries. */
static void place_flow(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    fpa_cuda_memory *flow = &cuda->flow;
    const int panel = cuda->row_count * cuda->key_pitch, gate = plan->head->gate ? 1 : 0;
    flow->queries = 0;
    flow->keys = largest(panel, cuda->panel * cuda->output_pitch);
    flow->raw = flow->keys + panel;
    flow->values = flow->raw + 2 * cuda->panel * cuda->raw_pitch;
    flow->tiles = flow->values + 2 * cuda->panel * cuda->value_pitch;
    flow->gates = flow->tiles + cuda->features * cuda->tile_pitch;
    flow->size = flow->gates + gate * cuda->panel * 16;
}

static bool flow_fits(const fpa_plan *plan)
{
    return plan->cuda.flow.size + FLOW_STATIC <= plan->target->shared_memory;
}

static void choose_flow(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    place_flow(plan);
    cuda->flows =
        plan->head->causal && cuda->slices == 1 && cuda->panel == 16 * CUDA_WARPS && flow_fits(plan);
    if (!cuda->flows || !is_natural(plan))
        return;
    place_natural(plan);
    cuda->natural = flow_fits(plan);
    if (cuda->natural)
        return;
    place_memory(plan);
    place_flow(plan);
}

static void choose_resident(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    cuda->state_blocks = resident_blocks(plan, cuda->warp_units * cuda->all_tiles, cuda->state.size);
    cuda->attend_blocks = resident_blocks(plan, cuda->query_tiles * cuda->all_tiles + 16, cuda->attend.size);
    cuda->flow_blocks = resident_blocks(plan, (cuda->warp_units + 1) * cuda->all_tiles, cuda->flow.size);
    cuda->flow_blocks = cuda->flow_blocks > 3 ? 3 : cuda->flow_blocks;
}

/* ---- blocks ---- */

enum { ACCUMULATORS = 152 }; /* registers that a thread may spend on sums and scores, of 255 */

/* With one dot product several tiles of queries share the keys' fragments; with more there is no room. */
static int choose_score_tiles(const fpa_plan *plan, int tiles)
{
    int score = tiles;
    if (plan->score->dot_count != 1)
        return 1;
    while (score > 1 && 4 * tiles * plan->cuda.all_tiles + 8 * score > ACCUMULATORS)
        score /= 2;
    return score;
}

static bool fits(fpa_plan *plan, int tiles, int panel, int bytes)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const int dots = plan->score->dot_count > 1 ? plan->score->dot_count : 1;
    cuda->score_tiles = choose_score_tiles(plan, tiles);
    if (tiles > 1 && 4 * tiles * cuda->all_tiles + 8 * dots * cuda->score_tiles > ACCUMULATORS)
        return false;
    if (plan->chunk % (16 * CUDA_WARPS * tiles))
        return false;
    cuda->query_tiles = tiles;
    cuda->query_tokens = 16 * CUDA_WARPS * tiles;
    cuda->panel = panel;
    place_memory(plan);
    return largest(cuda->attend.size, cuda->state.size) <= bytes;
}

/* Large blocks read the state seldom; two blocks on a multiprocessor hide each other's waits. */
static fpa_status choose_blocks(fpa_plan *plan, fpa_error *error)
{
    static const int sizes[][2] = {{4, 64}, {4, 32}, {2, 64}, {2, 32}, {1, 64}, {1, 32}, {1, 16}};
    const int limit = plan->target->shared_memory, most = plan->cuda.element == 4 ? 2 : 4;
    for (int blocks = 2; blocks >= 1; blocks--)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (sizes[i][0] <= most &&
                fits(plan, sizes[i][0], sizes[i][1], limit / blocks - 1024 * (blocks - 1)))
                return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, plan->head->origin,
                "head '%s' needs %d bytes of shared memory a block, %s has %d: %d packed rows of %s a token "
                "are too many",
                plan->head->name, largest(plan->cuda.attend.size, plan->cuda.state.size), plan->target->name,
                limit, plan->cuda.row_count, dtype_name(plan->facts.arithmetic));
}

/* A token costs chunk (d + dv) FLOP for its chunk's own part, and its share of writing and reading
 * the state's copy, D dv / chunk elements; a byte moved is worth about 100 FLOP. */
static int choose_chunk(const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    double state = (double)plan->features * head->dv;
    double best = sqrt(2 * plan->cuda.element * 100 * state / (head->d + head->dv));
    int chunk = 128;
    while (chunk < 512 && 1.5 * chunk < best)
        chunk *= 2;
    return chunk;
}

static void choose_columns(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    int tiles = round_up(plan->head->dv, 8) / 8;
    cuda->column_blocks = (tiles + 7) / 8;
    cuda->column_tiles = (tiles + cuda->column_blocks - 1) / cuda->column_blocks;
    cuda->all_tiles = cuda->column_tiles + (plan->head->normalize != FPA_NORMALIZE_NONE);
}

static void choose_slices(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    cuda->units = (int)((plan->features + CUDA_UNIT - 1) / CUDA_UNIT);
    int wanted = (cuda->units + CUDA_WARPS - 1) / CUDA_WARPS;
    /* fp32 needs registers for addresses of every unit, or for factors in two parts */
    const bool tight = cuda->all_tiles > 8 || plan->head->products == FPA_PRODUCTS_TF32X3;
    const int most = cuda->element == 4 && tight ? 2 : 4;
    cuda->warp_units = wanted >= most ? most : wanted >= 2 ? 2 : 1;
    cuda->slices = (cuda->units + CUDA_WARPS * cuda->warp_units - 1) / (CUDA_WARPS * cuda->warp_units);
    cuda->features = cuda->slices * CUDA_WARPS * cuda->warp_units * CUDA_UNIT;
}

/* A thread of the recurrent form has 4 columns of a row; each warp keeps its sums of weights. */
static void place_step(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const int warps = CUDA_STEP_THREADS / 32;
    const int rows = (1 + CUDA_STEP_QUERIES) * cuda->row_count;
    cuda->step_features = CUDA_STEP_THREADS / ((plan->head->dv + 3) / 4);
    cuda->step_bytes = 4 * (CUDA_STEP_ROOM + rows + CUDA_STEP_QUERIES * warps);
}

static fpa_status check_limits(const fpa_plan *plan, fpa_error *error)
{
    const fpa_head *head = plan->head;
    int weights = 0;
    for (int i = 0; i < head->matrix_count; i++)
        weights += head->matrices[i].kind != FPA_MATRIX_CONSTANT;
    if (head->d > CUDA_MAX_WIDTH || head->dv > CUDA_MAX_WIDTH)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' has d = %d and dv = %d; CUDA kernels take at most %d", head->name, head->d,
                    head->dv, CUDA_MAX_WIDTH);
    if (plan->features > CUDA_MAX_FEATURES)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' has %lld features; CUDA kernels take at most %d", head->name,
                    (long long)plan->features, CUDA_MAX_FEATURES);
    if (weights > CUDA_MAX_WEIGHTS)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' has %d run-time matrices; CUDA kernels take at most %d", head->name, weights,
                    CUDA_MAX_WEIGHTS);
    return FPA_OK;
}

fpa_status plan_cuda(fpa_plan *plan, fpa_error *error)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    fpa_status status = check_limits(plan, error);
    if (status)
        return status;
    plan->facts.arithmetic = plan->head->dtype;
    cuda->element = (int)dtype_size(plan->facts.arithmetic);
    choose_columns(plan);
    choose_slices(plan);
    plan->chunk = plan->head->chunk ? round_up(plan->head->chunk, 16 * CUDA_WARPS) : choose_chunk(plan);
    if ((status = place_rows(plan, error)) || (status = place_features(plan, error)) ||
        (status = place_dots(plan, error)))
        return status;
    place_step(plan);
    status = choose_blocks(plan, error);
    if (status)
        return status;
    choose_flow(plan);
    choose_resident(plan);
    return FPA_OK;
}

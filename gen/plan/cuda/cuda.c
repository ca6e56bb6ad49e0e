/* plan_cuda: blocks, columns and chunks of a head's CUDA kernels. */
#include "parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    plan_cuda_memory(plan);
    return largest(cuda->chunk_output.size, cuda->state.size) <= bytes;
}

/* Large blocks read the state seldom; two blocks on a multiprocessor hide each other's waits. least: keys of
 * a panel. */
static bool find_blocks(fpa_plan *plan, int least)
{
    static const int sizes[][2] = {{4, 64}, {4, 32}, {2, 64}, {2, 32}, {1, 64}, {1, 32}, {1, 16}};
    const int limit = plan->target->shared_memory, most = plan->cuda.element == 4 ? 2 : 4;
    for (int blocks = 2; blocks >= 1; blocks--)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (sizes[i][0] <= most && sizes[i][1] >= least &&
                fits(plan, sizes[i][0], sizes[i][1], limit / blocks - 1024 * (blocks - 1)))
                return true;
    return false;
}

/* Where coordinates are read as they lie, a panel is a warpgroup's 64 tokens. */
static fpa_status choose_blocks(fpa_plan *plan, fpa_error *error)
{
    const bool coordinates =
        plan->target->warpgroups && plan->cuda.slices == 1 && plan_cuda_reads_coordinates(plan);
    if ((coordinates && find_blocks(plan, 16 * CUDA_WARPS)) || find_blocks(plan, 1))
        return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, plan->head->origin,
                "head '%s' needs %d bytes of shared memory a block, %s has %d: %d packed rows of %s a token "
                "are too many",
                plan->head->name, largest(plan->cuda.chunk_output.size, plan->cuda.state.size),
                plan->target->name, plan->target->shared_memory, plan->cuda.row_count,
                dtype_name(plan->facts.arithmetic));
}

/* A token costs chunk (d + dv) FLOP for its chunk's own part, and its share of writing and reading
 * the state's copy, D dv / chunk elements; a byte moved is worth `byte` FLOP. */
static int choose_chunk(const fpa_plan *plan, double byte, int most)
{
    const fpa_head *head = plan->head;
    double state = (double)plan->features * head->dv;
    double best = sqrt(2 * plan->cuda.element * byte * state / (head->d + head->dv));
    int chunk = 128;
    while (chunk < most && 1.5 * chunk < best)
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
    /* coordinates of a block that has all of them need not be packed */
    const bool one = plan->target->warpgroups && plan->features == plan->head->d && wanted <= most;
    cuda->warp_units = wanted >= most || (one && wanted > 2) ? most : wanted >= 2 ? 2 : 1;
    cuda->slices = (cuda->units + CUDA_WARPS * cuda->warp_units - 1) / (CUDA_WARPS * cuda->warp_units);
    cuda->features = cuda->slices * CUDA_WARPS * cuda->warp_units * CUDA_UNIT;
}

enum { LEAST_STAGES = 6 }; /* of the recurrent form: also room for the threads' sums */

/* A thread of the recurrent form has 4 columns of a row; each warp keeps its sums of weights. */
static void place_step(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const int warps = CUDA_DECODE_THREADS / 32;
    const int rows = (1 + CUDA_DECODE_QUERIES) * cuda->row_count;
    const bool joins = plan->target->capability >= 90;
    cuda->decode_features = CUDA_DECODE_THREADS / ((plan->head->dv + 3) / 4);
    const int values = round_up(plan->head->dv, 4);
    const int columns = values + (plan->head->normalize != FPA_NORMALIZE_NONE ? 4 : 0);
    const int clusters = joins ? CUDA_DECODE_CLUSTER * columns + 2 * CUDA_DECODE_BARRIERS : 0;
    /* the ring begins with a whole line of shared memory's banks */
    const int rest =
        4 * (CUDA_DECODE_ROOM + round_up(rows + values + CUDA_DECODE_QUERIES * warps + clusters, 32));
    const int stage = 16 * CUDA_DECODE_THREADS;
    /* of 16 bits a thread has 8 columns, and needs more registers for their sums */
    const bool narrow = plan->head->state_dtype != FPA_F32;
    cuda->decode_blocks = narrow || plan->target->capability < 90 ? 2 : 3;
    cuda->decode_stages = narrow ? 20 : 12;
    while (cuda->decode_stages > LEAST_STAGES &&
           cuda->decode_blocks * (rest + cuda->decode_stages * stage + 1024) >
               plan->target->shared_memory + 1024)
        cuda->decode_stages -= 2;
    if (cuda->decode_blocks * (rest + cuda->decode_stages * stage + 1024) >
        plan->target->shared_memory + 1024)
        cuda->decode_blocks--;
    cuda->decode_bytes = rest + cuda->decode_stages * stage;
    const bool whole =
        plan->head->dv * dtype_size(plan->head->state_dtype) % 16 == 0; /* rows, for bulk copies */
    cuda->decode_resident_bytes = joins && whole ? rest : 0;
    cuda->decode_resident_least =
        rest + 4 * (8 * CUDA_DECODE_QUERIES * CUDA_DECODE_THREADS - CUDA_DECODE_ROOM); /* for sums */
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

static fpa_status refuse_warpgroups(fpa_plan *plan, const char *why)
{
    plan->outer.used = false;
    snprintf(plan->outer.why, sizeof plan->outer.why, "%s", why);
    return FPA_OK;
}

/* Blocks of columns are wider than the portable kernels', and chunks longer: copies of the state are written
 * while the tensor cores work. */
static fpa_status use_warpgroups(fpa_plan *plan, fpa_error *error)
{
    fpa_cuda_plan *cuda = &plan->cuda, portable = *cuda;
    if (cuda->element != 2)
        return refuse_warpgroups(plan, "its products are no 16-bit numbers");
    if (cuda->is_fused)
        return refuse_warpgroups(plan, "its state is small enough for one pass");
    warpgroup_columns(plan, &cuda->column_blocks, &cuda->column_tiles, &cuda->all_tiles);
    fpa_status status = plan_outer(plan, warpgroup_tiles(cuda->all_tiles), &plan->outer, error);
    if (!status && plan->outer.used)
        plan_split(plan);
    if (!status && plan->outer.used && !plan->outer.coordinates && !plan_pack(plan))
        status = refuse_warpgroups(plan, "a block of its packed rows does not fit into shared memory");
    if (status || !plan->outer.used) {
        *cuda = portable;
        return status;
    }
    const int chunk = plan->head->chunk ? plan->head->chunk : choose_chunk(plan, 60, 1024) * 3 / 4;
    plan->chunk = round_up(chunk, plan->warpgroups.query_tokens);
    warpgroup_chunk_output_clocks(plan);
    return FPA_OK;
}

fpa_status plan_cuda(fpa_plan *plan, fpa_error *error)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    fpa_status status = check_limits(plan, error);
    if (!status)
        status = plan_features(plan, PIECES_OF_TABLES, error);
    if (status)
        return status;
    plan->facts.arithmetic = plan->head->dtype;
    cuda->element = (int)dtype_size(plan->facts.arithmetic);
    choose_columns(plan);
    choose_slices(plan);
    plan->chunk =
        plan->head->chunk ? round_up(plan->head->chunk, 16 * CUDA_WARPS) : choose_chunk(plan, 100, 512);
    if ((status = plan_cuda_rows(plan, error)))
        return status;
    place_step(plan);
    status = choose_blocks(plan, error);
    if (status)
        return status;
    plan_cuda_fused(plan);
    plan_cuda_resident(plan);
    plan_cluster_scan(plan);
    if (plan->target->warpgroups)
        status = use_warpgroups(plan, error);
    if (!status)
        status = plan_fused_packed(plan, error);
    plan_cuda_pairs(plan);
    return status;
}

/* plan_cuda_memory: shared memory of blocks, and the kernel of one pass. */
#include "parts.h"

/* ---- shared memory ---- */

/* Bytes from one row to the next such that 8 rows of 16 bytes lie in different banks. */
static int odd_pitch(int bytes)
{
    int pitch = round_up(bytes, 16);
    return pitch / 16 % 2 ? pitch : pitch + 16;
}

void plan_cuda_pitches(fpa_plan *plan)
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

void plan_cuda_memory(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const int gate = plan->head->gate ? 1 : 0;
    plan_cuda_pitches(plan);
    fpa_cuda_memory *state = &cuda->state, *chunk_output = &cuda->chunk_output;
    state->gates = place_keys(cuda, state, 0);
    state->size = round_up(state->gates + gate * cuda->panel * 16, 16);
    chunk_output->queries = 0;
    chunk_output->gates = cuda->row_count * cuda->query_pitch;
    int rest = round_up(chunk_output->gates + gate * 8 * (cuda->panel + cuda->query_tokens), 16);
    chunk_output->tiles = rest;
    int size = place_keys(cuda, chunk_output, rest);
    size = largest(size, rest + CUDA_STATE_STAGES * CUDA_GROUP * CUDA_UNIT * cuda->tile_pitch);
    size = largest(size, rest + cuda->query_tokens * cuda->raw_pitch);
    chunk_output->size = largest(size, cuda->query_tokens * cuda->output_pitch);
}

/* Blocks that a multiprocessor should have at a time: few sums leave registers for more of them, which
 * hide each other's waits. tiles: of sums, 4 registers each. */
static int resident_blocks(const fpa_plan *plan, int tiles, int bytes)
{
    const int room = plan->target->shared_memory / (bytes + 1024);
    const int most = plan->cuda.element == 4 ? 1 : tiles <= 10 ? 4 : tiles <= 18 ? 3 : 2;
    return room < 1 ? 1 : room < most ? room : most;
}

bool plan_cuda_reads_coordinates(const fpa_plan *plan)
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

/* Vectors of queries and keys that are read as they lie pass through two stages, as values do, and so does
 * the state: a panel needs one barrier. o leaves through the warp's own queries, or where it is wider
 * through a place of its own. */
static void place_coordinates(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    fpa_cuda_memory *fused = &cuda->fused, *state = &cuda->state;
    const int raw = cuda->panel * cuda->raw_pitch, gate = plan->head->gate ? 1 : 0;
    state->raw = 0;
    state->values = 2 * raw;
    state->gates = state->values + 2 * cuda->panel * cuda->value_pitch;
    state->size = state->gates + gate * cuda->panel * 16;
    fused->queries = 0;
    fused->raw = cuda->output_pitch <= cuda->raw_pitch ? 0 : cuda->panel * cuda->output_pitch;
    fused->values = fused->raw + 4 * raw;
    fused->tiles = fused->values + 2 * cuda->panel * cuda->value_pitch;
    fused->gates = fused->tiles + 2 * cuda->features * cuda->tile_pitch;
    fused->size = fused->gates + gate * cuda->panel * 16;
}

enum { FUSED_STATIC = 256 }; /* bytes that the kernel of gated heads declares itself */

/* Queries and keys have a panel and raw vectors each; o leaves through the panel of queries. */
static void place_fused(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    fpa_cuda_memory *fused = &cuda->fused;
    const int panel = cuda->row_count * cuda->key_pitch, gate = plan->head->gate ? 1 : 0;
    fused->queries = 0;
    fused->keys = largest(panel, cuda->panel * cuda->output_pitch);
    fused->raw = fused->keys + panel;
    fused->values = fused->raw + 2 * cuda->panel * cuda->raw_pitch;
    fused->tiles = fused->values + 2 * cuda->panel * cuda->value_pitch;
    fused->gates = fused->tiles + cuda->features * cuda->tile_pitch;
    fused->size = fused->gates + gate * cuda->panel * 16;
}

static bool fused_fits(const fpa_plan *plan)
{
    return plan->cuda.fused.size + FUSED_STATIC <= plan->target->shared_memory;
}

/* Operands of warpgroups lie in slabs of 64 numbers a token, from multiples of 1024 bytes on: queries, keys
 * and values, in as many stages. */
static void place_fused_coordinates(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    fpa_cuda_memory *fused = &cuda->fused;
    const int slab = cuda->panel * 128, vectors = cuda->fused_stages * ((plan->head->d + 63) / 64) * slab;
    const int gate = plan->head->gate ? 1 : 0;
    const int ones = cuda->all_tiles > 8 ? 2048 : 0, tile = cuda->features * 16 * cuda->all_tiles;
    fused->values = 2 * vectors;
    fused->tiles = fused->values + cuda->fused_stages * slab + ones;
    fused->output = fused->tiles + cuda->fused_copies * tile;
    fused->queries = fused->output + cuda->panel * cuda->output_pitch;
    fused->raw = 0;
    fused->gates = fused->queries;
    fused->size = fused->gates + gate * cuda->panel * 16 + 1024; /* to begin at a multiple */
}

/* As many panels on their way as leave room for two blocks a multiprocessor, which reach the bandwidth.
 * The state twice, as above, where its sums leave registers for a second address. */
static void choose_fused_coordinates(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    cuda->fused_stages = 4;
    cuda->fused_copies = cuda->warp_units < 4 ? 2 : 1;
    place_fused_coordinates(plan);
    while (cuda->fused_stages > 2 && 2 * (cuda->fused.size + 1024) > plan->target->shared_memory) {
        cuda->fused_stages--;
        place_fused_coordinates(plan);
    }
    cuda->fused_coordinates = fused_fits(plan);
}

/* Coordinates as they lie take less than panels of rows for warpgroups, and more for the portable kernel. */
static bool choose_fused_portable(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    place_coordinates(plan);
    cuda->coordinates = true;
    if (plan->target->warpgroups)
        choose_fused_coordinates(plan);
    if (!cuda->fused_coordinates)
        place_coordinates(plan);
    return cuda->fused_coordinates || fused_fits(plan);
}

void plan_cuda_fused(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    place_fused(plan);
    cuda->is_fused =
        plan->head->causal && cuda->slices == 1 && cuda->panel == 16 * CUDA_WARPS && fused_fits(plan);
    if (!cuda->is_fused || (plan_cuda_reads_coordinates(plan) && choose_fused_portable(plan)))
        return;
    cuda->coordinates = false;
    plan_cuda_memory(plan);
    place_fused(plan);
}

void plan_cuda_resident(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    cuda->chunk_state_blocks = resident_blocks(plan, cuda->warp_units * cuda->all_tiles, cuda->state.size);
    cuda->chunk_output_blocks =
        resident_blocks(plan, cuda->query_tiles * cuda->all_tiles + 16, cuda->chunk_output.size);
    cuda->fused_blocks = resident_blocks(plan, (cuda->warp_units + 1) * cuda->all_tiles, cuda->fused.size);
    cuda->fused_blocks = cuda->fused_blocks > 3 ? 3 : cuda->fused_blocks;
    if (cuda->fused_coordinates) /* sums, scores and operands on their way: more registers than three leave */
        cuda->fused_blocks = 2 * (cuda->fused.size + 1024) <= plan->target->shared_memory ? 2 : 1;
}

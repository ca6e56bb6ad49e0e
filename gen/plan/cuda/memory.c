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

bool plan_cuda_is_natural(const fpa_plan *plan)
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
    flow->raw = cuda->output_pitch <= cuda->raw_pitch ? 0 : cuda->panel * cuda->output_pitch;
    flow->values = flow->raw + 4 * raw;
    flow->tiles = flow->values + 2 * cuda->panel * cuda->value_pitch;
    flow->gates = flow->tiles + 2 * cuda->features * cuda->tile_pitch;
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

/* Operands of warpgroups that are copied lie in slabs of 64 numbers a token, from multiples of 1024 bytes
 * on: values, and natural queries and keys too, in as many stages. */
static void place_hopper_flow(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    fpa_cuda_memory *flow = &cuda->flow;
    const int slab = cuda->panel * 128, vectors = cuda->flow_stages * ((plan->head->d + 63) / 64) * slab;
    const int panel = cuda->row_count * cuda->key_pitch, gate = plan->head->gate ? 1 : 0;
    const int ones = cuda->all_tiles > 8 ? 2048 : 0, tile = cuda->features * 16 * cuda->all_tiles;
    flow->values = cuda->natural ? 2 * vectors : 0;
    flow->tiles = flow->values + cuda->flow_stages * slab + ones;
    flow->output = flow->tiles + cuda->flow_copies * tile;
    flow->queries = flow->output + cuda->panel * cuda->output_pitch;
    flow->keys = flow->queries + panel;
    flow->raw = cuda->natural ? 0 : flow->keys + panel;
    flow->gates = cuda->natural ? flow->queries : flow->raw + 2 * cuda->panel * cuda->raw_pitch;
    flow->size = flow->gates + gate * cuda->panel * 16 + 1024; /* to begin at a multiple */
}

/* As many panels on their way as leave room for two blocks a multiprocessor, which reach the bandwidth.
 * Natural: the state twice, as above, where its sums leave registers for a second address. */
static void choose_hopper_flow(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    cuda->flow_stages = cuda->natural ? 4 : 2;
    cuda->flow_copies = cuda->natural && cuda->warp_units < 4 ? 2 : 1;
    place_hopper_flow(plan);
    while (cuda->flow_stages > 2 && 2 * (cuda->flow.size + 1024) > plan->target->shared_memory) {
        cuda->flow_stages--;
        place_hopper_flow(plan);
    }
    cuda->flow_hopper = flow_fits(plan);
}

/* Coordinates as they lie take less than panels of rows for warpgroups, and more for the portable kernel. */
static bool choose_natural_flow(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    place_natural(plan);
    cuda->natural = true;
    if (plan->target->warpgroups)
        choose_hopper_flow(plan);
    if (!cuda->flow_hopper)
        place_natural(plan);
    return cuda->flow_hopper || flow_fits(plan);
}

void plan_cuda_flow(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    place_flow(plan);
    cuda->flows =
        plan->head->causal && cuda->slices == 1 && cuda->panel == 16 * CUDA_WARPS && flow_fits(plan);
    if (!cuda->flows || (plan_cuda_is_natural(plan) && choose_natural_flow(plan)))
        return;
    cuda->natural = false;
    plan_cuda_memory(plan);
    if (plan->target->warpgroups && cuda->element == 2)
        choose_hopper_flow(plan);
    if (!cuda->flow_hopper)
        place_flow(plan);
}

void plan_cuda_resident(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    cuda->state_blocks = resident_blocks(plan, cuda->warp_units * cuda->all_tiles, cuda->state.size);
    cuda->attend_blocks = resident_blocks(plan, cuda->query_tiles * cuda->all_tiles + 16, cuda->attend.size);
    cuda->flow_blocks = resident_blocks(plan, (cuda->warp_units + 1) * cuda->all_tiles, cuda->flow.size);
    cuda->flow_blocks = cuda->flow_blocks > 3 ? 3 : cuda->flow_blocks;
    if (cuda->flow_hopper) /* sums, scores and operands on their way: more registers than three leave */
        cuda->flow_blocks = 2 * (cuda->flow.size + 1024) <= plan->target->shared_memory ? 2 : 1;
}

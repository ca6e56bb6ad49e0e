/* Addresses in shared memory, and pitches, of the operands of the kernels of gradients. */
#include "backward.h"

#include "gen/plan/plan.h"
#include "parts.h"

static void choose_pitches(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    const int element = plan->cuda.rows->element;
    back->walk_panel = back->panel;
    back->query_pitch = cuda_odd_pitch(back->query_tokens * element);
    back->key_pitch = cuda_odd_pitch(back->panel * element);
    back->raw_pitch = cuda_odd_pitch(plan->head->d * element);
    back->value_pitch = back->tile_pitch = cuda_odd_pitch(8 * back->value_tiles * element);
}

/* backward_state of coordinates: keys and values, or queries and gradients of outputs, of two panels, so that
 * loads run ahead. */
static void place_coordinates_state(fpa_cuda_backward_plan *back)
{
    fpa_cuda_memory *state = &back->state;
    state->raw = 0;
    state->values = 2 * back->panel * back->raw_pitch;
    state->gates = state->values + 2 * back->panel * back->value_pitch;
    state->size = round_up(state->gates + back->panel * 2, 16);
}

/* backward_queries and backward_keys of coordinates: a block's own tokens; then the copy of the state, whose
 * place every second panel of others uses, and the other panels. */
static void place_coordinates(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    fpa_cuda_memory *own = &back->own;
    const int panel = back->panel * (back->raw_pitch + back->value_pitch);
    own->raw = 0;
    own->values = back->query_tokens * back->raw_pitch;
    own->gates = own->values + back->query_tokens * back->value_pitch;
    own->output = own->gates + 8 * (back->query_tokens + back->panel);
    own->tiles = own->output + 8 * (back->query_tokens + back->panel);
    own->keys = own->tiles + largest(panel, plan->head->d * back->tile_pitch);
    own->size = own->keys + panel;
}

enum { SLAB_ROW = 128 /* bytes of 64 numbers */, SLAB_NUMBERS = 64 };

int backward_slabs(int width)
{
    return divide_up(width, SLAB_NUMBERS);
}

/* Walks by warpgroups (backward_groups.cu.in): both sides' tokens of two panels, in slabs of 64 numbers a
 * token, so that loads run ahead; then the copy of the state that products read, outputs of a normalised
 * head's queries, numbers of tokens, the copy's normaliser column, bounds of columns of both warpgroups, and
 * warps' sums. */
static void place_slabs(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    enum { NUMBERS = 1424, BOUNDS = 16 + 4 * 128, GROUPS = 2, WARPS = 8 };
    fpa_cuda_memory *own = &back->own;
    const int rows = backward_slabs(plan->head->d), values = backward_slabs(plan->head->dv);
    const int slab = back->panel * SLAB_ROW;
    own->tiles = 2 * 2 * (rows + values) * slab;
    own->values = own->tiles + rows * values * slab;
    own->gates = own->values + (plan->head->normalize != FPA_NORMALIZE_NONE ? 2 * values * slab : 0);
    own->queries = own->gates + 2 * NUMBERS;
    own->edge = own->queries + 4 * SLAB_NUMBERS * rows;
    own->output = own->edge + GROUPS * BOUNDS;
    own->size = own->output + 8 * WARPS;
}

int backward_boundary_bytes(const fpa_head *head)
{
    const int features = SLAB_NUMBERS * backward_slabs(head->d);
    return features * (2 * head->dv + (head->normalize != FPA_NORMALIZE_NONE ? 4 : 0));
}

/* backward_state by warpgroups: one side's tokens of three panels, in slabs. */
static void place_slabs_state(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    enum { PLACES = 3 };
    const int slab = back->panel * SLAB_ROW;
    back->state_places = PLACES;
    back->state.raw = 0;
    back->state.values = backward_slabs(plan->head->d) * slab;
    back->state.size = PLACES * (back->state.values + backward_slabs(plan->head->dv) * slab);
}

/* backward_state of packed rows: a panel of keys, or queries, at a time; values of two panels, so that loads
 * run ahead. */
static void place_state(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    fpa_cuda_memory *state = &back->state;
    state->raw = plan->cuda.rows->row_count * back->key_pitch;
    state->values = state->raw + back->panel * back->raw_pitch;
    state->gates = state->values + 2 * back->panel * back->value_pitch;
    state->size = round_up(state->gates + back->panel * 4, 16);
}

/* backward_queries and backward_keys of packed rows: a block's own tokens, and sums of their rows' gradients;
 * then, in the same place one after the other, its raw vectors, tiles of a state, and the other tokens of the
 * chunk. */
void place_backward_own(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    const int rows = plan->cuda.rows->row_count;
    const int gates = plan->head->gate ? 8 * back->query_tokens + 12 * back->panel : 0;
    fpa_cuda_memory *own = &back->own;
    own->values = rows * back->query_pitch;
    own->gates = own->values + back->query_tokens * back->value_pitch;
    own->output = round_up(own->gates + gates, 16);
    own->raw = own->tiles = own->output + back->query_tokens / 16 * back->sum_blocks * 512;
    own->queries = own->raw + rows * back->key_pitch;
    own->keys = own->queries + 2 * back->panel * back->value_pitch;
    int size = own->keys + back->panel * back->raw_pitch;
    size = largest(size, own->raw + back->query_tokens * back->raw_pitch);
    /* copies of sums follow tiles; at the end shares store their sums for values, and totals, there */
    own->copies = own->tiles + back->shares * back->stages * back->group * CUDA_UNIT * back->tile_pitch;
    size = largest(size, own->copies + back->query_tokens / 16 * back->copies * 512);
    if (back->shares > 1)
        size = largest(size, own->raw + back->query_tokens / 16 * (back->sides.tiles + 1) * 512);
    own->size = size;
}

/* Tiles of a state use the place of panels of others: as many stages as fit there. */
void add_backward_stages(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    enum { MOST = 4 };
    const int size = back->own.size;
    while (back->stages < MOST) {
        back->stages++;
        place_backward_own(plan, back);
        if (back->own.size > size)
            break;
    }
    if (back->own.size > size) {
        back->stages--;
        place_backward_own(plan, back);
    }
}

void place_backward(const fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    choose_pitches(plan, back);
    if (back->warpgroups) {
        place_slabs_state(plan, back);
        place_slabs(plan, back);
    } else if (back->coordinates) {
        place_coordinates_state(back);
        place_coordinates(plan, back);
    } else {
        if (backward_packs_slices(plan, back))
            place_backward_slices(plan, back);
        else
            place_state(plan, back);
        place_backward_own(plan, back);
    }
}

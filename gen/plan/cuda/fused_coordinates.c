/* fused_coordinates: see fused_pass.h. */
#include "fused_pass.h"

#include "head/lift.h"
#include "lift_groups.h"
#include "lift_made.h"
#include "lift_rows.h"
#include "parts.h"
#include "work.h"

enum { ONES_BYTES = 2048 }; /* a slab of 16 tokens: the column of ones, then zeros */

/* Addresses in shared memory. wgmma operands are slabs of 64 numbers a token, at multiples of 1024 bytes:
 * queries, keys and values, in as many stages. Without a mask a launch has either queries or keys. */
static void place(const fpa_cuda_inputs *in, const fpa_split_panel *split, fpa_fused_pass *pass)
{
    fpa_cuda_memory *memory = &pass->memory;
    const int slab = split->panel * 128, vectors = pass->stages * ((in->plan->head->d + 63) / 64) * slab;
    const int gate = in->plan->head->gate ? 1 : 0;
    const int ones = split->columns.ones_slabs ? ONES_BYTES : 0,
              tile = in->rows->features * 16 * split->columns.all;
    memory->values = (in->plan->head->causal ? 2 : 1) * vectors;
    memory->tiles = memory->values + pass->stages * slab + ones;
    memory->output = memory->tiles + pass->copies * tile;
    memory->edge = memory->output + split->panel * split->output_pitch;
    memory->queries = memory->edge + 16;
    memory->raw = 0;
    memory->gates = memory->queries;
    /* the kernel rounds the first address up to a multiple of 1024 */
    memory->size = memory->gates + gate * split->panel * 16 + 1024;
}

static bool blocks_fit(const fpa_plan *plan, const fpa_fused_pass *pass, int blocks)
{
    return blocks * (pass->memory.size + 1024) <= plan->target->shared_memory;
}

enum {
    SIDES = 2,
    THREAD_REGISTERS = 168, /* registers of a thread of three warpgroups; of two blocks of two warpgroups: */
    SHARED_REGISTERS = 128,
    MOST_REGISTERS = 240,
    WALKING = 96,   /* registers beside sums of the state: sums of o, scores, operands */
    SPILT = 8,      /* registers that a thread which computes coordinates may spill */
    OWN_STATE = 72, /* sums of a state beside which a thread can make keys' coordinates, */
    OWN_KEYS = 136, /* in this many registers */
    TURNING = 48,   /* registers beside what the angles of 8 rows need */
    SLAB_BYTES = 1024,
};

/* Addresses in shared memory: buffers for the coordinates of 64 tokens of a side; values of two panels, where
 * o is assembled, too (if own, in a slab before them); q and k as given, with the matrices or positions that
 * they need; the copy of the state, whose sums are in registers. */
static void place_lifted(const fpa_cuda_inputs *in, const fpa_split_panel *split, int given_bytes,
                         int kept_bytes, fpa_fused_pass *pass)
{
    fpa_cuda_memory *memory = &pass->memory;
    /* a unit of each warp in a slab */
    const int slab = split->panel * 128, vectors = in->rows->warp_units * slab;
    memory->raw = 0;
    memory->values = pass->places * vectors + (pass->own ? slab : 0);
    pass->given = memory->values + 2 * slab + (split->columns.ones_slabs ? ONES_BYTES : 0);
    memory->output = pass->own ? pass->places * vectors : memory->values; /* before the ones, as values are */
    pass->matrices = pass->given + given_bytes;
    memory->tiles = pass->matrices + (int)round_up(kept_bytes, SLAB_BYTES);
    memory->edge = (int)round_up(memory->tiles + in->rows->features * 16 * split->columns.all, SLAB_BYTES);
    memory->queries = memory->gates = memory->edge + 16 + (2 * pass->places + pass->own) * 8;
    /* the kernel rounds the first address up to a multiple of 1024 */
    memory->size = memory->queries + SLAB_BYTES;
}

/* Divides `average` registers a thread: the warpgroup that holds the state gets what its sums need, the
 * others the rest. */
static void share_lifted_registers(const fpa_cuda_inputs *in, const fpa_split_panel *split, int average,
                                   fpa_fused_pass *pass)
{
    pass->walker_registers =
        round_up(largest(4 * in->rows->warp_units * split->columns.all + WALKING, average + 1), 8);
    pass->lifter_registers = ((pass->lifters + 1) * average - pass->walker_registers) / pass->lifters / 8 * 8;
}

/* Buffers for coordinates: one a side, and one more if a single warpgroup makes both sides and there is room:
 * then it can fill one while the main warpgroup reads two. */
static bool place_made(const fpa_cuda_inputs *in, const fpa_split_panel *split, int matrix_bytes,
                       fpa_fused_pass *pass)
{
    const int given = pass->lifters * lift_given_bytes(in->plan->written->lift);
    for (pass->places = pass->lifters == 1 ? SIDES + 1 : SIDES; pass->places >= SIDES; pass->places--) {
        place_lifted(in, split, given, matrix_bytes, pass);
        if (pass->lifters > 1 || blocks_fit(in->plan, pass, pass->blocks))
            return true;
    }
    return false;
}

/* Whether each side's coordinates are computed by the warpgroup that multiplies them: those of queries then stay
 * in registers, and the warpgroup that adds keys holds the state. For one real matrix whose rows are whole units
 * of 16, in halves of 32. */
static bool can_own(const fpa_cuda_inputs *in, const fpa_split_panel *split, fpa_fused_pass *pass)
{
    const fpa_plan *plan = in->plan;
    const fpa_lift *lift = plan->written->lift;
    fpa_cuda_lift sizes = {.vector = (int)round_up(plan->head->d, 8)};
    const int state = 4 * in->rows->warp_units * split->columns.all;
    if (!lift_is_constant(plan->written) || !lift_by_groups(plan, false, &sizes) || !sizes.in_f16 ||
        lift->part_count != 1 || lift->parts[0].is_complex || lift->parts[0].factor_count != 1 ||
        lift->parts[0].rows != plan->head->d || plan->head->d % 64 || state > OWN_STATE ||
        lift_given_bytes(lift) > split->panel * 128)
        return false;
    pass->own = true;
    pass->lifters = 1;
    pass->blocks = SIDES;
    pass->places = SIDES;
    pass->walker_registers = OWN_KEYS;
    pass->lifter_registers = 2 * SHARED_REGISTERS - OWN_KEYS;
    place_lifted(in, split, SIDES * lift_given_bytes(lift), sizes.matrix_bytes, pass);
    pass->own = blocks_fit(plan, pass, pass->blocks);
    return pass->own;
}

/* Whether other warpgroups can make coordinates as the warpgroup version of NAME_lift_rows does: one, with
 * two blocks a multiprocessor, or two. */
static bool can_multiply(const fpa_cuda_inputs *in, const fpa_split_panel *split, fpa_fused_pass *pass)
{
    const fpa_plan *plan = in->plan;
    fpa_cuda_lift sizes = {.vector = (int)round_up(plan->head->d, 8)};
    if (!lift_is_constant(plan->written) || !lift_by_groups(plan, false, &sizes))
        return false;
    for (pass->lifters = 1; pass->lifters <= SIDES; pass->lifters++) {
        const bool single = pass->lifters == 1;
        const int needed =
            single ? lift_single_registers(plan, &sizes) : lift_group_registers(plan, &sizes) - SPILT;
        pass->blocks = single ? 2 : 1;
        share_lifted_registers(in, split, single ? SHARED_REGISTERS : THREAD_REGISTERS, pass);
        if (pass->lifter_registers >= needed && place_made(in, split, sizes.matrix_bytes, pass))
            return true;
    }
    return false;
}

/* Whether one more warpgroup rotates both sides by positions, 8 rows of both a thread, with two blocks on a
 * multiprocessor, so that one block's waits are hidden by the other. */
static bool can_turn(const fpa_cuda_inputs *in, const fpa_split_panel *split, fpa_fused_pass *pass)
{
    enum { PIECE = 8, STAGES = 2, MOST_ROWS = 64 };
    const fpa_plan *plan = in->plan;
    if (lift_made(plan) != LIFT_TURNS || plan->written->lift->width > MOST_ROWS)
        return false;
    const int slab = split->panel * 128, turns = lift_turn_bytes(plan),
              positions = plan->written->lift->positions * split->panel * (int)sizeof(float),
              row = turns / plan->written->lift->width / (int)sizeof(float);
    pass->lifters = 1;
    pass->blocks = 2;
    pass->places = SIDES;
    share_lifted_registers(in, split, SHARED_REGISTERS, pass);
    place_lifted(in, split, STAGES * SIDES * slab, turns + positions, pass);
    pass->positions = pass->matrices + turns;
    pass->turns = pass->lifter_registers >= PIECE * row + TURNING && blocks_fit(plan, pass, pass->blocks);
    return pass->turns;
}

/* Whether one warpgroup holds the state and further ones compute the coordinates that it reads. Keys after a
 * sequence's end are handled, a mask of keys is not. */
static bool can_lift(const fpa_cuda_inputs *in, const fpa_split_panel *split, fpa_fused_pass *pass)
{
    const fpa_plan *plan = in->plan;
    const fpa_lift *lift = plan->written->lift;
    if (!lift || !plan->head->causal || plan->head->gate || lift->key_mask || plan->head->dv % 8)
        return false;
    pass->stages = pass->copies = 1;
    return (can_turn(in, split, pass) || can_own(in, split, pass) || can_multiply(in, split, pass)) &&
           pass->walker_registers <= MOST_REGISTERS && fused_fits(plan, pass);
}

/* As many stages as leave room for two blocks a multiprocessor, which reach the memory's bandwidth; more
 * blocks would have no registers for sums, scores and operands. Without a mask there are no scores: three
 * blocks if a warp has one unit of the state. Two copies of the state, alternately, if there is a mask and the
 * state's sums leave registers for a second address. */
const char *plan_fused_coordinates(const fpa_cuda_inputs *in, void *plan)
{
    fpa_fused_pass *pass = plan;
    const fpa_split_panel *split = in->suited[SPLIT_PANEL].plan;
    if (!in->plan->target->warpgroups || !in->rows->coordinates)
        return "its features are not 16-bit coordinates, or the GPU has no wgmma (sm_90a)";
    if (in->plan->head->causal && !in->suited[FUSED_PANEL].plan)
        return in->suited[FUSED_PANEL].why;
    if (fused_pass_refusal(in))
        return fused_pass_refusal(in);
    pass->coordinates = true;
    if (in->lifts) {
        pass->lifts = can_lift(in, split, pass);
        pass->chunk_state = place_coordinate_keys(in->plan, split);
        pass->chunk_state_blocks =
            cuda_occupancy(in->plan, in->rows->warp_units * split->columns.all, pass->chunk_state.size);
        return pass->lifts ? NULL
                           : "the warpgroups that compute its coordinates do not fit into registers and "
                             "shared memory";
    }
    pass->maps = lift_in_place(in->plan);
    pass->stages = 4;
    const bool open = !in->plan->head->causal;
    const int wanted = open && in->rows->warp_units == 1 ? 3 : 2;
    pass->copies = in->rows->warp_units < 4 && !open ? 2 : 1;
    place(in, split, pass);
    while (pass->stages > 2 && !blocks_fit(in->plan, pass, wanted)) {
        pass->stages--;
        place(in, split, pass);
    }
    if (!fused_fits(in->plan, pass))
        return "its state and vectors do not fit into shared memory";
    pass->blocks = blocks_fit(in->plan, pass, wanted) ? wanted : blocks_fit(in->plan, pass, 2) ? 2 : 1;
    pass->chunk_state = place_coordinate_keys(in->plan, split);
    pass->chunk_state_blocks =
        cuda_occupancy(in->plan, in->rows->warp_units * split->columns.all, pass->chunk_state.size);
    return NULL;
}

void print_fused_coordinates(FILE *out, const fpa_plan *plan)
{
    const fpa_fused_pass *pass = plan->cuda.fused_coordinates;
    if (pass->own) {
        fprintf(out,
                "fused_chunk  chunked: blocks of one warpgroup that updates the state and one that computes "
                "outputs; each computes its own coordinates; %.1f KiB of shared memory\n",
                pass->memory.size / 1024.0);
        return;
    }
    if (pass->lifts) {
        fprintf(out,
                "fused_chunk  chunked: blocks of one warpgroup for state and outputs, and %s its "
                "coordinates; %.1f KiB of shared memory\n",
                pass->lifters == 1 ? "one that computes" : "two that compute", pass->memory.size / 1024.0);
        return;
    }
    fprintf(out,
            "fused_chunk  chunked: blocks of one warpgroup, %d panel%s of 64 tokens in flight; %.1f KiB of "
            "shared memory\n",
            pass->stages, pass->stages == 1 ? "" : "s", pass->memory.size / 1024.0);
}

void geometry_fused_coordinates(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_fused_pass *pass = plan->cuda.fused_coordinates;
    g->kernel[CUDA_FUSED_CHUNK] = (struct fpa_cuda_block){
        CUDA_THREADS * (pass->lifts ? 1 + pass->lifters : 1), pass->memory.size, pass->blocks};
    g->fused_totals = 1;
    g->fused_maps = pass->maps || pass->lifts;
    work_fused_coordinates(plan, g);
}

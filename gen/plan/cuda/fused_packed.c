#include "fused_packed.h"

#include <math.h>

#include "base/round.h"
#include "fused_pass.h"
#include "head/lift.h"
#include "lift_groups.h"
#include "parts.h"
#include "work.h"

enum {
    SLAB = 128 * FUSED_TOKENS, /* bytes of 64 numbers of a panel's tokens */
    ONES = 16 * 128,           /* the column of ones, after all values, if values fill their slabs */
    /* bytes: sums of log-gates, decays of keys, of queries and of the state */
    GATES = 14 * FUSED_TOKENS + 16,
    NORMS = 2 * 16, /* bytes: largest |q|^2 and |k|^2 of each 16 tokens, beside a window */
    PART = 80,      /* bytes of struct fused_part */
    EDGE = 4,       /* bytes a stage: the last panel with values that are not finite */
    LEAST_EDGES = 4,
    FACTORS = 256,          /* bytes: decays of segments */
    FEW_SUMS = 108,         /* sums of a thread that leave registers for other warpgroups */
    MOST_SUMS_OF_ONE = 144, /* sums of a thread, with one warpgroup of keys */
    MOST_SUMS_OF_TWO = 128, /* and with two */
    SLAB_COLUMNS = 8,       /* tiles of 8 columns; if a block has more, its values take two slabs */
    MOST_FACTORS = 4,
    THREE_PACK = 40,
    THREE_KEYS = 152,
    THREE_QUERIES = 96, /* registers, if three warpgroups have queries */
    THREE_TOTALS = 64,
    LEAST_PANELS = 2,       /* panels beside the state from which on three warpgroups have queries */
    LEAST_REGISTERS = 24,   /* of a warpgroup without a task */
    OTHERS_OF_QUERIES = 44, /* registers: weights of 32 keys and of the next 32, dots, addresses */
    OTHERS_OF_KEYS = 12,    /* registers of a thread that adds keys: addresses, counters */
    MOST_SUMS_OF_BOTH = 72, /* sums of the state and of o in one warpgroup: no gain was measured with more */
    /* tiles of features of such a block: its products for keys, queries and copies follow one another, so
     * with three tiles it is slower (docs/decisions/0134-two-blocks-of-packed-rows.md) */
    MOST_TILES_OF_BOTH = 2,
    /* registers of a thread that has keys and queries: features and factors of a group of products and of the
     * next one */
    OTHERS_OF_BOTH = 48,
    NARROW = 32,      /* smallest row that the copy engine can swizzle, bytes */
    BLOCK_OWN = 1024, /* shared memory that the GPU reserves for each block */
};

/* ---- rows ---- */

static bool names_coordinate(const fpa_plan *plan, const int *rows, int count)
{
    for (int i = 0; i < count; i++)
        if (rows[i] < plan->head->d)
            return true;
    return false;
}

static bool keeps_coordinates(const fpa_plan *plan)
{
    for (int i = 0; i < plan->piece_count; i++)
        if (names_coordinate(plan, plan->pieces[i].prefix, plan->pieces[i].prefix_count) ||
            names_coordinate(plan, &plan->pieces[i].base, 1))
            return true;
    for (int i = 0; i < plan->score->dot_count; i++)
        if (names_coordinate(plan, plan->dots[i].rows, plan->dots[i].row_count))
            return true;
    for (int i = 0; i < plan->weighted_count; i++)
        if (names_coordinate(plan, &plan->weighted[i].from, 1))
            return true;
    return false;
}

/* Numbers packed rows. Rows of all matrices are consecutive, so together they are one matrix. */
static void place_rows(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    const fpa_plan *plan = in->plan;
    /* exponents are dot products of coordinates */
    fused->coordinates = keeps_coordinates(plan) || plan->written->window;
    fused->row_base = fused->coordinates ? 0 : round_up(plan->head->d, 16);
    fused->rows = in->rows->row_count - fused->row_base;
    for (int i = 0; i < plan->projection_count; i++)
        fused->projected += plan->head->matrices[plan->projections[i].matrix].rows;
    if (!fused->projected)
        return;
    fused->projected_first = in->rows->row[plan->projections[0].first_row];
    const int rows = round_up(fused->projected, 8);
    fused->matrix_parts = divide_up(rows, FUSED_MATRIX_ROWS);
    fused->matrix_rows = round_up(divide_up(rows, fused->matrix_parts), 8);
    fused->rows += rows - fused->projected; /* rows are stored 8 at a time */
}

/* ---- warpgroups ---- */

static int count_tiles(const fpa_cuda_rows *rows)
{
    return (rows->units + 3) / 4;
}

int fused_packed_columns(const fpa_plan *plan, const fpa_cuda_rows *rows)
{
    return MOST_SUMS_OF_ONE / (4 * count_tiles(rows)) - (plan->head->normalize != FPA_NORMALIZE_NONE);
}

/* Whether three warpgroups have queries, beside a window. Queries wait for exponentials, dots and products in
 * turn: if they see two panels or more, three warpgroups of fewer registers each wait less than two
 * (docs/decisions/0095-exponents-without-an-m.md, 0101-who-packs-and-who-is-idle.md,
 * 0175-what-queries-beside-a-window-wait-for.md). A thread has its sums and, of 16 queries, the rows of which
 * exponents and other dots are products. */
static bool wants_three(const fpa_cuda_inputs *in, const fpa_fused_packed *fused, int tiles)
{
    const int sums = 4 * in->columns->all, dots = in->rows->dot_steps, given = (in->plan->head->d + 15) / 16;
    const int queries = sums + 4 * given + 4 * (dots > 4 ? 0 : dots) + OTHERS_OF_QUERIES;
    return fused->near_panels >= LEAST_PANELS && sums * tiles <= FEW_SUMS && queries <= THREE_QUERIES;
}

static bool choose_groups(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    const int tiles = count_tiles(in->rows), columns = in->columns->all;
    const bool one = 4 * columns * tiles <= MOST_SUMS_OF_ONE;
    fused->blocks = 1, fused->copies = FUSED_COPIES;
    fused->key_groups = one ? 1 : 2;
    fused->query_groups = wants_three(in, fused, tiles) ? 3 : 3 - fused->key_groups;
    fused->key_tiles = divide_up(tiles, fused->key_groups);
    fused->total_parts = one && !in->plan->head->gate ? 2 : 1;
    /* with two warpgroups and wide blocks, sums leave no registers for the rest: ptxas would serialise
     * products */
    return one || (in->columns->tiles <= SLAB_COLUMNS && 4 * columns * fused->key_tiles <= MOST_SUMS_OF_TWO);
}

/* The number of tiles whose products are one commit group, two or one: beside the sums, each tile needs two
 * buffers for features and one for each factor, of 4 registers. */
static int two_if_room(const fpa_cuda_inputs *in, const fpa_fused_packed *fused, int registers)
{
    const int sums = 4 * in->columns->all * fused->key_tiles, places = 2 + in->rows->factors;
    return sums + 2 * 4 * places <= registers - OTHERS_OF_KEYS ? 2 : 1;
}

/* The number of units of queries' features whose products are one commit group: sums of wide blocks leave
 * fewer registers. */
static int query_units(const fpa_cuda_inputs *in)
{
    const int columns = in->columns->all;
    return columns > 12 ? 1 : columns > SLAB_COLUMNS + 1 || in->plan->head->gate ? 2 : 3;
}

/* Five warpgroups share 480 registers a thread: 96 each at launch, and no more. */
static void share_among_five(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    const int together = two_if_room(in, fused, THREE_KEYS);
    fused->walk = (fpa_fused_share){THREE_PACK, THREE_KEYS, THREE_QUERIES, together, 1};
    fused->totals = (fpa_fused_share){THREE_TOTALS, THREE_KEYS, LEAST_REGISTERS, together, 0};
}

/* Two warpgroups share 256 registers a thread: two blocks a multiprocessor. */
static void share_between_two(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    const int pack = in->plan->projection_count || in->plan->written->lift ? 72 : 56, both = 256 - pack;
    fused->walk = (fpa_fused_share){pack, both, both, 1, 1};
    fused->totals = (fpa_fused_share){pack, both, both, two_if_room(in, fused, both), 0};
}

/* Four warpgroups share 512 registers a thread, a multiprocessor's 65,536. Those of packing and querying
 * threads limit how many loads they have in flight. */
static void share_registers(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    const bool gate = in->plan->head->gate;
    const bool few = 4 * in->columns->all * fused->key_tiles <= FEW_SUMS;
    if (fused->query_groups == 3) {
        share_among_five(in, fused);
        return;
    }
    if (fused->key_groups == 2) {
        fused->walk = (fpa_fused_share){64, 168, 112, 1, 2};
        fused->totals = (fpa_fused_share){80, 176, 80, gate ? 1 : two_if_room(in, fused, 176), 0};
        return;
    }
    const int pack = few ? 72 : in->plan->projection_count ? 64 : 56, key = 256 - pack;
    const int most = few && fused->key_tiles == 3 ? 3 : fused->key_tiles < 2 ? 1 : 2;
    const int together = in->columns->tiles > SLAB_COLUMNS && most == 2 ? two_if_room(in, fused, key) : most;
    /* beside a window queries also hold weights of keys */
    fused->walk = !fused->near_panels ? (fpa_fused_share){pack, key, 128, together, query_units(in)}
                  : few               ? (fpa_fused_share){56, 168, 144, together, 2}
                                      : (fpa_fused_share){pack, key, 128, together, 1};
    fused->totals = (fpa_fused_share){pack, key, pack, together, 0};
}

/* ---- shared memory ---- */

/* Bytes of a row of raw vectors: 32 if they hold a vector. Making coordinates reads whole slabs. */
static int raw_row(const fpa_fused_packed *fused)
{
    return !fused->lifts && fused->vector <= NARROW / 2 ? NARROW : SLAB / FUSED_TOKENS;
}

static bool place(const fpa_cuda_inputs *in, int panels, int values, int raw_stages, fpa_fused_packed *fused)
{
    const fpa_plan *plan = in->plan;
    const fpa_columns *columns = in->columns;
    const int slabs = (fused->vector + 63) / 64, rows = fused->matrix_rows * fused->matrix_parts;
    const int readers = largest(fused->query_groups, 1);
    const bool apart = plan->head->normalize != FPA_NORMALIZE_NONE && columns->tiles == 8;
    const bool boxes =
        columns->tiles == SLAB_COLUMNS || (columns->blocks == 1 && columns->tiles < SLAB_COLUMNS);
    fused->panels = panels, fused->values = values, fused->raw_stages = raw_stages;
    fused->value_bytes = divide_up(columns->tiles, SLAB_COLUMNS) * SLAB;
    fused->outputs = boxes ? readers : 0;
    fused->raw_row = raw_row(fused);
    fused->raw_bytes = slabs * FUSED_TOKENS * fused->raw_row;
    fused->matrix_bytes = fused->lifts ? fused->lift_bytes : 2 * slabs * rows * 128;
    fused->panel_bytes =
        2 * fused->rows * FUSED_ROW_PITCH + (plan->head->gate ? GATES : 0) + (fused->near_panels ? NORMS : 0);
    fused->at_outputs = values * fused->value_bytes;
    fused->at_ones = fused->at_outputs + readers * fused->value_bytes;
    fused->at_raw_stages = fused->at_ones + (apart ? ONES : 0);
    fused->at_matrix = fused->at_raw_stages + raw_stages * fused->raw_bytes;
    fused->at_copies = fused->at_matrix + fused->matrix_bytes;
    fused->at_panels =
        fused->at_copies + fused->copies * fused->key_groups * fused->key_tiles * 64 * 16 * columns->all;
    fused->at_barriers = fused->at_panels + panels * fused->panel_bytes;
    const int near = fused->near_panels > 0; /* then values are released with rows */
    const int barriers = 2 * panels + (2 - near) * values + FUSED_COPIES +
                         largest(fused->query_groups, FUSED_COPIES) + raw_stages + near +
                         (fused->tasks ? raw_stages / 2 : 0);
    fused->at_part = round_up(fused->at_barriers + 8 * barriers, 16);
    fused->bytes =
        fused->at_part + PART + EDGE * largest(panels, LEAST_EDGES) + (plan->head->gate ? FACTORS : 0);
    return fused->blocks * (fused->bytes + BLOCK_OWN) <= plan->target->shared_memory + BLOCK_OWN;
}

/* Stages: {panels, values, raw vectors}. More values than raw vectors: in totals, keys of the next panel are
 * not fetched before a panel's values are free, and the panel in between should be packed meanwhile. */
static bool choose_places(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    static const int sizes[][3] = {{4, 6, 4}, {4, 5, 4}, {3, 5, 4}, {3, 4, 3},
                                   {2, 4, 3}, {2, 4, 2}, {2, 3, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (place(in, sizes[i][0], sizes[i][1], sizes[i][2], fused))
            return true;
    return false;
}

/* Stages beside a window: the panels that consecutive panels of queries see, and some more in flight:
 * {panels, raw vectors}. */
static bool choose_near_places(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    static const int more[][2] = {{4, 4}, {3, 4}, {2, 4}, {2, 2}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        /* even, since two packing warpgroups alternate */
        const int panels = round_up(fused->near_panels + more[i][0], 2);
        if (place(in, panels, panels, more[i][1], fused))
            return true;
    }
    return false;
}

static bool find_places(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    return fused->near_panels ? choose_near_places(in, fused) : choose_places(in, fused);
}

/* ---- coordinates that the packing warpgroup makes ---- */

/* Rows are stored 8 at a time, and dots read 16 at a time. */
static bool has_whole_rows(const fpa_lift *lift)
{
    int rows = 0;
    for (int i = 0; i < lift->part_count; i++) {
        if (lift->parts[i].rows % 8)
            return false;
        rows += lift_coordinates(&lift->parts[i]);
    }
    return rows % 16 == 0;
}

/* Whether the packing warpgroup can make coordinates: from constant matrices, q and k that boxes can fetch,
 * no mask of keys, all values in one block, so that coordinates are made once, and registers for products of
 * both sides. */
static bool can_lift(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    const fpa_plan *plan = in->plan;
    const fpa_lift *lift = plan->written->lift;
    fpa_cuda_lift sizes = {.vector = plan->head->d};
    if (!lift || lift->key_mask || lift->width % 8 || plan->head->dv % 8 || in->columns->blocks > 1 ||
        !has_whole_rows(lift) || !lift_is_constant(plan->written) || !lift_by_groups(plan, true, &sizes))
        return false;
    fused->lift_bytes = sizes.matrix_bytes;
    return lift_pair_registers(plan, &sizes) <= fused->walk.pack_registers;
}

/* Addresses for q and k as given, if coordinates can be made from these and there is room for that; else for
 * coordinates. */
static bool place_vectors(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    fused->lifts = can_lift(in, fused);
    fused->vector = fused->lifts ? in->plan->written->lift->width : in->plan->head->d;
    if (find_places(in, fused))
        return true;
    fused->lifts = false;
    fused->vector = in->plan->head->d;
    return find_places(in, fused);
}

/* ---- one warpgroup or several ---- */

/* Whether one warpgroup's registers hold the sums of the state and of o, and what both tasks need beside
 * them. */
static bool has_registers_for_both(const fpa_cuda_inputs *in, const fpa_fused_packed *fused)
{
    const int tiles = count_tiles(in->rows), sums = 4 * in->columns->all * (tiles + 1);
    return !in->plan->head->gate && !fused->near_panels && sums <= MOST_SUMS_OF_BOTH &&
           tiles <= MOST_TILES_OF_BOTH && fused->key_groups == 1 && in->columns->tiles <= SLAB_COLUMNS &&
           sums + OTHERS_OF_BOTH <= fused->walk.key_registers;
}

/* Plans two blocks a multiprocessor, each with one warpgroup that holds the state and reads it; false if they
 * do not fit. */
static bool join(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    share_between_two(in, fused);
    if (!has_registers_for_both(in, fused))
        return false;
    fused->query_groups = 0;
    fused->blocks = 2, fused->copies = 1, fused->total_parts = 1;
    return place_vectors(in, fused) && fused->lifts == (in->plan->written->lift != NULL);
}

/* Whether packing is divided into tasks of single warps: beside a window, where the other warpgroups would wait
 * for the packing one (docs/decisions/0169-who-packs-by-tasks.md). Matrices, weights and gates need a whole
 * warpgroup. */
static bool has_tasks(const fpa_cuda_inputs *in, const fpa_fused_packed *fused)
{
    return fused->near_panels && !fused->projected && !in->plan->weighted_count && !in->plan->head->gate;
}

static bool set_apart(const fpa_cuda_inputs *in, fpa_fused_packed *fused)
{
    choose_groups(in, fused);
    share_registers(in, fused);
    return place_vectors(in, fused);
}

/* Whether a one-pass kernel on coordinates as stored in memory suits, which takes less time. */
static bool reads_coordinates(const fpa_cuda_inputs *in)
{
    const fpa_fused_pass *panel = in->suited[FUSED_PANEL].plan;
    return in->suited[FUSED_COORDINATES].plan || (panel && panel->coordinates);
}

/* Whether the column of ones has room: after the values in their last slab, or in a slab of its own if there
 * is one slab of values (ones_slabs). */
static bool has_room_for_ones(const fpa_cuda_inputs *in)
{
    return in->plan->head->normalize == FPA_NORMALIZE_NONE || in->columns->tiles <= SLAB_COLUMNS ||
           in->columns->tiles % SLAB_COLUMNS;
}

/* Why a head with a window does not suit: exponents are dots of packed rows, in which queries are multiplied
 * by the head's scale. */
static const char *refuse_window(const fpa_plan *plan)
{
    int exponent;
    if (!plan->written->window)
        return NULL;
    if (plan->written->lift)
        return "it has a window and a lift: the window's weights need q and k as given, not coordinates";
    if (fabs(frexp(plan->head->scale, &exponent)) != 0.5)
        return "it has a window, and its scale is not a power of 2: the exponents of the window's weights "
               "would be rounded";
    return plan->written->scale / plan->head->scale > 0
               ? NULL
               : "it has a window, and simplification changed the sign of its scale";
}

const char *plan_fused_packed(const fpa_cuda_inputs *in, void *made)
{
    fpa_fused_packed *fused = made;
    const fpa_plan *plan = in->plan;
    if (!plan->head->causal)
        return "it is not causal";
    if (refuse_window(plan))
        return refuse_window(plan);
    if (!plan->target->warpgroups || in->rows->element != 2 || reads_coordinates(in))
        return "its operands are not packed rows of 16-bit numbers, or the GPU has no wgmma (sm_90a)";
    if (plan->written->window)
        fused->near_panels = 1 + (int)divide_up(plan->written->window - 1, FUSED_TOKENS);
    if (in->rows->units > FUSED_MOST_UNITS || in->rows->factors > MOST_FACTORS || !choose_groups(in, fused))
        return "its state does not fit into the registers of a block";
    if (!has_room_for_ones(in))
        return "its values leave no space in shared memory for the normaliser's column of ones";
    if (plan->written->window && fused->key_groups > 1)
        return "it has a window, and its state does not fit into the registers of one warpgroup";
    place_rows(in, fused);
    fused->tasks = has_tasks(in, fused);
    if (!join(in, fused) && !set_apart(in, fused))
        return "copies of its state and its packed rows do not fit into shared memory";
    /* two packing warpgroups alternate stages of raw vectors and packed rows */
    fused->total_packers =
        fused->query_groups && fused->raw_stages % 2 == 0 && fused->panels % 2 == 0 ? 2 : 1;
    plan_fused_packed_slots(plan, in->rows, in->memory, fused);
    plan_fused_packed_queries(in->rows, in->memory, fused);
    return NULL;
}

/* ---- plan, geometry and fields ---- */

/* Prints the tasks of a block's warpgroups, with queries and for totals of segments. */
void print_fused_packed(FILE *out, const fpa_plan *plan)
{
    const fpa_fused_packed *fused = plan->cuda.fused_packed;
    const int adders = fused->key_groups * fused->total_parts;
    if (!fused->query_groups) {
        fprintf(out,
                "fused_chunk  chunked: two blocks on a multiprocessor; of each 1 warpgroup packs rows, 1 "
                "updates %d tiles of 64 features of the state and computes outputs; stages: %d of 64 tokens, "
                "%d of values, %d of raw vectors; %.1f KiB of shared memory%s\n",
                fused->key_tiles, fused->panels, fused->values, fused->raw_stages, fused->bytes / 1024.0,
                fused->lifts ? "; warpgroups that pack compute the coordinates, without lift_rows" : "");
        return;
    }
    fprintf(out,
            "fused_chunk  chunked: 1 warpgroup packs rows%s, %d update%s %d tiles of 64 features of the "
            "state each, %d compute%s outputs; for totals of segments %d pack%s, %d update%s; stages: %d of "
            "64 tokens, %d of values, %d of raw vectors; %.1f KiB of shared memory%s\n",
            fused->tasks ? " (one warp fetches, one checks values)" : "", fused->key_groups,
            fused->key_groups == 1 ? "s" : "", fused->key_tiles, fused->query_groups,
            fused->query_groups == 1 ? "s" : "", fused->total_packers, fused->total_packers == 1 ? "s" : "",
            adders, adders == 1 ? "s" : "", fused->panels, fused->values, fused->raw_stages,
            fused->bytes / 1024.0,
            fused->lifts ? "; warpgroups that pack compute the coordinates, without lift_rows" : "");
}

void geometry_fused_packed(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_fused_packed *fused = plan->cuda.fused_packed;
    const fpa_columns *columns = &plan->cuda.columns;
    g->kernel[CUDA_FUSED_CHUNK] = (struct fpa_cuda_block){128 * (1 + fused->key_groups + fused->query_groups),
                                                          fused->bytes, fused->blocks};
    g->fused_totals = 1;
    g->fused_total = fused->slots * columns->all * 8 * columns->blocks;
    g->fused_vector = fused->vector;
    g->fused_vector_box = fused->raw_row < SLAB / FUSED_TOKENS ? fused->raw_row / 2 : 0;
    g->fused_maps = fused->lifts;
    g->fused_value = plan->head->dv;
    work_fused_packed(plan, g);
}

#define SHARE(member) FIELD(fpa_fused_share, member)
static const fpa_field share_fields[] = {SHARE(pack_registers), SHARE(key_registers),  SHARE(query_registers),
                                         SHARE(key_together),   SHARE(query_together), FIELDS_END};

#define FRAGMENT(member) FIELD(fpa_fused_fragment, member)
static const fpa_field fragment_fields[] = {FRAGMENT(one),       FRAGMENT(run),      FRAGMENT(halves),
                                            FRAGMENT(low),       FRAGMENT(low_half), FRAGMENT(high),
                                            FRAGMENT(high_half), FRAGMENT(first),    FIELDS_END};

#define FACTOR(member) FIELD(fpa_fused_factor, member)
static const fpa_field factor_fields[] = {FACTOR(fragment), FACTOR(place), FACTOR(high_place), FIELDS_END};

#define FETCH(member) FIELD(fpa_fused_fetch, member)
static const fpa_field fetch_fields[] = {FETCH(group), FETCH(fragment), FETCH(place), FIELDS_END};

#define QUERIES(member) FIELD(fpa_fused_queries, member)
static const fpa_field queries_fields[] = {
    QUERIES(looked_up),
    QUERIES(groups),
    QUERIES(places),
    FIELD_ARRAY(fpa_fused_queries, "units", unit, units, 1, 0),
    FIELD_ARRAY(fpa_fused_queries, "looked_up_rows", looked_up_row, looked_up, 16, 0),
    FIELD_PARTS(fpa_fused_queries, "factors", factor, factors, factor_fields, true),
    FIELD_PARTS(fpa_fused_queries, "fragments", fragment, fragments, fragment_fields, true),
    FIELD_PARTS(fpa_fused_queries, "fetches", fetch, fetches, fetch_fields, true),
    FIELDS_END};

#define FUSED(member) FIELD(fpa_fused_packed, member)
const fpa_field fused_packed_fields[] = {
    FUSED(key_groups), FUSED(query_groups), FUSED(blocks), FUSED(copies), FUSED(key_tiles),
    FUSED(total_parts), FUSED(total_packers), FUSED(tasks), FUSED(near_panels),
    FIELD_PART(fpa_fused_packed, "walk", walk, share_fields),
    FIELD_PART(fpa_fused_packed, "totals", totals, share_fields),
    FIELD_ARRAY(fpa_fused_packed, "feature", slot_feature, slots, 1, 0),
    FIELD_ARRAY(fpa_fused_packed, "swapped", slot_swapped, slots, 1, 0),
    FIELD_PART(fpa_fused_packed, "queries", queries, queries_fields),
    /* rows */
    FUSED(coordinates), FUSED(row_base), FUSED(rows), FIELD_CONSTANT("row_pitch", FUSED_ROW_PITCH),
    FUSED(projected_first), FUSED(projected), FUSED(matrix_rows), FUSED(matrix_parts), FUSED(lifts),
    FUSED(vector),
    /* places */
    FUSED(panels), FUSED(values), FUSED(raw_stages), FUSED(value_bytes), FUSED(panel_bytes), FUSED(raw_bytes),
    FUSED(raw_row), FUSED(matrix_bytes), FUSED(outputs), FUSED(at_ones), FUSED(at_outputs),
    FUSED(at_raw_stages), FUSED(at_matrix), FUSED(at_copies), FUSED(at_panels), FUSED(at_barriers),
    FUSED(at_part), FUSED(bytes), FIELDS_END};

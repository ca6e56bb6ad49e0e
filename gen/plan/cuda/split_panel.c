/* plan_split_panel: places in shared memory, sizes of blocks and the chunk of the portable split schedule, with rows
 * packed by the blocks themselves or by NAME_pack_rows. */
#include "split_panel.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "fused_pass.h"
#include "machine/cuda_cost.h"
#include "panel_rows.h"
#include "parts.h"
#include "work.h"

/* ---- shared memory ---- */

static void choose_pitches(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    const int element = in->rows->element;
    split->query_pitch = cuda_odd_pitch(split->query_tokens * element);
    split->key_pitch = cuda_odd_pitch(split->panel * element);
    split->raw_pitch = cuda_odd_pitch(in->plan->head->d * element);
    split->value_pitch = cuda_odd_pitch(8 * split->columns.tiles * element);
    split->tile_pitch = cuda_odd_pitch(8 * split->columns.all * element);
    split->output_pitch = cuda_odd_pitch(8 * split->columns.tiles * (int)dtype_size(in->plan->head->dtype));
    if (!in->plan->written->window)
        return;
    /* whole steps of the matrix instruction */
    split->given_pitch = cuda_odd_pitch(round_up(head_width(in->plan->written), 16) * element);
    if (!in->plan->written->lift)
        split->raw_pitch = split->given_pitch;
}

/* Places of keys, from `at` on. The next panel's raw vectors are loaded once this one is packed; values, and keys as
 * given, have two buffers, so that loads run ahead. Returns the end. */
static int place_keys(const fpa_cuda_inputs *in, const fpa_split_panel *split, fpa_cuda_memory *memory,
                      int at)
{
    memory->keys = at;
    memory->raw = memory->keys + in->rows->row_count * split->key_pitch;
    memory->given_keys = memory->raw + (in->plan->written->lift ? split->panel * split->raw_pitch : 0);
    memory->values = split->given_pitch ? memory->given_keys + 2 * split->panel * split->given_pitch
                                        : memory->raw + split->panel * split->raw_pitch;
    return memory->values + 2 * split->panel * split->value_pitch;
}

/* The same with rows from NAME_pack_rows: two panels, used alternately. */
static int place_packed(const fpa_split_panel *split, int keys, fpa_cuda_memory *memory, int at)
{
    memory->keys = memory->raw = at;
    memory->values = at + 2 * keys * split->key_pitch;
    return memory->values + 2 * split->panel * split->value_pitch;
}

/* Panels of keys of chunk_state: of as many tokens as leave three buffers, or two, if two blocks share a
 * multiprocessor; then as many buffers as fit. */
static void place_state(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    enum { MOST_STAGES = 4, BLOCKS = 2, BESIDE = 2048 };
    const fpa_panel_rows *panels = &in->rows->panels;
    fpa_packed_panels *packs = &split->packs;
    const int element = in->rows->element, room = in->plan->target->shared_memory / BLOCKS - BESIDE;
    packs->value_pitch = cuda_odd_pitch(8 * packs->state.tiles * element);
    packs->stages = 0;
    for (int least = 3; least >= 2 && packs->stages < least; least--)
        for (packs->panel = 128; packs->panel > 16 && packs->stages < least;) {
            packs->panel /= 2;
            packs->key_pitch = cuda_odd_pitch(packs->panel * element);
            packs->stages =
                room / (panels->state_count * packs->key_pitch + packs->panel * packs->value_pitch);
        }
    if (packs->stages > MOST_STAGES)
        packs->stages = MOST_STAGES;
    if (packs->stages < 2)
        packs->stages = 2;
    fpa_cuda_memory *state = &split->chunk_state;
    state->keys = state->raw = 0;
    state->values = packs->stages * panels->state_count * packs->key_pitch;
    state->gates = state->values + packs->stages * packs->panel * packs->value_pitch;
    state->size = round_up(state->gates + (in->plan->head->gate ? packs->panel * 16 : 0), 16);
}

static void place_all_packed(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    const int gate = in->plan->head->gate ? 1 : 0;
    fpa_cuda_memory *output = &split->chunk_output;
    place_state(in, split);
    output->gates = in->rows->panels.query_count * split->query_pitch;
    const int rest = round_up(output->gates + gate * 8 * (split->panel + split->query_tokens), 16);
    output->tiles = rest;
    output->size = largest(place_packed(split, in->rows->panels.key_count, output, rest),
                           rest + CUDA_STATE_STAGES * CUDA_GROUP * CUDA_UNIT * split->tile_pitch);
    output->size = largest(output->size, split->query_tokens * split->output_pitch);
}

static void place(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    const int gate = in->plan->head->gate ? 1 : 0;
    choose_pitches(in, split);
    if (split->packs.used) {
        place_all_packed(in, split);
        return;
    }
    fpa_cuda_memory *state = &split->chunk_state, *output = &split->chunk_output;
    state->gates = place_keys(in, split, state, 0);
    state->size = round_up(state->gates + gate * split->panel * 16, 16);
    output->queries = 0;
    output->gates = in->rows->row_count * split->query_pitch;
    output->given_queries = output->gates;
    output->kept = output->given_queries + split->query_tokens * split->given_pitch;
    const int masks = split->given_pitch ? 4 * split->panel : 0;
    int rest = round_up(output->kept + masks + gate * 8 * (split->panel + split->query_tokens), 16);
    output->tiles = rest;
    int size = place_keys(in, split, output, rest);
    size = largest(size, rest + CUDA_STATE_STAGES * CUDA_GROUP * CUDA_UNIT * split->tile_pitch);
    size = largest(size, rest + split->query_tokens * split->raw_pitch);
    output->size = largest(size, split->query_tokens * split->output_pitch);
}

/* ---- blocks ---- */

enum {
    KEPT = 176,      /* registers, at most, of sums, scores and fragments of queries, if the latter stay */
    MOST_TILES = 32, /* tiles of columns for whose sums there are registers */
};

enum { ACCUMULATORS = 152 }; /* registers that a thread may spend on sums and scores, of 255 */

/* Tiles of queries whose scores are computed together, so that they share the keys' fragments: several if the score
 * has one dot and registers suffice. */
static int choose_score_tiles(const fpa_cuda_inputs *in, int columns, int tiles)
{
    int score = tiles;
    if (in->plan->score->dot_count != 1)
        return 1;
    while (score > 1 && 4 * tiles * columns + 8 * score > ACCUMULATORS)
        score /= 2;
    return score;
}

/* Whether blocks of so many tiles of queries a warp, and panels of so many keys, fit into registers and `bytes` of
 * shared memory. */
static bool fits(const fpa_cuda_inputs *in, int tiles, int panel, int bytes, fpa_split_panel *split)
{
    const int dots = largest(in->plan->score->dot_count, 1);
    split->score_tiles = choose_score_tiles(in, split->columns.all, tiles);
    if (tiles > 1 && 4 * tiles * split->columns.all + 8 * dots * split->score_tiles > ACCUMULATORS)
        return false;
    if (split->chunk % (16 * CUDA_WARPS * tiles))
        return false;
    split->packs.keeps_queries =
        4 * tiles * (split->columns.all + in->rows->dot_steps) + 8 * dots * split->score_tiles <= KEPT;
    split->query_tiles = tiles;
    split->query_tokens = 16 * CUDA_WARPS * tiles;
    split->panel = panel;
    place(in, split);
    return largest(split->chunk_output.size, split->chunk_state.size) <= bytes;
}

/* The first size that fits: two blocks on a multiprocessor, which hide each other's waits, before one; large blocks,
 * which read the state less often, before small ones. least: keys of a panel. */
static bool find_blocks(const fpa_cuda_inputs *in, int least, fpa_split_panel *split)
{
    static const int sizes[][2] = {{4, 64}, {4, 32}, {2, 64}, {2, 32}, {1, 64}, {1, 32}, {1, 16}};
    const int limit = in->plan->target->shared_memory;
    const int most = in->rows->element == 4 || in->plan->written->window ? 2 : 4;
    for (int blocks = 2; blocks >= 1; blocks--)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (sizes[i][0] <= most && sizes[i][1] >= least &&
                fits(in, sizes[i][0], sizes[i][1], limit / blocks - 1024 * (blocks - 1), split))
                return true;
    return false;
}

/* On a GPU with warpgroups, if rows are coordinates and one block has all features, panels of 64 keys if these fit. */
static bool choose_blocks(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    const bool coordinates = in->plan->target->warpgroups && in->rows->slices == 1 && in->rows->coordinates;
    return (coordinates && find_blocks(in, 16 * CUDA_WARPS, split)) || find_blocks(in, 1, split);
}

/* The chunk, for blocks of queries of a medium size; these are chosen afterwards and have to divide it. */
static int choose_chunk(const fpa_plan *plan, const fpa_split_panel *split)
{
    enum { STEP = 128, MOST = 512 };
    const fpa_split_panel medium = {
        .columns = split->columns, .query_tiles = 2, .panel = 64, .packs = split->packs};
    struct fpa_cuda_geometry geometry = {0};
    if (plan->head->chunk)
        return round_up(plan->head->chunk, 16 * CUDA_WARPS);
    work_split_panel(plan, &medium, &geometry);
    return work_best_chunk(plan, &geometry, STEP, MOST);
}

/* Blocks of chunk_output on a multiprocessor. With a window, exponentials cause waits that more blocks hide; with
 * short dots there are registers for more than two. */
static int output_blocks(const fpa_cuda_inputs *in, const fpa_split_panel *split)
{
    enum { FEW_SUMS = 18 };
    const fpa_cuda_rows *rows = in->rows;
    const int sums = split->query_tiles * split->columns.all;
    const bool is_short = head_width(in->plan->written) <= 16 && rows->dot_steps <= 1 && rows->factors <= 2;
    const int most = in->plan->target->window_blocks;
    const int room = in->plan->target->shared_memory / (split->chunk_output.size + 1024);
    if (in->plan->written->window && rows->element == 2 && is_short && sums <= FEW_SUMS && room > 2)
        return room < most ? room : most;
    return cuda_occupancy(in->plan, sums + 16, split->chunk_output.size);
}

static bool plan_blocks(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    split->chunk = choose_chunk(in->plan, split);
    return choose_blocks(in, split);
}

/* Several blocks of columns as one. */
static fpa_columns joined_columns(const fpa_columns *columns, int together)
{
    fpa_columns joined = *columns;
    joined.blocks = columns->blocks / together;
    joined.tiles = joined.all = together * columns->tiles;
    if (together == 1)
        joined.all = columns->all;
    joined.last += 8 * columns->tiles * (together - 1);
    return joined;
}

/* Bytes from the second-level cache for 16 queries: their share of a block's copy, and of its keys and values. */
static double cached_bytes(const fpa_cuda_inputs *in, const fpa_split_panel *split)
{
    const int columns = 8 * split->columns.all;
    const double copy = (double)in->rows->features * columns,
                 keys = split->chunk / 2.0 * (in->rows->panels.key_count + columns);
    return 2 * split->columns.blocks * (copy + keys) * 16 / split->query_tokens;
}

/* Clocks of a multiprocessor for 16 queries (cuda_query_clocks), by which the number of columns of a block is chosen. */
static double output_clocks(const fpa_cuda_inputs *in, const fpa_split_panel *split)
{
    struct fpa_cuda_geometry g = {0};
    work_split_panel(in->plan, split, &g);
    const struct fpa_cuda_kernel_work *work = &g.work[CUDA_CHUNK_OUTPUT];
    const double keys = split->chunk / 2.0 / 64;
    return cuda_query_clocks(work->step.shared + work->copy.shared + keys * work->keys.shared,
                             work->copy.products + keys * work->keys.products, cached_bytes(in, split));
}

/* Chooses how many blocks of columns of the state a block of chunk_output has, so that it computes scores once for
 * them, by the least clocks. Not several if a normaliser's columns follow each block's. */
static bool plan_joined(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    const fpa_columns state = split->columns;
    double least = DBL_MAX;
    for (int together = 1; together <= state.blocks; together++) {
        fpa_split_panel tried = {.columns = joined_columns(&state, together), .packs = split->packs};
        tried.packs.state = state;
        if (state.blocks % together || (together > 1 && state.all > state.tiles) ||
            tried.columns.all > MOST_TILES || !plan_blocks(in, &tried) || output_clocks(in, &tried) >= least)
            continue;
        least = output_clocks(in, &tried);
        *split = tried;
    }
    return least < DBL_MAX;
}

/* Plans blocks with rows from NAME_pack_rows, if many blocks need them; not if one block has all of a head
 * (fused_panel). */
static bool plan_packed_blocks(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    fpa_split_panel packed = {.columns = split->columns};
    if (!in->rows->panels.possible || in->plan->target->warpgroups || in->plan->packs_in_blocks ||
        fused_panel_suits(in, split))
        return false;
    packed.packs.used = true;
    if (!plan_joined(in, &packed))
        return false;
    *split = packed;
    return true;
}

const char *plan_split_panel(const fpa_cuda_inputs *in, void *plan)
{
    fpa_split_panel *split = plan;
    const fpa_head *head = in->plan->head;
    const fpa_target *target = in->plan->target;
    split->columns = cuda_columns(head, PORTABLE_COLUMNS);
    const bool fits = plan_blocks(in, split);
    if (!plan_packed_blocks(in, split) && !fits) {
        const bool lifts = in->plan->written->lift;
        return arena_format(
            in->memory,
            "needs %d bytes of shared memory a block, %s has %d: %d %s of %s a token are too many",
            largest(split->chunk_output.size, split->chunk_state.size), target->name, target->shared_memory,
            lifts ? head->d : in->rows->row_count, lifts ? "coordinates" : "packed rows",
            dtype_name(head->dtype));
    }
    split->chunk_state_blocks =
        cuda_occupancy(in->plan, in->rows->warp_units * state_columns(split)->all, split->chunk_state.size);
    split->chunk_output_blocks = output_blocks(in, split);
    return NULL;
}

/* ---- dump, geometry, fields ---- */

/* Factors of a feature, and how many fragments of each are loaded: units that share a fragment load it once. */
static void print_factors(FILE *out, const fpa_cuda_rows *rows)
{
    fprintf(out, "factors      %d of a feature;", rows->factors);
    for (int l = 0; l < rows->factors; l++)
        fprintf(out, " %s%d", l ? "then " : "fragments loaded for units by ", rows->shared[l]);
    fputc('\n', out);
}

void print_split_panel(FILE *out, const fpa_plan *plan)
{
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const fpa_split_panel *split = plan->cuda.split_panel;
    fprintf(out,
            "features     %" PRId64 ", in %d units of %d: a loop over units, driven by a table of rows\n",
            plan->features, rows->units, CUDA_UNIT);
    print_factors(out, rows);
    fprintf(out,
            "chunk_state  %d blocks a head, each warp %d units; %d keys a panel; %.1f KiB of shared memory\n",
            rows->slices * state_columns(split)->blocks, rows->warp_units,
            split->packs.used ? split->packs.panel : split->panel, plan->cuda.chunk_state.size / 1024.0);
    if (split->packs.used)
        fprintf(out,
                "pack_rows    %d rows of keys and %d of queries a token, %d tokens a block; of these, blocks "
                "of chunk_state fetch %d, blocks of chunk_output %d and %d\n",
                rows->panels.keys, rows->panels.queries, rows->panels.tile, rows->panels.state_count,
                rows->panels.key_count, rows->panels.query_count);
    fprintf(out, "chunk_output %d queries a block, %d a warp; %.1f KiB of shared memory\n",
            split->query_tokens, 16 * split->query_tiles, split->chunk_output.size / 1024.0);
}

void geometry_split_panel(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    g->kernel[CUDA_CHUNK_STATE] =
        (struct fpa_cuda_block){CUDA_THREADS, cuda->chunk_state.size, cuda->chunk_state_blocks};
    g->kernel[CUDA_CHUNK_OUTPUT] = (struct fpa_cuda_block){CUDA_THREADS, cuda->split_panel->chunk_output.size,
                                                           cuda->split_panel->chunk_output_blocks};
    g->chunk_state_slices =
        cuda->rows->slices * state_columns(cuda->split_panel)->blocks / cuda->columns.blocks;
    if (cuda->split_panel->packs.used)
        geometry_panel_rows(&cuda->rows->panels, g);
    work_split_panel(plan, plan->cuda.split_panel, g);
}

#define PACKS(member) FIELD(fpa_packed_panels, member)
static const fpa_field packed_panels_fields[] = {PACKS(used),
                                                 FIELD_AS(fpa_packed_panels, "state_blocks", state.blocks),
                                                 FIELD_AS(fpa_packed_panels, "state_tiles", state.tiles),
                                                 FIELD_AS(fpa_packed_panels, "state_all", state.all),
                                                 PACKS(panel),
                                                 PACKS(stages),
                                                 PACKS(key_pitch),
                                                 PACKS(value_pitch),
                                                 PACKS(keeps_queries),
                                                 FIELDS_END};

#define PANEL(member) FIELD(fpa_split_panel, member)
const fpa_field split_panel_fields[] = {
    PANEL(query_tiles),
    PANEL(score_tiles),
    PANEL(panel),
    FIELD_CONSTANT("stages", CUDA_STATE_STAGES),
    PANEL(query_pitch),
    PANEL(key_pitch),
    PANEL(raw_pitch),
    PANEL(value_pitch),
    PANEL(tile_pitch),
    PANEL(output_pitch),
    PANEL(given_pitch),
    FIELD_PART(fpa_split_panel, "packs", packs, packed_panels_fields),
    FIELD_PART(fpa_split_panel, "chunk_output_memory", chunk_output, cuda_memory_fields),
    PANEL(chunk_output_blocks),
    FIELDS_END};

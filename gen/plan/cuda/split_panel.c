#include "split_panel.h"

#include <inttypes.h>

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

/* Once keys are packed their raw vectors make room for the next ones; values have two tiles, so that
 * loads run ahead. So have keys as they are given. */
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

static void place(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    const int gate = in->plan->head->gate ? 1 : 0;
    choose_pitches(in, split);
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

enum { ACCUMULATORS = 152 }; /* registers that a thread may spend on sums and scores, of 255 */

/* With one dot product several tiles of queries share the keys' fragments; with more there is no room. */
static int choose_score_tiles(const fpa_cuda_inputs *in, int columns, int tiles)
{
    int score = tiles;
    if (in->plan->score->dot_count != 1)
        return 1;
    while (score > 1 && 4 * tiles * columns + 8 * score > ACCUMULATORS)
        score /= 2;
    return score;
}

static bool fits(const fpa_cuda_inputs *in, int tiles, int panel, int bytes, fpa_split_panel *split)
{
    const int dots = largest(in->plan->score->dot_count, 1);
    split->score_tiles = choose_score_tiles(in, split->columns.all, tiles);
    if (tiles > 1 && 4 * tiles * split->columns.all + 8 * dots * split->score_tiles > ACCUMULATORS)
        return false;
    if (split->chunk % (16 * CUDA_WARPS * tiles))
        return false;
    split->query_tiles = tiles;
    split->query_tokens = 16 * CUDA_WARPS * tiles;
    split->panel = panel;
    place(in, split);
    return largest(split->chunk_output.size, split->chunk_state.size) <= bytes;
}

/* Large blocks read the state seldom; two blocks on a multiprocessor hide each other's waits. least: keys of
 * a panel. */
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

/* Where coordinates are read as they lie, a panel is a warpgroup's 64 tokens. */
static bool choose_blocks(const fpa_cuda_inputs *in, fpa_split_panel *split)
{
    const bool coordinates = in->plan->target->warpgroups && in->rows->slices == 1 && in->rows->coordinates;
    return (coordinates && find_blocks(in, 16 * CUDA_WARPS, split)) || find_blocks(in, 1, split);
}

/* Before blocks of queries are known, which have to divide it: for those of a medium size. */
static int choose_chunk(const fpa_plan *plan, fpa_columns columns)
{
    enum { STEP = 128, MOST = 512 };
    const fpa_split_panel medium = {.columns = columns, .query_tiles = 2, .panel = 64};
    struct fpa_cuda_geometry geometry = {0};
    if (plan->head->chunk)
        return round_up(plan->head->chunk, 16 * CUDA_WARPS);
    work_split_panel(plan, &medium, &geometry);
    return work_best_chunk(plan, &geometry, STEP, MOST);
}

/* Beside a window exponents want waits to be hidden; where dots are short there are registers for more blocks than two. */
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

const char *plan_split_panel(const fpa_cuda_inputs *in, void *plan)
{
    fpa_split_panel *split = plan;
    const fpa_head *head = in->plan->head;
    const fpa_target *target = in->plan->target;
    split->columns = cuda_columns(head, PORTABLE_COLUMNS);
    split->chunk = choose_chunk(in->plan, split->columns);
    if (!choose_blocks(in, split)) {
        const bool lifts = in->plan->written->lift;
        return arena_format(
            in->memory,
            "needs %d bytes of shared memory a block, %s has %d: %d %s of %s a token are too many",
            largest(split->chunk_output.size, split->chunk_state.size), target->name, target->shared_memory,
            lifts ? head->d : in->rows->row_count, lifts ? "coordinates" : "packed rows",
            dtype_name(head->dtype));
    }
    split->chunk_state_blocks =
        cuda_occupancy(in->plan, in->rows->warp_units * split->columns.all, split->chunk_state.size);
    split->chunk_output_blocks = output_blocks(in, split);
    return NULL;
}

/* ---- what others see of it ---- */

/* Units whose factors have one fragment in common load it once. */
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
            rows->slices * split->columns.blocks, rows->warp_units, split->panel,
            plan->cuda.chunk_state.size / 1024.0);
    fprintf(out, "chunk_output %d a block, %d a warp; %.1f KiB of shared memory\n", split->query_tokens,
            16 * split->query_tiles, split->chunk_output.size / 1024.0);
}

void geometry_split_panel(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    g->kernel[CUDA_CHUNK_STATE] =
        (struct fpa_cuda_block){CUDA_THREADS, cuda->chunk_state.size, cuda->chunk_state_blocks};
    g->kernel[CUDA_CHUNK_OUTPUT] = (struct fpa_cuda_block){CUDA_THREADS, cuda->split_panel->chunk_output.size,
                                                           cuda->split_panel->chunk_output_blocks};
    g->chunk_state_slices = cuda->rows->slices;
    work_split_panel(plan, plan->cuda.split_panel, g);
}

const fpa_field cuda_memory_fields[] = {FIELD(fpa_cuda_memory, queries),
                                        FIELD(fpa_cuda_memory, keys),
                                        FIELD(fpa_cuda_memory, raw),
                                        FIELD(fpa_cuda_memory, values),
                                        FIELD(fpa_cuda_memory, tiles),
                                        FIELD(fpa_cuda_memory, gates),
                                        FIELD(fpa_cuda_memory, output),
                                        FIELD(fpa_cuda_memory, edge),
                                        FIELD(fpa_cuda_memory, given_queries),
                                        FIELD(fpa_cuda_memory, given_keys),
                                        FIELD(fpa_cuda_memory, kept),
                                        FIELD(fpa_cuda_memory, copies),
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
    FIELD_PART(fpa_split_panel, "chunk_output_memory", chunk_output, cuda_memory_fields),
    PANEL(chunk_output_blocks),
    FIELDS_END};

/* plan_split_of: sizes of chunk_state, choice of tiles, and all other parts of split_outer in their order. */
#include "split_outer.h"

#include "machine/cuda_chunk.h"
#include "machine/cuda_cost.h"
#include "parts.h"
#include "work.h"

enum {
    SUMS_OF_THREE = 108,    /* registers of a thread for sums, in blocks of three warpgroups that multiply, */
    SUMS_OF_TWO = 200,      /* and of two */
    SHARED_REGISTERS = 240, /* of a thread that multiplies, if two warpgroups' warps share strips */
    SHARED_PRODUCER_REGISTERS = 24,
    STAGES = 8,           /* at most */
    ENOUGH_STAGES = 3,    /* r3_02 was no faster with four */
    BARRIERS = 16,        /* bytes of a stage's barriers */
    SINK_BARRIER = 8,     /* bytes of the barrier on which no thread waits */
    OTHER_REGISTERS = 16, /* of a thread of the state kernel: addresses, counters */
    /* registers that must be left, else ptxas may serialise products: three times as many for portions of more than
     * SPARED_PORTION */
    SPARE_REGISTERS = 4,
    SPARED_PORTION = 3,
    /* tiles of columns up to which a product takes 13 clocks (docs/decisions/0197-ones-among-product-rows.md) */
    SHORT_COLUMNS = 3,
    /* tiles of columns from which one product may be a portion: with 8 this was 2 % slower than two products, on an H200 */
    ENOUGH_COLUMNS = 12,
};

/* Warpgroups of a state kernel that multiply: three, which hide each other's waits, unless each could then hold the sums of
 * one tile only. */
static int warpgroup_count(int columns)
{
    return SUMS_OF_THREE / (4 * columns) > 1 ? 3 : 2;
}

/* Tiles of features whose sums a warpgroup can hold, at most OUTER_MAX_STRIP. */
static int warpgroup_tiles(int columns)
{
    const int sums = warpgroup_count(columns) == 3 ? SUMS_OF_THREE : SUMS_OF_TWO;
    const int tiles = sums / (4 * columns);
    return tiles > OUTER_MAX_STRIP ? OUTER_MAX_STRIP : tiles;
}

/* Whether in each run of `run` consecutive prefixes of a group, factor l has all its rows in one block, for each l. */
static bool runs_share_blocks(const fpa_outer_plan *outer, int run)
{
    const int factors = outer->prefix_factors;
    if (outer->rows) /* there are no prefixes */
        return false;
    for (int g = 0; g < outer->groups; g++) {
        if (run > OUTER_BLOCK / outer->group_parts[g]) /* the run would cross suffix blocks */
            return false;
        for (int c = 0; c < OUTER_BLOCK; c++)
            for (int l = 0; l < factors; l++) {
                const int *prefix = outer->prefix + g * OUTER_BLOCK * factors + l;
                if (prefix[c * factors] / OUTER_BLOCK != prefix[c / run * run * factors] / OUTER_BLOCK)
                    return false;
            }
    }
    return true;
}

/* Registers of a thread for a step's rows: suffixes, blocks of factors, and prefixes. */
static int row_words(const fpa_outer_plan *outer, const fpa_chunk_state_kernel *kernel)
{
    if (outer->rows)
        return 2 * (2 * outer->strip_length + 2);
    return 2 * (outer->strip_length + outer->prefix_factors * kernel->prefix_blocks + 2 * kernel->shares);
}

/* Whether registers do not suffice for two buffers of the features of `portion` products. Then portions have fewer
 * products: at least two, or one if a single product takes long. */
static bool is_crowded(const fpa_split_outer *split, int portion, int registers)
{
    const int features = 2 * 4 * portion;
    if (portion == 2 && split->columns.all >= ENOUGH_COLUMNS)
        return registers < features + SPARE_REGISTERS;
    if (portion > SPARED_PORTION)
        return registers < features + 3 * SPARE_REGISTERS;
    return portion > 2 && registers < features;
}

/* Chooses the number of products of a portion, and how far ahead of products rows are read and features formed, by
 * the registers that sums leave. */
static void choose_depth(const fpa_split_outer *split, fpa_chunk_state_kernel *kernel)
{
    const fpa_outer_plan *outer = &split->outer;
    const int suffixes = outer->strip_length, sums = 4 * split->columns.all * suffixes * kernel->strips;
    const bool one = outer->rows || runs_share_blocks(outer, 2 * kernel->shares);
    kernel->prefix_blocks = one ? 1 : 2 * kernel->shares;
    const int rest = kernel->registers - OTHER_REGISTERS - sums - row_words(outer, kernel);
    /* the second loop doubles NVRTC's time, and with four prefixes it saves less */
    kernel->own = kernel->shares == 1 && kernel->prefix_blocks == 1 && outer->own_strips > 0;
    kernel->portion = suffixes;
    while (kernel->shares > 1 && is_crowded(split, kernel->portion, rest))
        kernel->portion--;
    const int products = suffixes * kernel->shares;
    kernel->portion = divide_up(products, divide_up(products, kernel->portion)); /* equal portions */
    kernel->places = rest >= 2 * 4 * kernel->portion ? 2 : 1;
    const int left = rest - 2 * 4 * kernel->portion, ahead = 2 * suffixes + 3 * SPARE_REGISTERS;
    /* products of wide blocks hide the reads */
    const bool brief = !outer->rows && split->columns.all < SLAB_BLOCKS;
    kernel->ahead = brief && left >= ahead ? 2 : 1;
    /* not if a step is one portion: ptxas would form features in registers that products in flight still read (C7513) */
    const bool early =
        kernel->ahead == 2 && split->columns.all <= SHORT_COLUMNS && products > kernel->portion;
    kernel->early = early && left >= ahead + 4 * kernel->shares ? 2 : 1;
}

/* Divides shared memory: buffers for `leaving` layers of copies, weights, ones, barriers; the rest is for stages. */
static void divide_room(const fpa_plan *plan, const fpa_split_outer *split, int leaving,
                        fpa_chunk_state_kernel *kernel)
{
    const fpa_outer_plan *outer = &split->outer;
    const int turns = leaving < kernel->layers ? leaving : 1; /* that have barriers of their own */
    const int rest =
        kernel->groups * kernel->shares *
            (leaving * 1024 * split->columns.all + kernel->layers * (outer->weighted ? 256 : 0)) +
        split_ones_bytes(plan, split) + BARRIERS * kernel->groups * turns + SINK_BARRIER;
    const int stage =
        split_fetched_bytes(split, kernel->slabs) + (plan->head->gate ? FPA_CUDA_DECAYS : 0) + BARRIERS;
    const int room = plan->target->shared_memory - rest;
    kernel->leaving = leaving;
    kernel->stages = room / stage < STAGES ? room / stage : STAGES;
    kernel->bytes = rest + kernel->stages * stage;
}

/* Buffers through which copies are stored: for all tiles of a block; or, if that leaves only two stages, for at least
 * half of the tiles if this leaves room for a third stage, since a copy is stored once per chunk, but a stage is
 * needed every 64 tokens. (Exchanged states need 1 KB a tile there, too.) false: there are fewer than two stages. */
static bool size_state(const fpa_plan *plan, const fpa_split_outer *split, fpa_chunk_state_kernel *kernel)
{
    const fpa_outer_plan *outer = &split->outer;
    kernel->slices = divide_up(outer->strips, kernel->groups * kernel->strips);
    kernel->layers = kernel->strips / kernel->shares * outer->strip_length;
    split_count_slabs(outer, kernel);
    divide_room(plan, split, kernel->layers, kernel);
    choose_depth(split, kernel);
    if (kernel->stages < 2)
        return false;
    const int least = split->columns.all > 1 ? (int)divide_up(kernel->layers, 2) : kernel->layers;
    for (int leaving = kernel->layers - 1; leaving >= least; leaving--) {
        fpa_chunk_state_kernel other = *kernel;
        divide_room(plan, split, leaving, &other);
        if (kernel->stages < ENOUGH_STAGES && other.stages > kernel->stages)
            *kernel = other;
    }
    return true;
}

/* A state kernel of so many warpgroups and strips. The warps of a warpgroup with an even number of strips process two
 * of them at a time (shares = 2) if each four prefixes then have each factor in one block. */
static bool make_state(const fpa_plan *plan, const fpa_split_outer *split, int groups, int strips,
                       fpa_chunk_state_kernel *kernel)
{
    const bool shared = strips % 2 == 0 && runs_share_blocks(&split->outer, 4);
    *kernel = (fpa_chunk_state_kernel){.groups = groups, .strips = strips, .shares = shared ? 2 : 1};
    kernel->registers = split_registers(groups);
    kernel->producer_registers = split_producer_registers(groups);
    kernel->threads = WARPGROUP_THREADS * (groups + 1);
    if (groups == 2 && shared) {
        kernel->registers = SHARED_REGISTERS;
        kernel->producer_registers = SHARED_PRODUCER_REGISTERS;
    }
    return size_state(plan, split, kernel);
}

/* Clocks of a multiprocessor for 16 tokens of a head, by all blocks that share it. */
static double state_clocks(const fpa_plan *plan, const fpa_split_outer *split,
                           const fpa_chunk_state_kernel *kernel)
{
    const struct fpa_cuda_kernel_work work = work_chunk_state(plan, split, kernel);
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &work.step, 1);
    return cuda_clocks(gpu_of_target(plan->target), &sum, true, 4.0 * (kernel->groups + 1));
}

/* Two warpgroups whose warps share two strips, instead of `other` (three of one strip): they read fewer rows for a
 * product, and four strips may need fewer blocks. Whether it takes less time. */
static bool make_pairs(const fpa_plan *plan, const fpa_split_outer *split,
                       const fpa_chunk_state_kernel *other, fpa_chunk_state_kernel *kernel)
{
    const int strip = 4 * split->columns.all * split->outer.strip_length;
    return SUMS_OF_TWO / strip >= 2 && make_state(plan, split, 2, 2, kernel) && kernel->shares == 2 &&
           kernel->places == 2 && state_clocks(plan, split, kernel) < state_clocks(plan, split, other);
}

/* The most strips a warpgroup, up to `most`, that leave room for two stages; at last two warpgroups of one. */
static bool make_largest(const fpa_plan *plan, const fpa_split_outer *split, int groups, int most,
                         fpa_chunk_state_kernel *kernel)
{
    for (int strips = most; strips > 0; strips--)
        if (make_state(plan, split, groups, strips, kernel))
            return true;
    return groups > 2 && make_state(plan, split, 2, 1, kernel);
}

/* Chooses chunk_state, with as many strips a warpgroup as it can hold; and for few heads chunk_state_small, if it has
 * more blocks: of one strip a warpgroup, or of fewer warpgroups. */
static bool choose_state(const fpa_plan *plan, fpa_split_outer *split)
{
    const int tiles = split->columns.all, count = warpgroup_count(tiles);
    const int most = warpgroup_tiles(tiles) / split->outer.strip_length;
    fpa_chunk_state_kernel *large = &split->state[0], *small = &split->state[1], paired;
    if (!make_largest(plan, split, count, most, large))
        return false;
    const bool pairs = make_pairs(plan, split, large, &paired);
    if (pairs)
        *large = paired;
    const bool smaller = make_state(plan, split, pairs || most > 1 ? count : 2, 1, small);
    split->kernels = smaller && small->slices > large->slices ? 2 : 1;
    return true;
}

/* ---- tables ---- */

static void make_tables(const fpa_cuda_inputs *in, fpa_split_outer *split)
{
    static const char *const kinds[] = {[PREFIX_ANY] = "any", [PREFIX_BLOCK] = "block", [PREFIX_ROW] = "row"};
    const fpa_outer_plan *outer = &split->outer;
    const int rows = OUTER_BLOCK * outer->row_blocks, *row = in->rows->row;
    split->strip_tiles = outer->strips * outer->strip_length;
    split->prefixes = outer->groups * OUTER_BLOCK * outer->prefix_factors;
    split->strip_tile = arena_array(in->memory, split->strip_tiles, sizeof *split->strip_tile);
    split->source = arena_array(in->memory, rows, sizeof *split->source);
    split->prefix_kind = arena_array(in->memory, outer->prefix_factors, sizeof *split->prefix_kind);
    for (int i = 0; i < split->strip_tiles; i++)
        split->strip_tile[i] = outer->strip_tile[i] < 0 ? outer->tiles : outer->strip_tile[i];
    for (int i = 0; i < rows; i++)
        split->source[i] = outer->source[i] < 0 ? in->rows->zero_row : row[outer->source[i]];
    for (int l = 0; l < outer->prefix_factors; l++)
        split->prefix_kind[l] = kinds[outer_prefix_kind(outer, l)];
    split_list_slabs(in->memory, split);
}

/* ---- the plan ---- */

/* NULL: all kernels fit. */
static const char *choose_sizes(const fpa_cuda_inputs *in, fpa_split_outer *split)
{
    const fpa_plan *plan = in->plan;
    if (split->outer.strip_length > warpgroup_tiles(split->columns.all))
        return "a strip of its tiles does not fit into the registers of a warpgroup";
    if (!choose_split_queries(plan, split))
        return "a block of its queries does not fit into registers and shared memory";
    if (!choose_state(plan, split))
        return "a block's vectors and copies of its tiles do not fit into shared memory";
    return NULL;
}

/* Tiles in strips as long as a warpgroup has registers for; shorter strips if a block's copies of tiles would leave
 * no room for its vectors. Returns NULL, or why it is not possible. */
static const char *choose_strips(const fpa_cuda_inputs *in, const fpa_product_rows *products, int parts,
                                 fpa_split_outer *split)
{
    const char *refusal;
    int tiles = warpgroup_tiles(split->columns.all);
    do {
        const int columns = split->columns.all;
        if (products)
            plan_outer_of_products(in->plan, columns, tiles, parts, products->late, in->memory,
                                   &split->outer);
        else
            plan_outer(in->plan, columns, tiles, parts, in->memory, &split->outer);
        refusal = split->outer.used ? choose_sizes(in, split) : split->outer.why;
        tiles = split->outer.used ? split->outer.strip_length - 1 : 0;
    } while (refusal && tiles > 0);
    return refusal;
}

/* Seconds of a token in chunks of medium length. */
static double token_seconds(const fpa_plan *plan, const fpa_split_outer *split)
{
    enum { CHUNK = 384 };
    struct fpa_cuda_geometry geometry = {0};
    geometry.work[CUDA_CHUNK_STATE] = work_chunk_state(plan, split, &split->state[0]);
    geometry.work[CUDA_CHUNK_OUTPUT] = work_chunk_output(plan, split);
    geometry.awaited_keys = work_awaited_keys(plan, split);
    return cuda_chunk_seconds(gpu_of_target(plan->target), &geometry, CHUNK);
}

int split_places(const fpa_split_outer *split)
{
    const fpa_chunk_state_kernel *kernel = &split->state[0];
    return kernel->slices * kernel->groups * kernel->strips * split->outer.strip_length;
}

/* Whether the tiles of `parted` (several suffix blocks a tile, or turned features) are fewer and take less time. With
 * cut groups or turned features they must be fewer by a twentieth than those of whole groups, since smaller predicted
 * gains are errors of the model (r1_05 took 1.04 times as long with 89 tiles as with 92), and chunk_state must not
 * have room for more tiles (r3_08 took 1.14 times as long then; docs/decisions/0147-fuller-tiles.md). */
static bool is_fuller(const fpa_plan *plan, const fpa_split_outer *parted, int parts, int whole_groups,
                      const fpa_split_outer *split)
{
    const bool cut = parts & (OUTER_CUT | OUTER_TURNED);
    return (parted->outer.parted || parts & OUTER_TURNED) && parted->outer.tiles < split->outer.tiles &&
           (!cut || parted->outer.tiles <= whole_groups * 19 / 20) &&
           (!cut || split_places(parted) <= split_places(split)) &&
           token_seconds(plan, parted) < token_seconds(plan, split);
}

/* Tiles of one suffix block each, or the variants that take less time; not for heads with a contraction, which reads
 * tiles of one suffix block. Returns NULL, or why it is not possible. */
static const char *choose_tiles(const fpa_cuda_inputs *in, const fpa_product_rows *products,
                                fpa_split_outer *split)
{
    static const int parts[] = {
        2, 4, 2 | OUTER_CUT, 4 | OUTER_CUT, 1 | OUTER_TURNED, 2 | OUTER_TURNED, 4 | OUTER_TURNED};
    fpa_split_outer other = *split, whole;
    const char *refusal = choose_strips(in, products, 1, split);
    if (refusal || split->outer.rows)
        return refusal;
    whole = *split;
    if (!products)
        plan_contraction(in->plan, in->memory, &whole);
    int whole_groups = split->outer.tiles;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !whole.contraction.groups; i++) {
        fpa_split_outer parted = other;
        if (parts[i] & OUTER_TURNED && (products || split->outer.prefix_factors < 2))
            continue;
        if (!choose_strips(in, products, parts[i], &parted) &&
            is_fuller(in->plan, &parted, parts[i], whole_groups, split))
            *split = parted;
        whole_groups = parts[i] > OUTER_QUARTERS ? whole_groups : split->outer.tiles;
    }
    return NULL;
}

static int choose_chunk(const fpa_plan *plan, const fpa_split_outer *split)
{
    enum { MOST = 768 };
    struct fpa_cuda_geometry geometry = {0};
    if (plan->head->chunk)
        return round_up(plan->head->chunk, split->query_tokens);
    work_split_outer(plan, split, &geometry);
    return work_best_chunk(plan, &geometry, split->query_tokens, MOST);
}

/* Whether chunk_output can store dots of outputs: for gated heads of the kind that passes of gradients are. */
static bool leaves_dots(const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    return !cuda_leaves_dots(plan) && head->gate && head->causal && head->normalize == FPA_NORMALIZE_NONE &&
           head->dtype == FPA_BF16 && head->dv % 8 == 0;
}

/* Blocks of columns. For linear heads they have columns for values that lean, too (fused_rows.h); not for passes of
 * several blocks, which has not been measured. */
static fpa_columns choose_columns(const fpa_cuda_inputs *in)
{
    const fpa_head *head = in->plan->head;
    const bool has_ones = head->normalize != FPA_NORMALIZE_NONE;
    const fpa_columns columns = cuda_columns(head, split_most_columns(in));
    const int most = columns.blocks > 1 ? split_most_columns(in) : SPLIT_MOST_COLUMNS;
    const int tiles = divide_up(head->dv + cuda_most_lean(head->dv), 8);
    const int blocks = columns.blocks + (columns.blocks > 1 && tiles > columns.blocks * most);
    const int leaning = divide_up(tiles, blocks);
    if ((in->rows->factors != 1 && !in->feature_rows) || !head->causal || (blocks > 1 && in->plan->pass) ||
        leaning > most || (has_ones && leaning % 8 == 0))
        return columns;
    return cuda_columns_in(head, blocks, leaning);
}

/* Columns beyond dv for values that lean, if they suffice for all heads; 0: values may not lean. Not for passes by
 * fused_rows that also store dots and states (cuda_leaves_dots): there values are read at their own columns. */
static int choose_value_room(const fpa_cuda_inputs *in, const fpa_columns *columns)
{
    const fpa_head *head = in->plan->head;
    const int room = 8 * columns->blocks * columns->tiles - head->dv, most = cuda_most_lean(head->dv);
    return most > 0 && most <= room && !cuda_leaves_dots(in->plan) ? room : 0;
}

const char *plan_split_of(const fpa_cuda_inputs *in, const fpa_product_rows *products, fpa_split_outer *split)
{
    const fpa_plan *plan = in->plan;
    split->columns = choose_columns(in);
    split->ones_behind = plan->head->normalize != FPA_NORMALIZE_NONE && split->columns.tiles < SLAB_BLOCKS;
    split->value_box = 8 * (split->ones_behind ? split->columns.tiles : SLAB_BLOCKS);
    split->value_room = choose_value_room(in, &split->columns);
    split->leaves_dots = !in->feature_rows && leaves_dots(plan);
    const char *refusal = choose_tiles(in, products, split);
    if (refusal)
        return refusal;
    split->dots = plan->score->dot_count;
    split->dot_steps = split->outer.dot_first[split->dots];
    split->output_registers = split_registers(split->output_groups);
    split->output_producer_registers = split_producer_registers(split->output_groups);
    make_tables(in, split);
    plan_split_products(in, products, split);
    if (!split->outer.coordinates && !plan_pack(in, split))
        return "a tile of its packed rows does not fit into shared memory";
    split->chunk = choose_chunk(plan, split);
    if (!products)
        plan_contraction(plan, in->memory, split);
    plan_parallel(plan, split);
    return NULL;
}

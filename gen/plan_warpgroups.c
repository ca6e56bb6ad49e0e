#include "plan_warpgroups.h"

#include <stdio.h>

#include "plan.h"

enum {
    SUMS_OF_THREE = 108, /* registers of a thread for sums, in blocks of three warpgroups that multiply */
    SUMS_OF_TWO = 200,   /* and of two */
    SHARED_REGISTERS = 240, /* of a thread that multiplies, where warps of two warpgroups share stars */
    SHARED_FEED_REGISTERS = 24,
    MOST_COLUMNS = 16,   /* tiles of 8 */
    MOST_DOTS = 4,
    SEVERAL_MONOMIALS = 40, /* registers beside dots: else ptxas serialises the products */
    STAGES = 8,
    KEY_STAGES = 4,
    LEAST_TILES = 4, /* stages of the state */
    TILE_STAGES = 8,
    ITEM_BYTES = 64,      /* what a kernel knows of a stage of queries */
    BARRIERS = 16,        /* bytes, of a stage */
    OTHER_REGISTERS = 16, /* of a thread of the state kernel: addresses, counters */
    GATES = 784,          /* of a tile of keys */
    SLAB = 128,           /* bytes of 64 numbers of a token */
};

/* A block of g + 1 warpgroups starts with 65,536 / (128 (g + 1)) registers a thread, in steps of 8. */
int warpgroup_registers(int groups)
{
    return groups == 3 ? 160 : 232;
}

int warpgroup_feed_registers(int groups)
{
    return groups == 3 ? 32 : 40;
}

void warpgroup_columns(const fpa_plan *plan, int *blocks, int *tiles, int *all_tiles)
{
    const int all = (plan->head->dv + 7) / 8;
    *blocks = (all + MOST_COLUMNS - 1) / MOST_COLUMNS;
    *tiles = (all + *blocks - 1) / *blocks;
    *all_tiles = *tiles + (plan->head->normalize != FPA_NORMALIZE_NONE);
}

int warpgroup_count(int all_tiles)
{
    return SUMS_OF_THREE / (4 * all_tiles) > 1 ? 3 : 2;
}

int warpgroup_tiles(int all_tiles)
{
    const int sums = warpgroup_count(all_tiles) == 3 ? SUMS_OF_THREE : SUMS_OF_TWO;
    const int tiles = sums / (4 * all_tiles);
    return tiles > HOPPER_MAX_STAR ? HOPPER_MAX_STAR : tiles;
}

/* Keys and values of 64 tokens. */
static int fetched_bytes(const fpa_plan *plan)
{
    return 64 * SLAB * ((plan->hopper.row_blocks + 7) / 8 + (plan->cuda.column_tiles + 7) / 8);
}

/* Ones of 16 tokens, by which values become z: a slab where they follow a slab of values, else a block. */
static int ones_bytes(const fpa_plan *plan)
{
    if (plan->head->normalize == FPA_NORMALIZE_NONE)
        return 0;
    return plan->cuda.column_tiles == 8 ? 16 * SLAB : 256;
}

/* True when every `run` centres of a group that follow each other have their rows in one block, factor by
 * factor. */
static bool runs_share_blocks(const fpa_hopper_plan *hopper, int run)
{
    const int factors = hopper->centre_factors;
    for (int g = 0; g < hopper->groups; g++)
        for (int c = 0; c < HOPPER_BLOCK; c++)
            for (int l = 0; l < factors; l++) {
                const int *centre = hopper->centre + g * HOPPER_BLOCK * factors + l;
                if (centre[c * factors] / HOPPER_BLOCK != centre[c / run * run * factors] / HOPPER_BLOCK)
                    return false;
            }
    return true;
}

/* How far ahead of the products features can be, beside all sums. */
static void choose_depth(const fpa_plan *plan, fpa_state_kernel *kernel)
{
    const fpa_hopper_plan *hopper = &plan->hopper;
    kernel->registers = kernel->shares > 1 ? SHARED_REGISTERS : warpgroup_registers(kernel->groups);
    kernel->feed_registers =
        kernel->shares > 1 ? SHARED_FEED_REGISTERS : warpgroup_feed_registers(kernel->groups);
    const int sums = 4 * plan->cuda.all_tiles * hopper->star_leaves * kernel->stars;
    const int centres = 2 * kernel->shares;
    kernel->centre_blocks = runs_share_blocks(hopper, centres) ? 1 : centres;
    kernel->portion = kernel->shares > 1 ? 2 : hopper->star_leaves;
    const int features = 4 * kernel->portion;
    const int rows = 2 * (hopper->star_leaves + hopper->centre_factors * kernel->centre_blocks + centres);
    const int rest = kernel->registers - OTHER_REGISTERS - sums - rows;
    kernel->places = rest >= 2 * features ? 2 : 1;
}

/* Copies of all a block's tiles have a place on their way out; the rest of shared memory is for stages. */
static bool size_state(const fpa_plan *plan, fpa_state_kernel *kernel)
{
    const fpa_hopper_plan *hopper = &plan->hopper;
    const int block = kernel->groups * kernel->stars, tiles = block * hopper->star_leaves;
    const int rest = tiles * (1024 * plan->cuda.all_tiles + (hopper->weighted ? 256 : 0)) + ones_bytes(plan);
    const int stage = fetched_bytes(plan) + (plan->head->gate ? 128 : 0) + BARRIERS;
    const int room = plan->target->shared_memory - rest;
    kernel->slices = (hopper->stars + block - 1) / block;
    kernel->stages = room / stage < STAGES ? room / stage : STAGES;
    kernel->bytes = rest + kernel->stages * stage;
    choose_depth(plan, kernel);
    return kernel->stages >= 2;
}

/* Two warpgroups of twice as many stars, of which each warp works on half with twice as many centres, read
 * less for a product; where their registers hold that. */
static bool choose_shared(fpa_plan *plan, fpa_state_kernel *kernel)
{
    const fpa_hopper_plan *hopper = &plan->hopper;
    const int stars = SUMS_OF_TWO / (4 * plan->cuda.all_tiles * hopper->star_leaves);
    *kernel = (fpa_state_kernel){.groups = 2, .stars = 2, .shares = 2};
    return stars == 2 && size_state(plan, kernel) && kernel->centre_blocks == 1 && kernel->places == 2;
}

/* As many stars a warpgroup as it can keep. For few heads there are smaller blocks, if more of them: of one
 * star a warpgroup, or of fewer warpgroups, whose threads have more registers. */
static bool choose_state(fpa_plan *plan)
{
    fpa_warpgroup_plan *groups = &plan->warpgroups;
    const int tiles = plan->cuda.all_tiles, count = warpgroup_count(tiles);
    const int most = warpgroup_tiles(tiles) / plan->hopper.star_leaves;
    fpa_state_kernel *large = &groups->state[0], *small = &groups->state[1];
    const bool shared = choose_shared(plan, large);
    if (!shared)
        *large = (fpa_state_kernel){.groups = count, .stars = most, .shares = 1};
    *small = (fpa_state_kernel){.groups = shared || most > 1 ? count : 2, .stars = 1, .shares = 1};
    if (!size_state(plan, large) || !size_state(plan, small))
        return false;
    groups->kernels = small->slices > large->slices ? 2 : 1;
    return true;
}

/* Tiles of keys are few, and wanted one after the other; tiles of the state are many. */
static bool place_queries(fpa_plan *plan, int query_stages, int least_keys)
{
    fpa_warpgroup_plan *groups = &plan->warpgroups;
    const int tiles = plan->cuda.all_tiles, blocks = plan->hopper.row_blocks;
    const int query = (blocks + 7) / 8 * SLAB + (plan->head->gate ? 8 : 0);
    const int queries = query * groups->query_tokens + BARRIERS + ITEM_BYTES;
    const int keys = fetched_bytes(plan) + (plan->head->gate ? GATES : 0) + BARRIERS;
    const int tile = 1024 * tiles + BARRIERS,
              fixed = ones_bytes(plan) + 16; /* places of items are rounded up */
    const int rest = plan->target->shared_memory - fixed - query_stages * queries;
    groups->query_stages = query_stages;
    groups->key_stages = (rest - LEAST_TILES * tile) / keys;
    if (groups->key_stages > KEY_STAGES)
        groups->key_stages = KEY_STAGES;
    if (rest < 0 || groups->key_stages < least_keys)
        return false;
    groups->tile_stages = (rest - groups->key_stages * keys) / tile;
    if (groups->tile_stages > TILE_STAGES)
        groups->tile_stages = TILE_STAGES;
    groups->attend_bytes =
        query_stages * queries + groups->key_stages * keys + groups->tile_stages * tile + fixed;
    return true;
}

/* Sums of queries, beside them either factors and features, or dots and scores. *places: tiles of queries
 * whose scores there is room for. */
static bool registers_fit(const fpa_plan *plan, int warpgroups, int query_tiles, int *places)
{
    const int dots = plan->score->dot_count > 1 ? plan->score->dot_count : 1;
    const int sums = 4 * plan->cuda.all_tiles * query_tiles, rest = warpgroup_registers(warpgroups) - 28;
    const int values = 32 * dots + (plan->score->monomial_count > 1 ? SEVERAL_MONOMIALS : 0);
    *places = query_tiles > 1 && sums + values + 32 <= rest ? 2 : 1;
    return sums + 10 * query_tiles + 16 <= rest && sums + values + 16 * *places <= rest;
}

/* Three warpgroups hide each other's waits; whole blocks of queries divide a chunk that the spec asks for. */
static bool choose_queries(fpa_plan *plan)
{
    static const int sizes[][2] = {{3, 2}, {3, 1}, {2, 2}, {2, 1}};
    fpa_warpgroup_plan *groups = &plan->warpgroups;
    const int chunk = (plan->head->chunk + 127) / 128 * 128;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        groups->attend_groups = sizes[i][0];
        groups->query_tiles = sizes[i][1];
        groups->query_tokens = 64 * sizes[i][0] * sizes[i][1];
        if (registers_fit(plan, sizes[i][0], sizes[i][1], &groups->score_places) &&
            chunk % groups->query_tokens == 0 && (place_queries(plan, 2, 4) || place_queries(plan, 1, 2)))
            return true;
    }
    return false;
}

static void refuse(fpa_plan *plan, const char *why)
{
    plan->hopper.used = false;
    snprintf(plan->hopper.why, sizeof plan->hopper.why, "%s", why);
}

void plan_warpgroups(fpa_plan *plan)
{
    if (plan->score->dot_count > MOST_DOTS)
        refuse(plan, "its score has more than 4 dot products");
    else if (plan->hopper.star_leaves > warpgroup_tiles(plan->cuda.all_tiles))
        refuse(plan, "a warpgroup has no registers for a star of its tiles");
    else if (!choose_queries(plan))
        refuse(plan, "a block of its queries does not fit into registers and shared memory");
    else if (!choose_state(plan))
        refuse(plan, "a block's vectors and copies of its tiles do not fit into shared memory");
}

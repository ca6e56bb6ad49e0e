/* choose_split_queries: NAME_chunk_output on warpgroups: whether dots are computed at once or in turn, queries of a
 * block, and stages of queries, tiles and keys in shared memory. */
#include <math.h>

#include "machine/cuda_chunk.h"
#include "parts.h"
#include "split_outer.h"
#include "work.h"

enum {
    MOST_DOTS = 4, /* computed at once */
    /* registers beside dots if there are several monomials: else ptxas serialises the products */
    SEVERAL_MONOMIALS = 40,
    KEY_STAGES = 4,
    LEAST_TILES = 4, /* stages of tiles, */
    /* and with blocks of so many queries: blocks of half as many would read copies twice as often, which the
     * second-level cache cannot deliver */
    FEW_QUERIES = 128,
    FEWER_TILES = 2,
    TILE_STAGES = 8,
    ITEM_BYTES = 64,  /* a work item, beside each stage of queries */
    ITEMS = 16 + 160, /* alignment, and a ring of two items with barriers */
    /* of each stage of keys: whether its values are finite, and a barrier; alignment */
    EDGES = 12 * KEY_STAGES + 4,
    BARRIERS = 16, /* bytes of a stage's barriers */
    TOLD = 16, /* of a stage of keys that overlaps tiles: the barriers between the warps that fetch either */
    GATES = 1040, /* bytes of a tile of keys' gates */
};

/* Slabs of a vector. */
static int row_slabs(const fpa_split_outer *split)
{
    return divide_up(split->outer.row_blocks, SLAB_BLOCKS);
}

/* Adds stages of keys that overlap tiles, which have been multiplied when keys are needed: up to three in all, as
 * many as there are warps that fetch keys. */
static void place_more_keys(const fpa_plan *plan, fpa_split_outer *split)
{
    enum { MOST = 3 };
    const int own = BARRIERS + TOLD + (plan->head->gate ? GATES : 0), /* bytes that do not overlap */
        stage = split_fetched_bytes(split, row_slabs(split));
    int left = split->tile_stages * 1024 * split->columns.all;
    split->most_key_stages = split->key_stages;
    while (split->most_key_stages < MOST && left >= stage &&
           split->output_bytes + own <= plan->target->shared_memory) {
        split->most_key_stages++;
        split->output_bytes += own;
        left -= stage;
    }
}

/* If wide vectors leave room for one stage of keys and few tiles only: tiles take the room of that stage, too, which
 * then overlaps them. */
static void share_only_stage(const fpa_plan *plan, fpa_split_outer *split)
{
    const int tile = 1024 * split->columns.all, stage = split_fetched_bytes(split, row_slabs(split)),
              left = plan->target->shared_memory - split->output_bytes - TOLD;
    if (split->most_key_stages > 1 || split->tile_stages >= LEAST_TILES || left < 0)
        return;
    int tiles = (split->tile_stages * tile + stage + left) / (tile + BARRIERS);
    if (tiles > TILE_STAGES)
        tiles = TILE_STAGES;
    if (tiles * tile < stage)
        return;
    split->output_bytes += TOLD - stage + (tiles - split->tile_stages) * (tile + BARRIERS);
    split->tile_stages = tiles;
    split->key_stages = 0;
}

/* Divides shared memory: so many stages of queries, then as many stages of keys as leave room for least_tiles stages
 * of tiles of the state, then tiles. false: fewer than least_keys stages of keys fit. */
static bool place_queries(const fpa_plan *plan, fpa_split_outer *split, int query_stages, int least_keys,
                          int least_tiles)
{
    const int tiles = split->columns.all, blocks = split->outer.row_blocks;
    const int query = (blocks + 7) / 8 * SLAB_ROW + (plan->head->gate ? 8 : 0);
    const int queries = query * split->query_tokens + BARRIERS + ITEM_BYTES;
    const int keys = split_fetched_bytes(split, row_slabs(split)) + (plan->head->gate ? GATES : 0) + BARRIERS;
    const int tile = 1024 * tiles + BARRIERS,
              fixed = ITEMS + EDGES + (split->columns.ones_slabs ? split_ones_bytes(plan, split) : 0);
    const int rest = plan->target->shared_memory - fixed - query_stages * queries;
    split->query_stages = query_stages;
    split->key_stages = (rest - least_tiles * tile) / keys;
    if (split->key_stages > KEY_STAGES)
        split->key_stages = KEY_STAGES;
    if (rest < 0 || split->key_stages < least_keys)
        return false;
    split->tile_stages = (rest - split->key_stages * keys) / tile;
    if (split->tile_stages > TILE_STAGES)
        split->tile_stages = TILE_STAGES;
    split->output_bytes =
        query_stages * queries + split->key_stages * keys + split->tile_stages * tile + fixed;
    place_more_keys(plan, split);
    share_only_stage(plan, split);
    return true;
}

/* Registers of a thread for dots of 64 queries and 64 keys, until they are scores. turn 0: all dots; else, for `turn`
 * keys at a time, a monomial's product and a dot, beside the kernel of all 64 keys. */
static int score_registers(const fpa_score *score, int turn)
{
    enum { OPERANDS = 20 };
    const bool several = score->monomial_count > 1;
    if (turn)
        return 32 + turn / 2 * (several ? 2 : 1) + OPERANDS;
    return 32 * largest(score->dot_count, 1) + (several ? SEVERAL_MONOMIALS : 0);
}

/* Register buffers for scores of a tile of queries: 0, 1 or 2; 0: registers do not suffice for sums of queries,
 * beside factors and features, or beside dots and scores. With two buffers a polynomial of one dot needs no further
 * registers, since it is evaluated in the dot's. */
static int count_places(const fpa_plan *plan, int columns, int warpgroups, int query_tiles, int turn)
{
    const int sums = 4 * columns * query_tiles, rest = split_registers(warpgroups) - 28;
    const int values = score_registers(plan->score, turn) + (turn ? 10 * (query_tiles - 1) : 0);
    if (sums + 10 * query_tiles + 16 > rest || sums + values + 16 > rest)
        return 0;
    const int dots = plan->score->dot_count > 1 ? values : 32;
    return query_tiles > 1 && !turn && sums + dots + 32 <= rest ? 2 : 1;
}

/* Whether a block of so many warpgroups and tiles of queries fits. Its queries must divide a chunk that the spec asks
 * for. */
static bool size_queries(const fpa_plan *plan, int groups, int tiles, fpa_split_outer *split)
{
    const int chunk = (plan->head->chunk + 127) / 128 * 128;
    split->output_groups = groups;
    split->query_tiles = tiles;
    split->query_tokens = 64 * groups * tiles;
    split->score_places = count_places(plan, split->columns.all, groups, tiles, split->turn_keys);
    return split->score_places && chunk % split->query_tokens == 0 &&
           (place_queries(plan, split, 2, 4, LEAST_TILES) || place_queries(plan, split, 1, 2, LEAST_TILES) ||
            place_queries(plan, split, 1, 1, LEAST_TILES) ||
            (split->query_tokens == FEW_QUERIES && place_queries(plan, split, 1, 1, FEWER_TILES)));
}

/* Whether a score is more than one dot: else there is nothing to compute beside products. */
static bool is_formed(const fpa_score *score)
{
    for (int i = 0; i < score->monomial_count; i++)
        for (int j = 0; j < score->dot_count; j++)
            if (score->monomials[i].power[j] > 1)
                return true;
    return score->dot_count > 1;
}

/* The first size of a block that fits. Three warpgroups hide each other's waits. Two warpgroups of two tiles do so,
 * too, and read keys less often, if one tile's scores are formed while the other's products are in flight
 * (docs/decisions/0180-what-pairs-wait-for.md; not measured for values of several blocks of columns, or of a wide
 * one). */
static bool choose_queries(const fpa_plan *plan, int turn, fpa_split_outer *split)
{
    static const int sizes[][2] = {{3, 2}, {2, 2}, {3, 1}, {2, 2}, {2, 1}, {1, 1}};
    enum { BESIDE = 1 }; /* the size with that condition */
    const bool beside = is_formed(plan->score) && plan->head->dv <= OUTER_BLOCK * SPLIT_MOST_COLUMNS;
    split->dots_in_turn = turn > 0;
    split->turn_keys = turn;
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        if (size_queries(plan, sizes[i][0], sizes[i][1], split) &&
            (i != BESIDE || (beside && split->score_places > 1 && split->key_stages > 1)))
            return true;
    return false;
}

/* Seconds of a token's queries in chunks of medium length. */
static double query_seconds(const fpa_plan *plan, const fpa_split_outer *split)
{
    enum { CHUNK = 384 };
    struct fpa_cuda_geometry geometry = {0};
    geometry.work[CUDA_CHUNK_OUTPUT] = work_chunk_output(plan, split);
    geometry.awaited_keys = work_awaited_keys(plan, split);
    return cuda_chunk_seconds(gpu_of_target(plan->target), &geometry, CHUNK);
}

/* Tries all dots at once, and dots in turn for 64 or for 32 keys, which need fewer registers, so that blocks may have
 * more queries; keeps what takes the least time. */
bool choose_split_queries(const fpa_plan *plan, fpa_split_outer *split)
{
    static const int turns[] = {0, 64, 32};
    const int dots = plan->score->dot_count;
    fpa_split_outer best = *split, other = *split;
    double least = INFINITY;
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        if (!(turns[i] ? dots > 1 : dots <= MOST_DOTS) || !choose_queries(plan, turns[i], &other))
            continue;
        const double seconds = query_seconds(plan, &other);
        if (seconds >= least)
            continue;
        least = seconds;
        best = other;
    }
    *split = best;
    return least < INFINITY;
}

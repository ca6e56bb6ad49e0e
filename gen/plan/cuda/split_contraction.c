/* plan_contraction: NAME_chunk_contraction, which computes gradients of queries. For kernels of degree 2 in one dot,
 * or sums of products of two dots, it reads the copies of the state that split_outer's chunk_state writes, then
 * pairs; for kernels of any degree in one dot, in the parallel form, pairs alone. */
#include "split_outer.h"

#include "base/round.h"
#include "contraction.h"
#include "parts.h"

enum {
    /* rows of queries, and values, up to which three warpgroups have registers for sums of gradients and rows g */
    GROUPS_WIDTH = 64,
    GROUPS_VALUES = 80,
    MOST_STAGES = 4, /* of keys */
    LEAST_STAGES = 2,
    MOST_TILES = 8, /* stages of tiles */
    LEAST_TILES = 2,
    PAIR_KEYS = 32, /* keys of a stage, for products of two dots; */
    KEYS = 64,      /* for polynomials of one */
    /* least stages of tiles for products of two dots, unless only LEAST_TILES fit: fewer queries a block would read
     * tiles more often */
    PAIR_TILES = 3,
    /* registers beside sums and rows g: two tiles' products, 64; a group's prefixes and their gradients, 32; addresses */
    BESIDE_TILES = 128,
    /* bytes left free behind the last tile if its blocks of 8 columns are odd; begin_tile, which then reads the last
     * block twice, does not need them */
    COLUMNS_BEHIND = 1024,
    /* tiles of a set up to which its loops are unrolled: the instruction cache is limited */
    MOST_WRITTEN = 16,
    BARRIERS = 16, /* bytes of a stage's barriers */
    GATE = 8,      /* bytes of a token's running sum of log-gates */
};

/* Whether a vector's rows are the coordinates in their own order, optionally followed by a row of ones that begins
 * a block. */
static bool has_rows(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    for (int r = 0; r < OUTER_BLOCK * outer->row_blocks && !outer->coordinates; r++)
        if (outer->source[r] != (r < plan->head->d ? r : r == outer->ones_row ? plan->ones_row : -1))
            return false;
    return OUTER_BLOCK * outer->row_blocks >= plan->head->d;
}

/* Whether each tile is a block of rows times another one, with ordinary blocks of columns. */
static bool has_tiles(const fpa_split_outer *split)
{
    return split->columns.tiles <= SPLIT_MOST_COLUMNS && split->outer.prefix_factors == 1 &&
           outer_prefix_kind(&split->outer, 0) == PREFIX_BLOCK;
}

/* Whether vectors, and tiles if states are contracted, are as the kernel needs them. */
static bool has_blocks(const fpa_plan *plan, const fpa_split_outer *split, bool states)
{
    const fpa_outer_plan *outer = &split->outer;
    return has_rows(plan, outer) && !outer->rows && !outer->products &&
           (!states || (outer->vector_box == OUTER_TILE && has_tiles(split)));
}

/* ---- products of two dots ---- */

/* Slabs of so many blocks of 8. */
static int slabs_of(int blocks)
{
    return divide_up(blocks, SLAB_BLOCKS);
}

/* Number of the monomial one of whose dots has a row; -1: none. */
static int pair_of_row(const fpa_contraction *c, int row)
{
    for (int i = 0; i < c->pair_count; i++) {
        const fpa_contracted_pair *pair = &c->pairs[i];
        if ((row >= pair->first && row < pair->first + OUTER_BLOCK * pair->blocks) ||
            (row >= pair->other_first && row < pair->other_first + OUTER_BLOCK * pair->other_blocks))
            return i;
    }
    return -1;
}

/* Whether two rows of a pair belong to the same dot. */
static bool same_dot(const fpa_contracted_pair *pair, int row, int other)
{
    return (row < pair->other_first) == (other < pair->other_first);
}

/* Whether a group's prefixes are rows of one dot of a pair, and its tiles' suffixes rows of the other. */
static bool is_of_pair(const fpa_outer_plan *outer, const fpa_contraction *c, int group, int pair)
{
    const int row = outer->prefix[OUTER_BLOCK * group];
    for (int tile = outer->group_first[group]; tile < outer->group_first[group + 1]; tile++) {
        const int suffix = OUTER_BLOCK * outer->tile_suffix[tile];
        if (pair_of_row(c, suffix) != pair || same_dot(&c->pairs[pair], row, suffix))
            return false;
    }
    return true;
}

/* Whether group i of a monomial has block i of one dot as prefixes, and tiles with all blocks of the other dot, in
 * order. */
static bool are_in_order(const fpa_outer_plan *outer, const fpa_contracted_pair *pair)
{
    const int first = pair->swapped ? pair->other_first : pair->first;
    const int suffix = (pair->swapped ? pair->first : pair->other_first) / OUTER_BLOCK;
    const int blocks = pair->swapped ? pair->other_blocks : pair->blocks;
    const int suffixes = pair->swapped ? pair->blocks : pair->other_blocks;
    bool ordered = pair->end_group - pair->group == blocks;
    for (int g = pair->group; g < pair->end_group && ordered; g++) {
        const int tile = outer->group_first[g];
        ordered = outer->prefix[OUTER_BLOCK * g] == first + OUTER_BLOCK * (g - pair->group) &&
                  outer->group_first[g + 1] - tile == suffixes;
        for (int i = 0; i < suffixes && ordered; i++)
            ordered = outer->tile_suffix[tile + i] == suffix + i;
    }
    return ordered;
}

/* Whether loops over a set's tiles are unrolled, so that each tile adds to known registers: if tiles are few and in
 * order. */
static bool write_tiles(const fpa_outer_plan *outer, const fpa_contraction *c, const fpa_contracted_set *set)
{
    int tiles = 0;
    for (int i = set->pair; i < set->end_pair; i++) {
        const fpa_contracted_pair *pair = &c->pairs[i];
        if (!are_in_order(outer, pair))
            return false;
        tiles += pair->swapped ? pair->blocks : pair->other_blocks;
    }
    return tiles <= MOST_WRITTEN;
}

/* Finds the groups of each monomial; false: they are not consecutive, or mix monomials. */
static bool find_groups(const fpa_outer_plan *outer, fpa_contraction *c)
{
    int last = -1;
    for (int g = 0; g < outer->groups; g++) {
        const int pair = pair_of_row(c, outer->prefix[OUTER_BLOCK * g]);
        if (pair < 0 || !is_of_pair(outer, c, g, pair))
            return false;
        fpa_contracted_pair *its = &c->pairs[pair];
        if (pair != last && its->end_group > its->group)
            return false;
        if (pair != last) {
            its->group = g;
            its->swapped = outer->prefix[OUTER_BLOCK * g] >= its->other_first;
        }
        its->end_group = g + 1;
        last = pair;
    }
    return true;
}

/* Lists the score's monomials as pairs; false: its tiles are not blocks of one dot's rows times blocks of the other's. */
static bool list_pairs(const fpa_plan *plan, arena *memory, const fpa_outer_plan *outer, fpa_contraction *c)
{
    const fpa_score *score = plan->score;
    c->pair_count = score->monomial_count;
    c->pairs = arena_array(memory, c->pair_count, sizeof *c->pairs);
    for (int m = 0; m < c->pair_count; m++) {
        const fpa_branch *dot = pair_dot(score, m, 0), *other = pair_dot(score, m, 1);
        const double scale = plan->head->scale;
        c->pairs[m] = (fpa_contracted_pair){.first = dot->row[0],
                                            .blocks = pair_blocks(dot),
                                            .other_first = other->row[0],
                                            .other_blocks = pair_blocks(other),
                                            .weight = score->monomials[m].weight.value * scale * scale};
    }
    return find_groups(outer, c);
}

/* ---- sizes ---- */

/* Slabs of rows of queries, or keys, in a stage: of the set that has most. */
static int row_slabs_of(const fpa_split_outer *split, const fpa_contraction *c)
{
    int most = c->pair_count ? 0 : slabs_of(split->outer.row_blocks);
    for (int i = 0; i < c->set_count; i++)
        most = c->sets[i].slabs > most ? c->sets[i].slabs : most;
    return most;
}

/* Stages of keys in calls that read no copies: keys of pairs then have the room of tiles, too. */
static void place_lone_keys(const fpa_plan *plan, int key, int tiles, fpa_contraction *c)
{
    const int beside = BARRIERS + (plan->head->gate ? c->keys * GATE : 0), room = plan->target->shared_memory;
    c->lone_key_stages = c->key_stages;
    for (int left = tiles;
         c->pair_count && c->lone_key_stages < MOST_STAGES && left >= key && c->bytes + beside <= room;
         left -= key) {
        c->lone_key_stages++;
        c->bytes += beside;
    }
}

/* Divides shared memory: `stages` stages of queries and rows g, then as many stages of keys as leave room for
 * least_tiles tiles, then tiles. false: fewer than two stages of keys fit. */
static bool place_contraction(const fpa_plan *plan, const fpa_split_outer *split, int stages, int least_tiles,
                              fpa_contraction *c)
{
    const int columns = split->columns.blocks * split->columns.tiles;
    const int slabs = row_slabs_of(split, c) + slabs_of(columns);
    const int gate = plan->head->gate ? GATE : 0, tokens = 64 * c->groups;
    const int own = tokens * (slabs * SLAB_ROW + gate) + BARRIERS,
              key = c->keys * (slabs * SLAB_ROW + gate) + BARRIERS;
    const int tile = 1024 * split->columns.all * split->columns.blocks + BARRIERS;
    const int behind = c->states && split->columns.tiles % 2 ? COLUMNS_BEHIND : 0;
    const int room = plan->target->shared_memory - stages * own - behind;
    c->own_stages = stages;
    c->key_stages = (room - least_tiles * tile) / key;
    if (room < 0 || c->key_stages < LEAST_STAGES)
        return false;
    if (c->key_stages > MOST_STAGES)
        c->key_stages = MOST_STAGES;
    c->tile_stages = c->states ? (room - c->key_stages * key) / tile : 0;
    if (c->tile_stages > MOST_TILES)
        c->tile_stages = MOST_TILES;
    c->bytes = stages * own + c->key_stages * key + c->tile_stages * tile + behind;
    place_lone_keys(plan, key, c->tile_stages * tile, c);
    return true;
}

/* Whether three warpgroups have registers for sums of gradients and rows g. */
static bool is_narrow(const fpa_plan *plan, const fpa_contraction *c)
{
    int rows = c->pair_count ? 0 : plan->head->d;
    for (int i = 0; i < c->set_count; i++)
        rows = OUTER_BLOCK * c->sets[i].blocks > rows ? OUTER_BLOCK * c->sets[i].blocks : rows;
    return rows <= GROUPS_WIDTH && plan->head->dv <= GROUPS_VALUES;
}

/* For pairs alone: whether queries and rows g fit into registers for all keys; values: with sums of scores times
 * values, too. */
static bool holds_rows(const fpa_plan *plan, const fpa_split_outer *split, int groups, bool values)
{
    const int columns = OUTER_BLOCK * split->columns.blocks * split->columns.tiles;
    return contraction_held_registers(plan->head->d, columns, values) <= split_registers(groups);
}

/* For products of two dots: registers, in units of 4, for sums, queries and rows g of a set, beside dots of 32 keys
 * and their operands. */
static int held_units(int groups)
{
    enum { DOTS = 48, OPERANDS = 16, OTHERS = 32, UNIT = 4 };
    return (split_registers(groups) - DOTS - OPERANDS - OTHERS) / UNIT;
}

/* Steps of 16 numbers of a row g. */
static int value_steps(const fpa_split_outer *split)
{
    return divide_up(split->columns.blocks * split->columns.tiles, OUTER_STEP / OUTER_BLOCK);
}

/* Which operands of each set stay in registers: rows g first, then queries, too; and whether its loops are unrolled. */
static void hold_rows(const fpa_split_outer *split, fpa_contraction *c)
{
    const int most = held_units(c->groups), values = value_steps(split);
    for (int i = 0; i < c->set_count; i++) {
        fpa_contracted_set *set = &c->sets[i];
        set->holds_values = set->blocks + values <= most;
        set->holds_queries = set->blocks + values + set->steps <= most;
        set->written = write_tiles(&split->outer, c, set);
    }
}

/* Chooses the number of warpgroups, and stages. A block's queries must divide a chunk; they may exceed a sequence by
 * no more than the query_tokens for which there is memory behind the running sums of log-gates. */
static bool choose_groups(const fpa_plan *plan, const fpa_split_outer *split, fpa_contraction *c)
{
    const bool held = !c->states && holds_rows(plan, split, 2, false);
    const bool more =
        is_narrow(plan, c) && (!held || holds_rows(plan, split, 3, holds_rows(plan, split, 2, true)));
    const int least = c->states ? LEAST_TILES : 0, tiles = c->pair_count ? PAIR_TILES : least;
    c->keys = c->pair_count ? PAIR_KEYS : KEYS;
    for (int groups = more ? 3 : 2; groups > 0; groups--) {
        const int tokens = 64 * groups;
        c->groups = groups;
        c->held = held;
        c->values = held && holds_rows(plan, split, groups, true);
        hold_rows(split, c);
        if (split->chunk % tokens == 0 && tokens - 64 <= split->query_tokens &&
            (place_contraction(plan, split, 2, tiles, c) || place_contraction(plan, split, 1, tiles, c) ||
             place_contraction(plan, split, 1, least, c)))
            return true;
    }
    return false;
}

/* Divides the monomials into sets. If two warpgroups have registers for it, a set leaves room for two tiles' products
 * in flight, and for queries and rows g as operands in registers; otherwise a set is one monomial. */
static bool choose_sets(const fpa_plan *plan, arena *memory, const fpa_split_outer *split, fpa_contraction *c)
{
    const int tile_steps = split->columns.blocks * divide_up(split->columns.tiles, OUTER_STEP / OUTER_BLOCK);
    const int sums = (split_registers(2) - BESIDE_TILES) / 4 - tile_steps;
    const bool found = list_pairs(plan, memory, &split->outer, c);
    c->groups = 0;
    for (int several = 1; several >= 0 && found && c->groups < 2; several--) {
        list_contracted_sets(memory, c, several * sums, several * (held_units(2) - value_steps(split)));
        if (!choose_groups(plan, split, c))
            c->groups = 0;
    }
    return c->groups > 0;
}

/* Whether products of two dots are contracted: only in passes of gradients (gen/plan/passes.h), of heads whose rows
 * are coordinates. */
static bool pairs_are_wanted(const fpa_plan *plan, const fpa_split_outer *split)
{
    const fpa_head *head = plan->head;
    return (plan->forced == SPLIT_OUTER || plan->forced < 0) && plan->pass && score_has_pairs(plan->score) &&
           pairs_lie_apart(plan->score, head->d) && head->causal && head->normalize == FPA_NORMALIZE_NONE &&
           dtype_size(head->dtype) == 2 && head->dv % OUTER_BLOCK == 0 && !plan->written->lift &&
           !plan->written->window && split->outer.coordinates;
}

/* Whether kernels of one dot can process tokens in reverse order: only in passes, since a head's own kernels know one
 * order, and not with rows that pad_rows would pad. */
static bool turns_power(const fpa_plan *plan, const fpa_split_outer *split, const fpa_contraction *c)
{
    return c->states && plan->pass && (!split->outer.coordinates || plan->head->d % OUTER_BLOCK == 0);
}

void plan_contraction(const fpa_plan *plan, arena *memory, fpa_split_outer *split)
{
    const fpa_contracted contracted = contraction_of(plan);
    const bool power = contracted != CONTRACTS_NOTHING;
    fpa_contraction c = {.states = contracted != CONTRACTS_PAIRS};
    if (!(power || pairs_are_wanted(plan, split)) || !has_blocks(plan, split, c.states))
        return;
    if (power ? !choose_groups(plan, split, &c) : !choose_sets(plan, memory, split, &c))
        return;
    c.ones = c.states && split->outer.ones_row >= 0;
    c.turns = c.pair_count > 0 || turns_power(plan, split, &c);
    c.registers = split_registers(c.groups);
    c.producer_registers = split_producer_registers(c.groups);
    c.two_tiles = c.registers - BESIDE_TILES;
    split->contraction = c;
}

/* list_contracted_sets: divides the monomials of chunk_contraction into sets that a block processes at the same time,
 * and places the rows of their dots in slabs of shared memory. */
#include "split_outer.h"

#include "base/round.h"

enum { BLOCK = 8, STEP = 16 };

/* The end of the last dot that was placed: its next row in a vector, and its next block in the slabs. */
typedef struct place {
    int row, block;
} place;

/* Steps of 16 rows of so many blocks of 8. */
static int steps_of(int blocks)
{
    return divide_up(BLOCK * blocks, STEP);
}

/* Places a dot: behind the last one, if it follows that one in a vector, so that one box brings both; else at the
 * beginning of a slab. */
static int place_dot(place *at, int row, int blocks)
{
    if (row != at->row)
        at->block = round_up(at->block, SLAB_BLOCKS);
    const int found = at->block;
    at->row = row + STEP * steps_of(blocks);
    at->block += STEP / BLOCK * steps_of(blocks);
    return found;
}

/* The first row greater than `row` with which a dot of the set begins; -1: none. */
static int next_row(const fpa_contraction *c, const fpa_contracted_set *set, int row)
{
    int found = -1;
    for (int i = set->pair; i < set->end_pair; i++) {
        const int rows[2] = {c->pairs[i].first, c->pairs[i].other_first};
        for (int n = 0; n < 2; n++)
            if (rows[n] > row && (found < 0 || rows[n] < found))
                found = rows[n];
    }
    return found;
}

/* Places the dots of a set, in the order of their rows. */
static void place_rows(const fpa_contraction *c, fpa_contracted_set *set)
{
    place at = {-1, 0};
    for (int row = next_row(c, set, -1); row >= 0; row = next_row(c, set, row))
        for (int i = set->pair; i < set->end_pair; i++) {
            fpa_contracted_pair *pair = &c->pairs[i];
            if (pair->first == row)
                pair->place = place_dot(&at, row, pair->blocks);
            else if (pair->other_first == row)
                pair->other_place = place_dot(&at, row, pair->other_blocks);
        }
    set->slabs = divide_up(at.block, SLAB_BLOCKS);
}

static void add_pair(fpa_contracted_set *set, fpa_contracted_pair *pair)
{
    pair->sum = set->blocks;
    pair->other_sum = set->blocks + pair->blocks;
    set->blocks += pair->blocks + pair->other_blocks;
    set->steps += steps_of(pair->blocks) + steps_of(pair->other_blocks);
    set->end_pair++;
    set->end_group = pair->end_group;
}

/* Whether a pair can be added to a set, whose groups must be consecutive. */
static bool joins(const fpa_contracted_set *set, const fpa_contracted_pair *pair, int most_sums,
                  int most_held)
{
    const int blocks = set->blocks + pair->blocks + pair->other_blocks;
    const int steps = set->steps + steps_of(pair->blocks) + steps_of(pair->other_blocks);
    return set->end_group == pair->group && blocks <= most_sums && blocks + steps <= most_held;
}

/* Sorts by group, and within a group by monomial, so that the order does not depend on the library's qsort. */
static void order_pairs(fpa_contracted_pair *pairs, int count)
{
    for (int i = 1; i < count; i++) {
        const fpa_contracted_pair own = pairs[i];
        int at = i;
        for (; at > 0 && pairs[at - 1].group > own.group; at--)
            pairs[at] = pairs[at - 1];
        pairs[at] = own;
    }
}

void list_contracted_sets(arena *memory, fpa_contraction *c, int most_sums, int most_held)
{
    c->set_count = 0;
    c->sets = arena_array(memory, c->pair_count, sizeof *c->sets);
    order_pairs(c->pairs, c->pair_count);
    for (int i = 0; i < c->pair_count; i++) {
        fpa_contracted_pair *pair = &c->pairs[i];
        if (!i || !joins(&c->sets[c->set_count - 1], pair, most_sums, most_held))
            c->sets[c->set_count++] = (fpa_contracted_set){.pair = i, .end_pair = i, .group = pair->group};
        add_pair(&c->sets[c->set_count - 1], pair);
    }
    for (int i = 0; i < c->set_count; i++)
        place_rows(c, &c->sets[i]);
}

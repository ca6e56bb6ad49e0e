/* outer_given: finds the run of coordinates that vectors take from q and k as given, decides whether it is worth it,
 * and places it. */
#include "outer_given.h"

#include "contraction.h"
#include "outer_tiles.h"

bool outer_dots_part(const fpa_plan *plan, int a, int b)
{
    for (int i = 0; i < plan->score->dot_count; i++) {
        int found = 0;
        for (int r = 0; r < plan->dots[i].row_count; r++)
            found += plan->dots[i].rows[r] == a || plan->dots[i].rows[r] == b;
        if (found == 1)
            return true;
    }
    return false;
}

bool outer_is_given(const fpa_outer_plan *outer, int row)
{
    return row >= outer->given_first && row < outer->given_first + outer->given_rows;
}

/* Blocks of a vector that ends with these coordinates, in whole steps of 16. */
static int blocks_with_given(const fpa_outer_plan *outer)
{
    return (outer->given_slab * OUTER_TILE + round_up(outer->given_rows, OUTER_STEP)) / OUTER_BLOCK;
}

int outer_place_given(fpa_outer_plan *outer, int blocks)
{
    if (!outer->given_rows)
        return blocks;
    outer->given_slab = divide_up(blocks * OUTER_BLOCK, OUTER_TILE);
    for (int i = 0; i < outer->given_rows; i++)
        outer->row[outer->given_first + i] = outer->given_slab * OUTER_TILE + i;
    return blocks_with_given(outer);
}

/* The longest run of coordinates that features or dots use and that no dot splits (outer_dots_part). */
static int find_run(const fpa_plan *plan, const bool *kept, int *first)
{
    int longest = 0;
    for (int begin = 0, end; begin < plan->head->d; begin = end) {
        for (end = begin + 1;
             end < plan->head->d && kept[end - 1] && kept[end] && !outer_dots_part(plan, end - 1, end);)
            end++;
        if (kept[begin] && end - begin > longest) {
            longest = end - begin;
            *first = begin;
        }
    }
    return longest;
}

/* Whether the bytes that pack_rows does not write, of queries and keys, exceed the unused bytes of the lines of 128
 * bytes that are read instead: three times, keys by chunk_state, keys and queries by chunk_output. r1_06 writes 736
 * bytes less for a token, and reads 432 more (docs/decisions/0171-rows-as-they-are-given.md). */
static bool is_worth_it(int first, int rows)
{
    enum { LINE = 128 / 2, SIDES = 2, READS = 3 };
    const int lines = round_up(first + rows, LINE) - first / LINE * LINE;
    return SIDES * rows > READS * (lines - rows);
}

/* Not if the rest of the run, packed, takes more blocks than these coordinates save. */
void outer_choose_given(const fpa_plan *plan, const bool *kept, fpa_outer_plan *outer)
{
    enum { LEAST = OUTER_TILE };
    int first = 0;
    const int run = find_run(plan, kept, &first), begin = round_up(first, OUTER_BLOCK);
    const int rows = (first + run - begin) / OUTER_BLOCK * OUTER_BLOCK;
    if (plan->head->d % OUTER_BLOCK || rows < LEAST || !is_worth_it(begin, rows) ||
        divide_up(run - rows, OUTER_BLOCK) > divide_up(run, OUTER_BLOCK) - rows / OUTER_BLOCK)
        return;
    outer->given_first = begin;
    outer->given_rows = rows;
}

static int count_dot_steps(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    return outer->dot_first[plan->score->dot_count];
}

bool outer_may_be_given(const fpa_plan *plan, const fpa_outer_plan *outer)
{
    return !outer->rows && !outer->coordinates && !plan->written->lift && !plan->head->window &&
           contraction_of(plan) == CONTRACTS_NOTHING;
}

bool outer_is_as_short(const fpa_plan *plan, const fpa_outer_plan *given, const fpa_outer_plan *outer)
{
    return given->row_blocks == blocks_with_given(given) &&
           divide_up(given->row_blocks, OUTER_BLOCK) <= divide_up(outer->row_blocks, OUTER_BLOCK) &&
           count_dot_steps(plan, given) <= count_dot_steps(plan, outer) + 1;
}

#include "backward_cells.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

/* A feature with one of its factors as the suffix. */
typedef struct slot {
    const int *row; /* [factors] rows of the prefix, ascending, then the suffix's */
    int factors;
    int feature;
    int copy;  /* number of earlier features with the same prefix and row: these must not share a cell */
    int order; /* the first row of all prefixes of its suffix */
} slot;

static int last_row(const slot *s)
{
    return s->row[s->factors - 1];
}

static int suffix_of(const slot *s)
{
    return last_row(s) / CELL;
}

static int compare_prefixes(const slot *a, const slot *b)
{
    for (int l = 0; l + 1 < a->factors; l++)
        if (a->row[l] != b->row[l])
            return a->row[l] < b->row[l] ? -1 : 1;
    return 0;
}

static int compare_features(const void *left, const void *right)
{
    const slot *a = left, *b = right;
    const int order = compare_prefixes(a, b);
    if (order)
        return order;
    if (last_row(a) != last_row(b))
        return last_row(a) < last_row(b) ? -1 : 1;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

/* ---- which factor is the suffix ---- */

/* Fills `row` with the feature's rows, that of factor `last` after the others. */
static void order_rows(const fpa_cuda_rows *rows, int feature, int last, int *row)
{
    int count = 0;
    for (int l = 0; l < rows->factors; l++) {
        const int own = rows->factor_row[l * rows->features + feature];
        int at = count;
        if (l == last)
            continue;
        for (; at > 0 && row[at - 1] > own; at--)
            row[at] = row[at - 1];
        row[at] = own;
        count++;
    }
    row[count] = rows->factor_row[last * rows->features + feature];
}

/* Whether factor l may be the suffix: the row of ones only if there is no other factor, of equal rows only
 * the first. */
static bool may_end(const fpa_cuda_rows *rows, int feature, int l)
{
    const int *row = rows->factor_row + feature, step = rows->features;
    bool others = false;
    for (int other = 0; other < rows->factors; other++) {
        others |= row[other * step] != rows->ones_row;
        if (other < l && row[other * step] == row[l * step])
            return false;
    }
    return row[l * step] != rows->ones_row || !others;
}

/* Lists every feature with every factor that may be its suffix. */
static slot *list_candidates(const fpa_plan *plan, const fpa_cuda_rows *rows, arena *memory, int *count)
{
    const size_t most = (size_t)plan->features * rows->factors;
    slot *slots = arena_array(memory, most, sizeof *slots);
    int *row = arena_array(memory, most * rows->factors, sizeof *row);
    *count = 0;
    for (int f = 0; f < plan->features; f++)
        for (int l = 0; l < rows->factors; l++)
            if (may_end(rows, f, l)) {
                order_rows(rows, f, l, row);
                slots[(*count)++] = (slot){.row = row, .factors = rows->factors, .feature = f};
                row += rows->factors;
            }
    return slots;
}

/* The end of the candidates of the cell that begins with candidate `first`. */
static int cell_end(const slot *slots, int first, int count)
{
    int end = first + 1;
    while (end < count && suffix_of(&slots[end]) == suffix_of(&slots[first]) &&
           !compare_prefixes(&slots[end], &slots[first]))
        end++;
    return end;
}

typedef struct choice {
    int count, chosen;
    slot *candidates, *list;
    bool *taken; /* [features] */
} choice;

/* The number of features of a cell, candidates first .. end - 1, that are not taken yet, one for each row;
 * take: takes them. */
static int count_left(choice *c, int first, int end, bool take)
{
    int left = 0, row = -1;
    for (int i = first; i < end; i++) {
        const slot *s = &c->candidates[i];
        if (c->taken[s->feature] || last_row(s) == row)
            continue;
        row = last_row(s);
        left++;
        if (!take)
            continue;
        c->taken[s->feature] = true;
        c->list[c->chosen++] = *s;
    }
    return left;
}

/* Chooses each feature's suffix: full cells first, then, of the features left, the cells that have most of
 * them. */
static slot *choose_suffixes(const fpa_plan *plan, const fpa_cuda_rows *rows, arena *memory)
{
    choice c = {0};
    c.candidates = list_candidates(plan, rows, memory, &c.count);
    c.list = arena_array(memory, plan->features, sizeof *c.list);
    c.taken = arena_array(memory, plan->features, sizeof *c.taken);
    qsort(c.candidates, c.count, sizeof *c.candidates, compare_features);
    for (int least = CELL; c.chosen < plan->features; least = largest(least - 1, 1))
        for (int first = 0, end; first < c.count; first = end) {
            end = cell_end(c.candidates, first, c.count);
            if (count_left(&c, first, end, false) >= least)
                count_left(&c, first, end, true);
        }
    return c.list;
}

/* ---- cells ---- */

/* Orders slots by suffix (those with the same prefixes beside each other), prefix and copy; 0: they share a
 * cell. */
static int compare_cells(const slot *a, const slot *b)
{
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    const int left = suffix_of(a), right = suffix_of(b);
    if (left != right)
        return left < right ? -1 : 1;
    const int order = compare_prefixes(a, b);
    return order ? order : (a->copy > b->copy) - (a->copy < b->copy);
}

static int compare_slots(const void *left, const void *right)
{
    const slot *a = left, *b = right;
    const int order = compare_cells(a, b);
    return order ? order : (last_row(a) > last_row(b)) - (last_row(a) < last_row(b));
}

/* Orders suffixes by the first row of their prefixes: shares, which have consecutive units, then have few
 * rows in common (backward_shares.c). first: room for a number of each suffix. */
static void order_suffixes(slot *slots, int count, int *first)
{
    for (int i = 0; i < count; i++)
        first[suffix_of(&slots[i])] = INT_MAX;
    for (int i = 0; i < count; i++) {
        int *own = &first[suffix_of(&slots[i])];
        *own = slots[i].row[0] < *own ? slots[i].row[0] : *own;
    }
    for (int i = 0; i < count; i++)
        slots[i].order = first[suffix_of(&slots[i])];
}

static slot *sort_slots(const fpa_plan *plan, const fpa_cuda_rows *rows, arena *memory)
{
    const int count = (int)plan->features;
    slot *slots = choose_suffixes(plan, rows, memory);
    int *first = arena_array(memory, rows->row_count / CELL + 1, sizeof *first);
    qsort(slots, count, sizeof *slots, compare_features);
    for (int i = 1; i < count; i++)
        if (last_row(&slots[i]) == last_row(&slots[i - 1]) && !compare_prefixes(&slots[i], &slots[i - 1]))
            slots[i].copy = slots[i - 1].copy + 1;
    order_suffixes(slots, count, first);
    qsort(slots, count, sizeof *slots, compare_slots);
    return slots;
}

/* Numbers the cells of slots: cell[i] is that of slots[i]. Those of a suffix are whole pairs of units.
 * Returns the number of cells. */
static int number_cells(const slot *slots, int count, int *cell)
{
    enum { TOGETHER = 2 * CUDA_UNIT / CELL };
    int next = 0;
    for (int i = 0; i < count; i++) {
        if (i && suffix_of(&slots[i]) != suffix_of(&slots[i - 1]))
            next = round_up(next + 1, TOGETHER);
        else if (i && compare_cells(&slots[i], &slots[i - 1]))
            next++;
        cell[i] = next;
    }
    return round_up(next + 1, TOGETHER);
}

/* Whether cells are full enough: they take 2 to 5 times fewer instructions a slot than units of arbitrary
 * features, the more factors these have. */
static bool are_worth_it(const fpa_cuda_rows *rows, int64_t features, int units)
{
    return units * CUDA_UNIT <= (rows->factors > 2 ? 3 : 2) * features;
}

static void allocate(arena *memory, fpa_cuda_rows *rows, fpa_cuda_cells *cells)
{
    cells->prefixes = (rows->factors - 1) * round_up(2 * cells->units, GROUP_CELLS);
    cells->features = rows->features;
    rows->factor_row = arena_array(memory, (size_t)rows->factors * rows->features, sizeof *rows->factor_row);
    rows->weight = arena_array(memory, rows->features, sizeof *rows->weight);
    cells->suffix = arena_array(memory, cells->units, sizeof *cells->suffix);
    cells->prefix_row = arena_array(memory, cells->prefixes, sizeof *cells->prefix_row);
    cells->given = arena_array(memory, cells->features, sizeof *cells->given);
}

static void fill(const fpa_cuda_rows *from, const slot *slots, int count, const int *cell,
                 fpa_cuda_rows *rows, fpa_cuda_cells *cells)
{
    const int prefixes = cells->prefixes / (rows->factors - 1);
    for (int i = 0; i < rows->factors * rows->features; i++)
        rows->factor_row[i] = rows->zero_row;
    for (int i = 0; i < cells->prefixes; i++)
        cells->prefix_row[i] = rows->zero_row;
    memset(cells->given, -1, (size_t)cells->features * sizeof *cells->given);
    for (int i = 0; i < count; i++) {
        const int feature = cell[i] * CELL + last_row(&slots[i]) % CELL;
        for (int l = 0; l < rows->factors; l++)
            rows->factor_row[l * rows->features + feature] = slots[i].row[l];
        for (int l = 0; l + 1 < rows->factors; l++)
            cells->prefix_row[l * prefixes + cell[i]] = slots[i].row[l];
        rows->weight[feature] = from->weight[slots[i].feature];
        cells->given[feature] = slots[i].feature;
        const int unit = cell[i] * CELL / CUDA_UNIT;
        cells->suffix[unit] = cells->suffix[unit | 1] = suffix_of(&slots[i]);
    }
}

#define CELLS(member, counter) FIELD_ARRAY(fpa_cuda_cells, #member, member, counter, 1, 0)
const fpa_field cuda_cells_fields[] = {FIELD(fpa_cuda_cells, used), CELLS(suffix, units),
                                       CELLS(prefix_row, prefixes), CELLS(given, features), FIELDS_END};

/* Warps with fewer units have room for more columns, so that fewer blocks form the same features and pairs. */
static void widen_blocks(const fpa_plan *plan, fpa_cuda_rows *rows)
{
    const int blocks = cuda_backward_columns(plan->head, rows->warp_units).blocks;
    if (rows->warp_units != 4 || cuda_backward_columns(plan->head, 2).blocks == blocks)
        return;
    rows->warp_units = 2;
    rows->slices = divide_up(rows->units, CUDA_WARPS * rows->warp_units);
    rows->features = rows->slices * CUDA_WARPS * rows->warp_units * CUDA_UNIT;
}

const fpa_cuda_rows *plan_cuda_cells(fpa_plan *plan, fpa_cuda_cells *cells)
{
    const fpa_cuda_rows *from = plan->cuda.rows;
    arena *memory = &plan->memory;
    const int count = (int)plan->features;
    *cells = (fpa_cuda_cells){0};
    if (from->element != 2 || from->factors < 2)
        return from;
    fpa_cuda_rows *rows = arena_copy(memory, from, sizeof *from);
    int *cell = arena_array(memory, count, sizeof *cell);
    slot *slots = sort_slots(plan, from, memory);
    const int units = number_cells(slots, count, cell) * CELL / CUDA_UNIT;
    if (!are_worth_it(from, plan->features, units))
        return from;
    rows->row_count = round_up(from->row_count, CELL); /* a suffix is a whole block */
    cuda_choose_slices(plan, units, rows);
    widen_blocks(plan, rows);
    cells->used = true;
    cells->units = units;
    allocate(memory, rows, cells);
    fill(from, slots, count, cell, rows, cells);
    cuda_share_factors(memory, rows);
    return rows;
}

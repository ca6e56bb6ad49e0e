/* tiles_form: gathers features into groups of 8 prefixes, each with a tile for each of its suffix blocks.
 *
 * Sorted by prefix and row, features fall into *cells* (struct part): one prefix and one suffix block. All cells of a
 * prefix stay together (a prefix line); prefixes with the same suffix blocks form groups. In a feature of three or
 * more factors any factor may be the suffix: if `turn` is set, rows of suffix blocks of which features use few rows
 * become factors of prefixes instead:
 *
 *     25 rows, degree 3    (a, b) x 24: 325 prefixes with a suffix block of one row
 *                          (a, 24) x b: 24 more prefixes, with suffix blocks that others have, too */
#include "fused_packed.h"
#include "outer_tiles.h"

#include <stdlib.h>
#include <string.h>

/* A feature: a prefix times a row. */
typedef struct slot {
    const int *prefix; /* [factors] rows */
    int factors;
    int copy; /* number of the feature among those of the same prefix and row, which must not share a tile */
    int row;
    int feature;
} slot;

/* A cell: features of one prefix and one suffix block. */
typedef struct part {
    int suffix;
    int feature[OUTER_BLOCK];
} part;

/* A prefix with all of its cells, by ascending suffix. */
typedef struct prefix_line {
    const int *prefix;
    int factors, copy;
    int part_count;
    part *parts;
} prefix_line;

typedef struct group {
    int member_count; /* 1..8; 0: merged into another */
    const prefix_line *member[OUTER_BLOCK];
    int suffix_count;
    int *suffix; /* ascending */
} group;

static int compare_rows(const int *a, const int *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* ---- slots ---- */

static int compare_slots(const void *left, const void *right)
{
    const slot *a = left, *b = right;
    if (a->copy != b->copy)
        return a->copy < b->copy ? -1 : 1;
    const int order = compare_rows(a->prefix, b->prefix, a->factors);
    if (order)
        return order;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

/* The rows of a piece's prefix, preceded by rows of ones in shorter features, so that last factors can be a block of
 * rows in these, too. */
static const int *piece_prefix(const fpa_outer_plan *outer, const fpa_piece *piece, arena *memory)
{
    const int factors = outer->prefix_factors, ones = factors - piece->prefix_count;
    int *prefix = arena_array(memory, factors, sizeof *prefix);
    for (int l = 0; l < factors; l++)
        prefix[l] = l < ones ? outer->ones_row : outer->row[piece->prefix[l - ones]];
    return prefix;
}

static slot *form_slots(const fpa_plan *plan, const fpa_outer_plan *outer, arena *memory)
{
    slot *slots = arena_array(memory, (size_t)plan->features, sizeof *slots);
    for (int p = 0, n = 0; p < plan->piece_count; p++) {
        const fpa_piece *piece = &plan->pieces[p];
        const int *prefix = piece_prefix(outer, piece, memory);
        for (int i = 0; i < piece->width; i++)
            slots[n++] = (slot){.prefix = prefix,
                                .factors = outer->prefix_factors,
                                .row = outer->row[piece->base + i],
                                .feature = (int)piece->feature + i};
    }
    return slots;
}

/* Marks the blocks of which features use few rows as suffixes: at most half of them, since with six rows of eight
 * r2_10 took 1.07 times as long with 218 tiles as with 240 (docs/decisions/0195-what-long-sequences-wait-for.md). */
static void mark_partial(const slot *slots, int count, int blocks, bool *partial, arena *memory)
{
    bool *used = arena_array(memory, (size_t)blocks * OUTER_BLOCK, sizeof *used);
    for (int i = 0; i < count; i++)
        used[slots[i].row] = true;
    for (int b = 0; b < blocks; b++) {
        int rows = 0;
        for (int r = 0; r < OUTER_BLOCK; r++)
            rows += used[b * OUTER_BLOCK + r];
        partial[b] = rows > 0 && rows <= OUTER_BLOCK / 2;
    }
}

/* If a slot's row is in such a block, exchanges it with the last factor of the prefix that is neither in such a block
 * nor the row of ones. */
static void turn_slot(slot *s, int ones_row, const bool *partial, arena *memory)
{
    int l = s->factors - 1;
    while (l >= 0 && (s->prefix[l] == ones_row || partial[s->prefix[l] / OUTER_BLOCK]))
        l--;
    if (!partial[s->row / OUTER_BLOCK] || l < 0)
        return;
    int *prefix = arena_array(memory, s->factors, sizeof *prefix);
    const int row = s->prefix[l];
    for (int i = 0; i < s->factors; i++) /* the other factors stay in order; the row becomes the last one */
        prefix[i] = i < l ? s->prefix[i] : i + 1 < s->factors ? s->prefix[i + 1] : s->row;
    s->prefix = prefix;
    s->row = row;
}

static void turn_slots(const fpa_outer_plan *outer, slot *slots, int count, arena *memory)
{
    bool *partial = arena_array(memory, outer->row_blocks, sizeof *partial);
    mark_partial(slots, count, outer->row_blocks, partial, memory);
    for (int i = 0; i < count; i++)
        turn_slot(&slots[i], outer->ones_row, partial, memory);
}

/* Sorts by copy, then prefix, then row, after numbering copies, which few heads have. */
static void sort_slots(slot *slots, int count)
{
    bool copies = false;
    qsort(slots, count, sizeof *slots, compare_slots);
    for (int i = 1; i < count; i++)
        if (slots[i].row == slots[i - 1].row &&
            compare_rows(slots[i].prefix, slots[i - 1].prefix, slots[i].factors) == 0) {
            slots[i].copy = slots[i - 1].copy + 1;
            copies = true;
        }
    if (copies)
        qsort(slots, count, sizeof *slots, compare_slots);
}

/* ---- prefix lines ---- */

static bool same_prefix(const prefix_line *s, const slot *next)
{
    return s->copy == next->copy && compare_rows(s->prefix, next->prefix, s->factors) == 0;
}

static int form_prefix_lines(const slot *slots, int count, prefix_line *prefix_lines, part *parts,
                             int *part_count)
{
    int prefix_line_count = 0, used = 0;
    for (int i = 0; i < count; i++) {
        const slot *next = &slots[i];
        const int suffix = next->row / OUTER_BLOCK;
        prefix_line *last = prefix_line_count ? &prefix_lines[prefix_line_count - 1] : NULL;
        if (!last || !same_prefix(last, next)) {
            last = &prefix_lines[prefix_line_count++];
            *last = (prefix_line){next->prefix, next->factors, next->copy, 0, parts + used};
        }
        if (!last->part_count || parts[used - 1].suffix != suffix) {
            parts[used].suffix = suffix;
            memset(parts[used].feature, -1, sizeof parts->feature);
            used++;
            last->part_count++;
        }
        parts[used - 1].feature[next->row % OUTER_BLOCK] = next->feature;
    }
    *part_count = used;
    return prefix_line_count;
}

static int compare_parts(const prefix_line *a, const prefix_line *b)
{
    for (int i = 0; i < a->part_count && i < b->part_count; i++)
        if (a->parts[i].suffix != b->parts[i].suffix)
            return a->parts[i].suffix < b->parts[i].suffix ? -1 : 1;
    return (a->part_count > b->part_count) - (a->part_count < b->part_count);
}

/* By suffix blocks, so that prefixes that can form a group follow each other; then like slots. */
static int compare_prefix_lines(const void *left, const void *right)
{
    const prefix_line *a = left, *b = right;
    const int order = compare_parts(a, b);
    if (order)
        return order;
    if (a->copy != b->copy)
        return a->copy < b->copy ? -1 : 1;
    return compare_rows(a->prefix, b->prefix, a->factors);
}

/* ---- groups ---- */

/* Groups: runs of at most 8 prefix lines with the same suffix blocks. */
static int form_groups(const prefix_line *prefix_lines, int count, group *groups, arena *memory)
{
    int group_count = 0;
    for (int i = 0; i < count; i++) {
        const prefix_line *next = &prefix_lines[i];
        group *last = group_count ? &groups[group_count - 1] : NULL;
        if (!last || last->member_count == OUTER_BLOCK || compare_parts(last->member[0], next)) {
            last = &groups[group_count++];
            last->suffix_count = next->part_count;
            last->suffix = arena_array(memory, next->part_count, sizeof *last->suffix);
            for (int j = 0; j < next->part_count; j++)
                last->suffix[j] = next->parts[j].suffix;
        }
        last->member[last->member_count++] = next;
    }
    return group_count;
}

/* Ascending union of the suffixes of two groups into suffix (NULL: only count it). */
static int unite_suffixes(const group *a, const group *b, int *suffix)
{
    int i = 0, j = 0, count = 0;
    while (i < a->suffix_count || j < b->suffix_count) {
        const bool first = j == b->suffix_count || (i < a->suffix_count && a->suffix[i] <= b->suffix[j]);
        const int next = first ? a->suffix[i] : b->suffix[j];
        if (suffix)
            suffix[count] = next;
        count++;
        i += i < a->suffix_count && a->suffix[i] == next;
        j += j < b->suffix_count && b->suffix[j] == next;
    }
    return count;
}

/* The group before g that has room for g's prefixes and with which most tiles are saved; NULL: none. */
static group *merge_partner(group *groups, const group *g)
{
    group *best = NULL;
    int most = 0;
    for (group *h = groups; h < g; h++) {
        if (!h->member_count || h->member_count + g->member_count > OUTER_BLOCK)
            continue;
        const int saved = h->suffix_count + g->suffix_count - unite_suffixes(h, g, NULL);
        if (saved > most) {
            most = saved;
            best = h;
        }
    }
    return best;
}

/* Merges groups of fewer than 8 prefixes into others if that saves tiles. */
static void merge_groups(group *groups, int count, arena *memory)
{
    for (group *g = groups; g < groups + count; g++) {
        group *into = g->member_count < OUTER_BLOCK ? merge_partner(groups, g) : NULL;
        if (!into)
            continue;
        int *suffix = arena_array(memory, into->suffix_count + g->suffix_count, sizeof *suffix);
        into->suffix_count = unite_suffixes(into, g, suffix);
        into->suffix = suffix;
        for (int i = 0; i < g->member_count; i++)
            into->member[into->member_count++] = g->member[i];
        *g = (group){0};
    }
}

/* ---- tiles ---- */

/* The rows of prefix c of a group. Missing prefixes, which have no features, complete the block of rows if the last
 * factors are the first rows of one; else they repeat the first prefix. */
static void fill_prefix(const group *g, int c, int factors, int *prefix)
{
    const int last = factors - 1, begin = g->member[0]->prefix[last];
    bool block = begin % OUTER_BLOCK == 0;
    for (int i = 1; i < g->member_count; i++)
        block &= g->member[i]->prefix[last] == begin + i &&
                 compare_rows(g->member[i]->prefix, g->member[0]->prefix, last) == 0;
    memcpy(prefix, g->member[c < g->member_count ? c : 0]->prefix, factors * sizeof *prefix);
    if (c >= g->member_count && block)
        prefix[last] = begin + c;
}

static void fill_tile(const group *g, int suffix, outer_tile *tile)
{
    tile->suffix = suffix;
    memset(tile->feature, -1, sizeof tile->feature);
    for (int c = 0; c < g->member_count; c++)
        for (int i = 0; i < g->member[c]->part_count; i++)
            if (g->member[c]->parts[i].suffix == suffix)
                memcpy(tile->feature + OUTER_BLOCK * c, g->member[c]->parts[i].feature,
                       sizeof g->member[c]->parts[i].feature);
}

static void form_tiles(const group *groups, int count, arena *memory, outer_tiling *tiling)
{
    const int factors = tiling->factors;
    tiling->tile_count = 0;
    for (int g = 0; g < count; g++)
        tiling->tile_count += groups[g].suffix_count;
    tiling->tiles = arena_array(memory, tiling->tile_count, sizeof *tiling->tiles);
    tiling->prefix = arena_array(memory, (size_t)count * OUTER_BLOCK * factors, sizeof *tiling->prefix);
    outer_tile *tile = tiling->tiles;
    for (int g = 0; g < count; g++) {
        if (!groups[g].member_count)
            continue;
        int *prefix = tiling->prefix + tiling->group_count * OUTER_BLOCK * factors;
        for (int c = 0; c < OUTER_BLOCK; c++)
            fill_prefix(&groups[g], c, factors, prefix + c * factors);
        for (int i = 0; i < groups[g].suffix_count; i++, tile++) {
            tile->group = tiling->group_count;
            fill_tile(&groups[g], groups[g].suffix[i], tile);
        }
        tiling->group_count++;
    }
}

bool tiles_are_sparse(const fpa_plan *plan, double slots)
{
    enum { MOST_SLOTS = 1 << 17, A_FEATURE = 16 };
    return slots > MOST_SLOTS || slots > A_FEATURE * (double)plan->features;
}

void tiles_form(const fpa_plan *plan, const fpa_outer_plan *outer, bool merge, bool turn, arena *memory,
                outer_tiling *tiling, double *slots)
{
    const int features = (int)plan->features;
    *tiling = (outer_tiling){.factors = outer->prefix_factors};
    slot *slot_list = form_slots(plan, outer, memory);
    if (turn)
        turn_slots(outer, slot_list, features, memory);
    prefix_line *prefix_lines = arena_array(memory, features, sizeof *prefix_lines);
    part *parts = arena_array(memory, features, sizeof *parts);
    sort_slots(slot_list, features);
    int part_count = 0;
    const int prefix_line_count = form_prefix_lines(slot_list, features, prefix_lines, parts, &part_count);
    /* groups cannot be fewer than full ones: what is sparse now is not worth gathering */
    *slots = (double)part_count * OUTER_BLOCK;
    if (tiles_are_sparse(plan, *slots))
        return;
    qsort(prefix_lines, prefix_line_count, sizeof *prefix_lines, compare_prefix_lines);
    group *groups = arena_array(memory, prefix_line_count, sizeof *groups);
    const int group_count = form_groups(prefix_lines, prefix_line_count, groups, memory);
    if (merge)
        merge_groups(groups, group_count, memory);
    form_tiles(groups, group_count, memory, tiling);
    *slots = (double)tiling->tile_count * OUTER_TILE;
}

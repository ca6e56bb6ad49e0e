/* A kernel's symmetry in words, a line each. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "symmetry.h"

/* A text of fixed size, which ends with "..." if it is cut. */
typedef struct line {
    char *text;
    size_t used;
    bool is_cut;
} line;

static void add(line *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(line *to, const char *format, ...)
{
    static const char dots[] = " ...";
    char piece[SYMMETRY_TEXT];
    va_list arguments;
    if (to->is_cut)
        return;
    va_start(arguments, format);
    const size_t size = (size_t)vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    to->is_cut = to->used + size + sizeof dots > SYMMETRY_TEXT;
    const char *text = to->is_cut ? dots : piece;
    strcpy(to->text + to->used, text);
    to->used += strlen(text);
}

/* ---- the group ---- */

static bool same_group(const fpa_symmetry_part *a, const fpa_symmetry_part *b)
{
    return a->order == b->order && (a->order || a->dimension == b->dimension);
}

static bool is_first(const fpa_symmetry *symmetry, int part)
{
    for (int i = 0; i < part; i++)
        if (same_group(&symmetry->parts[i], &symmetry->parts[part]))
            return false;
    return true;
}

static int count_same(const fpa_symmetry *symmetry, int part)
{
    int count = 0;
    for (int i = 0; i < symmetry->part_count; i++)
        count += same_group(&symmetry->parts[i], &symmetry->parts[part]);
    return count;
}

/* The part with the largest order below `below`; -1: none. */
static int next_part(const fpa_symmetry *symmetry, int below)
{
    int best = -1;
    for (int i = 0; i < symmetry->part_count; i++)
        if (symmetry->parts[i].order < below &&
            (best < 0 || symmetry->parts[i].order > symmetry->parts[best].order))
            best = i;
    return best;
}

static void add_factor(line *to, const fpa_symmetry *symmetry, int part)
{
    const int count = count_same(symmetry, part), order = symmetry->parts[part].order;
    add(to, "%sO(%d)", to->used ? " x " : "", order);
    if (count > 1)
        add(to, "^%d", count);
}

/* Adds the groups of which only the dimension is known, one by one. */
static void add_unnamed(line *to, const fpa_symmetry *symmetry)
{
    for (int i = 0; i < symmetry->part_count; i++)
        if (!symmetry->parts[i].order && is_first(symmetry, i)) {
            add(to, "%sG", to->used ? " x " : "");
            if (count_same(symmetry, i) > 1)
                add(to, "^%d", count_same(symmetry, i));
            add(to, " (dim G = %d)", symmetry->parts[i].dimension);
        }
}

static void add_exchanges(line *to, const fpa_symmetry *symmetry)
{
    for (int i = 0; i < symmetry->part_count; i++) {
        int count = 0;
        for (int j = i; symmetry->parts[i].exchange == i && j < symmetry->part_count; j++)
            count += symmetry->parts[j].exchange == i;
        if (count && symmetry->parts[i].order > 1)
            add(to, ", permutations of %d spaces of dimension %d", count, symmetry->parts[i].order);
        else if (count)
            add(to, ", permutations of %d coordinates", count);
    }
}

void symmetry_group_text(char text[SYMMETRY_TEXT], const fpa_symmetry *symmetry)
{
    line to = {text, 0, false};
    *text = '\0';
    for (int i = next_part(symmetry, symmetry->d + 1); i >= 0 && symmetry->parts[i].order;
         i = next_part(symmetry, symmetry->parts[i].order))
        add_factor(&to, symmetry, i);
    add_unnamed(&to, symmetry);
    add_exchanges(&to, symmetry);
}

/* ---- spaces ---- */

/* Adds ranges of coordinates, counted from 1: "1-8, 11". */
static void add_ranges(line *to, const int *coordinate, int count)
{
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && coordinate[end] == coordinate[end - 1] + 1; end++)
            ;
        add(to, end > i + 1 ? "%s%d-%d" : "%s%d", i ? ", " : "", coordinate[i] + 1, coordinate[end - 1] + 1);
    }
}

static void add_part(line *to, const fpa_symmetry_part *part)
{
    if (part->coordinate)
        add_ranges(to, part->coordinate, part->width);
    else
        add(to, "a space of %d", part->width);
    if (!part->is_seen)
        add(to, " (k does not depend on %s)", part->coordinate && part->width > 1 ? "them" : "it");
}

/* Adds consecutive parts of one coordinate, whose groups are signs, as one entry; returns the next part. */
static int skip_signs(line *to, const fpa_symmetry *symmetry, int first)
{
    int end = first, coordinate[HEAD_MAX_WIDTH];
    while (end < symmetry->part_count && symmetry->parts[end].order == 1 && symmetry->parts[end].width == 1 &&
           symmetry->parts[end].coordinate && symmetry->parts[end].is_seen) {
        coordinate[end - first] = symmetry->parts[end].coordinate[0];
        end++;
    }
    if (end == first)
        return first;
    add(to, "signs of ");
    add_ranges(to, coordinate, end - first);
    return end;
}

/* Adds consecutive spaces of one width as one entry; returns the next part. */
static int add_spaces(line *to, const fpa_symmetry *symmetry, int first)
{
    const fpa_symmetry_part *part = &symmetry->parts[first];
    int end = first + 1;
    while (!part->coordinate && end < symmetry->part_count && !symmetry->parts[end].coordinate &&
           symmetry->parts[end].width == part->width && symmetry->parts[end].is_seen == part->is_seen)
        end++;
    if (end > first + 1)
        add(to, "%d spaces of %d%s", end - first, part->width,
            part->is_seen ? "" : " (k does not depend on them)");
    else
        add_part(to, part);
    return end;
}

void symmetry_space_text(char text[SYMMETRY_TEXT], const fpa_symmetry *symmetry)
{
    line to = {text, 0, false};
    *text = '\0';
    for (int i = 0; i < symmetry->part_count;) {
        add(&to, "%s", i ? " | " : "");
        const int next = skip_signs(&to, symmetry, i);
        i = next > i ? next : add_spaces(&to, symmetry, i);
    }
}

const char *symmetry_kind_name(fpa_symmetry_kind kind)
{
    static const char *const names[SYMMETRY_KINDS] = {"exact", "at least", "at run time", "behind maps",
                                                      "too large"};
    return names[kind];
}

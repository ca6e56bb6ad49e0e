#include "forming.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "gen/plan/plan.h"

/* Whether the features of a tile are consecutive packed rows, which need not be formed
 * (templates/c/features_unrolled.c.in: rows_of). */
static bool is_rows(const fpa_plan *plan, const fpa_tile *tile)
{
    const fpa_piece *first = &plan->pieces[tile->piece];
    for (int i = 0; i < tile->piece_count; i++) {
        const fpa_piece *piece = first + i;
        if (piece->prefix_count || piece->weight != 1 ||
            piece->base - first->base != piece->feature - first->feature)
            return false;
    }
    return true;
}

/* The number of leading factors, the weight included, that a piece's prefix has in common with that of the
 * previous piece: compilers keep their product. */
static int kept_factors(const fpa_piece *piece, const fpa_piece *before)
{
    if (!before || piece->weight != before->weight)
        return 0;
    int kept = 0;
    while (kept < piece->prefix_count && kept < before->prefix_count &&
           piece->prefix[kept] == before->prefix[kept])
        kept++;
    return kept + (piece->weight != 1);
}

static void count_piece(const fpa_plan *plan, const fpa_piece *piece, const fpa_piece *before, int prefixes,
                        fpa_forming *f)
{
    const bool table = !plan->c.unrolled, weighs = table || piece->weight != 1;
    const double factors = table ? prefixes : piece->prefix_count,
                 kept = table ? 0 : kept_factors(piece, before);
    f->pieces++;
    f->features += piece->width;
    f->weights += weighs && kept == 0;
    f->loads += fmax(0, factors + weighs - kept) + piece->width;
    f->products += fmax(0, factors + weighs - fmax(kept, 1)) + (factors + weighs > 0 ? piece->width : 0);
}

enum { WORD = 64, ROW_WORDS = 1 << 10 }; /* row indices have 16 bits */

static int see_row(uint64_t *seen, int row)
{
    const uint64_t bit = (uint64_t)1 << row % WORD;
    const bool is_new = !(seen[row / WORD] & bit);
    seen[row / WORD] |= bit;
    return is_new;
}

/* The number of different rows from which the features of a tile are formed. */
static double rows_of_tile(const fpa_plan *plan, const fpa_tile *tile)
{
    uint64_t seen[ROW_WORDS];
    double rows = 0;
    memset(seen, 0, sizeof *seen * (size_t)(plan->row_count / WORD + 1));
    for (int i = 0; i < tile->piece_count; i++) {
        const fpa_piece *piece = &plan->pieces[tile->piece + i];
        for (int p = 0; p < piece->prefix_count; p++)
            rows += see_row(seen, piece->prefix[p]);
        for (int w = 0; w < piece->width; w++)
            rows += see_row(seen, piece->base + w);
    }
    return rows;
}

/* Counts the register tiles of updates: whole ones, and smaller ones for the remaining rows of a tile. */
static void count_register_tiles(const fpa_plan *plan, fpa_forming *f)
{
    const int rows = plan->c.values.rows;
    for (int t = 0; t < plan->c.tile_count; t++) {
        f->register_tiles[0] +=
            plan->c.tiles[t].features / rows; // NOLINT(bugprone-integer-division): whole tiles
        if (plan->c.tiles[t].features % rows)
            f->register_tiles[plan->c.tiles[t].features % rows]++;
    }
}

fpa_forming forming_count(const fpa_plan *plan)
{
    const fpa_c_plan *c = &plan->c;
    fpa_forming f = {0};
    int prefixes = 0;
    for (int i = 0; i < plan->piece_count; i++)
        prefixes = plan->pieces[i].prefix_count > prefixes ? plan->pieces[i].prefix_count : prefixes;
    for (int t = 0; t < c->tile_count; t++) {
        f.rows += rows_of_tile(plan, &c->tiles[t]);
        if (c->unrolled && is_rows(plan, &c->tiles[t]))
            continue;
        f.tiles++;
        const fpa_piece *piece = &plan->pieces[c->tiles[t].piece];
        for (int i = 0; i < c->tiles[t].piece_count; i++)
            count_piece(plan, piece + i, i ? piece + i - 1 : NULL, prefixes, &f);
    }
    count_register_tiles(plan, &f);
    return f;
}

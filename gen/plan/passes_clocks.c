/* passes_clocks: what passes of pairs take, and up to which length calls take them. */
#include "passes.h"

#include <math.h>

#include "base/round.h"
#include "passes_contracted.h"

enum { PIECE = 8 }; /* numbers of 16 bytes */

/* Clocks for a tile: its products, and the other instructions: a_pair for each of a lane's 32 pairs, and OTHERS,
 * of which a warp issues one every `between` clocks. If three warpgroups hide each other's waits (hidden) both
 * overlap; else they add up (docs/decisions/0124). */
static double tile_clocks(double products, double a_pair, bool hidden)
{
    enum { PAIRS = 32, OTHERS = 100 };
    static const double between = 1.7;
    const double others = between * (PAIRS * a_pair + OTHERS);
    return hidden ? fmax(products, others) : products + others;
}

double passes_pair_clocks(const fpa_head *head, const fpa_score *score)
{
    enum { TILE = 64, STEP = 16, DOTS = 32 /* clocks of a step of dots */, LEAST = TILE };
    static const double rounded = 0.5; /* instructions of a score that becomes an operand */
    const int values = round_up(head->dv + (head->normalize != FPA_NORMALIZE_NONE), PIECE);
    const int degree = passes_degree(score), d = divide_up(head->d, STEP), v = divide_up(values, STEP);
    const int fades = head->gate ? 2 : 0, reads = head->gate && score->monomial_count > 1;
    const bool beside = contraction_held_registers(head->d, values, true) <= REGISTERS_OF_TWO,
               hidden = contraction_held_registers(head->d, values, beside) <= REGISTERS_OF_THREE;
    const double columns = fmax(2.0 * values, LEAST); /* of 64 keys */
    const double products = DOTS * (d + v) + fmax(2.0 * round_up(head->d, PIECE), LEAST);
    const double slope = degree + fades + reads + rounded, score_of_slope = 2 + rounded;
    const double queries = tile_clocks(products, slope, hidden);
    const double keys = beside ? tile_clocks(products + columns, slope + score_of_slope, hidden)
                               : queries + tile_clocks(DOTS * d + columns, degree + fades + rounded, hidden);
    return (queries + keys) / (TILE * TILE);
}

int64_t passes_crossover(const fpa_head *head, const fpa_pass_rows *rows, double features)
{
    static const double of_chunks =
        1.2; /* clocks of a product of few values in chunks, over those of one of pairs: r2_13 1.4, r3_07 1.1 */
    const double d = head->d, values = rows->width - rows->values;
    const bool beside = contraction_held_registers(head->d, (int)values, true) <= REGISTERS_OF_TWO;
    const double walked =
        2 * 2 * rows->slopes * values * d + 2 * features * values; /* and read, two of rows, one of values */
    const double pair = 2 * (2 * d + values) + values + (beside ? 0 : d);
    return (int64_t)ceil(2 * (beside ? of_chunks : 1) * walked / pair);
}

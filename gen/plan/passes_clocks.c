/* passes_clocks: clocks of contractions of pairs, and the length up to which calls use them. */
#include "passes.h"

#include <math.h>

#include "base/round.h"
#include "machine/cuda_passes.h"
#include "passes_contracted.h"

enum { PIECE = 8 }; /* elements of 2 bytes in 16 bytes */

double passes_pair_clocks(const fpa_head *head, const fpa_score *score)
{
    enum {
        TILE = CUDA_PASS_TILE,
        STEP = CUDA_PASS_STEP,
        LEAST = TILE /* clocks of a product with few columns */
    };
    static const double rounded = 0.5; /* instructions to convert a score to an operand */
    const int values = round_up(head->dv + (head->normalize != FPA_NORMALIZE_NONE), PIECE);
    const int degree = passes_degree(score), d = divide_up(head->d, STEP), v = divide_up(values, STEP);
    const int fades = head->gate ? 2 : 0, reads = head->gate && score->monomial_count > 1;
    const bool beside = contraction_held_registers(head->d, values, true) <= REGISTERS_OF_TWO,
               hidden = contraction_held_registers(head->d, values, beside) <= REGISTERS_OF_THREE;
    const double columns = fmax(2.0 * values, LEAST); /* of products with 64 keys */
    const double products = CUDA_PASS_DOT_CLOCKS * (d + v) + fmax(2.0 * round_up(head->d, PIECE), LEAST);
    const double slope = degree + fades + reads + rounded, score_of_slope = 2 + rounded;
    const cuda_pass_tile of_queries = {products, slope, hidden},
                         of_both = {products + columns, slope + score_of_slope, hidden},
                         of_values = {CUDA_PASS_DOT_CLOCKS * d + columns, degree + fades + rounded, hidden};
    const double queries = cuda_pass_clocks(&of_queries);
    const double keys = beside ? cuda_pass_clocks(&of_both) : queries + cuda_pass_clocks(&of_values);
    return (queries + keys) / (TILE * TILE);
}

int64_t passes_crossover(const fpa_head *head, const fpa_pass_rows *rows, double features)
{
    const double d = head->d, values = rows->width - rows->values;
    const bool beside = contraction_held_registers(head->d, (int)values, true) <= REGISTERS_OF_TWO;
    /* operations per token: updates and reads of states, in two passes of rows and one of values */
    const double walked = 2 * 2 * rows->slopes * values * d + 2 * features * values;
    const double pair = 2 * (2 * d + values) + values + (beside ? 0 : d);
    return (int64_t)ceil(2 * cuda_pass_chunk_factor(beside) * walked / pair);
}

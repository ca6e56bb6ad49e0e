/* cuda_passes: measured rates for the choice between passes in pairs, in chunks, and by a contraction. */
#include "cuda_passes.h"

#include <math.h>

/* A lane processes 32 pairs of a tile. A warp issues one instruction in 1.7 clocks on average; clocks of products and of instructions are
 * added, unless three warpgroups overlap both (docs/decisions/0124). */
double cuda_pass_clocks(const cuda_pass_tile *tile)
{
    enum { PAIRS = 32, BESIDE_PAIRS = 100 /* other instructions of a tile */ };
    static const double between = 1.7;
    const double instructions = between * (PAIRS * tile->pair + BESIDE_PAIRS);
    return tile->hidden ? fmax(tile->products, instructions) : tile->products + instructions;
}

double cuda_pass_chunk_factor(bool with_values)
{
    /* measured for two random heads on an H200: r2_13 1.4, r3_07 1.1 (docs/decisions/0124) */
    static const double of_few_values = 1.2;
    return with_values ? of_few_values : 1;
}

double cuda_pass_feature_clocks(double features)
{
    static const double a_feature = 1.4; /* measured on an H200: docs/decisions/0124 */
    return 2 * a_feature * features;
}

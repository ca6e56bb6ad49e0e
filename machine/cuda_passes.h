/* cuda_passes: clocks of a multiprocessor for gradients by forward passes of warpgroups. The planner counts products and instructions of
 * a tile of 64 queries and 64 keys; the rates are here. */
#ifndef FPAC_MACHINE_CUDA_PASSES_H
#define FPAC_MACHINE_CUDA_PASSES_H

#include <stdbool.h>

enum {
    CUDA_PASS_TILE = 64,      /* queries and keys of a tile */
    CUDA_PASS_STEP = 16,      /* inner dimension of a wgmma instruction */
    CUDA_PASS_DOT_CLOCKS = 32 /* clocks of such an instruction for the dot products of a tile */
};

typedef struct cuda_pass_tile {
    double products; /* clocks of its matrix products */
    double pair;     /* other instructions of a lane for one pair of query and key */
    bool hidden;     /* three warpgroups fit, so that products of one overlap with instructions of another */
} cuda_pass_tile;

double cuda_pass_clocks(const cuda_pass_tile *tile);

/* Clocks of a product in chunks relative to one in pairs with the same number of columns; 1 if passes in pairs multiply no values in
 * addition to dot products. */
double cuda_pass_chunk_factor(bool with_values);

/* Clocks for the features of a contraction, for the gradients of one token. */
double cuda_pass_feature_clocks(double features);

#endif

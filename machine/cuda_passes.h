/* cuda_passes: clocks of a multiprocessor for gradients that are computed by forward passes of warpgroups. The
 * planner counts products and instructions of a tile of 64 queries and 64 keys; what the machine takes for them is
 * here. */
#ifndef FPAC_MACHINE_CUDA_PASSES_H
#define FPAC_MACHINE_CUDA_PASSES_H

#include <stdbool.h>

enum {
    CUDA_PASS_TILE = 64,      /* queries, and keys, of a tile */
    CUDA_PASS_STEP = 16,      /* rows of a step of a product of warpgroups */
    CUDA_PASS_DOT_CLOCKS = 32 /* of such a step for the dot products of a tile */
};

typedef struct cuda_pass_tile {
    double products; /* clocks of its products */
    double pair;     /* other instructions of a lane for a pair of a query and a key */
    bool hidden;     /* three warpgroups fit, so that the products of one hide the instructions of another */
} cuda_pass_tile;

double cuda_pass_clocks(const cuda_pass_tile *tile);

/* Clocks of a product in chunks with as many columns as a pass of pairs has, relative to those of pairs; 1 if passes
 * of pairs multiply no values beside their dot products. */
double cuda_pass_chunk_factor(bool with_values);

/* Clocks of features of the kernels of the contraction, for the gradients of a token. */
double cuda_pass_feature_clocks(double features);

#endif

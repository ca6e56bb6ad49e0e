/* forming: the operations that form a plan's features. They are counted once, since they do not depend on call,
 * chunk and threads. */
#ifndef FPAC_GEN_PLAN_C_FORMING_H
#define FPAC_GEN_PLAN_C_FORMING_H

#include "register_tile.h"

struct fpa_plan;

/* Counts for one vector of tokens. */
typedef struct fpa_forming {
    double tiles; /* tiles whose features are formed; others are packed rows */
    double features, pieces;
    double loads, products, weights; /* loads of rows; products of two vectors; pieces with a weight */
    double rows;                     /* different rows that a tile reads, summed over tiles */
    /* register tiles of updates: [0] whole ones, [r] those of r remaining rows */
    double register_tiles[TILE_MOST_ROWS + 1];
} fpa_forming;

/* The plan's tiles of features and register tiles are already known. */
fpa_forming forming_count(const struct fpa_plan *plan);

#endif

/* forming: what it takes to form a plan's features, counted once: whatever the call, the chunk and the threads, the
 * features are the same. */
#ifndef FPAC_GEN_PLAN_C_FORMING_H
#define FPAC_GEN_PLAN_C_FORMING_H

#include "register_tile.h"

struct fpa_plan;

/* Of one vector of tokens. */
typedef struct fpa_forming {
    double tiles; /* whose features are formed; others are rows as they lie */
    double features, pieces;
    double loads, products, weights; /* of rows; of two vectors; pieces with a weight */
    double rows;                     /* that a tile reads, added up over tiles */
    /* that tiles are cut into: [0] whole ones, [r] those of r rows that are left over */
    double register_tiles[TILE_MOST_ROWS + 1];
} fpa_forming;

/* The plan has its tiles, of features and of registers. */
fpa_forming forming_count(const struct fpa_plan *plan);

#endif

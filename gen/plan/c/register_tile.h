/* register_tile: sums that stay in registers, from a model of registers, loads and multiply-adds. */
#ifndef FPAC_GEN_PLAN_C_REGISTER_TILE_H
#define FPAC_GEN_PLAN_C_REGISTER_TILE_H

#include "machine/target.h"

/* Sums that stay in registers while a product's inner index runs: rows, each of one number of the first
 * factor, by vectors of the second. */
typedef struct fpa_register_tile {
    int rows, vectors;
} fpa_register_tile;

/* What bounds register tiles on one target. */
typedef struct fpa_core {
    int registers; /* vectors */
    int spare;     /* registers that compilers want beside sums and factors */
    int fmas;      /* vector multiply-adds a cycle */
    int loads;     /* a cycle, of a vector or of one number for all lanes */
    int latency;   /* cycles until a sum can be added to again */
} fpa_core;

fpa_core core_of(const fpa_target *target);

/* Cycles of one step of the inner index, by the model, and the share of them that multiply-adds fill. */
double tile_cycles(const fpa_core *core, fpa_register_tile tile);

/* The tile with fewest cycles for products of `columns` columns; rows divide `tokens`. */
fpa_register_tile tile_choose(const fpa_target *target, int columns, int tokens);

#endif

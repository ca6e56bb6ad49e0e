/* register_tile: sums that stay in registers, from a processor's registers, loads and multiply-adds. */
#ifndef FPAC_GEN_PLAN_C_REGISTER_TILE_H
#define FPAC_GEN_PLAN_C_REGISTER_TILE_H

#include "machine/cpu.h"

enum { TILE_MOST_ROWS = 32 }; /* no processor has more registers */

/* Sums that stay in registers while a product's inner index runs: rows, each of one number of the first
 * factor, by vectors of the second. */
typedef struct fpa_register_tile {
    int rows, vectors;
    int fewer; /* rows of panels of a vector less, where panels have about as many each; 0: as others */
} fpa_register_tile;

/* Vectors, the last of them perhaps narrower, that `width` columns of a product take. */
int tile_vectors(int width, int lanes);

/* The tile with fewest cycles for products of `columns` columns; rows divide `tokens`. pairs: of pairs of bf16, whose
 * last vector is a whole one. */
fpa_register_tile tile_choose(const fpa_cpu *cpu, int lanes, int columns, int tokens, bool pairs);
/* The same of columns that are dealt out to panels evenly: those of a vector less have rows of their own. */
fpa_register_tile tile_choose_even(const fpa_cpu *cpu, int lanes, int columns, int tokens, bool pairs);
/* Rows of a panel of so many vectors. */
int tile_panel_rows(fpa_register_tile tile, int vectors);

/* Chooses the tile of which `sets` sets of sums stay in registers, where each step of the inner loop adds to one
 * set; pairs of rows by vectors, of which `tokens` is a multiple. 0 rows: no tile has enough sums to hide the
 * latency of an addition. */
fpa_register_tile tile_choose_sets(const fpa_cpu *cpu, int lanes, int tokens, int sets);

#endif

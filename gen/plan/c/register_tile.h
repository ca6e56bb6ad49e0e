/* register_tile: the sums that a product keeps in registers, chosen by a processor's registers, loads and
 * multiply-adds. */
#ifndef FPAC_GEN_PLAN_C_REGISTER_TILE_H
#define FPAC_GEN_PLAN_C_REGISTER_TILE_H

#include "machine/cpu.h"

enum { TILE_MOST_ROWS = 32 }; /* more than any processor has registers for */

/* Sums that stay in registers while a product's inner index runs: rows, each with one number of the first factor,
 * by vectors of the second. */
typedef struct fpa_register_tile {
    int rows, vectors;
    /* rows of panels that have one vector less, if columns are divided evenly among panels; 0: as others */
    int fewer;
} fpa_register_tile;

/* The number of vectors, the last one perhaps narrower, for `width` columns of a product. */
int tile_vectors(int width, int lanes);

/* The tile with the fewest cycles for products of `columns` columns; its rows divide `tokens`. pairs: operands are
 * pairs of bf16, whose last vector is a whole one. */
fpa_register_tile tile_choose(const fpa_cpu *cpu, int lanes, int columns, int tokens, bool pairs);
/* The same for columns that are divided evenly among panels: panels with one vector less can have more rows. */
fpa_register_tile tile_choose_even(const fpa_cpu *cpu, int lanes, int columns, int tokens, bool pairs);
/* Rows of the tile for a panel of so many vectors. */
int tile_panel_rows(fpa_register_tile tile, int vectors);

/* The tile of which `sets` sets of sums fit into registers, while each step of the inner loop adds to one set;
 * rows are even, and rows and vectors divide `tokens`. rows 0: no tile has enough sums to hide the latency of an
 * addition. */
fpa_register_tile tile_choose_sets(const fpa_cpu *cpu, int lanes, int tokens, int sets);

#endif

/* panel_rows: which rows NAME_pack_rows leaves of a tile of tokens, and which of them a block fetches.
 *
 * A tile is x[row][token] in device memory, rows that somebody reads and no others: first those that dense matrices give, then
 * coordinates, with a weight or without one, and ones. Blocks copy rows of it to shared memory as they lie:
 *
 *     NAME_chunk_state    the rows of its own slice's features
 *     NAME_chunk_output   of keys those of dots, in their order, with zeros up to whole steps of 16; of queries the same,
 *                         and behind them what else features are products of */
#ifndef FPAC_GEN_PLAN_CUDA_PANEL_ROWS_H
#define FPAC_GEN_PLAN_CUDA_PANEL_ROWS_H

#include "mechanism.h"

/* Fills rows->panels, of rows that are complete otherwise. */
void plan_panel_rows(const fpa_plan *plan, arena *memory, fpa_cuda_rows *rows);
void geometry_panel_rows(const fpa_panel_rows *panels, struct fpa_cuda_geometry *g);
extern const fpa_field panel_rows_fields[];

#endif

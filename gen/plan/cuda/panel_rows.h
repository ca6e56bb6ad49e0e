/* panel_rows: which packed rows NAME_pack_rows stores for a tile of tokens, and which of them each block reads.
 *
 * A tile is x[row][token] in device memory. It has only rows that a kernel reads: rows by dense matrices first, then
 * coordinates, with or without a weight, then ones. Blocks copy rows of it to shared memory unchanged:
 *
 *     NAME_chunk_state    the rows of its own slice's features
 *     NAME_chunk_output   of keys: the rows of the dot products in their order, padded with zeros to steps of 16; of
 *                         queries: the same, followed by the other rows that features are products of */
#ifndef FPAC_GEN_PLAN_CUDA_PANEL_ROWS_H
#define FPAC_GEN_PLAN_CUDA_PANEL_ROWS_H

#include "mechanism.h"

/* Fills rows->panels, of rows that are complete otherwise. */
void plan_panel_rows(const fpa_plan *plan, arena *memory, fpa_cuda_rows *rows);
void geometry_panel_rows(const fpa_panel_rows *panels, struct fpa_cuda_geometry *g);
extern const fpa_field panel_rows_fields[];

#endif

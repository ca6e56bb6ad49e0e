/* split_panel: the plan of the portable split schedule, chunk_state and chunk_output by mma.sync, or FMAs of fp32,
 * from panels of packed rows. It suits all heads and GPUs. Printed by templates/cuda. */
#ifndef FPAC_GEN_PLAN_CUDA_SPLIT_PANEL_H
#define FPAC_GEN_PLAN_CUDA_SPLIT_PANEL_H

#include "mechanism.h"

/* Sizes if rows are packed by NAME_pack_rows (panel_rows.h), once for all blocks, which copy them. */
typedef struct fpa_packed_panels {
    bool used;
    /* columns of blocks of chunk_state; a block of chunk_output has several of these, for which it computes scores once */
    fpa_columns state;
    int panel;  /* tokens of a panel of chunk_state */
    int stages; /* panels in shared memory, one in use, the others in flight */
    /* of chunk_state, bytes from a row to the next, and from a token's values to the next */
    int key_pitch, value_pitch;
    bool keeps_queries; /* chunk_output keeps the operands of queries in registers for all keys */
} fpa_packed_panels;

typedef struct fpa_split_panel {
    fpa_columns columns;
    int chunk;
    int query_tiles;  /* tiles of 16 queries a warp */
    int query_tokens; /* of a block */
    int score_tiles;  /* tiles of queries whose scores are computed together */
    int panel;        /* tokens of a panel of keys */
    /* pitches in bytes, from one to the next: rows of packed queries and keys, tokens as given, tokens' values, rows
     * of a tile of the state, outputs */
    int query_pitch, key_pitch, raw_pitch, value_pitch, tile_pitch, output_pitch;
    int given_pitch; /* of q and k as given, whose dots are the exponents of a window; 0: no window */
    fpa_cuda_memory chunk_state, chunk_output;
    fpa_packed_panels packs;                     /* not used: blocks pack rows themselves */
    int chunk_state_blocks, chunk_output_blocks; /* on a multiprocessor at a time */
} fpa_split_panel;

/* Columns of blocks of chunk_state. */
static inline const fpa_columns *state_columns(const fpa_split_panel *split)
{
    return split->packs.used ? &split->packs.state : &split->columns;
}

const char *plan_split_panel(const fpa_cuda_inputs *in, void *plan);
void print_split_panel(FILE *out, const fpa_plan *plan);
void geometry_split_panel(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field split_panel_fields[];

#endif

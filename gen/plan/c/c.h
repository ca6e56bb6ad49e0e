/* plan_c: how a head runs on a CPU. What the C templates print.
 *
 * Vocabulary, beside plan.h's. A *tile* is a run of features that is formed at once as a panel
 * p[feature][token] of the first-level cache and multiplied with its rows of the state. A *slice* is a run of
 * tiles that one thread takes; partial results are added slice by slice, so that the number of threads
 * changes no bit. */
#ifndef FPAC_GEN_PLAN_C_C_H
#define FPAC_GEN_PLAN_C_C_H

#include <stdint.h>

#include "forming.h"
#include "register_tile.h"

typedef struct fpa_tile {
    int64_t feature; /* index of its first feature */
    int features;    /* at most tile_features */
    int piece, piece_count;
} fpa_tile;

typedef struct fpa_c_plan {
    int tile_count;
    fpa_tile *tiles;
    int slice_count;
    int *slices;              /* [slice_count + 1] first tile of each slice, then tile_count */
    bool unrolled;            /* every feature is a line of text; else a table of pieces drives a loop */
    bool pairs;               /* products are of pairs of bf16, but those of the recurrent form */
    bool converts;            /* vectors of storage become numbers, and numbers storage, in one instruction */
    bool decays_features;     /* keys decay to the chunk's end as features, which are fewer, not as values */
    int tokens;               /* T: tokens a panel */
    int tile_features;        /* F */
    int query_blocks;         /* panels of queries that one unit of the parallel form takes, at most */
    int shared_blocks;        /* and where threads share few of them */
    fpa_register_tile values; /* of products whose columns are values */
    fpa_register_tile scores; /* of products whose columns are a panel's tokens */
    fpa_register_tile
        whole_scores;    /* of scores whose dots and their products stay in registers; no rows: none do */
    fpa_forming forming; /* what its features take */
    bool team_by_chunk;  /* threads that are left over share a head: of the chunked form */
    bool team_by_token;  /* of the recurrent form */
    /* heads of which a thread processes a chunk each, by turns, at most; 1: one head after the other */
    int abreast;
    double code_bytes; /* of the compiled kernel, an estimate */
} fpa_c_plan;

#endif

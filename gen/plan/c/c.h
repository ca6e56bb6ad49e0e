/* plan_c: how a head is computed on a CPU; what the C templates print.
 *
 * Words, in addition to those of plan.h: a *tile* is a run of features that are formed at a time, as a panel
 * p[feature][token] in the first-level cache, and multiplied by its rows of the state. A *slice* is a run of tiles
 * that one thread processes; the slices' partial results are added in a fixed order, so that results do not depend
 * on the number of threads. */
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
    int *slices;   /* [slice_count + 1] first tile of each slice, then tile_count */
    bool unrolled; /* each feature is a line of code; else a loop reads a table of pieces */
    bool pairs;    /* products multiply pairs of bf16, except in the recurrent form */
    /* the instruction set converts vectors between the storage type and float in one instruction */
    bool converts;
    /* decay until the chunk's end is applied to features of keys, which are fewer than values, instead of values */
    bool decays_features;
    int tokens;               /* T: tokens of a panel */
    int tile_features;        /* F: the most features of a tile */
    int query_blocks;         /* the most panels of queries in a unit of the parallel form */
    int shared_blocks;        /* the same if there are few units for all threads */
    fpa_register_tile values; /* register tile of products whose columns are values */
    fpa_register_tile scores; /* register tile of products whose columns are a panel's tokens */
    /* register tile of scores whose dot products stay in registers; rows 0: they do not */
    fpa_register_tile whole_scores;
    fpa_forming forming; /* operations to form its features */
    bool team_by_chunk; /* chunked form: if fewer heads than threads are left, several threads share a head */
    bool team_by_token; /* the same in the recurrent form */
    /* the most heads that a thread processes by turns, a chunk of each; 1: one head after the other */
    int abreast;
    double code_bytes; /* estimated bytes of the compiled kernel */
} fpa_c_plan;

#endif

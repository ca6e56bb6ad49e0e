/* plan_fused_rows: fused_chunk on sm_90a for heads whose features are coordinates, each times a weight or not
 * (linear attention of any width), or few, so that they are packed as rows first (feature_rows.h). A block walks a segment of a sequence, 64 tokens (a *panel*) at a time, with
 * as many columns of values as its registers hold. Each of its warpgroups has one task:
 *
 *   one or two of keys   hold the state as fp32 sums; before each panel they leave a copy of it, then add
 *                        the panel's keys, which they read where the copy engine puts them
 *   two or one queries   read the copy and the panel's own keys, and write o
 *   the last fetches     some panels ahead; clears what is none of its features, and weighs keys
 *
 * Where sums are few and panels are finished for long, two blocks with one of each share a multiprocessor.
 *
 * Rows that begin amid a piece of 16 bytes come in boxes that begin with that piece, where all tokens' rows of a head
 * begin so: they *lean*, by the numbers of the piece that are another head's. The slabs then hold features, and columns
 * of values, behind these. */
#ifndef FPAC_GEN_PLAN_CUDA_FUSED_ROWS_H
#define FPAC_GEN_PLAN_CUDA_FUSED_ROWS_H

#include "mechanism.h"

typedef struct fpa_fused_rows {
    int width;       /* features: the first so many coordinates, */
    bool packed;     /* or rows of vectors that NAME_pack_rows leaves (feature_rows.h), */
    int vector;      /* which have so many numbers, or q and k do */
    int scale_power; /* of queries, in all features */
    bool weighted;   /* some weigh other than 1: keys are multiplied by that where they lie */
    /* warpgroups */
    int key_groups, query_groups;
    /* blocks that share a walk, one for each block of columns, and fetch its queries and keys for each other */
    int cluster;
    int key_tiles;                                       /* of 64 features, of each warpgroup of keys */
    int blocks;                                          /* on a multiprocessor */
    int fetch_registers, key_registers, query_registers; /* of a thread */
    int first_registers;                                 /* before warpgroups deal them out */
    int slots;                                           /* of features: 64 a tile */
    int *slot_feature;                                   /* [slots] -1: none */
    double *slot_weight;                                 /* [slots] on the key side */
    /* shared memory: places for panels and copies of the state, bytes of a panel, and from where on they lie */
    int panels, copies;
    int copied;       /* rows of a copy: of no more slots than queries read */
    int total_panels; /* places for panels without queries, of segments' totals */
    int panel_bytes;
    int query_bytes;  /* of a panel, for queries, then values where some are not finite */
    int steps, slabs; /* of 16 features, and of 64, of a vector */
    /* rows that the copy engine cannot fetch have room for all words that they touch; else they come number by number: */
    bool vector_words, value_words;
    int vector_tails; /* bytes of a panel for words of a vector behind the slabs */
    int lean;         /* numbers before a vector that steps have room for, if boxes begin with them */
    bool leans;       /* some rows begin amid a piece, and boxes may begin before them: */
    int vector_room, value_room; /* by at most so many numbers */
    bool finishes_much;          /* so that in totals warpgroups of queries take part */
    bool reverses;               /* it can take tokens from the last one on */
    /* what a gate leaves between two tokens is a factor of each: of bf16, which has room for these */
    bool factored;
    int factor_room;  /* largest exponent of these, to base 2 */
    bool numbers;     /* tokens have factors and numbers beside them: passes of normalised lines */
    bool scales;      /* and all of f16 is scaled by powers of two */
    int beside;       /* columns after queries and keys that contain these numbers */
    bool leaves_dots; /* of outputs, and the state now and then: gradients of gates (gen/plan/passes.h) */
    bool narrows;     /* o may leave as f16, of passes of bf16 for an f16 head */
    bool adds;        /* o may be added to what is there, of passes of parts of values */
    int kept;         /* numbers of such a state, of all columns */
    int at_gates;     /* of a panel */
    int at_copies, at_barriers, at_part, bytes;
} fpa_fused_rows;

/* It has the columns of the split that is chosen. */
const char *plan_fused_rows(const fpa_cuda_inputs *in, void *plan);
/* Tiles of 8 of a block's columns, of which one warpgroup of keys, or two, hold all sums; none: 0 or less. */
int fused_rows_columns(const fpa_plan *plan);
/* Whether nothing else is wanted of a pass that gradients are made of, if this suits it. */
bool cuda_turns_anywhere(const fpa_plan *plan);
void print_fused_rows(FILE *out, const fpa_plan *plan);
void geometry_fused_rows(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field fused_rows_fields[];

#endif

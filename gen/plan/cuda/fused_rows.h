/* plan_fused_rows: fused_chunk on sm_90a for heads whose features are coordinates, each times a weight or not
 * (linear attention of any width), or few, so that they are packed as rows first (feature_rows.h). A block
 * processes a segment of a sequence, 64 tokens (a *panel*) at a time, with as many columns of values as its
 * registers hold. Each of its warpgroups has one task:
 *
 *     one or two of keys   hold the state as fp32 sums; before each panel they write a copy of it, then add
 *                          the panel's keys, which they read where they were copied to
 *     two or one queries   multiply the copy and the panel's own keys, and write o
 *     the first fetches    some panels ahead; clears numbers that are no features, and multiplies keys by weights
 *
 * If sums are few and finishing a panel takes long, two blocks with one warpgroup of each kind share a
 * multiprocessor.
 *
 * Rows that do not begin at a multiple of 16 bytes are fetched by boxes that begin at the multiple before, if all
 * tokens' rows of a head begin at the same distance from one: they *lean* by that many numbers, which belong
 * to another head. The slabs then hold features, and columns of values, after these numbers. */
#ifndef FPAC_GEN_PLAN_CUDA_FUSED_ROWS_H
#define FPAC_GEN_PLAN_CUDA_FUSED_ROWS_H

#include "mechanism.h"

typedef struct fpa_fused_rows {
    int width;       /* features: the first `width` coordinates, */
    bool packed;     /* or rows of vectors that NAME_pack_rows writes (feature_rows.h) */
    int vector;      /* numbers of such a vector, or of q and k */
    int scale_power; /* the power of the scale of queries in each feature */
    bool weighted;   /* some weight is not 1: keys are multiplied by weights in shared memory */
    /* warpgroups */
    int key_groups, query_groups;
    /* blocks of a cluster, one for each block of columns of a head, that fetch queries and keys for each
     * other */
    int cluster;
    int key_tiles;                                       /* tiles of 64 features of each warpgroup of keys */
    int blocks;                                          /* on a multiprocessor */
    int fetch_registers, key_registers, query_registers; /* of a thread */
    int first_registers;                                 /* at launch, before warpgroups change them */
    int slots;                                           /* of features: 64 a tile */
    int *slot_feature;                                   /* [slots] -1: none */
    double *slot_weight;                                 /* [slots] on the key side */
    /* shared memory: stages of panels, copies of the state; bytes, and addresses */
    int panels, copies;
    int copied;       /* rows of a copy: those of slots that queries read */
    int total_panels; /* stages of panels without queries, for totals */
    int panel_bytes;
    int query_bytes;  /* of a panel: queries, later a copy of values that are not all finite */
    int steps, slabs; /* steps of 16 features, and slabs of 64, of a vector */
    /* rows that the copy engine cannot fetch have room for all words that they touch; else they are fetched
     * number by number */
    bool vector_words, value_words;
    int vector_tails;            /* bytes of a panel for words of vectors that do not fit into slabs */
    int lean;                    /* numbers before a vector for which steps have room */
    bool leans;                  /* some rows may begin anywhere, and boxes may begin before them, */
    int vector_room, value_room; /* by at most this many numbers */
    bool finishes_much;          /* finishing panels takes long: in totals warpgroups of queries do it, too */
    bool reverses;               /* it can also process tokens from the last one to the first */
    /* the decay between two tokens is a product of a factor of each: in bf16, whose range suffices */
    bool factored;
    int factor_room; /* largest exponent of these factors, to base 2 */
    bool numbers;    /* tokens have factors and numbers: passes of normalised linear heads */
    bool scales;     /* and numbers of f16 are scaled by powers of two */
    int beside;      /* columns after the features that contain these numbers */
    /* stores dots of outputs, and some states: for gradients of gates (gen/plan/passes.h) */
    bool leaves_dots;
    bool narrows; /* o may be stored as f16, by passes in bf16 for an f16 head */
    bool adds;    /* o may be added to what is in memory, by passes of parts of values */
    int kept;     /* numbers of a stored state, all columns */
    int at_gates; /* of a panel */
    int at_copies, at_barriers, at_part, bytes;
} fpa_fused_rows;

/* Uses the columns of the split mechanism that was chosen. */
const char *plan_fused_rows(const fpa_cuda_inputs *in, void *plan);
/* The number of tiles of 8 columns of a block for which one warpgroup of keys, or two, can hold all sums; 0
 * or less if there are none. */
int fused_rows_columns(const fpa_plan *plan);
/* Whether a pass of gradients should use no other mechanism, if this one suits it. */
bool cuda_turns_anywhere(const fpa_plan *plan);
void print_fused_rows(FILE *out, const fpa_plan *plan);
void geometry_fused_rows(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field fused_rows_fields[];

#endif

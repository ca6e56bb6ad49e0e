/* plan_cuda: how a head runs on a GPU. What the CUDA templates print.
 *
 * Each mechanism of the table (mechanism.h) has an immutable plan of its own, or the reason why it does not
 * suit; fpa_cuda_plan is filled once, from those that are chosen.
 *
 * Vocabulary, beside plan.h's. A *panel* holds packed rows of some tokens in shared memory, x[row][token]. A
 * *unit* is 16 consecutive features: the rows of one factor of a unit are fetched from a panel as one
 * fragment of the matrix instruction (each lane names a row), and the product of the factors' fragments is
 * the unit's feature fragment, which exists in registers only. */
#ifndef FPAC_GEN_PLAN_CUDA_CUDA_H
#define FPAC_GEN_PLAN_CUDA_CUDA_H

#include <stdbool.h>

#include "abi/cuda_call.h"
#include "gen/plan/field.h"

enum {
    CUDA_UNIT = 16,            /* features of a unit */
    CUDA_GROUP = 4,            /* units that chunk_output takes from one tile of the state */
    CUDA_WARPS = 4,            /* of a block of portable chunk_state and chunk_output */
    CUDA_THREADS = 128,        /* of such a block */
    CUDA_STATE_STAGES = 3,     /* tiles of the state on their way into shared memory */
    CUDA_DECODE_THREADS = 256, /* of a block of the recurrent form */
    CUDA_DECODE_ROOM = 5120,   /* floats of its features, then of its sums */
    CUDA_DECODE_BARRIERS = 33, /* of a cluster's parts, and of pieces of a state in shared memory */
    CUDA_DECODE_RESIDENT_MOST =
        226 << 10, /* bytes of shared memory that a launch asks for, whose block holds a state's rows */
    CUDA_DECODE_CLUSTER = 8,  /* blocks of a head, at most, that add their sums up themselves */
    CUDA_DECODE_QUERIES = 4,  /* query heads that one pass over the state serves */
    CUDA_DECODE_TOGETHER = 8, /* rows of matrices that a warp of it multiplies at a time, at most */
    CUDA_DECODE_NUMBERS = 32, /* of them, a lane's on their way */
    CUDA_DRAFT_TOKENS = 16,   /* of a draft, at most: FPA_DRAFT_TOKENS */
    CUDA_DRAFT_QUERIES = 8,   /* of a draft that one pass over the state serves */
    CUDA_SPLIT_REDUCTION_THREADS = 64,
    CUDA_DECODE_WINDOW_THREADS = 128,
    CUDA_PAD_THREADS = 256,
    CUDA_SCAN_THREADS = 256, /* of gate_scan, and of segment_scan */
    /* which has at most so many where it may run beside queries: a block fills a multiprocessor */
    CUDA_CARRY_THREADS = 1024,
    CUDA_CARRIED = 8,            /* elements of a copy, that each of its threads takes */
    WHY = 160,                   /* bytes of a reason */
    CUDA_MAX_WIDTH = 256,        /* d */
    CUDA_MAX_VALUES = 512,       /* dv */
    CUDA_MAX_OUTER_WIDTH = 520,  /* d of kernels of split_outer alone: rows of gradients, q beside d_o */
    CUDA_MAX_COORDINATES = 1024, /* of a lift */
    CUDA_MAX_FEATURES = 1 << 18,
    CUDA_MAX_WEIGHTS = 256, /* run-time matrices: their addresses are kernel parameters */
};

/* Parts of a kernel's shared memory, in bytes from its start. Parts that are never alive
 * together share their place. */
typedef struct fpa_cuda_memory {
    int queries; /* attend: the panel of queries */
    int keys;    /* the panel of keys */
    int raw;     /* q or k as they lie in memory, on their way into a panel */
    int values;  /* tiles of v */
    int tiles;   /* attend: tiles of the state */
    int gates;   /* gated: sums of the keys' gates, then attend: of the queries' */
    int output;  /* fused_chunk of warpgroups: parts of o on their way out */
    int edge;    /* and which panels, of even and odd ones, last had a value that is not finite */
    /* chunk_output beside a window: queries and keys as they are given, and which keys a mask keeps */
    int given_queries, given_keys, kept;
    int copies; /* of gradients: sums that a share of the warps has for itself */
    int size;   /* of all */
} fpa_cuda_memory;

/* How the columns of the values are divided into blocks. Each block of a normalised head computes z for itself: values times
 * features and ones times features are one product, whose operand has a column of ones. */
typedef struct fpa_columns {
    int blocks;
    int tiles; /* tiles of 8 columns of values in a block */
    int all;   /* tiles of a block, with the one whose first column is z */
    int last;  /* columns of values in the last block */
    /* 1: normalised, and the values fill a slab of 64 columns exactly. The ones are then a second slab of the same operand, so
     * that one instruction of a warpgroup multiplies both. Templates and cost model read it here and nowhere else. Else 0 */
    int ones_slabs;
} fpa_columns;

/* Rows of a dot of the score, in steps of 16. */
typedef struct fpa_cuda_dot {
    int base;  /* first of consecutive rows, or -1: dot_rows says */
    int first; /* step */
    int steps, rows;
} fpa_cuda_dot;

enum {
    PANEL_TILE = 128,      /* tokens of a tile of packed rows */
    PANEL_NOWHERE = 65535, /* no row */
};

/* Rows that NAME_pack_rows leaves, and which of them blocks fetch (panel_rows.h). */
typedef struct fpa_panel_rows {
    bool possible;     /* they can be packed so */
    int tile;          /* PANEL_TILE */
    int keys, queries; /* rows of a tile of either */
    /* rows of dense matrices, in tiles of 16 */
    int dense_tiles;
    int *dense_row;       /* [dense_tiles][16] among the rows of all dense matrices; PANEL_NOWHERE: none */
    double *dense_weight; /* [dense_tiles][16] */
    int *dense_place[2];  /* [dense_tiles][16] row of a tile of keys, of queries */
    int pack_bytes;       /* of all these, in two parts of 16 bits, */
    bool per_head;        /* of each head */
    /* coordinates: each may be there several times */
    int levels, columns;
    int *place[2];     /* [levels][columns] row of a tile */
    double *weight[2]; /* [levels][columns] */
    int *diagonal[2];  /* [levels][columns] 1 and the row among those of all run-time diagonals; 0: none */
    int ones[2], zeros[2]; /* PANEL_NOWHERE: nobody reads them */
    int dense_rows;        /* 16 dense_tiles */
    int copies;            /* levels * columns */
    int raw_pitch;         /* bytes of a token as it is fetched */
    int bytes;             /* of shared memory of a block of NAME_pack_rows */
    /* what blocks fetch */
    int slices, state_count, *state_row; /* [slices][state_count] */
    int *state_feature;                  /* [factors][features] row of shared memory */
    int key_count, *key_row;
    int query_count, *query_row;
    int *query_feature; /* [factors][features] */
    int feature_count;  /* factors * features */
    int state_rows;     /* slices * state_count */
} fpa_panel_rows;

/* What all mechanisms read: packed rows, and features and dots by them. */
typedef struct fpa_cuda_rows {
    int element; /* bytes of a product's operand: 2, or 4 in plain fp32 */
    /* packed rows, as a panel holds them */
    int row_count;
    int zero_row, ones_row;
    int *row; /* [plan->row_count] this numbering of the plan's rows */
    /* features */
    int factors;     /* of every feature; shorter terms are filled with the row of ones */
    int units;       /* of 16 */
    int warp_units;  /* that a warp owns, where warps hold the state */
    int slices;      /* blocks of such warps that share a head */
    int features;    /* of the tables: whole blocks */
    int *factor_row; /* [factors][features] */
    double *weight;  /* [features] on the key side; 0 behind the last feature */
    int *shared;     /* [factors] runs of that many units (1, 2, 4) have one fragment */
    int dot_count;
    fpa_cuda_dot *dots;
    int dot_steps;    /* of all */
    int *dot_rows;    /* [dot_steps][16] */
    bool coordinates; /* features and the one dot are the coordinates themselves, 16-bit numbers, in order */
    fpa_panel_rows panels;
} fpa_cuda_rows;

/* First those by which kernels are planned, splits and fused ones, each of which has a form alone; then what runs beside them. */
typedef enum fpa_cuda_mechanism {
    SPLIT_PANEL,
    FUSED_PANEL,
    FUSED_COORDINATES,
    SPLIT_OUTER,
    FUSED_PACKED,
    FUSED_ROWS,
    PLANNED_MECHANISMS,
    CLUSTER_SCAN = PLANNED_MECHANISMS,
    DECODE,
    CUDA_MECHANISMS
} fpa_cuda_mechanism;

/* Sizes of NAME_lift_rows; of heads without a lift all zeros. */
typedef struct fpa_cuda_lift {
    int vector;          /* numbers of a token's coordinates: whole pieces of 16 bytes */
    int threads, tokens; /* of a block */
    int blocks;          /* of a multiprocessor, that it has registers for */
    int rows;            /* of a part, that a block has at a time */
    int steps;           /* of so many rows, of all parts */
    bool keeps;          /* matrices and angles stay in registers while tokens come and go */
    int stages; /* buffers for tokens of q and k: one is filled while another one's coordinates are computed */
    int pitch;  /* bytes of a token as it is given, in shared memory */
    int places, positions, about; /* where they begin behind all stages; of a stage both and the next one's */
    int norms;
    int strips, strip_count; /* and where rows lie that leave together, so many times the rows of a block, */
    int strip_pitch;         /* bytes of a token's; 16 bits only */
    int bytes;               /* of all */
    /* by warpgroups: how many a block has, 0 where warps do it; bytes of matrices, and behind them of each
     * warpgroup; rows are those of all matrices in one product */
    int groups, matrix_bytes, group_bytes;
    /* a bf16 head's matrices in one part of f16, and its tokens, each times a power of two of its own */
    bool in_f16;
} fpa_cuda_lift;

/* A mechanism and a head. */
typedef struct fpa_suited {
    const void *plan; /* struct of the mechanism's header; NULL: it does not suit */
    char why[WHY];    /* not: "its features fill only 40 % of tiles of 8 x 8" */
} fpa_suited;

typedef struct fpa_cuda_plan {
    const fpa_cuda_rows *rows;
    fpa_suited suited[CUDA_MECHANISMS]; /* chosen or not */
    bool chosen[CUDA_MECHANISMS];
    const char *portable_why; /* why the split is not by warpgroups; NULL: it is */
    /* the chosen ones' plans; NULL: another one has the role, or none */
    const struct fpa_split_panel *split_panel;
    const struct fpa_split_outer *split_outer;
    const struct fpa_fused_pass *fused_panel, *fused_coordinates;
    const struct fpa_fused_packed *fused_packed;
    const struct fpa_fused_rows *fused_rows;
    const struct fpa_cluster_scan *cluster_scan;
    const struct fpa_decode *decode;
    /* of gradients, which have kernels of their own; NULL: of a forward pass */
    const struct fpa_cuda_backward_plan *backward;
    /* what emitted files have once, whichever are chosen */
    fpa_columns columns;
    int query_tokens;      /* that a block takes */
    int copy_rows;         /* of a copy of the state */
    int weights;           /* run-time matrices of branches */
    bool pads;             /* rows of q, k or v are brought to multiples of 16 bytes first */
    bool leaves_in_pieces; /* passes of warpgroups: o by way of shared memory */
    fpa_cuda_lift lift;
    bool fused;                  /* the chunked form is one pass */
    bool coordinates;            /* portable kernels read q and k as they lie, without a panel */
    bool grouped_sums;           /* chunk_output sums each group of features by itself */
    fpa_cuda_memory chunk_state; /* of the portable kernel */
    int chunk_state_blocks;      /* of it, on a multiprocessor at a time */
    struct fpa_cuda_geometry geometry;
} fpa_cuda_plan;

extern const fpa_field cuda_memory_fields[];

#endif

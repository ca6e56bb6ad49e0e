/* plan_cuda: how a head runs on a GPU. What the CUDA templates print.
 *
 * Vocabulary, beside plan.h's. A *panel* holds packed rows of some tokens in shared memory,
 * x[row][token]. A *unit* is 16 consecutive features: the rows of one factor of a unit are fetched
 * from a panel as one fragment of the matrix instruction (each lane names a row), and the product
 * of the factors' fragments is the unit's feature fragment, which exists in registers only. */
#ifndef FPAC_GEN_PLAN_CUDA_CUDA_H
#define FPAC_GEN_PLAN_CUDA_CUDA_H

#include "base/arena.h"
#include "machine/target.h"

enum {
    CUDA_UNIT = 16,            /* features of a unit */
    CUDA_GROUP = 4,            /* units that the attend kernel takes from one tile of the state */
    CUDA_WARPS = 4,            /* of a block of state and attend */
    CUDA_STATE_STAGES = 3,     /* tiles of the state on their way into shared memory */
    CUDA_DECODE_THREADS = 256, /* of a block of the recurrent form */
    CUDA_DECODE_ROOM = 5120,   /* floats of its features, then of its sums */
    CUDA_DECODE_BARRIERS = 33, /* of a cluster's parts, and of pieces of a state in shared memory */
    CUDA_DECODE_RESIDENT_MOST =
        226 << 10, /* bytes of shared memory that a launch asks for, whose block holds a state's rows */
    CUDA_DECODE_CLUSTER = 8, /* blocks of a head, at most, that add their sums up themselves */
    CUDA_DECODE_QUERIES = 4, /* query heads that one pass over the state serves */
    CUDA_SPLIT_REDUCTION_THREADS = 64,
    CUDA_MAX_WIDTH = 256, /* d, dv */
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
    int size;    /* of all */
} fpa_cuda_memory;

typedef struct fpa_cuda_plan {
    int element; /* bytes of a product's operand: 2, or 4 in plain fp32 */
    /* packed rows, as a panel holds them */
    int row_count;
    int zero_row, ones_row;
    int *row; /* [plan->row_count] this numbering of the plan's rows */
    /* features */
    int factors; /* of every feature; shorter terms are filled with the row of ones */
    int units;
    int features;    /* of the tables: whole blocks of the state kernel */
    int *factor_row; /* [factors][features] */
    double *weight;  /* [features] on the key side; 0 behind the last feature */
    int *shared;     /* [factors] runs of that many units (1, 2, 4) have one fragment */
    /* dots of the score: rows in steps of 16 */
    int *dot_first; /* [dots + 1] first step */
    int *dot_base;  /* [dots] first row of consecutive ones, or -1: dot_rows says */
    int *dot_rows;  /* [steps][16] */
    /* columns */
    int column_blocks; /* blocks of columns, each with a z of its own */
    int column_tiles;  /* tiles of 8 columns a block */
    int all_tiles;     /* with the one of z */
    /* blocks of tokens and features */
    int query_tiles;  /* tiles of 16 queries a warp */
    int query_tokens; /* a block */
    int score_tiles;  /* tiles of queries whose scores are computed together */
    int panel;        /* tokens of a panel of keys */
    int warp_units;   /* units that a warp of the state kernel owns */
    int slices;       /* blocks of the state kernel that share a head */
    /* the recurrent form */
    int decode_features;       /* rows of the state that a block has at a time */
    int decode_stages;         /* pieces of the state that a thread has on their way */
    int decode_blocks;         /* on a multiprocessor at a time */
    int decode_bytes;          /* of its shared memory */
    int decode_resident_bytes; /* of NAME_decode_resident's beside rows of the state; 0: there is none */
    int decode_resident_least; /* with them, at least */
    /* pitches, bytes: from a row of a panel, a token's raw vector, a row of values, of a tile, to the next */
    int query_pitch, key_pitch, raw_pitch, value_pitch, tile_pitch, output_pitch;
    fpa_cuda_memory state, chunk_output, fused;
    int chunk_state_blocks, chunk_output_blocks, fused_blocks; /* on a multiprocessor at a time */
    bool coordinates;       /* q.k with a few coordinates: they are read as they lie, without a panel */
    bool is_fused;          /* the chunked form is one pass with the state in registers */
    bool fused_coordinates; /* that pass uses the matrix instructions of warpgroups */
    int fused_stages;       /* fused_coordinates: panels in shared memory */
    int fused_copies;       /* and of the state; one: it is written when all have read the one before */
} fpa_cuda_plan;

#endif

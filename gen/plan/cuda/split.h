/* plan_split: sizes of the kernels of sm_90a, whose blocks are two or three warpgroups of 4 warps
 * that multiply and one that fetches. Needs the tiles of plan_outer. */
#ifndef FPAC_GEN_PLAN_CUDA_SPLIT_H
#define FPAC_GEN_PLAN_CUDA_SPLIT_H

#include "outer.h"

enum {
    WARPGROUP_THREADS = 128,
    WARPGROUP_KERNELS = 2, /* state kernels, of blocks of several sizes */
    PACK_TOKENS = 1024,    /* of a block that packs vectors */
};

/* A state kernel, of which a block has groups x strips strips. */
typedef struct fpa_chunk_state_kernel {
    int groups; /* warpgroups that multiply */
    int strips; /* of a warpgroup */
    int slices; /* blocks of a head and block of columns */
    int stages, bytes;
    int shares; /* strips that a warpgroup's warps have side by side, so many times as many prefixes each */
    int prefix_blocks; /* of rows, that a factor of a warp's prefixes lies in: 1, or one for each prefix */
    bool own;          /* a copy of the loop for strips whose prefixes are a suffix of theirs */
    int portion;       /* products that are begun together */
    int places;        /* for a portion's features: with two, some are formed while others are multiplied */
    int clocks;        /* estimate for 16 tokens, without what chunks' ends take */
    int registers, producer_registers; /* of a thread that multiplies, and of one that fetches */
} fpa_chunk_state_kernel;

/* The kernel that packs vectors: of a tile of tokens all packed rows are in shared memory, twice. */
typedef struct fpa_pack_kernel {
    int tile;            /* tokens */
    int pitch;           /* bytes of a token */
    bool keeps_matrices; /* in shared memory; else they are read anew for each tile */
    int bytes;
} fpa_pack_kernel;

typedef struct fpa_split_plan {
    int kernels;
    fpa_chunk_state_kernel state[WARPGROUP_KERNELS]; /* the largest blocks first */
    /* queries */
    int chunk_output_groups;
    int query_tiles; /* of 64, a warpgroup */
    int query_tokens;
    int score_places; /* tiles of queries whose scores are kept at a time, 1 or 2 */
    int query_stages, tile_stages, key_stages, chunk_output_bytes;
    int chunk_output_clocks; /* estimate for 16 queries and a block of columns */
    fpa_pack_kernel pack;    /* of vectors that do not lie in memory as they are */
} fpa_split_plan;

/* Registers of a thread that multiplies, and of one that fetches, in blocks of so many warpgroups that
 * multiply: what the block's threads have at launch, shared out anew. */
int warpgroup_registers(int groups);
int warpgroup_producer_registers(int groups);
/* Columns of a block, as many tiles of 8 as a warpgroup has registers for. */
void warpgroup_columns(const struct fpa_plan *plan, int *blocks, int *tiles, int *all_tiles);
/* Warpgroups of a state kernel that multiply: three, which hide each other's waits, unless their registers
 * would hold one tile only. */
int warpgroup_count(int all_tiles);
/* Tiles of features whose sums a warpgroup can keep. */
int warpgroup_tiles(int all_tiles);
/* The estimate for queries, once the plan's chunk is known. */
void warpgroup_chunk_output_clocks(struct fpa_plan *plan);
/* Sizes of the kernel that packs vectors; false: not even a small tile fits into shared memory. */
bool plan_pack(struct fpa_plan *plan);
/* Sizes for plan->hopper, into plan->warpgroups. When they do not fit, plan->hopper.used becomes false. */
void plan_split(struct fpa_plan *plan);

#endif

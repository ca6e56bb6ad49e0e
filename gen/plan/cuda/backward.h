/* backward: sizes of the kernels of gradients, by mma.sync or fp32 FMAs from panels of packed rows, or by
 * wgmma (warpgroups). They suit the heads that split_panel suits, and use its rows. */
#ifndef FPAC_GEN_PLAN_CUDA_BACKWARD_H
#define FPAC_GEN_PLAN_CUDA_BACKWARD_H

#include "backward_cells.h"
#include "mechanism.h"

typedef struct fpa_cuda_backward_plan {
    fpa_cuda_cells cells;
    fpa_columns columns; /* columns of a state, the column of ones included */
    fpa_columns sides;   /* columns of gradients of values: a block of backward_keys each */
    int value_tiles;     /* tiles of values in shared memory: whole steps of a product */
    int warps;           /* warps of a block: fewer, with fewer tokens, if rows are many */
    int query_tiles;     /* tiles of 16 tokens of a warp of backward_queries and backward_keys */
    int query_tokens;    /* own tokens of a block */
    int shares;          /* warps that have the same own tokens, and some of the units each */
    int share_units;     /* units of a share; the last share has the rest */
    /* [shares][blocks of 8 rows] the sums that a share adds to: the first share's, or a copy of its own after
     * them */
    int *share_places, place_count;
    int *copy_blocks, copies; /* [copies] the block of rows of each copy */
    int panel;                /* tokens of a panel of others */
    int pairs;                /* others with which dots are computed at a time */
    int span;                 /* others whose gradients of dots are kept in registers */
    int group;                /* units of a tile of a state */
    int stages;               /* stages of tiles in shared memory */
    int state_places;         /* warpgroups: buffers for panels of backward_state */
    int walk_panel;           /* tokens of a panel of backward_state */
    /* backward_state with cells: pieces of a token, blocks of 8 rows and prefixes of the block that has most */
    int walk_pieces, walk_suffixes, walk_prefixes;
    /* bytes there from one row, token and token's values to the next */
    int walk_pitch, walk_raw_pitch, walk_value_pitch;
    int sum_blocks;      /* blocks of 8 rows of sums of gradients */
    int dots, *dot_sums; /* [dots] the first of these blocks of each dot */
    bool coordinates;    /* features are coordinates: rows are not packed, gradients not contracted */
    bool warpgroups;     /* and a block of warpgroups processes a chunk, panel by panel */
    /* its warpgroups in walks over queries and in backward_state: one for each slab of features */
    int walks;
    int padded_vector; /* numbers to which rows of q and k are padded, */
    /* and rows of v and d_o, by a kernel before all others; 0: rows are used as given */
    int padded_value;
    int entries; /* elements of run-time matrices of a head */
    /* tiles of 16 tokens of a warp of backward_project and backward_unproject */
    int made_tiles;
    /* bytes from one of these tokens to the next (or project_pitch, unproject_pitch) */
    int given_pitch, rows_pitch;
    int made_groups;                    /* 1: a block's four warps multiply as a warpgroup */
    int made_barriers;                  /* bytes of its barriers, which follow the ring of matrices */
    int made_moves;                     /* 1: rows that are coordinates are moved, not multiplied */
    int project_pitch, unproject_pitch; /* then bytes from token to token; backward_project has, after x, */
    int made_row_tiles;                 /* this many tiles of 8 rows made by matrices */
    /* coordinates that a lift makes: rows of a part that a warp processes at a time; bytes from a token's x,
     * sums of dx, and df of a factor to the next token's */
    int lift_rows, lift_x_pitch, lift_dx_pitch, lift_df_pitch;
    int lift_turns;              /* bytes of what rows are rotated by */
    int lift_groups;             /* 1: a block is a warpgroup (backward_lifted_groups) */
    int lift_tiles, lift_stages; /* tiles of 64 tokens of a block; stages of tiles in shared memory */
    int lift_pieces;             /* pieces of 16 bytes of all matrices, one of two parts */
    int lift_rows_pitch;         /* bytes from a token's coordinates to the next one's */
    int lift_sums;               /* sums over tokens of gradients of angles, phases, amplitudes, diagonals */
    /* bytes that a token stores for gradients of matrices; numbers among them that are operands, which come first */
    int lift_kept, lift_kept_pairs;
    int lift_sides;     /* blocks of backward_products for one strip of tokens */
    bool lift_per_head; /* each head has matrices of its own */
    /* bytes from one row of a panel, raw vector, token's values, and feature of a tile to the next */
    int query_pitch, key_pitch, raw_pitch, value_pitch, tile_pitch;
    fpa_cuda_memory state, own;   /* own: others' values are at `queries`, their raw vectors at `keys` */
    int state_blocks, own_blocks; /* on a multiprocessor at a time */
    fpa_pass_rows passes;         /* width 0: no gradient is a forward pass */
    int weights;                  /* weights of coordinates by which gathered keys are multiplied */
    double *pass_weight;          /* [weights] */
    /* factors of a product row that passes have in place of q and k (gen/plan/pairs.h), and of all of them */
    int pass_factors, pass_entries;
    int *pass_factor; /* [pass_entries] */
    /* features that passes have in place of q and k (gen/plan/feature_line.h): most factors of one, their
     * number, all factors */
    int line_factors, line_features, line_entries;
    /* [line_entries] rows of each feature's factors, right-aligned; -1 before the first one */
    int *line_factor;
    double *line_weight;            /* [line_features] weights of keys */
    int line_row_pitch, line_pitch; /* bytes from a token's rows, and its features, to the next token's */
    /* shared memory of backward_gather and backward_scatter, for product rows: bytes from one number of all
     * tokens, token's vector of product rows, and token's gradients of rows to the next */
    int formed_pair_pitch, formed_vector_pitch, formed_gradient_pitch;
    /* words of two neighbouring numbers: rows of which vectors are products, rows by which gradients are
     * multiplied, numbers of a vector that are such products */
    int formed_rows, formed_others, formed_numbers;
    int formed_kept;  /* numbers after a gathered row: formed_others, in whole pieces */
    int formed_lanes; /* lanes, two tokens each */
    bool no;          /* false: for template fields that only forward plans have */
} fpa_cuda_backward_plan;

/* Chooses plan->chunk and the crossover from the other sizes. */
void plan_backward_chunk(fpa_plan *plan, const fpa_cuda_backward_plan *back);

/* Pitches and shared memory of both kernels, back->own and back->state; the second function only for a
 * block's own tokens, after other stages or shares were chosen. */
void place_backward(const fpa_plan *plan, fpa_cuda_backward_plan *back);
void place_backward_own(const fpa_plan *plan, fpa_cuda_backward_plan *back);

/* Chooses as many shares as registers and `bytes` of shared memory allow, with their addresses.
 * allocate_backward_shares makes room for share_places and copy_blocks. */
void allocate_backward_shares(const fpa_plan *plan, arena *memory, fpa_cuda_backward_plan *back);
void choose_backward_shares(const fpa_plan *plan, fpa_cuda_backward_plan *back, int blocks, int bytes);

/* More stages of tiles of a state, as many as fit where panels of others are later. */
void add_backward_stages(const fpa_plan *plan, fpa_cuda_backward_plan *back);

/* Whether a block of backward_state packs only the rows of its own cells; then walk_panel, its sizes and
 * addresses. */
bool backward_packs_slices(const fpa_plan *plan, const fpa_cuda_backward_plan *back);
void place_backward_slices(const fpa_plan *plan, fpa_cuda_backward_plan *back);

/* Slabs of 64 numbers that hold `width` numbers. */
int backward_slabs(int width);

/* Bytes of a state at the end of a part: 16 bits a number, the normaliser's column in fp32
 * (backward_groups.cu.in). */
int backward_boundary_bytes(const fpa_head *head);

/* Blocks of backward_state on a multiprocessor at a time; `blocks` unless warps have 16-bit packed rows. */
int backward_most_walks(const fpa_plan *plan, const fpa_cuda_backward_plan *back); /* by registers */
int backward_walks_room(const fpa_plan *plan, const fpa_cuda_backward_plan *back); /* by shared memory */
int backward_state_blocks(const fpa_plan *plan, const fpa_cuda_backward_plan *back, int blocks);

/* Fills the geometry: threads, shared memory and blocks a multiprocessor of each kernel that the head has. */
void fill_backward_kernels(const fpa_plan *plan, const fpa_cuda_backward_plan *back,
                           struct fpa_cuda_geometry *g);

/* Product rows of passes: their factors, and the shared memory of a block's tokens; entries of the geometry. */
void plan_backward_formed(fpa_plan *plan, fpa_cuda_backward_plan *back);
void fill_backward_formed(const fpa_cuda_backward_plan *back, struct fpa_cuda_geometry *g);

/* Rows that are made before other kernels run: sizes, and entries of the geometry. */
void plan_backward_made(const fpa_plan *plan, fpa_cuda_backward_plan *back);
void fill_backward_made(const fpa_plan *plan, const fpa_cuda_backward_plan *back,
                        struct fpa_cuda_geometry *g);

/* The same for coordinates that a lift makes; plan_backward_lifted returns the bytes of shared memory that
 * they need, backward_lifted_entries the elements of all uses of run-time matrices. */
int plan_backward_lifted(const fpa_plan *plan, fpa_cuda_backward_plan *back);
void fill_backward_lifted(const fpa_plan *plan, const fpa_cuda_backward_plan *back,
                          struct fpa_cuda_geometry *g);
int backward_lifted_entries(const fpa_head *written);

/* Features that passes have in place of q and k: their factors, and pitches. */
void plan_backward_line(fpa_plan *plan, fpa_cuda_backward_plan *back);

extern const fpa_field cuda_backward_fields[];

#endif

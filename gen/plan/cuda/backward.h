/* backward: sizes of the kernels of gradients, by mma.sync or FMAs of fp32, from panels of packed rows. They suit what
 * split_panel does, whose rows they have. */
#ifndef FPAC_GEN_PLAN_CUDA_BACKWARD_H
#define FPAC_GEN_PLAN_CUDA_BACKWARD_H

#include "backward_cells.h"
#include "mechanism.h"

typedef struct fpa_cuda_backward_plan {
    fpa_cuda_cells cells;
    fpa_columns columns; /* of a state, with the one of ones */
    fpa_columns sides;   /* of gradients of values, which backward_keys has blocks for */
    int value_tiles;     /* of values in shared memory: whole steps of a product */
    int warps;           /* a block: fewer, so of fewer tokens, where rows are many */
    int query_tiles;     /* of 16 tokens a warp of backward_queries and backward_keys */
    int query_tokens;    /* a block: its own */
    int shares;          /* warps that have the same own tokens, each some of the units: */
    int share_units;     /* so many, the last one what is left */
    /* [shares][blocks of 8 rows] where a share's sums of a block of rows are: those of others, or behind them copies of its own */
    int *share_places, place_count;
    int *copy_blocks, copies; /* [copies] which block of rows each is of */
    int panel;                /* tokens of a panel of others */
    int pairs;                /* of them at a time */
    int span;                 /* of them whose gradients of dots are kept in registers */
    int group;                /* units in a tile of a state */
    int stages;               /* tiles on their way */
    int state_places;         /* of warpgroups: for panels of walks of states */
    int walk_panel;           /* tokens of a panel of backward_state */
    /* of its blocks that pack what their cells have, most of each: pieces of a token, blocks of 8 rows; prefixes */
    int walk_pieces, walk_suffixes, walk_prefixes;
    int walk_pitch, walk_raw_pitch,
        walk_value_pitch; /* bytes there from a row, a token, a token's values to the next */
    int sum_blocks;       /* of 8 rows whose gradients are added up */
    int dots, *dot_sums;  /* [dots] the first one of a dot's rows */
    bool coordinates;     /* features are coordinates: nothing is packed, and nothing contracted */
    bool warpgroups;      /* and blocks of warpgroups walk a chunk, panel by panel: */
    int walks;            /* of queries, or between chunks, of one for each slab of features */
    int padded_vector;    /* numbers that rows of q and k, */
    /* and rows of v and d_o are padded to by a kernel before all others; 0: rows are used as they are */
    int padded_value;
    int entries;                        /* of run-time matrices of a head */
    int made_tiles;                     /* of 16 tokens a warp of backward_project and backward_unproject, */
    int given_pitch, rows_pitch;        /* and bytes from one of them to the next; or, as below */
    int made_groups;                    /* 1: a block of four warps is a warpgroup, which multiplies; */
    int made_barriers;                  /* bytes of its barriers, which follow the ring of matrices */
    int made_moves;                     /* 1: rows that are coordinates are moved, not multiplied, */
    int project_pitch, unproject_pitch; /* of which the former has tiles of 8 rows by matrices */
    int made_row_tiles;                 /* behind what is given */
    /* of coordinates that a lift makes: rows of a part whose factors' gradients a warp has at a time; bytes from a token's x, sums of its gradient,
     * and gradients of a factor's rows to the next one's; */
    int lift_rows, lift_x_pitch, lift_dx_pitch, lift_df_pitch;
    int lift_turns;  /* bytes of what rows are turned by, of a block */
    int lift_groups; /* 1: a block is a warpgroup, which multiplies: */
    int lift_tiles,
        lift_stages; /* 64 of its tokens after the other; of so many what is read is there or on its way */
    int lift_pieces; /* of 16 bytes, of matrices in one part of 16 bits */
    int lift_rows_pitch; /* bytes from a token's coordinates to the next one's */
    int lift_sums;       /* of its tokens' gradients of numbers of a row */
    int lift_kept,
        lift_kept_pairs; /* bytes that a token keeps for learned matrices, numbers as operands first */
    int lift_sides;      /* blocks that share a strip of tokens of their gradients */
    bool lift_per_head;  /* a matrix is a head's own */
    /* bytes from a row of a panel, a token's raw vector, a token's values, a feature of a tile, to the next */
    int query_pitch, key_pitch, raw_pitch, value_pitch, tile_pitch;
    fpa_cuda_memory state, own;   /* own: others' values are at `queries`, their raw vectors at `keys` */
    int state_blocks, own_blocks; /* on a multiprocessor at a time */
    fpa_pass_rows passes;         /* width 0: no gradient is a forward pass */
    int weights;                  /* of coordinates, that gathered keys have: */
    double *pass_weight;          /* [weights] */
    int pass_factors,
        pass_entries; /* of product rows that passes have for q and k (gen/plan/pairs.h), and of all of them */
    int *pass_factor; /* [pass_entries] */
    int line_factors, line_features,
        /* of a feature that passes have for q and k (gen/plan/feature_line.h), at most; in all; of all of them */
        line_entries;
    int *line_factor;               /* [line_entries] rows, the last one last; -1 before the first one */
    double *line_weight;            /* [line_features] of keys */
    int line_row_pitch, line_pitch; /* bytes from a token's rows, and from its features, to the next one's */
    /* in shared memory of who forms and joins them: bytes from a number of all tokens to the next; from a token's vector of product rows to the next one's; from its gradients of rows */
    int formed_pair_pitch, formed_vector_pitch, formed_gradient_pitch;
    /* words of two neighbours: of rows that vectors are made of, of rows that gradients are multiplied by, of numbers of a vector that are made of rows */
    int formed_rows, formed_others, formed_numbers;
    int formed_kept;  /* numbers behind a gathered row: the second of these words, in whole pieces */
    int formed_lanes; /* two tokens each */
    bool no;          /* what only the forward pass has */
} fpa_cuda_backward_plan;

/* Fills plan->chunk and the crossover, once all else is there. */
void plan_backward_chunk(fpa_plan *plan, const fpa_cuda_backward_plan *back);

/* Pitches, and places in shared memory of both kernels, back->own and back->state; of a block's own tokens alone, for other stages. */
void place_backward(const fpa_plan *plan, fpa_cuda_backward_plan *back);
void place_backward_own(const fpa_plan *plan, fpa_cuda_backward_plan *back);

/* As many shares as registers and `bytes` of shared memory have room for; places, too. back->share_places and copy_blocks have room. */
void allocate_backward_shares(const fpa_plan *plan, arena *memory, fpa_cuda_backward_plan *back);
void choose_backward_shares(const fpa_plan *plan, fpa_cuda_backward_plan *back, int blocks, int bytes);

/* More tiles of a state on their way, where others' panels leave room for them. */
void add_backward_stages(const fpa_plan *plan, fpa_cuda_backward_plan *back);

/* Whether blocks of backward_state pack what their own cells have; then also walk_panel and its sizes, and places. */
bool backward_packs_slices(const fpa_plan *plan, const fpa_cuda_backward_plan *back);
void place_backward_slices(const fpa_plan *plan, fpa_cuda_backward_plan *back);

/* Slabs of 64 numbers that hold so many. */
int backward_slabs(int width);

/* Bytes of a state between parts of a chunk: 16 bits a number, and the last column in fp32 (backward_groups.cu.in). */
int backward_boundary_bytes(const fpa_head *head);

/* Blocks on a multiprocessor at a time of walks of states; `blocks` where warps have no packed rows of 16 bits. */
int backward_most_walks(const fpa_plan *plan, const fpa_cuda_backward_plan *back); /* by registers */
int backward_walks_room(const fpa_plan *plan, const fpa_cuda_backward_plan *back); /* by shared memory */
int backward_state_blocks(const fpa_plan *plan, const fpa_cuda_backward_plan *back, int blocks);

/* Entries of the geometry: threads, shared memory and blocks a multiprocessor of each kernel that the head has. */
void fill_backward_kernels(const fpa_plan *plan, const fpa_cuda_backward_plan *back,
                           struct fpa_cuda_geometry *g);

/* What product rows that passes have are made of, and places of a block's tokens. Entries of the geometry. */
void plan_backward_formed(fpa_plan *plan, fpa_cuda_backward_plan *back);
void fill_backward_formed(const fpa_cuda_backward_plan *back, struct fpa_cuda_geometry *g);

/* Of rows that are made before other kernels run: sizes, and entries of the geometry. */
void plan_backward_made(const fpa_plan *plan, fpa_cuda_backward_plan *back);
void fill_backward_made(const fpa_plan *plan, const fpa_cuda_backward_plan *back,
                        struct fpa_cuda_geometry *g);

/* The same of coordinates that a lift makes; bytes of shared memory that they need. Numbers of all uses of run-time matrices. */
int plan_backward_lifted(const fpa_plan *plan, fpa_cuda_backward_plan *back);
void fill_backward_lifted(const fpa_plan *plan, const fpa_cuda_backward_plan *back,
                          struct fpa_cuda_geometry *g);
int backward_lifted_entries(const fpa_head *written);

/* Of features that passes have for q and k: what each is a product of, and pitches. */
void plan_backward_line(fpa_plan *plan, fpa_cuda_backward_plan *back);

extern const fpa_field cuda_backward_fields[];

#endif

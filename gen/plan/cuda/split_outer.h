/* split_outer: the plan of the split schedule's kernels on sm_90a, by wgmma on outer tiles (outer.h): chunk_state,
 * chunk_output, pack_rows, parallel_output, chunk_contraction. A block has one to three warpgroups that multiply, and
 * one that fetches. Planned by split_outer.c with split_outer_*.c and split_contraction.c; printed by
 * templates/hopper/split_*. */
#ifndef FPAC_GEN_PLAN_CUDA_SPLIT_H
#define FPAC_GEN_PLAN_CUDA_SPLIT_H

#include "mechanism.h"
#include "outer.h"
#include "product_rows.h"

enum {
    WARPGROUP_THREADS = 128,
    WARPGROUP_KERNELS = 2, /* state kernels: chunk_state and chunk_state_small */
    /* most tiles of 8 columns of a block whose warpgroups have the sums of several tiles of features, or of queries; */
    SPLIT_MOST_COLUMNS = 16,
    SPLIT_WIDE_COLUMNS = 32, /* and of one tile: N of a wgmma is at most 256, the columns of z included */
    PACK_TOKENS = 32,        /* that a packer of vectors processes at a time */
    PRODUCT_THREADS = 256,   /* of NAME_state_product */
    SLAB_ROW = 128,          /* bytes of a token's row of a slab: 64 numbers */
    SLAB_BLOCKS = 8          /* blocks of 8 rows of a slab */
};

/* A kernel chunk_state. A block has groups x strips strips of tiles. */
typedef struct fpa_chunk_state_kernel {
    int groups;        /* warpgroups that multiply */
    int strips;        /* of a warpgroup */
    int slices;        /* blocks that divide the features of a head and block of columns */
    int slabs;         /* slabs of 64 rows of a vector that a block fetches, at most; */
    int fetched_slabs; /* summed over the slices; */
    int *slab_mask;    /* [slices] and which ones, a bit each */
    int stages, bytes;
    /* strips that a warpgroup processes at a time, by different warps: each warp has 2 * shares prefixes */
    int shares;
    int layers; /* of a warpgroup's tiles: `shares` tiles, one of each of these strips */
    /* layers for which shared memory has buffers through which copies are stored; fewer than all: one after the other */
    int leaving;
    int prefix_blocks; /* blocks of rows in which one factor of a warp's prefixes lies: 1, or one for each prefix */
    /* there is a second loop, for strips whose first suffix block has their prefixes' last factor */
    bool own;
    int portion; /* products that are committed together */
    /* steps whose suffixes are in registers: 2 if there is room and products do not hide the reads; else 1 */
    int ahead;
    /* steps whose prefixes are in registers: 2 if products are too short to hide the shuffles, and there is room; else 1 */
    int early;
    int places; /* register buffers for a portion's features: with two, features are formed while others are multiplied */
    int threads, registers, producer_registers; /* of a thread that multiplies, and of one that fetches */
} fpa_chunk_state_kernel;

/* pack_rows, which writes vectors of packed rows. A packer, one warp or two, has a tile of 32 tokens in shared
 * memory: its first rows are coordinates, which are fetched, the others are derived from these. Each block of 8 rows
 * of a vector is 8 consecutive rows of the tile, from any row on; if they are not there as such (weighted rows,
 * products, rows from several places), the block is *formed*: written to the tile first. */
typedef struct fpa_pack_kernel {
    int groups; /* warpgroups of a block */
    int warps;  /* of a packer: 1 or 2 */
    int stages; /* buffers for the coordinates of a tile: one is packed while the others are filled */
    int raw_pitch, pitch;   /* bytes of a token's coordinates, and of its derived rows */
    int chunks, chunk_rows; /* of projected rows, the first derived ones: a product computes a chunk */
    int chunk_places;       /* buffers in shared memory for the chunks' rows of matrices */
    /* all chunks stay there; else they pass through two buffers, from memory, where an earlier launch has split them */
    bool kept;
    int parts; /* numbers of 16 bits for an element of the matrices: two, or one if that has all bits, */
    /* or one of f16 in a head of bf16: tokens are then converted to f16, each scaled by a power of two */
    bool narrows;
    int chunk_bytes; /* of a chunk's rows of matrices, all parts */
    bool per_head;   /* heads have matrices of their own */
    int threads, bytes;
    int given;  /* rows of a tile that are coordinates */
    int rows;   /* of a tile in all */
    int places; /* packed rows, as fpa_cuda_rows numbers them */
    int *place; /* [places] the row of the tile that has each of these, -1: none */
    int blocks_of_vector;
    int *block;       /* [blocks_of_vector] the row of the tile that each block begins with; */
    int first_formed; /* from this row on, blocks are formed */
} fpa_pack_kernel;

/* Tokens that a warpgroup's packers process at a time, together. */
static inline int pack_tile(const fpa_pack_kernel *pack)
{
    return PACK_TOKENS * 4 / pack->warps;
}

/* A monomial of two dots in chunk_contraction: the rows of both dots, and the groups of its tiles. */
typedef struct fpa_contracted_pair {
    int first, blocks; /* of the dot of the lower rows: its first row, and its blocks of 8 rows; */
    int other_first, other_blocks; /* the same of the other dot */
    int group, end_group; /* its groups: all prefixes are rows of one dot, all suffixes of the other; */
    bool swapped;         /* the prefixes are the other dot's */
    double weight;
    int place, other_place; /* first block of each dot in the rows of its set, at whole steps of 16 rows; */
    int sum, other_sum;     /* and in a thread's sums, in blocks */
} fpa_contracted_pair;

/* Monomials that a block processes at the same time: rows g, values and the dots g.v are needed once for all of them. */
typedef struct fpa_contracted_set {
    int pair, end_pair, group, end_group; /* its monomials; their groups */
    int blocks;                           /* blocks of 8 rows whose gradients a thread sums */
    int steps;                            /* of 16 rows of all dots */
    int slabs; /* of 64 rows in shared memory: dots that follow each other in a vector do so there */
    bool holds_values, holds_queries; /* rows g, and queries, are operands in registers for all keys */
    bool written;                     /* the loop over the tiles of a group is unrolled */
} fpa_contracted_set;

/* NAME_chunk_contraction, which computes gradients of queries (gen/plan/passes.h). */
typedef struct fpa_contraction {
    int groups; /* warpgroups that multiply, 64 queries each; 0: the head has no such kernel */
    /* it contracts the state before a chunk, then pairs; else, in the parallel form, all pairs */
    bool states;
    bool held;   /* queries and rows g are operands in registers for all keys, */
    bool values; /* and there are registers for sums of scores times values, too */
    bool ones;   /* vectors have a row of ones, for features of fewer factors */
    bool turns;  /* it and the kernels of the split schedule can process tokens in reverse order */
    int keys;    /* of a stage */
    int own_stages, key_stages, tile_stages, bytes; /* own: of queries and rows g */
    int lone_key_stages; /* stages of keys in calls that read no copies, where keys have the room of tiles, too */
    int registers, producer_registers;
    /* most registers of sums and rows g beside which a thread has room for the products of two tiles */
    int two_tiles;
    /* [pair_count] if the kernel is a sum of products of two dots; none: it is a polynomial of one dot */
    fpa_contracted_pair *pairs;
    int pair_count;
    fpa_contracted_set *sets; /* [set_count] */
    int set_count;
} fpa_contraction;

/* NAME_parallel_output: the parallel form without a state, in which some warpgroups compute scores and others
 * multiply values by them. */
typedef struct fpa_parallel_output {
    int tiles; /* of 64 queries, of a block; 0: the head has no such kernel */
    int score_groups, value_groups;
    bool together; /* one tile of queries' dots are in flight while another one's scores are formed */
    /* score_stages: of each tile of queries */
    int query_stages, key_stages, value_stages, score_stages, bytes;
    int score_registers, value_registers, producer_registers;
} fpa_parallel_output;

typedef struct fpa_split_outer {
    fpa_columns columns; /* blocks are wider than those of portable kernels */
    int chunk;           /* longer than theirs: copies of the state are written while the tensor cores work */
    fpa_outer_plan outer;
    /* the plan whose rows, pieces, dots and score the kernels use: one of product rows, or NULL: the head's own */
    const fpa_plan *seen;
    int product_count, product_entries, product_weights; /* product rows; entries of the tables below */
    int first_product;                                   /* the first packed row that is a product row */
    int product_factors;                                 /* of a product row, at most; 0: there are none */
    bool products_weighted; /* some product row has a weight other than 1 on keys */
    double *product_weight; /* [8 row_blocks] on keys; 1 for other rows */
    bool queries_weighted;  /* some has one on queries */
    double *query_weight;   /* [8 row_blocks] on queries; 1 for other rows */
    bool feature_rows;      /* rows are the features, in order, from a vector's first row on */
    int *product_row; /* [8 row_blocks][product_factors] packed rows of which a vector's row is the product */
    int *dot_degree;  /* [dots] how many of the head's dots a dot is the product of */
    int monomials;    /* of the score */
    double *monomial_weight; /* [monomials] */
    int *monomial_power;     /* [monomials][dots] */
    /* the ones of z are behind values in their slab, in chunk_state, so that one product has both: in normalised
     * heads whose values leave room there. A product of few columns takes nearly as long as one of 32
     * (docs/decisions/0072-narrow-values.md) */
    bool ones_behind;
    int value_box; /* numbers of a token's values that a box brings: up to these ones, or a whole slab */
    /* columns that blocks have beyond dv, for values whose boxes begin before their rows (which lean, fused_rows.h);
     * 0: no values may lean */
    int value_room;
    bool partial_slabs; /* some block of a state kernel fetches only some slabs of a vector */
    int kernels;
    fpa_chunk_state_kernel state[WARPGROUP_KERNELS]; /* the one of larger blocks first */
    /* chunk_output */
    int output_groups; /* warpgroups that multiply */
    int output_registers, output_producer_registers;
    int query_tiles;  /* tiles of 64 queries of a warpgroup */
    int query_tokens; /* of a block */
    /* the dots of a score are computed monomial by monomial, since registers do not suffice for all at once, */
    bool dots_in_turn;
    int turn_keys; /* for so many keys at a time, 64 or 32; 0: all at once */
    /* it can store dots of outputs with given rows, and there is a kernel for products of states: for gradients of
     * gates (gen/plan/passes.h) */
    bool leaves_dots;
    int score_places; /* register buffers for scores of a tile of queries, 1 or 2 */
    int query_stages, tile_stages, key_stages, output_bytes;
    int most_key_stages; /* with those that overlap tiles, which have been read when keys are needed */
    fpa_contraction contraction;
    fpa_parallel_output parallel;
    fpa_pack_kernel pack; /* if vectors are not q and k as given */
    /* tables as templates print them */
    int *strip_tile; /* outer.strip_tile, with padding as tile number `tiles` */
    int *source;     /* [8 row_blocks] packed row of each vector row; padding is the row of zeros */
    const char **prefix_kind;
    int strip_tiles, prefixes, dots, dot_steps, powers; /* entries of tables */
} fpa_split_outer;

/* Registers of a thread that multiplies, and of one that fetches, in a block of `groups` warpgroups and a producer. A
 * block starts with 65,536 / (128 (groups + 1)) registers a thread, in steps of 8, which are then redistributed; with
 * one warpgroup each thread has all it may. */
static inline int split_registers(int groups)
{
    return groups == 3 ? 160 : 232;
}

static inline int split_producer_registers(int groups)
{
    return groups == 3 ? 32 : 40;
}

static inline int split_most_columns(const fpa_cuda_inputs *in)
{
    return in->most_columns ? in->most_columns : SPLIT_MOST_COLUMNS;
}

/* Bytes of a stage of 64 tokens: values, and so many slabs of keys. */
int split_fetched_bytes(const fpa_split_outer *split, int slabs);
/* Bytes of the ones of z for 16 tokens: a slab if they follow slabs of values, else a block of 8 columns, which only
 * chunk_state has. */
int split_ones_bytes(const fpa_plan *plan, const fpa_split_outer *split);
/* Chooses chunk_output's sizes: whether all dots of a score are computed at once or in turn, and queries of a block;
 * false: there is no room. */
bool choose_split_queries(const fpa_plan *plan, fpa_split_outer *split);
/* Fills kernel->slabs and fetched_slabs. */
void split_count_slabs(const fpa_outer_plan *outer, fpa_chunk_state_kernel *kernel);
/* Fills slab_mask of all kernels, and partial_slabs. */
void split_list_slabs(arena *memory, fpa_split_outer *split);
/* Divides the contraction's pairs into sets of at most most_sums blocks of rows, and at most most_held blocks and
 * steps together; a pair that exceeds these is a set by itself. */
void list_contracted_sets(arena *memory, fpa_contraction *c, int most_sums, int most_held);
/* Fills split->contraction, after all else: for heads whose gradients of queries it computes. */
void plan_contraction(const fpa_plan *plan, arena *memory, fpa_split_outer *split);
/* Fills split->parallel, after all else: if scores by warpgroups of their own take clearly less time. */
void plan_parallel(const fpa_plan *plan, fpa_split_outer *split);
/* Fills split->pack, after the tables; false: a tile does not fit into shared memory. */
bool plan_pack(const fpa_cuda_inputs *in, fpa_split_outer *split);
/* Fills what templates read of the score and of product rows (NULL: there are none), after split->source. */
void plan_split_products(const fpa_cuda_inputs *in, const fpa_product_rows *products, fpa_split_outer *split);
/* Plans all kernels, from the inputs' plan, which is that of `products` if not NULL. Returns NULL, or why this is not
 * possible. */
const char *plan_split_of(const fpa_cuda_inputs *in, const fpa_product_rows *products,
                          fpa_split_outer *split);

/* Tiles for which the blocks of chunk_state have room for sums. */
int split_places(const fpa_split_outer *split);
const char *plan_split_outer(const fpa_cuda_inputs *in, void *plan);
void print_split_outer(FILE *out, const fpa_plan *plan);
void geometry_split_outer(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field split_outer_fields[];

#endif

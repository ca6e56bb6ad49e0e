/* split_outer: chunk_state and chunk_output of sm_90a from outer tiles. Blocks are two or three warpgroups
 * of 4 warps that multiply and one that fetches. */
#ifndef FPAC_GEN_PLAN_CUDA_SPLIT_H
#define FPAC_GEN_PLAN_CUDA_SPLIT_H

#include "mechanism.h"
#include "outer.h"
#include "product_rows.h"

enum {
    WARPGROUP_THREADS = 128,
    WARPGROUP_KERNELS = 2, /* state kernels, of blocks of several sizes */
    /* tiles of 8, for which a warpgroup has registers beside those of several tiles of features, or of queries */
    SPLIT_MOST_COLUMNS = 16,
    SPLIT_WIDE_COLUMNS = 32, /* beside those of one, with the normaliser's: a product has no more */
    PACK_TOKENS = 32,        /* of a packer of vectors, at a time */
    PRODUCT_THREADS = 256,   /* of NAME_state_product */
    SLAB_ROW = 128,          /* bytes of 64 numbers of a token, which one box fetches */
    SLAB_BLOCKS = 8          /* of 8 of them */
};

/* A state kernel, of which a block has groups x strips strips. */
typedef struct fpa_chunk_state_kernel {
    int groups;        /* warpgroups that multiply */
    int strips;        /* of a warpgroup */
    int slices;        /* blocks of a head and block of columns */
    int slabs;         /* of 64 rows of a vector that any block fetches, */
    int fetched_slabs; /* of all blocks of a head */
    int *slab_mask;    /* [slices] and which each block does */
    int stages, bytes;
    int shares; /* strips that a warpgroup's warps have side by side, so many times as many prefixes each */
    int layers; /* of a warpgroup's tiles: `shares` of them, one of each strip that lies side by side; */
    /* layers that have room in shared memory on their way to a copy; fewer than all: one waits until another has
     * left */
    int leaving;
    int prefix_blocks; /* of rows, that a factor of a warp's prefixes lies in: 1, or one for each prefix */
    bool own;          /* a copy of the loop for strips whose prefixes are a suffix of theirs */
    int portion;       /* products that are begun together */
    /* steps whose suffixes are in registers: 2 where there is room and products do not hide the reads; else 1 */
    int ahead;
    /* steps whose prefixes are: 2 where products are too short to hide the lanes' exchange, and there is room */
    int early;
    int places; /* for a portion's features: with two, some are formed while others are multiplied */
    int threads, registers, producer_registers; /* of a thread that multiplies, and of one that fetches */
} fpa_chunk_state_kernel;

/* The kernel that packs vectors: a warpgroup has all packed rows of a tile of 64 tokens in shared memory. The first rows are coordinates, which are
 * fetched, the others are derived of them. A vector's blocks of 8 rows lie in the tile as vectors have them: rows as they come, from any row on, or
 * *formed*, of weighted rows, products, or rows that lie here and there. */
typedef struct fpa_pack_kernel {
    int groups; /* warpgroups of a block */
    int warps;  /* of a packer, which has tokens by itself: 1 or 2 */
    int stages; /* buffers for the coordinates of a tile: all but one are filled while one is packed */
    int raw_pitch, pitch;   /* bytes of a token's coordinates, and of its derived rows */
    int chunks, chunk_rows; /* of projected rows, which are the first derived ones: a product has a chunk's */
    int chunk_places;       /* for the matrices of chunks in shared memory: */
    bool kept; /* all of them; else two, and chunks come by turns, as a launch before has split them */
    int parts; /* numbers of 16 bits that an element of the matrices is: two, or one that has all of it, */
    /* or one of f16, in a head of bf16, whose tokens are f16 then by powers of two of their own */
    bool narrows;
    int chunk_bytes; /* of a chunk's rows of matrices, in all parts */
    bool per_head;   /* heads have matrices of their own */
    int threads, bytes;
    int given;  /* rows of a tile that are coordinates */
    int rows;   /* all of them */
    int places; /* numbers of place: packed rows as fpa_cuda_rows count them */
    int *place; /* row of the tile that each one is; -1: none */
    int blocks_of_vector;
    int *block;       /* [blocks_of_vector] row there that each one begins with; */
    int first_formed; /* from this one on they are formed */
} fpa_pack_kernel;

/* Tokens of a warpgroup at a time: its packers' together. */
static inline int pack_tile(const fpa_pack_kernel *pack)
{
    return PACK_TOKENS * 4 / pack->warps;
}

/* A monomial of two dots that is contracted: rows of either, and the groups of its tiles. */
typedef struct fpa_contracted_pair {
    int first, blocks; /* row that the dot of the lower rows begins with, and blocks of 8 of it; */
    int other_first, other_blocks; /* of the other dot */
    int group, end_group;          /* all of its prefixes are one dot's, all suffixes the other's: */
    bool swapped;                  /* prefixes are the other dot's */
    double weight;
    int place, other_place; /* blocks of 8: where the rows of its set have the dots, from a step of 16 on */
    int sum, other_sum;     /* and a thread's sums */
} fpa_contracted_pair;

/* Monomials that a block takes at a time: rows g, values and their dots are there once for all of them. */
typedef struct fpa_contracted_set {
    int pair, end_pair, group, end_group;
    int blocks; /* of rows, whose gradients' sums a thread has */
    int steps;  /* of 16 of dots' rows */
    int slabs;  /* of 64 numbers, that rows lie in: dots that follow each other in a vector do so there */
    bool holds_values, holds_queries; /* rows g, and queries, are operands in registers for all keys */
    bool written;                     /* tiles of a group are written out, one behind the other */
} fpa_contracted_set;

/* NAME_chunk_contraction, where gradients of queries are wanted of it (gen/plan/passes.h). */
typedef struct fpa_contraction {
    int groups;  /* warpgroups that multiply, 64 queries each; 0: the head has no such kernel */
    bool states; /* those before a chunk are contracted; else the parallel form's pairs are all */
    bool held;   /* queries and rows g are operands in registers, for all keys, */
    bool values; /* and sums of scores and values have registers, too */
    bool ones;   /* vectors have a row of ones: of features of fewer factors */
    bool turns;  /* and the split schedule: they take tokens from the last one on, too */
    int keys;    /* of a stage */
    int own_stages, key_stages, tile_stages, bytes;
    int lone_key_stages; /* in calls that read no copies, whose tiles' room keys have then */
    int registers, producer_registers;
    /* registers of sums and rows g, at most, beside which a thread has those of two tiles' products */
    int two_tiles;
    /* [pair_count], of a sum of products of two dots; none: the kernel is a square */
    fpa_contracted_pair *pairs;
    int pair_count;
    fpa_contracted_set *sets; /* [set_count] */
    int set_count;
} fpa_contraction;

/* NAME_parallel_output: the parallel form without a state, where some warpgroups make scores and others have sums of values. */
typedef struct fpa_parallel_output {
    int tiles; /* of 64 queries, of a block; 0: the head has no such kernel */
    int score_groups, value_groups;
    bool together; /* dots of one tile of queries are made while another one's scores are formed */
    int query_stages, key_stages, value_stages, score_stages,
        bytes; /* score_stages: of each tile of queries */
    int score_registers, value_registers, producer_registers;
} fpa_parallel_output;

typedef struct fpa_split_outer {
    /* wider blocks of columns than portable kernels', and longer chunks: copies of the state are written
     * while the tensor cores work */
    fpa_columns columns;
    int chunk;
    fpa_outer_plan outer;
    /* rows, pieces, dots and score that kernels are of: one of product rows, or NULL: the head's */
    const fpa_plan *seen;
    int product_count, product_entries, product_weights; /* product rows; numbers of the tables below */
    int first_product;                                   /* packed row behind the head's */
    int product_factors;                                 /* of product rows at most; 0: it has none */
    bool products_weighted;                              /* some product row is, on keys */
    double *product_weight;                              /* [8 row_blocks] of keys; 1 of other rows */
    bool queries_weighted;                               /* some product row is, on queries */
    double *query_weight;                                /* [8 row_blocks] of queries; 1 of other rows */
    bool feature_rows; /* rows are the features, in order, from a vector's first one on */
    int *product_row;  /* [8 row_blocks][product_factors] packed rows that a vector's row is the product of */
    int *dot_degree;   /* [dots] factors of the head that a dot is a product of */
    int monomials;     /* of the score */
    double *monomial_weight; /* [monomials] */
    int *monomial_power;     /* [monomials][dots] */
    /* of a normalised head whose values leave room in their slab: in chunk_state ones lie there, so that z is a part of their product: one of
     * few columns takes nearly as long as one of 32 (docs/decisions/0072-narrow-values.md) */
    bool ones_behind;
    int value_box; /* numbers of a token's values that a box has: those before such ones, or a slab's */
    /* columns that all blocks have behind those of values whose boxes may begin before them (which lean,
     * fused_rows.h); 0: none may */
    int value_room;
    bool partial_slabs; /* some block of a state kernel fetches some slabs of a vector only */
    int kernels;
    fpa_chunk_state_kernel state[WARPGROUP_KERNELS]; /* the largest blocks first */
    /* queries */
    int output_groups; /* of warpgroups */
    int output_registers, output_producer_registers;
    int query_tiles; /* of 64, a warpgroup */
    int query_tokens;
    bool dots_in_turn; /* of the score, monomial by monomial: all at once do not fit into registers */
    int turn_keys;     /* of which dots in turn are made at a time, 64 or 32 */
    /* of outputs, where a call wants them, and products of states: gradients of gates (gen/plan/passes.h) */
    bool leaves_dots;
    int score_places; /* tiles of queries whose scores are kept at a time, 1 or 2 */
    int query_stages, tile_stages, key_stages, output_bytes;
    int most_key_stages; /* with those that lie where tiles do, which are through when keys are wanted */
    fpa_contraction contraction;
    fpa_parallel_output parallel;
    fpa_pack_kernel pack; /* of vectors that do not lie in memory as they are */
    /* tables as kernels have them */
    int *strip_tile; /* as outer.strip_tile, padding as one more tile */
    int *source;     /* [8 row_blocks] row of a panel, which has a row of zeros */
    const char **prefix_kind;
    int strip_tiles, prefixes, dots, dot_steps, powers; /* numbers in tables */
} fpa_split_outer;

/* Registers of a thread that multiplies, and of one that fetches, in a block of so many warpgroups and one more, which starts with 65,536 /
 * (128 (groups + 1)) a thread, in steps of 8. Beside one warpgroup there is nothing to share out: all begin with 256. */
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

/* Of 64 tokens: values, and so many slabs of keys. */
int split_fetched_bytes(const fpa_split_outer *split, int slabs);
/* Ones of 16 tokens, by which values become z: a slab where they follow a slab of values, else a block, which queries do without. */
int split_ones_bytes(const fpa_plan *plan, const fpa_split_outer *split);
/* All dots of a pair at once, where they fit, or two after two, and as many queries a block as there is room for; false: for none. */
bool choose_split_queries(const fpa_plan *plan, fpa_split_outer *split);
/* Of a kernel's blocks: how many slabs any of them fetches, and all of a head; and of all kernels which, and whether some are partial. */
void split_count_slabs(const fpa_outer_plan *outer, fpa_chunk_state_kernel *kernel);
void split_list_slabs(arena *memory, fpa_split_outer *split);
/* The contraction's pairs, in sets of at most so many blocks of rows, and so many of these and steps together, or each by itself. */
void list_contracted_sets(arena *memory, fpa_contraction *c, int most_sums, int most_held);
/* Fills split->contraction, once all else is there: of heads that are passes of values, mostly their own. */
void plan_contraction(const fpa_plan *plan, arena *memory, fpa_split_outer *split);
/* Fills split->parallel, once all else is there: where scores are worth warpgroups of their own. */
void plan_parallel(const fpa_plan *plan, fpa_split_outer *split);
/* Fills split->pack, once the tables are there; false: a tile does not fit. */
bool plan_pack(const fpa_cuda_inputs *in, fpa_split_outer *split);
/* Fills what templates read of the score and of product rows (NULL: there are none), once split->source is there. */
void plan_split_products(const fpa_cuda_inputs *in, const fpa_product_rows *products, fpa_split_outer *split);
/* By the given plan, or one of product rows. NULL, or why it does not suit. */
const char *plan_split_of(const fpa_cuda_inputs *in, const fpa_product_rows *products,
                          fpa_split_outer *split);

/* Tiles that blocks of chunk_state have sums of. */
int split_places(const fpa_split_outer *split);
const char *plan_split_outer(const fpa_cuda_inputs *in, void *plan);
void print_split_outer(FILE *out, const fpa_plan *plan);
void geometry_split_outer(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field split_outer_fields[];

#endif

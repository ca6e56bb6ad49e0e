/* plan_fused_packed: fused_chunk of packed rows on sm_90a, for heads of some hundred features. A block walks
 * a segment of a sequence, 64 tokens (a *panel*) at a time. Each of its warpgroups has one task:
 *
 *   the first packs      raw vectors to packed rows x[row][token], a few panels ahead of the others
 *   one or two of keys   hold the state as fp32 sums; before each panel they leave a copy of it, then add
 *                        the panel's keys
 *   one to three queries read the copy and the panel's own keys, and write o
 *
 * Where sums of the state and of o are few, one warpgroup has keys and queries, and a
 * multiprocessor has two blocks: what one waits for passes while the other one goes on. */
#ifndef FPAC_GEN_PLAN_CUDA_FUSED_PACKED_H
#define FPAC_GEN_PLAN_CUDA_FUSED_PACKED_H

#include "mechanism.h"

enum {
    FUSED_TOKENS = 64, /* tokens */
    /* copies of the state: one is read while the next is written; one suffices if the same warpgroup writes and reads
     * it */
    FUSED_COPIES = 2,
    FUSED_MOST_UNITS = 32,  /* of 16 features */
    FUSED_MATRIX_ROWS = 48, /* projected rows that one matrix instruction forms, at most */
    FUSED_ROW_PITCH =
        2 * FUSED_TOKENS + 16, /* bytes from a packed row to the next: 8 of them meet in no bank */
};

/* How warpgroups share the work: registers of their threads, and how many tiles' or units' products are begun
 * together. */
typedef struct fpa_fused_share {
    int pack_registers, key_registers, query_registers; /* the last ones also where there are no queries */
    int key_together, query_together;                   /* tiles, units; 0: there are no queries */
} fpa_fused_share;

/* Sixteen packed rows as queries fetch them, a factor of the features of one unit or of several. */
typedef struct fpa_fused_fragment {
    int row[16]; /* from row_base on */
    bool one;    /* all the same row */
    bool run;    /* rows that follow each other */
    /* its first and last 8 rows are halves of others: of `low` number low_half, of `high` number high_half */
    bool halves;
    int low, low_half, high, high_half;
    int first; /* row; where it is none of these, its number among those that are looked up */
} fpa_fused_fragment;

/* A factor of a unit's features when they are made: where its fragment is, or those that its halves are of. */
typedef struct fpa_fused_factor {
    int fragment, place, high_place;
} fpa_fused_factor;

/* Into a place, a group of units before the products of `group`. */
typedef struct fpa_fused_fetch {
    int group, fragment, place;
} fpa_fused_fetch;

/* Features of queries: walk.query_together units are a group. */
typedef struct fpa_fused_queries {
    int units, factors;       /* that have features; of all of these */
    int *unit;                /* [units] in the order of their products */
    fpa_fused_factor *factor; /* [units][plan's factors] */
    int fragments, looked_up;
    fpa_fused_fragment *fragment; /* [fragments] as units first need them */
    int *looked_up_row;           /* [looked_up][16] */
    int groups, places;           /* of fragments, in registers */
    int fetches;
    fpa_fused_fetch *fetch; /* [fetches] in order */
} fpa_fused_queries;

typedef struct fpa_fused_packed {
    /* warpgroups */
    int key_groups, query_groups;   /* no queries': they are of the one that has keys */
    int blocks;                     /* on a multiprocessor */
    int copies;                     /* of the state */
    int key_tiles;                  /* of 64 features, of each warpgroup of keys */
    int total_parts, total_packers; /* for totals: warpgroups that add up, or pack, panels by turns */
    bool tasks;                     /* two warps pack, one looks at values, one fetches, each for itself */
    int near_panels;                /* of keys that a panel's queries see beside a window; 0: there is none */
    fpa_fused_share walk, totals;   /* with queries, and without */
    int slots;                      /* of features: 64 a tile */
    int *slot_feature;              /* [slots] -1: none */
    int *slot_swapped;              /* [slots] its last two factors change places */
    fpa_fused_queries queries;
    /* packed rows: those of fpa_cuda_rows from row_base on */
    bool coordinates; /* some feature or dot has coordinates as they are */
    int row_base, rows;
    int projected_first, projected; /* rows that matrices form, in the same numbers */
    int matrix_rows;                /* a matrix instruction */
    int matrix_parts;               /* matrix instructions for all of them */
    bool lifts;                     /* who packs makes coordinates, of q and k as they are given */
    int vector;     /* numbers of q and k as they come: coordinates, or what these are made of */
    int lift_bytes; /* of matrices that make them */
    /* places on their way */
    int panels, values, raw_stages;
    int outputs; /* slabs of o for the copy engine, one a warpgroup of queries; 0: its boxes are wider than a
                    block */
    /* shared memory: bytes of one of each, and from where on they lie */
    int panel_bytes, raw_bytes, value_bytes, matrix_bytes;
    int raw_row; /* of a raw vector: 128, or fewer where these hold all of it */
    int at_ones, at_outputs, at_raw_stages, at_matrix, at_copies, at_panels, at_barriers, at_part, bytes;
} fpa_fused_packed;

/* Tiles of 8 of a block's columns, of which one warpgroup of keys holds all sums. */
int fused_packed_columns(const fpa_plan *plan, const fpa_cuda_rows *rows);

/* It has the columns of the split that is chosen. */
const char *plan_fused_packed(const fpa_cuda_inputs *in, void *plan);
void print_fused_packed(FILE *out, const fpa_plan *plan);
void geometry_fused_packed(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field fused_packed_fields[];

/* The order of features, for the tiles of `fused`. */
void plan_fused_packed_slots(const fpa_plan *plan, const fpa_cuda_rows *rows, arena *memory,
                             fpa_fused_packed *fused);
/* How queries come by features that have slots. */
void plan_fused_packed_queries(const fpa_cuda_rows *rows, arena *memory, fpa_fused_packed *fused);

#endif

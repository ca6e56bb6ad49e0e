/* plan_fused_packed: fused_chunk of packed rows on sm_90a, for heads of some hundred features. A block
 * processes a segment of a sequence, 64 tokens (a *panel*) at a time. Each of its warpgroups has one task:
 *
 *     the first packs      raw vectors to packed rows x[row][token], a few panels ahead of the others
 *     one or two of keys   hold the state as fp32 sums; before each panel they write a copy of it, then add
 *                          the panel's keys
 *     one to three queries multiply the copy and the panel's own keys, and write o
 *
 * If sums of the state and of o are few, one warpgroup has keys and queries, and a multiprocessor has two
 * blocks: while one waits, the other one proceeds. */
#ifndef FPAC_GEN_PLAN_CUDA_FUSED_PACKED_H
#define FPAC_GEN_PLAN_CUDA_FUSED_PACKED_H

#include "mechanism.h"

enum {
    FUSED_TOKENS = 64, /* tokens of a panel */
    /* copies of the state: one is read while the next is written; one suffices if the same warpgroup writes and reads
     * it */
    FUSED_COPIES = 2,
    FUSED_MOST_UNITS = 32,  /* of 16 features */
    FUSED_MATRIX_ROWS = 48, /* most projected rows of one wgmma */
    FUSED_ROW_PITCH =
        2 * FUSED_TOKENS + 16, /* bytes from a packed row to the next: 8 rows use different banks */
};

/* How warpgroups share the work: registers of their threads, and the number of tiles, or units, whose
 * products are one commit group. */
typedef struct fpa_fused_share {
    int pack_registers, key_registers, query_registers; /* query_registers also if there are no queries */
    int key_together, query_together;                   /* tiles, units; 0: there are no queries */
} fpa_fused_share;

/* Sixteen packed rows as queries fetch them, a factor of the features of one unit or of several. */
typedef struct fpa_fused_fragment {
    int row[16]; /* packed rows, counted from row_base */
    bool one;    /* all the same row */
    bool run;    /* consecutive rows */
    /* its first 8 rows are half low_half of fragment `low`, its last 8 rows half high_half of `high` */
    bool halves;
    int low, low_half, high, high_half;
    int first; /* its first row; if it is none of these, its number among the fragments that are looked up */
} fpa_fused_fragment;

/* A factor of a unit's features when they are formed: the registers of its fragment, or of those whose halves
 * it is. */
typedef struct fpa_fused_factor {
    int fragment, place, high_place;
} fpa_fused_factor;

/* A fetch of a fragment into registers (a place), a group of units before the products of `group`. */
typedef struct fpa_fused_fetch {
    int group, fragment, place;
} fpa_fused_fetch;

/* Features of queries: walk.query_together units are a group. */
typedef struct fpa_fused_queries {
    int units, factors;       /* units that have features; factors of all of them */
    int *unit;                /* [units] in the order of their products */
    fpa_fused_factor *factor; /* [units][plan's factors] */
    int fragments, looked_up;
    fpa_fused_fragment *fragment; /* [fragments] in the order in which units need them */
    int *looked_up_row;           /* [looked_up][16] */
    int groups, places;           /* groups of units; places for fragments in registers */
    int fetches;
    fpa_fused_fetch *fetch; /* [fetches] in order */
} fpa_fused_queries;

typedef struct fpa_fused_packed {
    /* warpgroups */
    int key_groups, query_groups;   /* query_groups 0: the warpgroup of keys has the queries, too */
    int blocks;                     /* on a multiprocessor */
    int copies;                     /* copies of the state */
    int key_tiles;                  /* tiles of 64 features of each warpgroup of keys */
    int total_parts, total_packers; /* for totals: warpgroups that add keys, or pack, every n-th panel */
    /* two warps pack, one checks values, one fetches; none waits for another's task */
    bool tasks;
    /* panels of keys that a panel's queries see beside the state; 0: no window */
    int near_panels;
    fpa_fused_share walk, totals; /* with queries, and without */
    int slots;                    /* of features: 64 a tile */
    int *slot_feature;            /* [slots] -1: none */
    int *slot_swapped;            /* [slots] whether its last two factors are exchanged */
    fpa_fused_queries queries;
    /* packed rows: those of fpa_cuda_rows from row_base on */
    bool coordinates; /* some feature or dot uses coordinates themselves */
    int row_base, rows;
    /* rows that matrices form: the first one, counted from row_base, and how many */
    int projected_first, projected;
    int matrix_rows;  /* projected rows of one wgmma */
    int matrix_parts; /* wgmmas for all projected rows */
    bool lifts;       /* the packing warpgroup makes coordinates from q and k as given */
    int vector;       /* width of q and k as fetched: coordinates, or as given */
    int lift_bytes;   /* bytes of the matrices that make coordinates */
    /* pipeline stages */
    int panels, values, raw_stages;
    /* slabs of o for the copy engine, one a warpgroup of queries; 0: a block's columns are more than one box, or
     * a box would also have columns of the next block */
    int outputs;
    /* shared memory: bytes of one of each, and addresses */
    int panel_bytes, raw_bytes, value_bytes, matrix_bytes;
    int raw_row; /* bytes of a row of a raw slab: 128, or fewer if they hold the whole vector */
    int at_ones, at_outputs, at_raw_stages, at_matrix, at_copies, at_panels, at_barriers, at_part, bytes;
} fpa_fused_packed;

/* The number of tiles of 8 columns of a block for which one warpgroup of keys can hold all sums. */
int fused_packed_columns(const fpa_plan *plan, const fpa_cuda_rows *rows);

/* Uses the columns of the split mechanism that was chosen. */
const char *plan_fused_packed(const fpa_cuda_inputs *in, void *plan);
void print_fused_packed(FILE *out, const fpa_plan *plan);
void geometry_fused_packed(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field fused_packed_fields[];

/* Chooses the order of features in the tiles of `fused`. */
void plan_fused_packed_slots(const fpa_plan *plan, const fpa_cuda_rows *rows, arena *memory,
                             fpa_fused_packed *fused);
/* Chooses the fragments from which queries form features, and their order. */
void plan_fused_packed_queries(const fpa_cuda_rows *rows, arena *memory, fpa_fused_packed *fused);

#endif

/* plan_cluster_scan: the one-pass kernel of sm_90a whose blocks, a cluster for each sequence, take *spans* of
 * 128 tokens in turn and hand the state on. For heads whose coordinates are features (linear attention) and
 * whose state is small. Of a block's four warpgroups one adds up keys, two have the queries of a half of the
 * span each, and the last one fetches. Heads whose coordinates are made of q and k where these lie (lift_made.h) need no
 * NAME_lift_rows before: one warpgroup has all queries and another one makes coordinates ahead of it. Those of a product are made
 * by who has a half's queries, from registers: queries' stay there, and have no place. */
#ifndef FPAC_GEN_PLAN_CUDA_CLUSTER_SCAN_H
#define FPAC_GEN_PLAN_CUDA_CLUSTER_SCAN_H

#include "mechanism.h"

enum { CLUSTER_SCAN_THREADS = 4 * 128, CLUSTER_SCAN_SPAN = FPA_CUDA_SPAN };

typedef struct fpa_cluster_scan {
    int spans;          /* places for them */
    int copies;         /* of the state, for queries */
    bool outputs_apart; /* o leaves from places of its own, else its queries' */
    bool reverses;      /* it can take tokens from the last one on */
    bool sequences;     /* NAME_sequence_scan fits, too, and needs nothing of a head's own */
    bool maps;          /* q and k become coordinates where they lie, */
    bool turns;         /* by functions of the position, */
    bool product;       /* or by a matrix */
    bool makes; /* a warpgroup of its own makes them, and one has all queries; else who has queries does */
    int given;  /* slabs of q or k as they are given */
    int matrix_parts; /* of 16 bits */
    int gate_bytes;   /* of what a span's gates come to; 0: no gate */
    int key_registers, query_registers, make_registers, fetch_registers; /* of a thread */
    int sequence_key_registers, sequence_fetch_registers; /* and where lengths of sequences differ */
    int at_ones, at_outputs, at_copies, at_state, at_gates, at_barriers, at_mapped, at_looked, at_edges;
    int at_matrix, at_turns, at_positions;
    int bytes;                             /* of shared memory, */
    int at_spans, at_cuts, sequence_bytes; /* and where lengths of sequences differ */
} fpa_cluster_scan;

const char *plan_cluster_scan(const fpa_cuda_inputs *in, void *plan);
void print_cluster_scan(FILE *out, const fpa_plan *plan);
void geometry_cluster_scan(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field cluster_scan_fields[];

#endif

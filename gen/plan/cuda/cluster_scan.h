/* plan_cluster_scan: a fused kernel of sm_90a in which the blocks of a cluster process *spans* of 128 tokens in turn
 * and pass the state on from block to block. A cluster has one sequence (of one head) at a time. For heads whose
 * features are their coordinates (linear attention) and whose state is small.
 *
 * Of a block's four warpgroups one adds keys to the state, two compute the outputs of half a span's queries each,
 * and the last one fetches. Where coordinates are functions of q and k that are computed in place (lift_made.h),
 * NAME_lift_rows is not launched: one warpgroup computes coordinates and one has all queries; where they are
 * products with a matrix, the warpgroups of the queries compute them, and keep those of queries in registers. */
#ifndef FPAC_GEN_PLAN_CUDA_CLUSTER_SCAN_H
#define FPAC_GEN_PLAN_CUDA_CLUSTER_SCAN_H

#include "mechanism.h"

enum { CLUSTER_SCAN_THREADS = 4 * 128, CLUSTER_SCAN_SPAN = FPA_CUDA_SPAN };

typedef struct fpa_cluster_scan {
    int spans;          /* pipeline stages, a span each */
    int copies;         /* copies of the state for queries */
    bool outputs_apart; /* o is stored from buffers of its own, else from those of its queries */
    bool reverses;      /* the kernel can also process tokens from the last one to the first */
    bool sequences;     /* NAME_sequence_scan fits, too, and keeps no data of one head */
    bool maps;          /* q and k become coordinates in place: by maps, */
    bool turns;         /* by maps and functions of the position, */
    bool product;       /* or by maps of products with a matrix */
    /* a warpgroup of its own computes coordinates, and one has all queries; else the warpgroups of the queries
     * compute them */
    bool makes;
    int given;        /* slabs of q or k as given */
    int matrix_parts; /* of the matrix, 16 bits each */
    int gate_bytes;   /* sums and decays of a span's log-gates; 0: no gate */
    int key_registers, query_registers, make_registers, fetch_registers; /* a thread of each warpgroup */
    int sequence_key_registers, sequence_fetch_registers;                /* the same in NAME_sequence_scan */
    int at_ones, at_outputs, at_copies, at_state, at_gates, at_barriers, at_mapped, at_looked, at_edges;
    int at_matrix, at_turns, at_positions;
    int bytes;                             /* of shared memory */
    int at_spans, at_cuts, sequence_bytes; /* the same in NAME_sequence_scan */
} fpa_cluster_scan;

const char *plan_cluster_scan(const fpa_cuda_inputs *in, void *plan);
void print_cluster_scan(FILE *out, const fpa_plan *plan);
void geometry_cluster_scan(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field cluster_scan_fields[];

#endif

/* plan_relay: the one-pass kernel of sm_90a whose blocks, a cluster for each sequence, take *stretches* of
 * 128 tokens in turn and hand the state on. For heads whose coordinates are features (linear attention) and
 * whose state is small. Of a block's four warpgroups one adds up keys, two have the queries of a half of the
 * stretch each, and the last one fetches. */
#ifndef FPAC_GEN_PLAN_CUDA_RELAY_H
#define FPAC_GEN_PLAN_CUDA_RELAY_H

#include <stdbool.h>

#include "abi/cuda_call.h"

struct fpa_plan;

enum { RELAY_THREADS = 4 * 128, RELAY_STRETCH = FPA_CUDA_STRETCH };

typedef struct fpa_relay_plan {
    bool used;
    char why[96];       /* not */
    int stretches;      /* places for them */
    int copies;         /* of the state, for queries */
    bool outputs_apart; /* o leaves from places of its own, else its queries' */
    int gate_bytes;     /* of what a stretch's gates come to; 0: no gate */
    int key_registers, query_registers, fetch_registers;                        /* of a thread */
    int at_ones, at_outputs, at_copies, at_state, at_gates, at_barriers, bytes; /* shared memory */
} fpa_relay_plan;

/* Fills plan->relay. Needs plan->cuda. */
void plan_relay(struct fpa_plan *plan);

#endif

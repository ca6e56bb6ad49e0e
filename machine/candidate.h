/* candidate: one way to carry out a call, and the seconds that it takes by the model of a machine.
 *
 * A *mechanism* is a way to carry out a form on a target; a back end has a table of them. For a call of some
 * size each mechanism has candidates (in so many segments, by clusters of so many blocks), or says why it does
 * not suit. The fastest candidate is what a launch takes; `fpac explain` prints them all. */
#ifndef FPAC_MACHINE_CANDIDATE_H
#define FPAC_MACHINE_CANDIDATE_H

#include <stdbool.h>
#include <stdint.h>

/* What a call asks for, without its operands. */
typedef struct fpa_call_size {
    int form; /* FORM_PARALLEL ... of head/form.h */
    int64_t batch, length, query_heads, heads;
    /* of sequences of different lengths: how many. None is then longer than `length`; `batch` is how many of that length would
     * have all tokens (in the recurrent form: all sequences). 0: all have `length` */
    int64_t sequences;
    int64_t recent; /* recurrent form: tokens beside the state */
    bool state_in, state_out;
    /* of one length: the first token of a batch entry lies behind the last one of the entry before, in all operands */
    bool joined;
} fpa_call_size;

typedef struct fpa_cost {
    double seconds;
    const char *limit; /* what takes most: "tensor cores", "shared memory", "device memory", "waits" */
} fpa_cost;

typedef struct fpa_candidate {
    const char *mechanism; /* as the back end's table names it */
    const char *refused;   /* why it does not suit this head or call; NULL: it does, and cost is valid */
    fpa_cost cost;
    int64_t segments; /* of a sequence's walk, or blocks of a cluster, or blocks that share a head; 1 */
    int64_t blocks;   /* of the launch; 0: the call's size decides */
    int variant;      /* the mechanism's own: which of its kernels, overlapped or not */
    /* cluster_scan: of fused_chunk, which is launched where boxes cannot be; 0: nobody has looked */
    int64_t fused_segments;
} fpa_candidate;

#endif

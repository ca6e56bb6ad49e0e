/* candidate: one way to compute a call, and its predicted seconds.
 *
 * A *mechanism* is a set of kernels that computes a form on a target; a back end has a table of them. For a call of some size each
 * mechanism has candidates (in a number of segments, by clusters of a number of blocks), or a reason why it does not apply. A launch uses
 * the fastest candidate; `fpac explain` prints them all. */
#ifndef FPAC_MACHINE_CANDIDATE_H
#define FPAC_MACHINE_CANDIDATE_H

#include <stdbool.h>
#include <stdint.h>

/* The size of a call, without its operands. */
typedef struct fpa_call_size {
    int form; /* FORM_PARALLEL ... of head/form.h */
    int64_t batch, length, query_heads, heads;
    /* number of sequences of a packed batch, of at most `length` tokens each; `batch` is then the number of sequences of that length that
     * have as many tokens in total (in the recurrent form: the number of sequences). 0: all have `length` tokens */
    int64_t sequences;
    int64_t recent; /* recurrent form: tokens that the state lacks */
    bool state_in, state_out;
    /* if all have one length: in all operands, each batch entry's first token directly follows the last one of the entry before */
    bool joined;
} fpa_call_size;

typedef struct fpa_cost {
    double seconds;
    /* what takes the largest part: "tensor cores", "shared memory", "device memory", "waits" */
    const char *limit;
} fpa_cost;

typedef struct fpa_candidate {
    const char *mechanism; /* its name in the back end's table */
    const char *refused;   /* why it does not apply to this head or call; NULL: it does, and cost is valid */
    fpa_cost cost;
    /* segments of a sequence, or blocks of a cluster, or blocks that share a head; 1: none of these */
    int64_t segments;
    int64_t blocks; /* blocks of the launch; 0: the call's size decides */
    int variant;    /* chosen by the mechanism: which of its kernels, overlapped or not */
    /* cluster_scan: segments of fused_chunk, which is launched instead if the copy engine cannot fetch the operands; 0: not known */
    int64_t fused_segments;
} fpa_candidate;

#endif

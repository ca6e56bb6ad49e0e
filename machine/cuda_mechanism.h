/* cuda_mechanism: the ways of CUDA modules to carry out a form, by name, and which of them suit a call. */
#ifndef FPAC_MACHINE_CUDA_MECHANISM_H
#define FPAC_MACHINE_CUDA_MECHANISM_H

#include "abi/cuda_kernels.h"
#include "candidate.h"

/* What fpa_candidate says of each: segments are those of a sequence, the blocks of its cluster
 * (cluster_scan), or the blocks that share a head (decode, decode_resident, decode_recent). */
typedef enum cuda_mechanism {
    MECHANISM_SPLIT, /* chunk_state, chunk_output; the variant is of SPLIT_SMALL, SPLIT_OVERLAPPED */
    MECHANISM_FUSED_CHUNK, /* one kernel, behind the totals of segments if there are several; the variant is FUSED_AHEAD or 0 */
    MECHANISM_CLUSTER_SCAN,
    MECHANISM_DECODE,
    MECHANISM_DECODE_RESIDENT,
    MECHANISM_DECODE_RECENT,
    MECHANISMS
} cuda_mechanism;

static const char *const cuda_mechanism_names[MECHANISMS] = {
    [MECHANISM_SPLIT] = "split",
    [MECHANISM_FUSED_CHUNK] = "fused_chunk",
    [MECHANISM_CLUSTER_SCAN] = "cluster_scan",
    [MECHANISM_DECODE] = "decode",
    [MECHANISM_DECODE_RESIDENT] = "decode_resident",
    [MECHANISM_DECODE_RECENT] = "decode_recent",
};

/* The mechanism of a candidate; MECHANISMS: it is none of these. */
cuda_mechanism cuda_mechanism_of(const fpa_candidate *candidate);

/* What split's fpa_candidate.variant says. */
enum {
    SPLIT_SMALL = 1,      /* keys are walked by NAME_chunk_state_small */
    SPLIT_OVERLAPPED = 2, /* queries are read beside the walk, in one segment */
};

/* What fused_chunk's says. */
enum {
    FUSED_AHEAD_LEAST = 3, /* segments: the first, one whose total is made, and the last */
    /* first segments, which are short, are walked with their queries beside the totals of others */
    FUSED_AHEAD = 1,
};

/* What cluster_scan's says. */
enum {
    /* sequences of one length are dealt to fewer clusters, fpa_candidate.blocks in all: NAME_sequence_scan */
    SCAN_SHARED = 1,
    /* likewise, each sequence to one cluster; they need not have one length. Of an ordinary call NAME_cluster_scan */
    SCAN_WHOLE = 2,
};

/* Whether a launch can have it: it is of the call's form, and the module has its kernels. NULL, or why not.
 * What it costs, and whether there is room for all of its blocks at a time, is not asked. */
const char *cuda_refusal(const struct fpa_cuda_geometry *geometry, const fpa_call_size *size,
                         const fpa_candidate *candidate);

#endif

/* cuda_mechanism: the mechanisms of CUDA modules by name, and which of them apply to a call. */
#ifndef FPAC_MACHINE_CUDA_MECHANISM_H
#define FPAC_MACHINE_CUDA_MECHANISM_H

#include "abi/cuda_kernels.h"
#include "candidate.h"

/* The mechanisms. fpa_candidate.segments is the number of a sequence's segments, or of blocks of its cluster (cluster_scan), or of blocks
 * that share a head (decode, decode_resident, decode_recent). */
typedef enum cuda_mechanism {
    MECHANISM_SPLIT, /* chunk_state, chunk_output; variant: bits SPLIT_SMALL, SPLIT_OVERLAPPED */
    MECHANISM_FUSED_CHUNK, /* one kernel, after the totals of segments if there are several; variant: FUSED_AHEAD or 0 */
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

/* The mechanism of a candidate; MECHANISMS: none of these. */
cuda_mechanism cuda_mechanism_of(const fpa_candidate *candidate);

/* Bits of fpa_candidate.variant of split. */
enum {
    SPLIT_SMALL = 1,      /* NAME_chunk_state_small walks the keys */
    SPLIT_OVERLAPPED = 2, /* queries run at the same time as the walk, in one segment */
};

/* The variant of fused_chunk. */
enum {
    FUSED_AHEAD_LEAST = 3, /* the fewest segments: the first, one whose total is computed, and the last */
    /* first segments, which are shorter, are computed with their outputs at the same time as the totals of others */
    FUSED_AHEAD = 1,
};

/* Variants of cluster_scan. */
enum {
    /* fewer clusters, of fpa_candidate.blocks blocks in total, share the spans of sequences of one length: NAME_sequence_scan */
    SCAN_SHARED = 1,
    /* likewise, but each sequence is processed by one cluster, and lengths may differ; in an ordinary call by NAME_cluster_scan */
    SCAN_WHOLE = 2,
};

/* NULL if a launch can use the candidate, since it computes the call's form and the module has its kernels; otherwise the reason.
 * Considers neither cost, nor whether its blocks fit on the GPU at a time. */
const char *cuda_refusal(const struct fpa_cuda_geometry *geometry, const fpa_call_size *size,
                         const fpa_candidate *candidate);

#endif

/* cuda_candidates: the ways in which a CUDA module can carry a call out, and the fastest of them.
 *
 * Given: the kernels' constants, the GPU's room for them, the size of a call. Gives: every mechanism's
 * candidates with their seconds, or why it does not suit. Pure functions: the generator, a launch and
 * `fpac explain` get the same answers. */
#ifndef FPAC_MACHINE_CUDA_CANDIDATES_H
#define FPAC_MACHINE_CUDA_CANDIDATES_H

#include "cuda_division.h"

/* What fpa_candidate says of each: segments are those of a sequence, the blocks of its cluster
 * (cluster_scan), or the blocks that share a head (decode, decode_resident, decode_recent). */
typedef enum cuda_mechanism {
    MECHANISM_SPLIT,       /* chunk_state, chunk_output; the variant is of SPLIT_SMALL, SPLIT_OVERLAPPED */
    MECHANISM_FUSED_CHUNK, /* one kernel, behind the totals of segments if there are several */
    MECHANISM_CLUSTER_SCAN,
    MECHANISM_DECODE,
    MECHANISM_DECODE_RESIDENT,
    MECHANISM_DECODE_RECENT,
    CUDA_MECHANISMS
} cuda_mechanism;

static const char *const cuda_mechanism_names[CUDA_MECHANISMS] = {
    [MECHANISM_SPLIT] = "split",
    [MECHANISM_FUSED_CHUNK] = "fused_chunk",
    [MECHANISM_CLUSTER_SCAN] = "cluster_scan",
    [MECHANISM_DECODE] = "decode",
    [MECHANISM_DECODE_RESIDENT] = "decode_resident",
    [MECHANISM_DECODE_RECENT] = "decode_recent",
};

/* The mechanism of a candidate; CUDA_MECHANISMS: it is none of these. */
cuda_mechanism cuda_mechanism_of(const fpa_candidate *candidate);

/* Each mechanism's candidates, or one that says why it is refused. Returns how many there are; the first
 * `most` of them are in out. */
int cuda_candidates(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                    const fpa_call_size *size, fpa_candidate *out, int most);

/* The one of these that takes the least seconds. False: none suits. Allocates nothing. */
bool cuda_fastest(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                  const fpa_call_size *size, fpa_candidate *best);

/* Segments of the fastest candidate of fused_chunk. */
int64_t cuda_fused_segments(const cuda_task *task);

/* Whether a launch can have it: it is of the call's form, and the module has its kernels. NULL, or why not.
 * What it costs, and whether there is room for all of its blocks at a time, is not asked. */
const char *cuda_refusal(const struct fpa_cuda_geometry *geometry, const fpa_call_size *size,
                         const fpa_candidate *candidate);

#endif

/* cuda_estimate: seconds that CUDA kernels take for a candidate: one function a mechanism, and no other
 * arithmetic of costs anywhere. */
#ifndef FPAC_MACHINE_CUDA_ESTIMATE_H
#define FPAC_MACHINE_CUDA_ESTIMATE_H

#include "cuda_division.h"
#include "cuda_mechanism.h"

/* What candidates of split have in common, of which a launch compares hundreds: launches before the walk, the queries
 * behind it, a pass over all copies. */
typedef struct cuda_split_common {
    fpa_cost before, output, copies;
} cuda_split_common;
cuda_split_common cuda_split_common_of(const cuda_task *task);

/* candidate->blocks: overlapped only. */
fpa_cost cuda_estimate_split(const cuda_task *task, const cuda_split_common *common,
                             const fpa_candidate *candidate);

/* Blocks of an overlapped walk: as few as keep up with the queries. 0: the GPU has no room for as many as
 * must run at a time. */
int64_t cuda_overlapped_blocks(const cuda_task *task, bool small);

/* Of so many those with which each block has the same heads of all sequences: what they have to walk is equal, whatever the lengths. */
int64_t cuda_even_blocks(const cuda_task *task, bool small, int64_t blocks);

fpa_cost cuda_estimate_fused(const cuda_task *task, const fpa_candidate *candidate);

/* A walk for a segment's totals over one of it with queries, where nothing else is on the multiprocessor: 1 where it
 * takes as long. */
double cuda_total_ratio(const cuda_task *task);

/* A first segment's share of the sequence, when NAME_fused_chunk walks it in so many. */
double cuda_first_share(const cuda_task *task, int64_t segments);

fpa_cost cuda_estimate_cluster_scan(const cuda_task *task, const fpa_candidate *candidate);

/* The recurrent form. */
fpa_cost cuda_estimate_decode(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                              const fpa_call_size *size, const fpa_candidate *candidate);
fpa_cost cuda_estimate_decode_resident(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                                       const fpa_call_size *size, const fpa_candidate *candidate);

#endif

/* cuda_estimate: seconds of a candidate by the model, one function for each mechanism; no other code computes costs of candidates. */
#ifndef FPAC_MACHINE_CUDA_ESTIMATE_H
#define FPAC_MACHINE_CUDA_ESTIMATE_H

#include "cuda_division.h"
#include "cuda_mechanism.h"

/* The parts common to all candidates of split, computed once since a launch compares hundreds: launches before the walk, queries after
 * it, a pass over all copies. */
typedef struct cuda_split_common {
    fpa_cost before, output, copies;
} cuda_split_common;
cuda_split_common cuda_split_common_of(const cuda_task *task);

/* candidate->blocks matters only for overlapped candidates. */
fpa_cost cuda_estimate_split(const cuda_task *task, const cuda_split_common *common,
                             const fpa_candidate *candidate);

/* Blocks of an overlapped walk: the fewest that keep up with the queries. 0: the GPU does not have room for the blocks that must run at a
 * time. */
int64_t cuda_overlapped_blocks(const cuda_task *task, bool small);

/* The largest number of blocks up to `blocks` with which each block has the same heads of all sequences, and so equal work, whatever the
 * lengths. */
int64_t cuda_even_blocks(const cuda_task *task, bool small, int64_t blocks);

fpa_cost cuda_estimate_fused(const cuda_task *task, const fpa_candidate *candidate);

fpa_cost cuda_estimate_cluster_scan(const cuda_task *task, const fpa_candidate *candidate);

/* The recurrent form. */
fpa_cost cuda_estimate_decode(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                              const fpa_call_size *size, const fpa_candidate *candidate);
fpa_cost cuda_estimate_decode_resident(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                                       const fpa_call_size *size, const fpa_candidate *candidate);

#endif

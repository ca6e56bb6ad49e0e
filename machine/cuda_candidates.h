/* cuda_candidates: the ways in which a CUDA module can carry a call out, and the fastest of them.
 *
 * Given: the kernels' constants, the GPU's room for them, the size of a call. Gives: every mechanism's
 * candidates with their seconds, or why it does not suit. Pure functions: the generator, a launch and
 * `fpac explain` get the same answers. */
#ifndef FPAC_MACHINE_CUDA_CANDIDATES_H
#define FPAC_MACHINE_CUDA_CANDIDATES_H

#include "cuda_division.h"
#include "cuda_mechanism.h"

/* Each mechanism's candidates, or one that says why it is refused. Returns how many there are; the first
 * `most` of them are in out. */
int cuda_candidates(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                    const fpa_call_size *size, fpa_candidate *out, int most);

/* The one of these that takes the least seconds. False: none suits. Allocates nothing. */
bool cuda_fastest(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                  const fpa_call_size *size, fpa_candidate *best);

/* The same among those of fused_chunk whose segments are alike, in the chunked form: from the last token on, too. */
bool cuda_fastest_fused(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                        const fpa_call_size *size, fpa_candidate *best);

/* The same among those of cluster_scan. */
bool cuda_fastest_cluster_scan(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                               const fpa_call_size *size, fpa_candidate *best);

/* Segments of the fastest candidate of fused_chunk. */
int64_t cuda_fused_segments(const cuda_task *task);

/* How a piece's keys are walked where copies of states are kept until its state before is known, and then brought up to date and read:
 * the tokens of a chunk, too, of which long ones leave fewer copies. size: of the walk. False: there is no kernel for it. */
bool cuda_fastest_walk(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                       const fpa_call_size *size, fpa_candidate *best, int64_t *chunk);

#endif

/* cuda_candidates: the candidates of a CUDA module for a call, and the fastest of them. From the kernels' constants, the GPU's room for
 * them, and the size of a call: every mechanism's candidates with their seconds, or why it does not apply. Pure functions: the generator,
 * a launch and `fpac explain` get the same results. */
#ifndef FPAC_MACHINE_CUDA_CANDIDATES_H
#define FPAC_MACHINE_CUDA_CANDIDATES_H

#include "cuda_division.h"
#include "cuda_mechanism.h"

/* Lists each mechanism's candidates, or one with the reason why it is refused. Returns their number; the first `most` are stored in out. */
int cuda_candidates(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                    const fpa_call_size *size, fpa_candidate *out, int most);

/* The candidate with the least seconds. False: no mechanism applies. Allocates nothing. */
bool cuda_fastest(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                  const fpa_call_size *size, fpa_candidate *best);

/* The same among those of fused_chunk with segments of equal length, in the chunked form; also for reversed order of tokens. */
bool cuda_fastest_fused(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                        const fpa_call_size *size, fpa_candidate *best);

/* The same among those of cluster_scan. */
bool cuda_fastest_cluster_scan(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                               const fpa_call_size *size, fpa_candidate *best);

/* Segments of the fastest candidate of fused_chunk. */
int64_t cuda_fused_segments(const cuda_task *task);

/* The fastest walk of a piece's keys (cuda_piece), whose copies of states are kept, then updated by the state before the piece, and read
 * by queries. Chooses the tokens of a chunk, too, since longer chunks have fewer copies. size: of the walk. False: there is no kernel for
 * it. */
bool cuda_fastest_walk(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                       const fpa_call_size *size, fpa_candidate *best, int64_t *chunk);

#endif

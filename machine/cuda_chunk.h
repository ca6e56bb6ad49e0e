/* cuda_chunk: what tokens between copies of the state cost, by the counts of chunk_state and chunk_output. */
#ifndef FPAC_MACHINE_CUDA_CHUNK_H
#define FPAC_MACHINE_CUDA_CHUNK_H

#include <stdint.h>

#include "abi/cuda_kernels.h"
#include "gpu.h"

/* Seconds of a token and head on a GPU that many sequences fill: longer chunks have fewer copies to write and read, and
 * more pairs of tokens to score. */
double cuda_chunk_seconds(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int chunk);

/* The same by scores alone, of so many tokens before it, by blocks of so many warps; and what packing a query and a key takes by `warps` a
 * multiprocessor. */
double cuda_score_seconds(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int warps,
                          double tokens);
double cuda_pack_seconds(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int warps);

/* Tokens, at most, of a last chunk for which a copy of the state takes longer than the scores of its queries with one chunk of keys more. */
int64_t cuda_tail_tokens(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int64_t chunk);

/* Tokens, at most, of a sequence whose scores with all of its keys take no longer than chunks and copies of the state do. */
int64_t cuda_whole_tokens(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int64_t chunk);

#endif

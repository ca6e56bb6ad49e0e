/* cuda_chunk: the cost of a token by the length of chunks, from the counts of chunk_state and chunk_output. */
#ifndef FPAC_MACHINE_CUDA_CHUNK_H
#define FPAC_MACHINE_CUDA_CHUNK_H

#include <stdint.h>

#include "abi/cuda_kernels.h"
#include "gpu.h"

/* Seconds of a token and head on a GPU filled with many sequences: longer chunks have fewer copies of the state to write and read, and
 * more pairs of tokens to score. */
double cuda_chunk_seconds(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int chunk);

/* The same by scores alone, with `tokens` tokens before it, by blocks of `warps` warps; and the seconds of packing a query and a key,
 * with `warps` warps on a multiprocessor. */
double cuda_score_seconds(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int warps,
                          double tokens);
double cuda_pack_seconds(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int warps);

/* The most tokens of a last chunk for which a copy of the state takes longer than scores of its queries with the keys of one more chunk. */
int64_t cuda_tail_tokens(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int64_t chunk);

/* The most tokens of a sequence for which scores with all keys take no longer than chunks and copies of the state. */
int64_t cuda_whole_tokens(const fpa_gpu *gpu, const struct fpa_cuda_geometry *geometry, int64_t chunk);

#endif

/* launch_maps: the driver's descriptions of q, k and v, from which the copy engine fetches. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_MAPS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_MAPS_H

#include "grid.h"

/* Describe the queries, keys (rows of geometry.vector_rows numbers) and values of a call. What it cannot
 * describe, because an address or a stride is no multiple of 16 bytes or the driver is too old, is left
 * out, and the kernels fetch it by threads: the same bytes, slower. */
void cuda_fill_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps);

/* The same for NAME_fused_chunk, which takes vectors as they come, and stores o; where geometry.fused_unpadded is 2 and this is wanted, of all
 * heads' rows as one where they can be described as nothing else. */
void cuda_fill_fused_maps(cuda_queue *q, const struct fpa_cuda_call *call, bool joins,
                          struct fpa_cuda_maps *maps);

/* The same of sequences of different lengths: boxes of batch entry e end before token e of all, where a sequence ends, whose last token is the entry's last. */
void cuda_fill_ended_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps);

/* The same for NAME_sequence_scan: maps whose boxes end with a sequence. */
void cuda_fill_sequence_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps);

/* The same for NAME_chunk_contraction, which takes call->dot_rows, too, and nothing by threads. */
void cuda_fill_contraction_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps);

/* Whether a tensor of 16-bit numbers can be described: addresses and strides are multiples of 16 bytes. */
bool cuda_can_describe(const void *base, const long long *stride, long long heads, long long tokens,
                       long long batch);

/* Whether rows of all heads of a token can be described as one, where one head's alone cannot: heads begin amid 16 bytes, tokens do not. */
bool cuda_can_join(const void *base, const long long *stride, int width, long long heads, long long tokens,
                   long long batch);

/* Whether all of q, k, v and o can. */
bool cuda_describes(const struct fpa_launch *launch);

#endif

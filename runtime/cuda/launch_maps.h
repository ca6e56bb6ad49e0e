/* launch_maps: tensor maps of q, k, v and o, by which the copy engine (TMA) fetches and stores. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_MAPS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_MAPS_H

#include "grid.h"

/* Describes queries, keys (rows of geometry.vector_rows numbers) and values of a call. A tensor that cannot be described, because an
 * address or a stride is no multiple of 16 bytes or the driver is too old, is omitted, and kernels fetch it by threads, more slowly. */
void cuda_fill_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps);

/* The same for NAME_fused_chunk, which reads vectors as given and stores o. joins: if geometry.fused_unpadded is 2, rows of all heads may
 * be described as one if they cannot be described otherwise. */
void cuda_fill_fused_maps(cuda_queue *q, const struct fpa_cuda_call *call, bool joins,
                          struct fpa_cuda_maps *maps);

/* The same for packed batches: boxes of batch entry e end before token e of all, where a sequence ends, whose last token is the entry's
 * last. */
void cuda_fill_ended_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps);

/* The same for NAME_sequence_scan: maps whose boxes end with a sequence. */
void cuda_fill_sequence_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps);

/* The same for NAME_chunk_contraction, which also reads call->dot_rows and fetches nothing by threads. */
void cuda_fill_contraction_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps);

/* Whether a tensor of 16-bit numbers can be described: addresses and strides are multiples of 16 bytes. */
bool cuda_can_describe(const void *base, const long long *stride, long long heads, long long tokens,
                       long long batch);

/* Whether rows of all heads of a token can be described as one row, if a head's own cannot: tokens begin at multiples of 16 bytes, heads
 * do not. */
bool cuda_can_join(const void *base, const long long *stride, int width, long long heads, long long tokens,
                   long long batch);

/* Whether all of q, k, v and o can be described. */
bool cuda_describes(const struct fpa_launch *launch);

#endif

/* launch_decode: the recurrent form on a GPU: one launch of NAME_decode, and one of NAME_split_reduction when
 * several blocks share a head. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_DECODE_H
#define FPAC_RUNTIME_CUDA_LAUNCH_DECODE_H

#include "grid.h"

/* Bytes of workspace; parts of o when blocks share a head, the running state when there are several tokens.
 */
size_t decode_workspace(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const fpa_candidate *candidate);

/* Put the recurrent form into the stream. */
void decode_forward(cuda_queue *q, const fpa_candidate *candidate);

#endif

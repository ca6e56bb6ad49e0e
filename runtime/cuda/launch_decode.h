/* launch_decode: the recurrent form on a GPU: a launch of NAME_decode or one of its variants, and one of NAME_split_reduction if several
 * blocks share a head and do not add up o themselves. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_DECODE_H
#define FPAC_RUNTIME_CUDA_LAUNCH_DECODE_H

#include "grid.h"

/* Bytes of workspace: parts of o if blocks share a head, the running state if there are several tokens. */
size_t decode_workspace(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const fpa_candidate *candidate);

/* Launches the recurrent form. */
void decode_forward(cuda_queue *q, const fpa_candidate *candidate);

#endif

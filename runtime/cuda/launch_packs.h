/* launch_packs: NAME_pack_rows, before kernels that read vectors of a head's rows. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PACKS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PACKS_H

#include "grid.h"
#include "sizes.h"

/* Replaces the keys or queries of the call by packed ones. */
void cuda_take_packed(const cuda_queue *q, struct fpa_cuda_call *call, void *vectors, bool queries);

/* Pack keys into s->keys and queries into s->queries, places of the workspace; s->call has them in the place of those that were given
 * then. */
void cuda_launch_packs(cuda_queue *q, cuda_sizes *s);

#endif

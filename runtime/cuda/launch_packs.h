/* launch_packs: NAME_pack_rows, before kernels that read vectors of a head's rows. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PACKS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PACKS_H

#include "grid.h"
#include "sizes.h"

/* Tiles of packed rows of a head of a sequence; in packed batches of a head of all sequences. */
int64_t cuda_panel_tiles(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* Replaces the keys or queries of the call by packed ones. */
void cuda_take_packed(const cuda_queue *q, struct fpa_cuda_call *call, void *vectors, bool queries);

/* Launches packing of keys into s->keys and of queries into s->queries, in the workspace; s->call then has these in place of k and q. */
void cuda_launch_packs(cuda_queue *q, cuda_sizes *s);

#endif

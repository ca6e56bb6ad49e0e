/* launch_packs: NAME_pack_rows, before kernels that read vectors of a head's rows. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PACKS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PACKS_H

#include "module.h"
#include "sizes.h"

/* Packed keys or queries in the place of those that were given. */
void cuda_take_packed(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                      struct fpa_cuda_call *call, void *vectors, bool queries);

/* Pack keys into s->keys and queries into s->queries, places of the workspace; s->call has them in the place of those that were given
 * then. DEVICE when the driver refuses. */
fpa_status cuda_launch_packs(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                             cuda_sizes *s, CUstream stream, fpa_error *error);

#endif

/* grid: one kernel into a stream. */
#ifndef FPAC_RUNTIME_CUDA_GRID_H
#define FPAC_RUNTIME_CUDA_GRID_H

#include "module.h"

enum { CUDA_WEIGHTS = 256 }; /* run-time matrices of a head, at most (plan_cuda.h) */

typedef struct fpa_cuda_grid {
    cuda_kernel kernel;
    int64_t blocks;
    const void
        *maps; /* fpa_cuda_maps, or of gradients fpa_cuda_backward: the second parameter, before the run-time
                         matrices; NULL: none */
    int64_t bytes; /* of dynamic shared memory, where they are not the geometry's; else 0 */
} fpa_cuda_grid;

/* Batch and tokens of the tensors: sequences of different lengths are one batch. */
static inline int64_t cuda_batch(const struct fpa_launch *launch)
{
    return launch->cu_seqlens ? 1 : launch->batch;
}

static inline int64_t cuda_tokens(const struct fpa_launch *launch)
{
    return !launch->cu_seqlens ? launch->length : launch->recent ? launch->batch : launch->total;
}

/* How many more there are of keys. Packed recent tokens have one query a sequence, so that there may be fewer, too. */
static inline int64_t cuda_recent(const struct fpa_launch *launch)
{
    return launch->cu_seqlens && launch->recent ? launch->total - launch->batch : launch->recent;
}

/* The operands of a launch as kernels take them; sizes and parts of the workspace are left alone. */
void cuda_fill_call(const struct fpa_launch *launch, struct fpa_cuda_call *call);

/* Make the batch one entry, in which sequences of call->longest tokens lie one behind the other, of a call whose size is `joined`. q, k, v and o
 * are asked again, since packed and padded rows may have taken their places. False: they do not. */
bool cuda_join_batch(struct fpa_cuda_call *call);

/* Put one kernel into the stream. UNSUPPORTED: more blocks than a launch can have. */
fpa_status cuda_launch(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid,
                       const struct fpa_launch *launch, const struct fpa_cuda_call *call, CUstream stream,
                       fpa_error *error);

/* The same for a kernel that may start before the stream's last one is through, if that calls launch_next(),
 * and waits for what it needs of it by itself: by wait_for_last(), or NAME_chunk_output by counters. cluster:
 * 1, or at most cuda->room.decode_cluster: the grid is [blocks / cluster][cluster] then, and each row of it one
 * cluster.
 */
fpa_status cuda_launch_next(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, int cluster,
                            const struct fpa_launch *launch, const struct fpa_cuda_call *call,
                            CUstream stream, fpa_error *error);

/* The same behind something that is no kernel, a memset: it waits for that by itself. */
fpa_status cuda_launch_clusters(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, int cluster,
                                const struct fpa_launch *launch, const struct fpa_cuda_call *call,
                                CUstream stream, fpa_error *error);

/* INVALID: the calling thread's context is another device's, or none: the kernels do not exist there. */
fpa_status cuda_check_context(const struct fpa_cuda_module *cuda, fpa_error *error);

/* UNSUPPORTED: the grid has more blocks than a launch can have. */
fpa_status cuda_check_grid(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, fpa_error *error);

#endif

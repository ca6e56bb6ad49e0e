/* grid: one kernel into a stream. */
#ifndef FPAC_RUNTIME_CUDA_GRID_H
#define FPAC_RUNTIME_CUDA_GRID_H

#include "module.h"

enum { CUDA_WEIGHTS = 256 }; /* run-time matrices of a head, at most (plan_cuda.h) */

/* The launches of one call, in one stream. The first error is kept and all later launches are skipped, so that a
 * caller of several need check only once. */
typedef struct cuda_queue {
    const struct fpa_cuda_module *cuda;
    const struct fpa_launch *launch; /* with the run-time matrices that kernels take */
    CUstream stream;
    fpa_error *error;
    fpa_status status;
} cuda_queue;

typedef struct cuda_grid {
    cuda_kernel kernel;
    int64_t blocks;
    /* fpa_cuda_maps, or of gradients fpa_cuda_backward: the second parameter, before the run-time matrices; NULL: none */
    const void *maps;
    /* 0, or at most cuda->room.decode_cluster: the grid is [blocks / cluster][cluster] then, and each row of it one cluster */
    int cluster;
    /* The kernel may start before the stream's last one is through, if that calls launch_next(), and waits for what it needs of it by
     * itself: by wait_for_last(), or NAME_chunk_output by counters. */
    bool next;
    int64_t bytes; /* of dynamic shared memory, where they are not the geometry's; else 0 */
} cuda_grid;

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

/* Blocks of a kernel that the GPU has at a time. */
static inline int64_t cuda_room_for(const struct fpa_cuda_module *cuda, cuda_kernel kernel)
{
    const int resident = cuda->room.occupancy[kernel];
    return (int64_t)cuda->room.multiprocessors * (resident > 0 ? resident : 1);
}

/* Put one kernel into the stream; none of no blocks. UNSUPPORTED: more blocks than a launch can have. */
void cuda_launch(cuda_queue *q, cuda_kernel kernel, int64_t blocks, const void *maps,
                 const struct fpa_cuda_call *call);
void cuda_launch_grid(cuda_queue *q, const cuda_grid *grid, const struct fpa_cuda_call *call);

/* `what` is to be zeros. */
void cuda_clear(cuda_queue *q, void *at, int64_t bytes, const char *what);

/* The queue fails as the driver has. */
void cuda_check_result(cuda_queue *q, CUresult result, const char *what);

/* UNSUPPORTED: the kernel's blocks are more than a launch can have. */
void cuda_check_blocks(cuda_queue *q, cuda_kernel kernel, int64_t blocks);

/* INVALID: the launch's workspace is smaller than that. */
void cuda_check_workspace(cuda_queue *q, size_t bytes);

/* INVALID: the calling thread's context is another device's, or none: the kernels do not exist there. */
fpa_status cuda_check_context(const struct fpa_cuda_module *cuda, fpa_error *error);

/* A queue for a call of a module, into which nothing goes in another context, or where there are more tokens than kernels count. */
cuda_queue cuda_begin(const fpa_module *module, const struct fpa_launch *launch, CUstream stream,
                      fpa_error *error);

/* The same behind what is in a queue, by another module of its device. */
cuda_queue cuda_behind(const cuda_queue *before, const fpa_module *module, const struct fpa_launch *launch);

#endif

/* grid: launches of single kernels into a stream, and the errors of a sequence of them. */
#ifndef FPAC_RUNTIME_CUDA_GRID_H
#define FPAC_RUNTIME_CUDA_GRID_H

#include "module.h"

enum { CUDA_WEIGHTS = 256 }; /* run-time matrices of a head, at most (plan_cuda.h) */

/* The launches of one call, in one stream. After the first error, which is kept, later launches are skipped, so that a caller checks only
 * once. */
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
    /* the second parameter, before the run-time matrices: fpa_cuda_maps, or fpa_cuda_backward for gradients; NULL: none */
    const void *maps;
    /* 0, or blocks of a cluster, at most cuda->room.decode_cluster: the grid is then [blocks / cluster][cluster], each row of it a
     * cluster */
    int cluster;
    /* The kernel may start before the stream's previous kernel has ended, if that one calls launch_next(). It then waits for what it
     * needs itself: by wait_for_last(), or NAME_chunk_output by counters. */
    bool next;
    int64_t bytes; /* bytes of dynamic shared memory; 0: the geometry's */
} cuda_grid;

/* Size of the tensors' batch and token axes: a packed batch is one batch entry. */
static inline int64_t cuda_batch(const struct fpa_launch *launch)
{
    return launch->cu_seqlens ? 1 : launch->batch;
}

static inline int64_t cuda_tokens(const struct fpa_launch *launch)
{
    return !launch->cu_seqlens ? launch->length : launch->recent ? launch->batch : launch->total;
}

/* Keys minus queries. With packed recent tokens each sequence has one query, so that this may be negative. */
static inline int64_t cuda_recent(const struct fpa_launch *launch)
{
    return launch->cu_seqlens && launch->recent ? launch->total - launch->batch : launch->recent;
}

/* Fills in a launch's operands as kernels take them; sizes and parts of the workspace are not set. */
void cuda_fill_call(const struct fpa_launch *launch, struct fpa_cuda_call *call);

/* Joins the batch to one entry with sequences of call->longest tokens, if batch entries are contiguous in q, k, v and o. These are
 * checked here, since packed or padded rows may have replaced them. False: they are not contiguous. */
bool cuda_join_batch(struct fpa_cuda_call *call);

/* Blocks of a kernel that the GPU runs at a time. */
static inline int64_t cuda_room_for(const struct fpa_cuda_module *cuda, cuda_kernel kernel)
{
    const int resident = cuda->room.occupancy[kernel];
    return (int64_t)cuda->room.multiprocessors * (resident > 0 ? resident : 1);
}

/* Launches a kernel; nothing for zero blocks. UNSUPPORTED: more blocks than a launch can have. */
void cuda_launch(cuda_queue *q, cuda_kernel kernel, int64_t blocks, const void *maps,
                 const struct fpa_cuda_call *call);
void cuda_launch_grid(cuda_queue *q, const cuda_grid *grid, const struct fpa_cuda_call *call);

/* Clears memory; `what` is for the error message. */
void cuda_clear(cuda_queue *q, void *at, int64_t bytes, const char *what);

/* Records the driver's error in the queue, if there is one. */
void cuda_check_result(cuda_queue *q, CUresult result, const char *what);

/* UNSUPPORTED: the kernel's blocks are more than a launch can have. */
void cuda_check_blocks(cuda_queue *q, cuda_kernel kernel, int64_t blocks);

/* INVALID: the launch's workspace is smaller than that. */
void cuda_check_workspace(cuda_queue *q, size_t bytes);

/* INVALID if the current context is that of another device, or none: the kernels do not exist there. */
fpa_status cuda_check_context(const struct fpa_cuda_module *cuda, fpa_error *error);

/* A queue for a module's call. It fails at once in another device's context, or with more tokens than kernels can count. */
cuda_queue cuda_begin(const fpa_module *module, const struct fpa_launch *launch, CUstream stream,
                      fpa_error *error);

/* A queue for another module's call in the same stream, after the launches of `before`. */
cuda_queue cuda_behind(const cuda_queue *before, const fpa_module *module, const struct fpa_launch *launch);

#endif

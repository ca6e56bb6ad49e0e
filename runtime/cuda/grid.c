#include "grid.h"
#include "watch.h"

#include <limits.h>

/* Sequences begin where strides of tokens say. */
static void join_strides(struct fpa_cuda_call *call)
{
    long long *strides[] = {call->q_stride,       call->k_stride,       call->v_stride,
                            call->o_stride,       call->den_stride,     call->gate_stride,
                            call->given_q_stride, call->given_k_stride, call->key_mask_stride,
                            call->position_stride};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        strides[i][0] = strides[i][1];
}

bool cuda_join_batch(struct fpa_cuda_call *call)
{
    const long long *strides[] = {call->q_stride, call->k_stride, call->v_stride, call->o_stride};
    for (size_t i = 0; i < sizeof strides / sizeof *strides && call->batch > 1; i++)
        if (strides[i][0] != call->length * strides[i][1])
            return false;
    join_strides(call);
    call->length *= call->batch;
    call->batch = 1;
    return true;
}

/* What a call says of its sequences. */
static void fill_sequences(const struct fpa_launch *launch, struct fpa_cuda_call *call)
{
    call->cu_seqlens = launch->cu_seqlens;
    call->cu_seqlens_bytes = launch->cu_seqlens_bytes;
    call->sequences = launch->batch;
    call->packed_recent = launch->cu_seqlens && launch->recent ? launch->recent + 1 : 0;
    call->longest = launch->length;
    call->state_in_index = launch->state_in_index;
    call->state_out_index = launch->state_out_index;
    call->state_in_slots = launch->state_in_slots;
    call->state_out_slots = launch->state_out_slots;
    if (launch->cu_seqlens)
        join_strides(call);
}

void cuda_fill_call(const struct fpa_launch *launch, struct fpa_cuda_call *call)
{
    call->batch = cuda_batch(launch);
    call->length = cuda_tokens(launch);
    call->query_heads = launch->query_heads;
    call->heads = launch->heads;
    call->recent = cuda_recent(launch);
    call->q = launch->q;
    call->k = launch->k;
    call->given_q = launch->q;
    call->given_k = launch->k;
    call->v = launch->v;
    call->o = launch->o;
    call->log_gate = launch->log_gate;
    call->positions = launch->positions;
    call->key_mask = launch->key_mask;
    call->state_in = launch->state_in;
    call->state_out = launch->state_out;
    call->den = launch->den;
    for (int i = 0; i < 3; i++) {
        call->q_stride[i] = launch->q_stride[i];
        call->k_stride[i] = launch->k_stride[i];
        call->given_q_stride[i] = launch->q_stride[i];
        call->given_k_stride[i] = launch->k_stride[i];
        call->v_stride[i] = launch->v_stride[i];
        call->o_stride[i] = launch->o_stride[i];
        call->den_stride[i] = launch->den_stride[i];
        call->gate_stride[i] = launch->gate_stride[i];
        call->position_stride[i] = launch->position_stride[i];
    }
    for (int i = 0; i < 2; i++) {
        call->state_in_stride[i] = launch->state_in_stride[i];
        call->state_out_stride[i] = launch->state_out_stride[i];
        call->key_mask_stride[i] = launch->key_mask_stride[i];
    }
    fill_sequences(launch, call);
}

fpa_status cuda_check_context(const struct fpa_cuda_module *cuda, fpa_error *error)
{
    CUcontext current = NULL;
    CUresult result = cuda->driver->cuCtxGetCurrent(&current);
    if (result)
        return driver_fail(cuda->driver, result, cuda->name, "the current context", error);
    if (current == cuda->context)
        return FPA_OK;
    return fail(error, FPA_INVALID, cuda->name,
                "was opened for GPU %d, whose primary context is not the calling thread's current one; "
                "make that device current (cudaSetDevice(%d)) before the call",
                cuda->device, cuda->device);
}

fpa_status cuda_check_grid(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, fpa_error *error)
{
    if (grid->blocks <= INT_MAX)
        return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, cuda->name,
                "%s would need %lld blocks, a launch has at most %d: split the batch",
                cuda_kernel_names[grid->kernel], (long long)grid->blocks, INT_MAX);
}

static void list_weights(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                         const float *matrix[CUDA_WEIGHTS])
{
    for (int i = 0; i < cuda->geometry.weights; i++)
        matrix[i] = launch->weights[i];
}

static struct fpa_cuda_block block_of(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid)
{
    struct fpa_cuda_block block = cuda->geometry.kernel[grid->kernel];
    if (grid->bytes)
        block.bytes = (int)grid->bytes;
    return block;
}

static fpa_status was_launched(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, CUresult result,
                               fpa_error *error)
{
    const char *kernel = cuda_kernel_names[grid->kernel];
    if (result)
        return driver_fail(cuda->driver, result, cuda->name, kernel, error);
    cuda_tell(kernel);
    return FPA_OK;
}

fpa_status cuda_launch(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid,
                       const struct fpa_launch *launch, const struct fpa_cuda_call *call, CUstream stream,
                       fpa_error *error)
{
    const struct fpa_cuda_block block = block_of(cuda, grid);
    const float *matrix[CUDA_WEIGHTS];
    void *parameters[3] = {(void *)call, grid->maps ? (void *)grid->maps : matrix, matrix};
    fpa_status status = cuda_check_grid(cuda, grid, error);
    if (status)
        return status;
    list_weights(cuda, launch, matrix);
    CUresult result = cuda->driver->cuLaunchKernel(cuda->kernel[grid->kernel], (unsigned)grid->blocks, 1, 1,
                                                   (unsigned)block.threads, 1, 1, (unsigned)block.bytes,
                                                   stream, parameters, NULL);
    return was_launched(cuda, grid, result, error);
}

static fpa_status launch_clusters(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, int cluster,
                                  bool overlaps, const struct fpa_launch *launch,
                                  const struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_block block = block_of(cuda, grid);
    const float *matrix[CUDA_WEIGHTS];
    void *parameters[3] = {(void *)call, grid->maps ? (void *)grid->maps : matrix, matrix};
    CUlaunchAttribute attributes[2] = {
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.overlap = overlaps},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = {(unsigned)cluster, 1, 1}}};
    const CUlaunchConfig config = {
        .grid_x = cluster > 1 ? (unsigned)cluster : (unsigned)grid->blocks,
        .grid_y = cluster > 1 ? (unsigned)(grid->blocks / cluster) : 1,
        .grid_z = 1,
        .block_x = (unsigned)block.threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = (unsigned)block.bytes,
        .stream = stream,
        .attributes = attributes,
        .attribute_count = cluster > 1 ? 2 : 1,
    };
    if (!cuda->room.overlaps)
        return cuda_launch(cuda, grid, launch, call, stream, error);
    fpa_status status = cuda_check_grid(cuda, grid, error);
    if (status)
        return status;
    list_weights(cuda, launch, matrix);
    CUresult result = cuda->driver->cuLaunchKernelEx(&config, cuda->kernel[grid->kernel], parameters, NULL);
    return was_launched(cuda, grid, result, error);
}

fpa_status cuda_launch_next(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, int cluster,
                            const struct fpa_launch *launch, const struct fpa_cuda_call *call,
                            CUstream stream, fpa_error *error)
{
    return launch_clusters(cuda, grid, cluster, true, launch, call, stream, error);
}

fpa_status cuda_launch_clusters(const struct fpa_cuda_module *cuda, const fpa_cuda_grid *grid, int cluster,
                                const struct fpa_launch *launch, const struct fpa_cuda_call *call,
                                CUstream stream, fpa_error *error)
{
    return launch_clusters(cuda, grid, cluster, false, launch, call, stream, error);
}

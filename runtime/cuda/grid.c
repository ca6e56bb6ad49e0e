/* grid: a call's operands as kernels take them, and launches of single kernels. */
#include "grid.h"
#include "watch.h"

#include <limits.h>

/* Sets the stride of the batch axis to that of tokens, since a sequence's place on that axis is its first token. */
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

/* Fills in what the call says about sequences. */
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

static void check_tokens(cuda_queue *q)
{
    enum {
        MOST_TOKENS =
            INT_MAX -
            (1 << 17) /* kernels may compute token numbers beyond the last one by a chunk and a block */
    };
    if (!q->status && cuda_tokens(q->launch) > MOST_TOKENS)
        q->status = fail(q->error, FPA_UNSUPPORTED, q->cuda->name,
                         "takes at most %d tokens a %s, but this call has %lld", MOST_TOKENS,
                         q->launch->cu_seqlens ? "batch" : "sequence", (long long)cuda_tokens(q->launch));
}

cuda_queue cuda_begin(const fpa_module *module, const struct fpa_launch *launch, CUstream stream,
                      fpa_error *error)
{
    cuda_queue q = {module->handle, launch, stream, error, cuda_check_context(module->handle, error)};
    check_tokens(&q);
    return q;
}

cuda_queue cuda_behind(const cuda_queue *before, const fpa_module *module, const struct fpa_launch *launch)
{
    cuda_queue q = {module->handle, launch, before->stream, before->error, before->status};
    check_tokens(&q);
    return q;
}

void cuda_check_result(cuda_queue *q, CUresult result, const char *what)
{
    if (!q->status && result)
        q->status = driver_fail(q->cuda->driver, result, q->cuda->name, what, q->error);
}

void cuda_check_blocks(cuda_queue *q, cuda_kernel kernel, int64_t blocks)
{
    if (!q->status && blocks > INT_MAX)
        q->status = fail(q->error, FPA_UNSUPPORTED, q->cuda->name,
                         "%s would need %lld blocks, a launch has at most %d: split the batch",
                         cuda_kernel_names[kernel], (long long)blocks, INT_MAX);
}

void cuda_check_workspace(cuda_queue *q, size_t bytes)
{
    const size_t given = q->launch->workspace_size;
    if (!q->status && given < bytes)
        q->status =
            fail(q->error, FPA_INVALID, "workspace", "has %zu bytes, but this call needs %zu", given, bytes);
}

void cuda_clear(cuda_queue *q, void *at, int64_t bytes, const char *what)
{
    if (!q->status && bytes)
        cuda_check_result(q, q->cuda->driver->cuMemsetD8Async((uintptr_t)at, 0, (size_t)bytes, q->stream),
                          what);
}

void cuda_launch(cuda_queue *q, cuda_kernel kernel, int64_t blocks, const void *maps,
                 const struct fpa_cuda_call *call)
{
    cuda_launch_grid(q, &(cuda_grid){.kernel = kernel, .blocks = blocks, .maps = maps}, call);
}

static CUresult launch_plain(const cuda_queue *q, const cuda_grid *grid, const struct fpa_cuda_block *block,
                             void **parameters)
{
    const struct fpa_cuda_module *cuda = q->cuda;
    return cuda->driver->cuLaunchKernel(cuda->kernel[grid->kernel], (unsigned)grid->blocks, 1, 1,
                                        (unsigned)block->threads, 1, 1, (unsigned)block->bytes, q->stream,
                                        parameters, NULL);
}

/* With attributes, which old drivers do not support. */
static CUresult launch_with(const cuda_queue *q, const cuda_grid *grid, const struct fpa_cuda_block *block,
                            void **parameters)
{
    const struct fpa_cuda_module *cuda = q->cuda;
    const unsigned cluster = grid->cluster > 1 ? (unsigned)grid->cluster : 1;
    CUlaunchAttribute attributes[2] = {
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.overlap = grid->next},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = {cluster, 1, 1}}};
    const CUlaunchConfig config = {
        .grid_x = cluster > 1 ? cluster : (unsigned)grid->blocks,
        .grid_y = cluster > 1 ? (unsigned)(grid->blocks / cluster) : 1,
        .grid_z = 1,
        .block_x = (unsigned)block->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = (unsigned)block->bytes,
        .stream = q->stream,
        .attributes = attributes,
        .attribute_count = cluster > 1 ? 2 : 1,
    };
    return cuda->driver->cuLaunchKernelEx(&config, cuda->kernel[grid->kernel], parameters, NULL);
}

void cuda_launch_grid(cuda_queue *q, const cuda_grid *grid, const struct fpa_cuda_call *call)
{
    const struct fpa_cuda_module *cuda = q->cuda;
    const char *kernel = cuda_kernel_names[grid->kernel];
    struct fpa_cuda_block block = cuda->geometry.kernel[grid->kernel];
    const float *matrix[CUDA_WEIGHTS];
    void *parameters[3] = {(void *)call, grid->maps ? (void *)grid->maps : matrix, matrix};
    cuda_check_blocks(q, grid->kernel, grid->blocks);
    if (q->status || grid->blocks <= 0)
        return;
    if (grid->bytes)
        block.bytes = (int)grid->bytes;
    for (int i = 0; i < cuda->geometry.weights; i++)
        matrix[i] = q->launch->weights[i];
    const bool plain = !cuda->room.overlaps || !(grid->next || grid->cluster);
    cuda_check_result(
        q, plain ? launch_plain(q, grid, &block, parameters) : launch_with(q, grid, &block, parameters),
        kernel);
    if (!q->status)
        cuda_tell(kernel);
}

#include "launch_fused.h"

fpa_status fused_totals(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                        const struct fpa_cuda_call *walk, const struct fpa_cuda_maps *maps, CUstream stream,
                        fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call call = *walk;
    const int64_t first = call.ahead ? launch->query_heads : launch->heads;
    const fpa_cuda_grid totals = {
        CUDA_FUSED_CHUNK,
        cuda_batch(launch) * (first + launch->heads * (call.segments - 1)) * g->column_blocks, maps, 0};
    call.totals_only = 1;
    if (!call.ahead)
        call.query_heads = call.heads;
    return cuda_launch(cuda, &totals, launch, &call, stream, error);
}

/* The second of two segments without tokens. */
fpa_status fused_final(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                       const struct fpa_cuda_call *call, const struct fpa_cuda_maps *maps, CUstream stream,
                       fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call last = *call;
    const fpa_cuda_grid grid = {CUDA_FUSED_CHUNK, launch->batch * launch->heads * 2 * g->column_blocks, maps,
                                0};
    last.cu_seqlens = NULL; /* of no tokens all are alike */
    last.batch = launch->batch;
    last.segments = 2;
    last.segment_chunks = last.first_chunks = last.lacking_chunks = last.length = last.ahead = 0;
    last.query_heads = last.heads;
    last.totals = call->partial;
    last.partial = NULL;
    last.state_in = NULL;
    return cuda_launch(cuda, &grid, launch, &last, stream, error);
}

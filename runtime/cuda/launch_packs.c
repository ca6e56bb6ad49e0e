/* launch_packs: NAME_pack_rows, before kernels that read vectors of a head's rows. */
#include "launch_packs.h"

#include "base/round.h"
#include "grid.h"

/* Blocks that pack: as many as run at a time, which share all tiles evenly. */
static int64_t count_packs(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, int64_t heads)
{
    const int64_t all =
        cuda_batch(launch) * heads * divide_up(cuda_tokens(launch), cuda->geometry.pack_tokens);
    const int64_t room = (int64_t)cuda->room.multiprocessors * cuda->room.occupancy[CUDA_PACK_ROWS];
    return all < room ? all : room;
}

void cuda_take_packed(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                      struct fpa_cuda_call *call, void *vectors, bool queries)
{
    long long *stride = queries ? call->q_stride : call->k_stride;
    *(queries ? &call->q : &call->k) = vectors;
    stride[1] = cuda->geometry.vector_rows;
    stride[2] = cuda_tokens(launch) * stride[1];
    stride[0] = launch->cu_seqlens ? stride[1] : (queries ? launch->query_heads : launch->heads) * stride[2];
}

/* Matrices in two parts, where blocks fetch chunks of them by turns. */
static fpa_status launch_split(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                               struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    enum { MATRICES = 2 };
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t blocks = (int64_t)g->pack_chunks * (g->pack_per_head ? launch->heads : 1);
    const fpa_cuda_grid split = {CUDA_PACK_ROWS, blocks, NULL, 0};
    call->packs_queries = MATRICES;
    return blocks && call->pack_matrices ? cuda_launch(cuda, &split, launch, call, stream, error) : FPA_OK;
}

/* vectors <- packed keys or queries, which the call then has in their place. */
static fpa_status launch_pack(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              struct fpa_cuda_call *call, void *vectors, bool queries, CUstream stream,
                              fpa_error *error)
{
    const int64_t heads = queries ? launch->query_heads : launch->heads;
    const fpa_cuda_grid pack = {CUDA_PACK_ROWS, count_packs(cuda, launch, heads), NULL, 0};
    call->vectors = vectors;
    call->packs_queries = queries;
    const fpa_status status = pack.blocks ? cuda_launch(cuda, &pack, launch, call, stream, error) : FPA_OK;
    cuda_take_packed(cuda, launch, call, vectors, queries);
    return status;
}

fpa_status cuda_launch_packs(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                             cuda_sizes *s, CUstream stream, fpa_error *error)
{
    fpa_status status = launch_split(cuda, launch, &s->call, stream, error);
    if (!status)
        status = launch_pack(cuda, launch, &s->call, s->keys, false, stream, error);
    return status ? status : launch_pack(cuda, launch, &s->call, s->queries, true, stream, error);
}

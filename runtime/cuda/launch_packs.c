/* launch_packs: NAME_pack_rows, before kernels that read vectors of a head's rows. */
#include "launch_packs.h"

#include "base/round.h"
#include "grid.h"

/* Blocks of one head each, at most so many: all heads' rows of a token are read at nearly the same time then, so that what two of them share
 * of 64 bytes of memory is read once. Where that leaves too many multiprocessors without a block, or each has to wait for matrices that are not kept,
 * blocks share the heads. */
static int64_t blocks_of_heads(const struct fpa_cuda_geometry *g, int64_t blocks, int64_t heads)
{
    const int64_t whole = blocks / heads * heads;
    return !g->pack_chunks && 8 * whole >= 7 * blocks ? whole : blocks;
}

/* Blocks that pack: as many as run at a time, which share all tiles evenly. */
static int64_t count_packs(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch)
{
    const int64_t heads = launch->query_heads ? launch->query_heads : launch->heads;
    const int64_t all =
        cuda_batch(launch) * heads * divide_up(cuda_tokens(launch), cuda->geometry.pack_tokens);
    const int64_t room = (int64_t)cuda->room.multiprocessors * cuda->room.occupancy[CUDA_PACK_ROWS];
    return all < room ? all : blocks_of_heads(&cuda->geometry, room, heads);
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
                               const struct fpa_cuda_call *call, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t blocks = (int64_t)g->pack_chunks * (g->pack_per_head ? launch->heads : 1);
    const fpa_cuda_grid split = {CUDA_PACK_ROWS, blocks, NULL, 0};
    struct fpa_cuda_call splits = *call;
    splits.splits_matrices = true;
    return blocks && call->pack_matrices ? cuda_launch(cuda, &split, launch, &splits, stream, error) : FPA_OK;
}

fpa_status cuda_launch_packs(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                             cuda_sizes *s, CUstream stream, fpa_error *error)
{
    const fpa_cuda_grid pack = {CUDA_PACK_ROWS, count_packs(cuda, launch), NULL, 0};
    fpa_status status = launch_split(cuda, launch, &s->call, stream, error);
    s->call.vectors[0] = s->keys;
    s->call.vectors[1] = s->queries;
    if (!status && pack.blocks)
        status = cuda_launch(cuda, &pack, launch, &s->call, stream, error);
    cuda_take_packed(cuda, launch, &s->call, s->keys, false);
    cuda_take_packed(cuda, launch, &s->call, s->queries, true);
    return status;
}

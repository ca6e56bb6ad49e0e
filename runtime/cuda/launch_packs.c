/* launch_packs: NAME_pack_rows, before kernels that read vectors of a head's rows. */
#include "launch_packs.h"

#include "base/round.h"

/* The largest multiple of `heads` up to `blocks`, so that each block has one head and all heads' rows of a token are read at nearly the
 * same time: 64 bytes of memory that two heads share are then read once. If that left too many multiprocessors idle, or if blocks wait
 * for chunks of matrices anyway, `blocks`. */
static int64_t blocks_of_heads(const struct fpa_cuda_geometry *g, int64_t blocks, int64_t heads)
{
    const int64_t whole = blocks / heads * heads;
    return !g->pack_chunks && 8 * whole >= 7 * blocks ? whole : blocks;
}

int64_t cuda_panel_tiles(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return launch->cu_seqlens ? launch->total / g->pack_tokens + launch->batch
                              : divide_up(launch->length, g->pack_tokens);
}

/* Portable kernels: a block for each tile. */
static int64_t count_panels(const cuda_queue *q)
{
    const struct fpa_launch *launch = q->launch;
    return cuda_batch(launch) * (launch->query_heads + launch->heads) *
           cuda_panel_tiles(&q->cuda->geometry, launch);
}

/* Blocks of pack_rows by warpgroups: as many as run at a time, which share all tiles evenly. */
static int64_t count_packs(const cuda_queue *q)
{
    const struct fpa_launch *launch = q->launch;
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    if (g->panel_keys)
        return count_panels(q);
    const int64_t heads = launch->query_heads ? launch->query_heads : launch->heads;
    const int64_t all = cuda_batch(launch) * heads * divide_up(cuda_tokens(launch), g->pack_tokens);
    const int64_t room = cuda_room_for(q->cuda, CUDA_PACK_ROWS);
    return all < room ? all : blocks_of_heads(g, room, heads);
}

void cuda_take_packed(const cuda_queue *q, struct fpa_cuda_call *call, void *vectors, bool queries)
{
    call->vectors[queries] = vectors;
    if (q->cuda->geometry.panel_keys) /* tiles, which kernels find by tiles_of() */
        return;
    long long *stride = queries ? call->q_stride : call->k_stride;
    *(queries ? &call->q : &call->k) = vectors;
    stride[1] = q->cuda->geometry.vector_rows;
    stride[2] = call->length * stride[1];
    stride[0] = call->cu_seqlens ? stride[1] : (queries ? call->query_heads : call->heads) * stride[2];
}

void cuda_launch_packs(cuda_queue *q, cuda_sizes *s)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    struct fpa_cuda_call splits = s->call;
    splits.splits_matrices = true;
    if (s->call.pack_matrices) /* splits matrices in two parts first, for blocks that fetch chunks of them */
        cuda_launch(q, CUDA_PACK_ROWS, (int64_t)g->pack_chunks * (g->pack_per_head ? splits.heads : 1), NULL,
                    &splits);
    s->call.vectors[0] = s->keys;
    s->call.vectors[1] = s->queries;
    cuda_launch(q, CUDA_PACK_ROWS, count_packs(q), NULL, &s->call);
    cuda_take_packed(q, &s->call, s->keys, false);
    cuda_take_packed(q, &s->call, s->queries, true);
}

#include "launch_meetings.h"

#include "base/round.h"

enum {
    SECTOR = 16, /* numbers of 16 bits in 32 bytes; and tokens of a tile of sectors */
    TILE = SECTOR * SECTOR
};

/* Of 16 tokens, each block's first one, and the last one's last. */
static int64_t count_tiles(const struct fpa_cuda_geometry *g, int64_t batch, int64_t length,
                           int64_t query_heads)
{
    return batch * divide_up(length, SECTOR) * (query_heads * g->column_blocks + 1);
}

void cuda_place_meetings(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch, char *base,
                         cuda_sizes *s)
{
    s->call.meetings = cuda_take(
        base, &s->bytes, count_tiles(g, launch->batch, launch->length, launch->query_heads) * TILE, 2);
    s->call.meeting_columns =
        cuda_take(base, &s->bytes, launch->batch * (launch->query_heads * g->column_blocks + 1), sizeof(int));
}

void cuda_check_meetings(const struct fpa_cuda_geometry *g, struct fpa_cuda_call *call)
{
    const long long *stride = call->o_stride;
    if ((uintptr_t)call->o % 2 || stride[0] % SECTOR || stride[1] % SECTOR || stride[2] != g->fused_value)
        call->meetings = NULL;
}

void cuda_join_sectors(cuda_queue *q, const struct fpa_cuda_call *call)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const int together = FPA_CUDA_JOINED * g->kernel[CUDA_JOIN_SECTORS].threads / 32;
    const int64_t tiles = count_tiles(g, call->batch, call->length, call->query_heads);
    const cuda_grid grid = {.kernel = CUDA_JOIN_SECTORS, .blocks = divide_up(tiles, together), .next = true};
    cuda_launch_grid(q, &grid, call);
}

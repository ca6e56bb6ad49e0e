/* cuda_padding: widths of padded rows, and the division of NAME_lift_rows into tiles and blocks. */
#include "cuda_padding.h"

#include "base/round.h"

cuda_padding cuda_padding_of(const struct fpa_cuda_geometry *g, cuda_mechanism mechanism)
{
    const bool packs = cuda_packs_rows(g, mechanism);
    const bool decodes = mechanism >= MECHANISM_DECODE;
    const bool unpadded = decodes || (mechanism == MECHANISM_FUSED_CHUNK && g->fused_unpadded);
    return (cuda_padding){packs || unpadded ? 0 : g->padded_vector,
                          unpadded && !g->key_mask ? 0 : g->padded_value};
}

bool cuda_leans_values(const struct fpa_cuda_geometry *g, const fpa_call_size *size, cuda_mechanism mechanism)
{
    return mechanism == MECHANISM_SPLIT && g->value_room && !g->key_mask && size->heads > 1 &&
           !size->state_in && !size->state_out;
}

int64_t cuda_lift_tiles(const struct fpa_cuda_geometry *g, const fpa_call_size *size)
{
    return divide_up(size->batch * size->length, g->lift_tokens) * size->query_heads +
           divide_up(cuda_key_tokens(size), g->lift_tokens) * size->heads;
}

static int64_t resident(const fpa_gpu_room *room)
{
    return (int64_t)room->multiprocessors * room->occupancy[CUDA_LIFT_ROWS];
}

int64_t cuda_lift_slices(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                         const fpa_call_size *size)
{
    const int64_t tiles = cuda_lift_tiles(g, size);
    const int64_t fill = tiles ? resident(room) / tiles : 1;
    return fill < 1 ? 1 : fill < g->lift_steps ? fill : g->lift_steps;
}

int64_t cuda_lift_blocks(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                         const fpa_call_size *size)
{
    const int64_t tiles = cuda_lift_tiles(g, size), most = resident(room) < 1 ? 1 : resident(room);
    if (tiles <= most)
        return tiles * cuda_lift_slices(g, room, size);
    /* a launch for totals has no queries */
    const int64_t heads = size->query_heads ? size->query_heads : size->heads;
    return g->lift_by_heads && most > heads ? most / heads * heads : most;
}

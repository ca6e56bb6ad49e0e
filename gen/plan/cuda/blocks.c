/* What several mechanisms count alike: columns, chunks, blocks on a multiprocessor; the fields of their shared memory. */
#include "parts.h"

fpa_columns cuda_columns_in(const fpa_head *head, int blocks, int tiles)
{
    enum { SLAB_TILES = 8 };
    const bool has_ones = head->normalize != FPA_NORMALIZE_NONE;
    return (fpa_columns){
        .blocks = blocks,
        .tiles = tiles,
        .all = tiles + has_ones,
        .last = head->dv - 8 * (blocks - 1) * tiles,
        .ones_slabs = has_ones && tiles == SLAB_TILES,
    };
}

fpa_columns cuda_columns(const fpa_head *head, int most)
{
    const int tiles = divide_up(head->dv, 8), blocks = divide_up(tiles, most);
    return cuda_columns_in(head, blocks, divide_up(tiles, blocks));
}

int cuda_most_lean(int width)
{
    return width % 2 ? 7 : width % 4 ? 6 : width % 8 ? 4 : 0;
}

int cuda_occupancy(const fpa_plan *plan, int tiles, int bytes)
{
    const int room = plan->target->shared_memory / (bytes + 1024);
    const int most = plan->head->dtype == FPA_F32 ? 1 : tiles <= 10 ? 4 : tiles <= 18 ? 3 : 2;
    return room < 1 ? 1 : room < most ? room : most;
}

fpa_columns cuda_backward_columns(const fpa_head *head, int warp_units)
{
    enum {
        OWN = 17,
        OF_UNITS = 36
    }; /* tiles whose sums have registers: of own tokens, and of a warp's units of a state */
    const int units = OF_UNITS / warp_units, most = units < OWN ? units : OWN;
    const int tiles = (head->dv + (head->normalize != FPA_NORMALIZE_NONE) + 7) / 8;
    const int blocks = divide_up(tiles, most), each = divide_up(tiles, blocks);
    return (fpa_columns){.blocks = blocks, .tiles = each, .all = each};
}

const fpa_field cuda_memory_fields[] = {FIELD(fpa_cuda_memory, queries),
                                        FIELD(fpa_cuda_memory, keys),
                                        FIELD(fpa_cuda_memory, raw),
                                        FIELD(fpa_cuda_memory, values),
                                        FIELD(fpa_cuda_memory, tiles),
                                        FIELD(fpa_cuda_memory, gates),
                                        FIELD(fpa_cuda_memory, output),
                                        FIELD(fpa_cuda_memory, edge),
                                        FIELD(fpa_cuda_memory, given_queries),
                                        FIELD(fpa_cuda_memory, given_keys),
                                        FIELD(fpa_cuda_memory, kept),
                                        FIELD(fpa_cuda_memory, copies),
                                        FIELDS_END};

/* cuda_slices: the division of a head's features among blocks of the recurrent form. */
#include "cuda_slices.h"

#include "base/round.h"

int64_t cuda_decode_units(const struct fpa_cuda_geometry *g)
{
    return divide_up(g->features, g->decode_features);
}

int64_t cuda_more_slices(int64_t units, int64_t slices)
{
    return divide_up(units, divide_up(units, slices) - 1);
}

int64_t cuda_slice_features(const struct fpa_cuda_geometry *g, int64_t slices)
{
    return divide_up(cuda_decode_units(g), slices) * g->decode_features;
}

bool cuda_joins(const fpa_gpu_room *room, const fpa_call_size *size, int64_t slices)
{
    return slices > 1 && slices <= room->decode_cluster && size->length <= 1 &&
           size->batch * size->heads * slices <= room->multiprocessors;
}

int64_t cuda_resident_bytes(const struct fpa_cuda_geometry *g, int64_t slices)
{
    const int64_t bytes =
        g->kernel[CUDA_DECODE_RESIDENT].bytes + cuda_slice_features(g, slices) * g->decode_resident_row;
    return bytes > g->decode_resident_least ? bytes : g->decode_resident_least;
}

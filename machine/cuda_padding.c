#include "cuda_padding.h"

cuda_padding cuda_padding_of(const struct fpa_cuda_geometry *g, cuda_mechanism mechanism)
{
    const bool packs = mechanism == MECHANISM_SPLIT && g->kernel[CUDA_PACK_ROWS].threads;
    return (cuda_padding){packs ? 0 : g->padded_vector, g->padded_value};
}

#include "builder.h"

const fpa_builder *builder_of(const fpa_target *target)
{
    static const fpa_builder *const builders[BACKENDS] = {
        [BACKEND_C] = &builder_c,
        [BACKEND_CUDA] = &builder_cuda,
    };
    return builders[target->backend];
}

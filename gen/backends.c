#include "backends.h"

#include "gen/emit/emit.h"

static const fpa_generator generators[BACKENDS] = {
    [BACKEND_C] = {"c", plan_c, NULL, NULL, plan_print_c, c_field_set, push_c, "kernel.c.in", "header.h.in",
                   "backward.c.in", "backward_header.h.in", NULL, plan_c_backward},
    [BACKEND_CUDA] = {"cuda", plan_cuda, cuda_mechanism_name, cuda_mechanism_is_left, plan_print_cuda,
                      cuda_field_set, push_cuda, "kernel.cu.in", NULL, "backward.cu.in", NULL, "split_panel",
                      plan_cuda_backward},
};

const fpa_generator *generator_of(const fpa_target *target)
{
    return &generators[target->backend];
}

#include "backends.h"

#include "gen/emit/emit.h"

static const fpa_generator generators[BACKENDS] = {
    [BACKEND_C] = {"c", plan_c, plan_print_c, push_c, "kernel.c.in", "header.h.in"},
    [BACKEND_CUDA] = {"cuda", plan_cuda, plan_print_cuda, push_cuda, "kernel.cu.in", NULL},
};

const fpa_generator *generator_of(const fpa_target *target)
{
    return &generators[target->backend];
}

/* The parallel form beside the chunked one. */
#include "parts.h"

/* What a FLOP over scores takes, compared with one over the state. Warpgroups: as much, but that each pair's
 * gate takes more; heads of one pass by warpgroups have portable kernels for the parallel form, which is
 * slower from about 256 tokens on. Measured on an H200 (bench/results/hopper-2026-11-22.txt, 35 and 42). */
static double cost_of_pairs(const fpa_plan *plan)
{
    if (plan->fused_packed.used || plan->cuda.fused_coordinates)
        return 5;
    return plan->outer.used && plan->head->gate ? 1.1 : 1;
}

void plan_cuda_pairs(fpa_plan *plan)
{
    plan->pair_cost = cost_of_pairs(plan);
    plan->pair_queries = plan->outer.used ? plan->warpgroups.query_tokens : plan->cuda.query_tokens;
}

#include "bound.h"

#include <math.h>

#include "machine/cpu.h"

/* The least FLOP of a token and head over the forms; call->length: tokens of its sequence. */
static double least_flop(const fpa_facts *facts, int dv, bool causal, const fpa_bound_call *call)
{
    const double written = 4.0 * (double)facts->features * dv;
    const double projections = facts->flop[FORM_RECURRENT] - written;
    const double fewest = fmin((double)facts->features, (double)facts->features_minimum);
    /* keys that a query sees, on average */
    const double pairs = causal ? (call->length + 1) / 2 : call->length;
    const double parallel = pairs * facts->flop[FORM_PARALLEL];
    double features = INFINITY;
    if (facts->forms & (1 << FORM_CHUNKED | 1 << FORM_RECURRENT))
        features = 4 * fewest * dv;
    return (call->whole ? fmin(features, parallel) : features) + projections;
}

fpa_bound forward_bound(const fpa_facts *facts, int dv, bool causal, const fpa_bound_call *call,
                        double product, double copy)
{
    if (!(product > 0) || !(copy > 0))
        return (fpa_bound){0, "-"};
    const double flop = call->sequences * call->length * least_flop(facts, dv, causal, call);
    const double products = flop / product, memory = call->bytes / copy;
    return products > memory ? (fpa_bound){products, "products"} : (fpa_bound){memory, "memory"};
}

void bound_cpu_rates(const fpa_target *target, fpa_dtype arithmetic, int threads, double *product,
                     double *copy)
{
    const fpa_cpu *cpu = cpu_here(target);
    const double cores = threads, pairs = target->pairs && arithmetic == FPA_BF16 ? 2 : 1;
    *product = cores * cpu->clock * 2 * cpu->multiply_adds * target->vector * pairs;
    *copy = fmin(cores * cpu->memory, cpu->all_memory);
}

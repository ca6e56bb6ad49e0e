/* cuda_cost: the model of a multiprocessor and of device memory. */
#include "cuda_cost.h"

#include <math.h>

void cuda_sum_add(fpa_cuda_sum *sum, const struct fpa_cuda_work *work, double times)
{
    sum->products += times * work->products;
    sum->shared += times * work->shared;
    sum->instructions += times * work->instructions;
    sum->awaited += times * work->awaited;
    sum->bytes += times * work->bytes;
    sum->cached += times * work->cached;
}

void cuda_sum_add_copy(fpa_cuda_sum *sum, const struct fpa_cuda_work *work, double times)
{
    cuda_sum_add(sum, work, times);
    sum->bytes -= times * work->bytes;
    sum->copies += times * work->bytes;
}

double cuda_memory_ahead(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups)
{
    return (sum->bytes + (warpgroups ? sum->copies : 0)) / gpu->memory + sum->cached / gpu->cache;
}

double cuda_memory_alone(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups)
{
    return warpgroups ? 0 : sum->copies / gpu->memory;
}

/* Clocks of a sum in each part of a multiprocessor. */
typedef struct part_clocks {
    double tensor, shared, issue, latency;
} part_clocks;

static part_clocks parts_of(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups, double warps)
{
    const double rate = warpgroups ? gpu->warpgroup_products : gpu->products;
    return (part_clocks){.tensor = sum->products / rate,
                         .shared = sum->shared,
                         .issue = sum->instructions / GPU_ISSUE,
                         .latency = (sum->instructions * GPU_LATENCY + sum->awaited) / fmax(warps, 1)};
}

static double joined(part_clocks parts)
{
    return sqrt(parts.tensor * parts.tensor + parts.shared * parts.shared + parts.issue * parts.issue +
                parts.latency * parts.latency);
}

double cuda_clocks(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups, double warps)
{
    return joined(parts_of(gpu, sum, warpgroups, warps));
}

double cuda_query_clocks(double shared, double products, double bytes)
{
    /* clocks of a product by mma.sync, and bytes that a multiprocessor gets of the second-level cache a clock */
    static const double product = 2, cached_bytes = 24;
    const double multiplied = product * products, cached = bytes / cached_bytes;
    return (fmax(shared, fmax(multiplied, cached)) + shared + multiplied + cached) / 2;
}

static const char *limit_of(part_clocks parts, double clocks, double memory, double trips)
{
    const double most =
        fmax(fmax(fmax(parts.tensor, parts.shared), fmax(parts.issue, parts.latency)), memory);
    if (trips > clocks)
        return "round trips to memory";
    return most == memory         ? "device memory"
           : most == parts.tensor ? "tensor cores"
           : most == parts.shared ? "shared memory"
           : most == parts.issue  ? "instructions"
                                  : "latency of instructions";
}

double cuda_overlapped(double own, double memory)
{
    return cbrt(own * own * own + memory * memory * memory);
}

fpa_cost cuda_seconds(const fpa_gpu *gpu, const fpa_cuda_launch_load *load)
{
    const fpa_cuda_sum *all = &load->all;
    const fpa_cuda_sum busiest = {.products = all->products * load->share,
                                  .shared = all->shared * load->share,
                                  .instructions = all->instructions * load->share,
                                  .awaited = all->awaited * load->share};
    const part_clocks parts = parts_of(gpu, &busiest, load->warpgroups, load->warps);
    /* in clocks, like the others */
    const double memory = cuda_memory_ahead(gpu, all, load->warpgroups) * gpu->clock;
    const double own = joined(parts);
    const double clocks = cuda_overlapped(own, memory);
    const double power = all->products / gpu->sustained, trips = load->trips * GPU_TRIP;
    const double seconds = fmax(clocks / gpu->clock, power);
    return (fpa_cost){
        .seconds = seconds + cuda_memory_alone(gpu, all, load->warpgroups) + trips,
        .limit = power > clocks / gpu->clock ? "power of the GPU"
                                             : limit_of(parts, clocks, memory, trips * gpu->clock),
    };
}

fpa_cost cost_then(fpa_cost first, fpa_cost second)
{
    return (fpa_cost){.seconds = first.seconds + second.seconds,
                      .limit = first.seconds > second.seconds ? first.limit : second.limit};
}

double cuda_share(double blocks, double multiprocessors, double resident)
{
    const double room = multiprocessors * resident;
    if (blocks <= 0)
        return 0;
    if (blocks <= room) /* the hardware distributes blocks evenly */
        return ceil(blocks / multiprocessors) / blocks;
    const double waves = blocks / room; /* blocks of the last wave begin as soon as others end */
    return fmin((waves + ceil(waves)) / 2 * resident / blocks, 1);
}

/* cuda_chunk: seconds of a token in chunks of a given length, and the lengths of tails and whole sequences. */
#include "cuda_chunk.h"

#include <math.h>

#include "cuda_cost.h"

/* Warps on a multiprocessor: the kernels' blocks are designed to fill its registers with 12. */
enum { WARPS = 12 };

/* Seconds of a token and head: of multiprocessors, of memory accesses that overlap with these, and of those that do not. */
typedef struct chunk_parts {
    double own, memory, alone;
} chunk_parts;

static chunk_parts chunk_parts_of(const fpa_gpu *gpu, const struct fpa_cuda_geometry *g, double chunk)
{
    const struct fpa_cuda_kernel_work *state = &g->work[CUDA_CHUNK_STATE],
                                      *output = &g->work[CUDA_CHUNK_OUTPUT];
    fpa_cuda_sum keys = {0}, queries = {0};
    cuda_sum_add(&keys, &state->step, 1.0 / 16);
    cuda_sum_add_copy(&keys, &state->copy, 1.0 / chunk);
    cuda_sum_add(&queries, &output->step, 1.0 / 16);
    cuda_sum_add(&queries, &output->copy, 1.0 / 16);
    cuda_sum_add(&queries, &output->keys, (chunk + 64) / 2.0 / 64 / 16);
    queries.awaited += (chunk + 64) / 2.0 / 64 / 16 * g->awaited_keys;
    const double clocks = cuda_clocks(gpu, &keys, state->warpgroups, WARPS) +
                          cuda_clocks(gpu, &queries, output->warpgroups, WARPS);
    queries.copies = keys.copies; /* each copy is written once and read once */
    const bool warpgroups = state->warpgroups;
    return (chunk_parts){
        clocks / gpu->multiprocessors / gpu->clock,
        cuda_memory_ahead(gpu, &keys, warpgroups) + cuda_memory_ahead(gpu, &queries, warpgroups),
        cuda_memory_alone(gpu, &keys, warpgroups) + cuda_memory_alone(gpu, &queries, warpgroups)};
}

double cuda_chunk_seconds(const fpa_gpu *gpu, const struct fpa_cuda_geometry *g, int chunk)
{
    const chunk_parts parts = chunk_parts_of(gpu, g, chunk);
    return cuda_overlapped(parts.own, parts.memory) + parts.alone;
}

static double full_chip_seconds(const fpa_gpu *gpu, const fpa_cuda_sum *sum, bool warpgroups, int warps)
{
    return cuda_overlapped(cuda_clocks(gpu, sum, warpgroups, warps) / gpu->multiprocessors / gpu->clock,
                           cuda_memory_ahead(gpu, sum, warpgroups));
}

double cuda_score_seconds(const fpa_gpu *gpu, const struct fpa_cuda_geometry *g, int warps, double tokens)
{
    const struct fpa_cuda_kernel_work *work = &g->work[CUDA_CHUNK_OUTPUT];
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &work->step, 1.0 / 16);
    cuda_sum_add(&sum, &work->keys, tokens / 64 / 16);
    return full_chip_seconds(gpu, &sum, true, warps);
}

/* The gain of one copy less against the cost of more keys. With t = cbrt(own^3 + memory^3), dt / dmemory = (memory / t)^2, and likewise
 * for own. */
int64_t cuda_tail_tokens(const fpa_gpu *gpu, const struct fpa_cuda_geometry *g, int64_t chunk)
{
    const struct fpa_cuda_kernel_work *state = &g->work[CUDA_CHUNK_STATE],
                                      *output = &g->work[CUDA_CHUNK_OUTPUT];
    const chunk_parts parts = chunk_parts_of(gpu, g, (double)chunk);
    fpa_cuda_sum copy = {0}, keys = {0};
    cuda_sum_add_copy(&copy, &state->copy, 2); /* written once and read once */
    cuda_sum_add(&keys, &output->keys, (double)chunk / 64 / 16);
    keys.awaited += (double)chunk / 64 / 16 * g->awaited_keys;
    const double saved = cuda_memory_ahead(gpu, &copy, state->warpgroups) * parts.memory * parts.memory;
    const double token = cuda_clocks(gpu, &keys, output->warpgroups, WARPS) / gpu->multiprocessors /
                         gpu->clock * parts.own * parts.own;
    return token > 0 ? (int64_t)fmin(saved / token, (double)(chunk - 1)) : 0;
}

double cuda_pack_seconds(const fpa_gpu *gpu, const struct fpa_cuda_geometry *g, int warps)
{
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &g->work[CUDA_PACK_ROWS].step, 2.0 / 16);
    return full_chip_seconds(gpu, &sum, false, warps);
}

/* A query has scores with half of the keys, on average. */
int64_t cuda_whole_tokens(const fpa_gpu *gpu, const struct fpa_cuda_geometry *g, int64_t chunk)
{
    const double chunked = cuda_chunk_seconds(gpu, g, (int)chunk);
    int64_t tokens = chunk;
    while (tokens < 64 * chunk && cuda_score_seconds(gpu, g, WARPS, (double)(tokens + chunk) / 2) <= chunked)
        tokens += chunk;
    return tokens;
}

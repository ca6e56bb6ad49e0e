/* cuda_candidates: all candidates of a call, or the fastest one. */
#include "cuda_candidates.h"

#include <math.h>

#include "cuda_carry.h"
#include "cuda_estimate.h"
#include "cuda_listing.h"
#include "head/form.h"

static bool refuses(const struct fpa_cuda_geometry *g, const fpa_call_size *size, cuda_mechanism mechanism,
                    cuda_listing *l)
{
    const fpa_candidate any = {.mechanism = cuda_mechanism_names[mechanism], .segments = 1};
    const char *why = cuda_refusal(g, size, &any);
    if (why)
        listing_refuse(l, mechanism, 0, why);
    return why != NULL;
}

static void list_chunks(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                        const fpa_call_size *size, cuda_listing *l)
{
    const cuda_task task = cuda_task_of(g, room, size);
    cuda_task split = task;
    cuda_take_tail(&split);
    if (!refuses(g, size, MECHANISM_SPLIT, l))
        list_split(&split, l);
    if (!refuses(g, size, MECHANISM_FUSED_CHUNK, l))
        list_fused(&task, l);
    if (!refuses(g, size, MECHANISM_CLUSTER_SCAN, l))
        list_cluster_scan(&task, l);
}

static void list_all(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room, const fpa_call_size *size,
                     cuda_listing *l)
{
    if (l->all || size->form != FORM_RECURRENT)
        list_chunks(g, room, size, l);
    if (l->all || size->form == FORM_RECURRENT)
        list_decode(g, room, size, l);
}

int cuda_candidates(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room, const fpa_call_size *size,
                    fpa_candidate *out, int most)
{
    cuda_listing l = {.all = true, .out = out, .most = most};
    list_all(g, room, size, &l);
    return l.count;
}

bool cuda_fastest(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room, const fpa_call_size *size,
                  fpa_candidate *best)
{
    cuda_listing l = {.found = false};
    list_all(g, room, size, &l);
    *best = l.best;
    return l.found;
}

static bool fastest_of(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room, const fpa_call_size *size,
                       cuda_mechanism mechanism, void (*list)(const cuda_task *, cuda_listing *),
                       fpa_candidate *best)
{
    cuda_listing l = {.found = false};
    const cuda_task task = cuda_task_of(g, room, size);
    if (!refuses(g, size, mechanism, &l))
        list(&task, &l);
    *best = l.best;
    return l.found;
}

bool cuda_fastest_fused(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                        const fpa_call_size *size, fpa_candidate *best)
{
    return fastest_of(g, room, size, MECHANISM_FUSED_CHUNK, list_fused_alike, best);
}

bool cuda_fastest_cluster_scan(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                               const fpa_call_size *size, fpa_candidate *best)
{
    return fastest_of(g, room, size, MECHANISM_CLUSTER_SCAN, list_cluster_scan, best);
}

/* Seconds of a piece's queries, assuming as many query heads as key heads: both halves of a call must make the same choice, and the first
 * one has no queries. */
static double answer_seconds(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                             const fpa_call_size *walk, int64_t chunk, int64_t segments)
{
    fpa_call_size size = *walk;
    size.query_heads = size.heads;
    size.state_in = true;
    size.state_out = false;
    cuda_task task = cuda_task_of(g, room, &size);
    cuda_take_chunk(&task, chunk);
    const cuda_split_common common = cuda_split_common_of(&task);
    const cuda_carry carry = cuda_carry_beside(&task, segments);
    return carry.blocks ? carry.cost.seconds : common.output.seconds + common.copies.seconds;
}

bool cuda_fastest_walk(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room, const fpa_call_size *size,
                       fpa_candidate *best, int64_t *chunk)
{
    enum { LONGEST = 4 }; /* times the head's chunk */
    double least = INFINITY;
    *chunk = g->chunk;
    if (refuses(g, size, MECHANISM_SPLIT, &(cuda_listing){.found = false}))
        return false;
    for (int times = 1; times <= LONGEST; times++) {
        cuda_listing l = {.found = false};
        cuda_task task = cuda_task_of(g, room, size);
        cuda_take_chunk(&task, (int64_t)times * g->chunk);
        list_split(&task, &l);
        const double all =
            l.found ? l.best.cost.seconds + answer_seconds(g, room, size, task.chunk, l.best.segments)
                    : INFINITY;
        if (all >= least)
            continue;
        least = all;
        *best = l.best;
        *chunk = task.chunk;
    }
    return least < INFINITY;
}

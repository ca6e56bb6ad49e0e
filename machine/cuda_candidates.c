#include "cuda_candidates.h"

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
    if (!refuses(g, size, MECHANISM_SPLIT, l))
        list_split(&task, l);
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

bool cuda_fastest_cluster_scan(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                               const fpa_call_size *size, fpa_candidate *best)
{
    cuda_listing l = {.found = false};
    const cuda_task task = cuda_task_of(g, room, size);
    if (!refuses(g, size, MECHANISM_CLUSTER_SCAN, &l))
        list_cluster_scan(&task, &l);
    *best = l.best;
    return l.found;
}

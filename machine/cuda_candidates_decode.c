/* cuda_candidates_decode: candidates of the recurrent form. */
#include "cuda_estimate.h"
#include "cuda_listing.h"
#include "cuda_slices.h"

/* Why a cluster of `slices` blocks cannot hold a head's state, or NULL. Two such blocks must fit on a multiprocessor: otherwise the next
 * launch's block would wait for the end of this one's. */
static const char *refuse_slices(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                                 const fpa_call_size *size, int64_t slices)
{
    const int64_t heads = size->batch * size->heads;
    if (slices > room->decode_cluster)
        return "this GPU does not support clusters of so many blocks";
    if (heads * slices > room->multiprocessors || heads > room->decode_resident_clusters[slices])
        return "the clusters of all heads do not fit on the GPU at the same time";
    if (2 * cuda_resident_bytes(g, slices) > room->shared_memory)
        return "its blocks use too much shared memory: two must fit on a multiprocessor at the same time";
    return NULL;
}

/* Lists numbers of blocks per cluster, the largest first: if predictions are equal, the one with most blocks is chosen, which gives each
 * block the least work. */
static void list_resident(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                          const fpa_call_size *size, cuda_listing *l)
{
    int64_t slices[MOST_CLUSTER], units = cuda_decode_units(g);
    int count = 0;
    const char *why = NULL;
    for (int64_t n = 1; n <= room->decode_cluster; n = cuda_more_slices(units, n)) {
        const char *reason = refuse_slices(g, room, size, n);
        if (!reason)
            slices[count++] = n;
        why = reason && !why ? reason : why;
        if (n >= units)
            break;
    }
    for (int i = count - 1; i >= 0; i--) {
        fpa_candidate candidate = {.mechanism = cuda_mechanism_names[MECHANISM_DECODE_RESIDENT],
                                   .segments = slices[i]};
        candidate.cost = cuda_estimate_decode_resident(g, room, size, &candidate);
        listing_offer(l, &candidate);
    }
    if (count == 0)
        listing_refuse(l, MECHANISM_DECODE_RESIDENT, 0, why);
}

static void list_slices(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room,
                        const fpa_call_size *size, cuda_mechanism mechanism, cuda_listing *l)
{
    const int64_t units = cuda_decode_units(g);
    fpa_candidate candidate = {.mechanism = cuda_mechanism_names[mechanism]};
    for (int64_t slices = 1;; slices = cuda_more_slices(units, slices)) {
        candidate.segments = slices;
        candidate.cost = cuda_estimate_decode(g, room, size, &candidate);
        listing_offer(l, &candidate);
        if (slices >= units)
            return;
    }
}

void list_decode(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room, const fpa_call_size *size,
                 cuda_listing *l)
{
    for (int mechanism = MECHANISM_DECODE; mechanism <= MECHANISM_DECODE_RECENT; mechanism++) {
        const fpa_candidate any = {.mechanism = cuda_mechanism_names[mechanism], .segments = 1};
        const char *why = cuda_refusal(g, size, &any);
        if (why)
            listing_refuse(l, (cuda_mechanism)mechanism, 0, why);
        else if (mechanism == MECHANISM_DECODE_RESIDENT)
            list_resident(g, room, size, l);
        else
            list_slices(g, room, size, (cuda_mechanism)mechanism, l);
    }
}

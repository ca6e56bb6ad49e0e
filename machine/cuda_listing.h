/* cuda_listing: candidates as they are found: all of them, or only the fastest. Private to cuda_candidates*.c.
 */
#ifndef FPAC_MACHINE_CUDA_LISTING_H
#define FPAC_MACHINE_CUDA_LISTING_H

#include <stddef.h>

#include "cuda_candidates.h"
#include "cuda_division.h"

typedef struct cuda_listing {
    bool all;               /* candidates are wanted, not the fastest only: */
    fpa_candidate *out;     /* with places for `most`, */
    int most, count;        /* of so many that there are */
    fpa_candidate best;     /* the first of the fastest, */
    bool found;             /* if there is one */
    fpa_candidate last;     /* that was offered */
    int64_t fused_segments; /* of the fastest of fused_chunk, where only that is wanted; 0: there is none */
} cuda_listing;

static inline void listing_keep_best(cuda_listing *l, const fpa_candidate *candidate)
{
    if (l->found && candidate->cost.seconds >= l->best.cost.seconds)
        return;
    l->best = *candidate;
    l->found = true;
}

/* A candidate with its cost. */
static inline void listing_offer(cuda_listing *l, const fpa_candidate *candidate)
{
    listing_keep_best(l, candidate);
    l->last = *candidate;
    if (l->count < l->most)
        l->out[l->count] = *candidate;
    l->count++;
}

/* The same; but if the last candidate since `first` has as many segments, only the cheaper of the two remains. */
static inline void listing_offer_again(cuda_listing *l, const fpa_candidate *candidate, int first)
{
    if (l->count == first || l->last.segments != candidate->segments) {
        listing_offer(l, candidate);
        return;
    }
    listing_keep_best(l, candidate);
    if (candidate->cost.seconds >= l->last.cost.seconds)
        return;
    l->last = *candidate;
    if (l->count <= l->most)
        l->out[l->count - 1] = *candidate;
}

/* A mechanism that does not suit. */
static inline void listing_refuse(cuda_listing *l, cuda_mechanism mechanism, int variant, const char *why)
{
    if (l->count < l->most)
        l->out[l->count] =
            (fpa_candidate){.mechanism = cuda_mechanism_names[mechanism], .refused = why, .variant = variant};
    l->count++;
}

/* The forms' own: what they have found is added. */
void list_split(const cuda_task *task, cuda_listing *l);
void list_fused(const cuda_task *task, cuda_listing *l);
void list_fused_alike(const cuda_task *task, cuda_listing *l); /* segments that are alike */
void list_cluster_scan(const cuda_task *task, cuda_listing *l);
void list_decode(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                 const fpa_call_size *size, cuda_listing *l);

#endif

/* cuda_listing: collects candidates: all of them, or only the fastest. Internal to cuda_candidates*.c. */
#ifndef FPAC_MACHINE_CUDA_LISTING_H
#define FPAC_MACHINE_CUDA_LISTING_H

#include <stddef.h>

#include "cuda_candidates.h"
#include "cuda_division.h"

typedef struct cuda_listing {
    bool all;           /* all candidates are wanted, not only the fastest: */
    fpa_candidate *out; /* stores up to `most` of them, */
    int most, count;    /* of `count` in total */
    fpa_candidate best; /* the first one of the fastest, */
    bool found;         /* if there is one */
    fpa_candidate last; /* the last one offered */
    /* segments of the fastest of fused_chunk, if only the fastest is wanted; 0: there is none */
    int64_t fused_segments;
} cuda_listing;

static inline void listing_keep_best(cuda_listing *l, const fpa_candidate *candidate)
{
    if (l->found && candidate->cost.seconds >= l->best.cost.seconds)
        return;
    l->best = *candidate;
    l->found = true;
}

/* Adds a candidate with its cost. */
static inline void listing_offer(cuda_listing *l, const fpa_candidate *candidate)
{
    listing_keep_best(l, candidate);
    l->last = *candidate;
    if (l->count < l->most)
        l->out[l->count] = *candidate;
    l->count++;
}

/* The same; but if the last candidate added since `first` has as many segments, only the cheaper one is kept. */
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

/* Adds the reason why a mechanism does not apply. */
static inline void listing_refuse(cuda_listing *l, cuda_mechanism mechanism, int variant, const char *why)
{
    if (l->count < l->most)
        l->out[l->count] =
            (fpa_candidate){.mechanism = cuda_mechanism_names[mechanism], .refused = why, .variant = variant};
    l->count++;
}

/* Add the candidates of each mechanism. */
void list_split(const cuda_task *task, cuda_listing *l);
void list_fused(const cuda_task *task, cuda_listing *l);
void list_fused_alike(const cuda_task *task, cuda_listing *l); /* with segments of equal length */
void list_cluster_scan(const cuda_task *task, cuda_listing *l);
void list_decode(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                 const fpa_call_size *size, cuda_listing *l);

#endif

/* cuda_candidates_chunked: candidates of the parallel and the chunked form. */
#include "base/round.h"
#include "cuda_estimate.h"
#include "cuda_listing.h"
#include "head/form.h"

/* ---- split ---- */

static fpa_candidate split_candidate(int variant)
{
    return (fpa_candidate){
        .mechanism = cuda_mechanism_names[MECHANISM_SPLIT], .segments = 1, .variant = variant};
}

static int64_t most_segments(const cuda_task *task)
{
    const int64_t most = cuda_walked_chunks(task);
    return !task->walked || most < 1 ? 1 : most < MOST_SEGMENTS ? most : MOST_SEGMENTS;
}

/* Candidates that walk the keys, then compute the queries. Numbers of segments that give the same division are one candidate. */
static void list_apart(const cuda_task *task, const cuda_split_common *common, int small, cuda_listing *l)
{
    const int64_t most = most_segments(task);
    const int first = l->count;
    fpa_candidate candidate = split_candidate(small);
    for (int64_t segments = 1; segments <= most; segments++) {
        candidate.segments = segments;
        candidate.cost = cuda_estimate_split(task, common, &candidate);
        if (l->all)
            candidate.segments = cuda_divide(task->chunks, segments).segments;
        listing_offer_again(l, &candidate, first);
    }
}

/* For complete lists (l->all): a candidate with so few blocks that each has several walks in turn. It is never the fastest, but
 * verification uses it to test kernels as calls with very many sequences use them. */
static void list_crowded(const cuda_task *task, const cuda_split_common *common, fpa_candidate candidate,
                         cuda_listing *l)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    const int64_t least =
        (int64_t)(candidate.variant & SPLIT_SMALL ? g->small_state_slices : g->chunk_state_slices) *
        g->column_blocks;
    if (!l->all || candidate.blocks == least)
        return;
    candidate.blocks = least;
    candidate.cost = cuda_estimate_split(task, common, &candidate);
    listing_offer(l, &candidate);
}

/* For sequences of different lengths: a candidate with fewer blocks, all of which have equal work. */
static void list_even(const cuda_task *task, const cuda_split_common *common, fpa_candidate candidate,
                      cuda_listing *l)
{
    const int64_t even = cuda_even_blocks(task, candidate.variant & SPLIT_SMALL, candidate.blocks);
    if (!cuda_lengths_differ(task->size) || even == candidate.blocks)
        return;
    candidate.blocks = even;
    candidate.cost = cuda_estimate_split(task, common, &candidate);
    listing_offer(l, &candidate);
}

static void list_overlapped(const cuda_task *task, const cuda_split_common *common, int small,
                            cuda_listing *l)
{
    fpa_candidate candidate = split_candidate(small | SPLIT_OVERLAPPED);
    const char *why = task->summed
                          ? "without a causal mask every query needs all keys first, so nothing can overlap"
                      : !task->room->overlaps ? "kernel launches cannot overlap on this GPU"
                      : task->queries == 0    ? "this call has no queries to overlap with"
                      : !task->walked         ? "this call computes no state"
                                              : NULL;
    if (!why)
        candidate.blocks = cuda_overlapped_blocks(task, small);
    if (!why && candidate.blocks == 0)
        why = "not all blocks of a head fit on the GPU at the same time";
    if (why) {
        listing_refuse(l, MECHANISM_SPLIT, candidate.variant, why);
        return;
    }
    candidate.cost = cuda_estimate_split(task, common, &candidate);
    /* first, so that it is chosen if times are equal: no block of it is slower than others */
    list_even(task, common, candidate, l);
    listing_offer(l, &candidate);
    list_crowded(task, common, candidate, l);
}

void list_split(const cuda_task *task, cuda_listing *l)
{
    const bool persistent = task->geometry->persistent;
    const cuda_split_common common = cuda_split_common_of(task);
    for (int small = 0; small <= SPLIT_SMALL; small += SPLIT_SMALL) {
        fpa_candidate any = split_candidate(small);
        const char *why = cuda_refusal(task->geometry, task->size, &any);
        if (!why && small && !task->walked)
            why = "this call computes no state";
        if (why) {
            listing_refuse(l, MECHANISM_SPLIT, small, why);
            continue;
        }
        if (persistent)
            list_overlapped(task, &common, small, l);
        list_apart(task, &common, small, l);
    }
    if (l->found)
        l->best.segments = cuda_divide(task->chunks, l->best.segments).segments;
}

/* ---- fused_chunk, cluster_scan ---- */

void list_fused_alike(const cuda_task *task, cuda_listing *l)
{
    const int first = l->count;
    fpa_candidate candidate = {.mechanism = cuda_mechanism_names[MECHANISM_FUSED_CHUNK]};
    for (int64_t segments = 1; segments == 1 || (segments <= task->chunks && segments <= MOST_SEGMENTS);
         segments++) {
        candidate.segments = segments;
        candidate.cost = cuda_estimate_fused(task, &candidate);
        if (l->all)
            candidate.segments = cuda_divide_fused(task, segments).segments;
        listing_offer_again(l, &candidate, first);
    }
    l->best.segments = cuda_divide_fused(task, l->best.segments).segments;
    if (!l->all)
        l->fused_segments = l->best.segments;
}

/* The number of segments with the first one computed ahead: one more than the segments that the GPU runs at a time, of which there must
 * be three. 0: with two, a longer first segment is as good; and gated heads whose segments would be longer than equal ones were slower
 * (docs/decisions/0161). */
static int64_t filled_segments(const cuda_task *task, int64_t alike)
{
    enum { PLACES = 3 };
    const int64_t all = (int64_t)task->room->multiprocessors * task->room->occupancy[CUDA_FUSED_CHUNK],
                  blocks = cuda_fused_blocks(task), places = blocks > 0 ? all / blocks : 0;
    return places < PLACES || (task->geometry->gate && alike > places) ? 0 : 1 + places;
}

/* Offers segments with the first one ahead if they are faster by more than the model's error for the gain of segments
 * (docs/decisions/0161). Complete lists (l->all) also have the smallest number of them, which is slower, so that verification's small
 * calls test the kernel. */
static void list_ahead(const cuda_task *task, cuda_listing *l)
{
    static const double gain = 0.97; /* no head with a larger predicted ratio was faster */
    const int64_t most = task->chunks < MOST_SEGMENTS ? task->chunks : MOST_SEGMENTS,
                  filled = filled_segments(task, l->best.segments);
    const double alike = l->best.cost.seconds;
    fpa_candidate candidate = {.mechanism = cuda_mechanism_names[MECHANISM_FUSED_CHUNK],
                               .variant = FUSED_AHEAD};
    for (int64_t segments = FUSED_AHEAD_LEAST; segments <= most; segments++) {
        candidate.segments = segments;
        if (segments != filled && (segments != FUSED_AHEAD_LEAST || !l->all))
            continue;
        if (cuda_refusal(task->geometry, task->size, &candidate))
            return;
        candidate.cost = cuda_estimate_fused(task, &candidate);
        if (segments == filled ? candidate.cost.seconds < gain * alike : candidate.cost.seconds > alike)
            listing_offer(l, &candidate);
    }
}

void list_fused(const cuda_task *task, cuda_listing *l)
{
    list_fused_alike(task, l);
    list_ahead(task, l);
}

int64_t cuda_fused_segments(const cuda_task *task)
{
    cuda_listing l = {.found = false};
    list_fused_alike(task, &l);
    return l.best.segments;
}

/* Why clusters cannot be launched, or NULL. In ordinary calls each sequence of a head has a cluster; in packed ones the clusters that the
 * GPU runs at a time share all spans, whose numbers are 32-bit. */
static const char *refuse_clusters(const cuda_task *task)
{
    enum { MOST_WALKS = 65535 }; /* rows of a grid */
    const fpa_call_size *size = task->size;
    const int64_t lines = size->query_heads * task->geometry->column_blocks;
    if (!size->sequences)
        return cuda_fused_blocks(task) > MOST_WALKS ? "a launch has at most 65535 clusters" : NULL;
    if (cuda_span_places((size->batch + 1) * size->length, size->sequences) > INT32_MAX / lines)
        return "this call has more spans of tokens than 32-bit indices can count";
    return NULL;
}

/* Whether sequences exceed clusters by so little that clusters which share all spans evenly are close to each other in their sequences:
 * then the heads of a token, which are adjacent in memory, are read at about the same time. */
static bool are_few_more(int64_t sequences, int64_t clusters)
{
    return 8 * clusters >= 7 * sequences;
}

/* Offers a launch in which all clusters share the spans of all sequences evenly, if there are more sequences, of one length, than
 * clusters fit: this avoids a second round of whole sequences. If all fit, it is offered only in complete lists (l->all), so that
 * verification's small calls test the kernel. */
static void list_shared(const cuda_task *task, int blocks, cuda_listing *l)
{
    const int64_t sequences = cuda_fused_blocks(task), places = task->room->cluster_counts[blocks];
    const bool lacks = places < sequences;
    fpa_candidate candidate = {.mechanism = cuda_mechanism_names[MECHANISM_CLUSTER_SCAN],
                               .segments = blocks,
                               .blocks = blocks * (lacks ? places : sequences - 1),
                               .variant = SCAN_SHARED,
                               .fused_segments = l->fused_segments};
    if (lacks ? !are_few_more(sequences, places) : !l->all || blocks > 2)
        return;
    if (cuda_refusal(task->geometry, task->size, &candidate))
        return;
    candidate.cost = cuda_estimate_cluster_scan(task, &candidate);
    listing_offer(l, &candidate);
}

/* Offers persistent clusters that process whole sequences of one length in turn: if there are more sequences than clusters fit;
 * otherwise only in complete lists (l->all), so that verification's small and packed calls test the kernel. */
static void list_whole(const cuda_task *task, int blocks, cuda_listing *l)
{
    const fpa_call_size *size = task->size;
    const int64_t items = cuda_scanned_items(task), places = task->room->cluster_counts[blocks];
    const bool asked = size->sequences ? !cuda_lengths_differ(size) : items > places;
    fpa_candidate candidate = {.mechanism = cuda_mechanism_names[MECHANISM_CLUSTER_SCAN],
                               .segments = blocks,
                               .blocks =
                                   blocks * (asked ? cuda_even_clusters(items, places) : divide_up(items, 2)),
                               .variant = SCAN_WHOLE,
                               .fused_segments = l->fused_segments};
    if (!asked && (!l->all || blocks > 2 || items < 2))
        return;
    if (cuda_refusal(task->geometry, size, &candidate))
        return;
    candidate.cost = cuda_estimate_cluster_scan(task, &candidate);
    listing_offer(l, &candidate);
}

/* The same for a packed call. */
static bool shares_one_length(const cuda_task *task, int64_t clusters)
{
    return !cuda_lengths_differ(task->size) && are_few_more(cuda_scanned_items(task), clusters);
}

void list_cluster_scan(const cuda_task *task, cuda_listing *l)
{
    const int64_t spans = divide_up(task->size->length, FPA_CUDA_SPAN),
                  lines = task->size->query_heads * task->geometry->column_blocks;
    fpa_candidate candidate = {.mechanism = cuda_mechanism_names[MECHANISM_CLUSTER_SCAN],
                               .fused_segments = l->fused_segments};
    const int first = l->count;
    const char *why = refuse_clusters(task);
    if (why) {
        listing_refuse(l, MECHANISM_CLUSTER_SCAN, 0, why);
        return;
    }
    for (int blocks = 2; blocks <= MOST_CLUSTER && (blocks <= spans || task->size->sequences); blocks++) {
        const int counted = task->room->cluster_counts[blocks];
        if (counted == 0)
            continue;
        list_whole(task, blocks, l);
        if (task->size->sequences && blocks > 2 && counted < lines && !shares_one_length(task, counted))
            continue; /* heads of a token would be read at different times */
        candidate.segments = blocks;
        candidate.cost = cuda_estimate_cluster_scan(task, &candidate);
        listing_offer(l, &candidate);
        list_shared(task, blocks, l);
    }
    if (l->count == first)
        listing_refuse(l, MECHANISM_CLUSTER_SCAN, 0,
                       spans < 2 ? "sequences are too short: a cluster needs more than 128 tokens"
                                 : "its clusters do not fit on the GPU");
}

/* cuda_mechanism: why a mechanism does not apply to a head or call. */
#include "cuda_mechanism.h"

#include <string.h>

#include "cuda_division.h"
#include "head/form.h"

cuda_mechanism cuda_mechanism_of(const fpa_candidate *candidate)
{
    int mechanism = 0;
    while (mechanism < MECHANISMS && strcmp(candidate->mechanism, cuda_mechanism_names[mechanism]) != 0)
        mechanism++;
    return (cuda_mechanism)mechanism;
}

/* ---- refusals ---- */

static bool has(const struct fpa_cuda_geometry *g, cuda_kernel kernel)
{
    return g->kernel[kernel].threads > 0;
}

static const char *refuse_decode(const struct fpa_cuda_geometry *g, const fpa_call_size *size,
                                 cuda_mechanism mechanism)
{
    static const cuda_kernel kernels[MECHANISMS] = {[MECHANISM_DECODE] = CUDA_DECODE,
                                                    [MECHANISM_DECODE_RESIDENT] = CUDA_DECODE_RESIDENT,
                                                    [MECHANISM_DECODE_RECENT] = CUDA_DECODE_RECENT};
    if (size->form != FORM_RECURRENT)
        return "carries out the recurrent form";
    if (!has(g, kernels[mechanism]))
        return "the module has no such kernel";
    if (size->recent && mechanism != MECHANISM_DECODE_RECENT && !g->window)
        return "has all tokens in the state, and here are recent ones beside it";
    if (!size->recent && mechanism == MECHANISM_DECODE_RECENT)
        return "is for recent tokens beside the state, and here are none";
    if (mechanism == MECHANISM_DECODE_RESIDENT && size->sequences)
        return "takes one token of each sequence, and here some may have none";
    if (mechanism == MECHANISM_DECODE_RESIDENT && size->length > 1)
        return "takes one token, and here are several";
    return NULL;
}

/* Whether there are keys before all windows that are not in the state: queries' panels begin with the first query's window. */
static bool precede_windows(const struct fpa_cuda_geometry *g, const fpa_call_size *size)
{
    return g->window && size->recent >= g->window;
}

static const char *refuse_split(const struct fpa_cuda_geometry *g, const fpa_call_size *size, int variant)
{
    if (size->form == FORM_RECURRENT)
        return "carries out the parallel and the chunked form";
    if (size->form == FORM_CHUNKED && has(g, CUDA_FUSED_CHUNK) && size->query_heads > 0 &&
        !precede_windows(g, size))
        return "the module's kernels of the chunked form are fused_chunk's";
    if (!has(g, CUDA_CHUNK_OUTPUT))
        return "the module has no such kernel";
    if (variant & SPLIT_SMALL && !has(g, CUDA_CHUNK_STATE_SMALL))
        return "the module has no kernel chunk_state_small";
    if (variant & SPLIT_OVERLAPPED && g->unmasked && size->form == FORM_CHUNKED)
        return "has queries wait beside the walk, and without a mask all wait for its end";
    if (variant & SPLIT_OVERLAPPED && !g->persistent)
        return "the module's chunk_output cannot wait for copies of the state";
    return NULL;
}

/* Whether tokens of all sequences, and places of spans of all heads, can be counted in 32 bits. */
static bool counts_in_32_bits(const struct fpa_cuda_geometry *g, const fpa_call_size *size)
{
    enum { MOST_TOKENS = 1 << 30 };
    const int64_t lines = size->query_heads * g->column_blocks, tokens = size->batch * size->length;
    return tokens <= MOST_TOKENS && lines * cuda_span_places(tokens, size->batch) <= INT32_MAX;
}

/* Refusals of fewer clusters than sequences. For ordinary calls such clusters process whole sequences of any addresses. */
static const char *refuse_shared(const struct fpa_cuda_geometry *g, const fpa_call_size *size,
                                 const fpa_candidate *candidate)
{
    const bool ordinary = candidate->variant & SCAN_WHOLE && !size->sequences;
    if (!(candidate->variant & (SCAN_SHARED | SCAN_WHOLE)))
        return NULL;
    if (ordinary && !g->cluster_stays)
        return "keeps a matrix in each cluster that is one head's";
    if (!ordinary && !has(g, CUDA_SEQUENCE_SCAN))
        return "the module has no kernel of it whose clusters have several sequences";
    if (candidate->variant & SCAN_SHARED && (size->sequences || !size->joined))
        return "deals sequences of one length to clusters, whose tokens lie one behind the other";
    if (!ordinary && !counts_in_32_bits(g, size))
        return "counts tokens and spans of all sequences in 32 bits";
    return candidate->blocks < candidate->segments ? "needs a cluster at least" : NULL;
}

/* Refusals of first segments that are computed ahead. */
static const char *refuse_ahead(const struct fpa_cuda_geometry *g, const fpa_call_size *size,
                                const fpa_candidate *candidate)
{
    if (!(candidate->variant & FUSED_AHEAD))
        return NULL;
    if (!g->fused_totals || g->unmasked)
        return "leaves totals of segments by a kernel that has no queries";
    if (size->sequences)
        return "has segments of equal lengths where those of sequences differ";
    return candidate->segments < FUSED_AHEAD_LEAST ? "has totals of no segment between the first and the last"
                                                   : NULL;
}

static const char *refuse_fused(const struct fpa_cuda_geometry *g, const fpa_call_size *size,
                                cuda_mechanism mechanism, const fpa_candidate *candidate)
{
    if (size->form != FORM_CHUNKED)
        return "carries out the chunked form";
    if (!has(g, mechanism == MECHANISM_FUSED_CHUNK ? CUDA_FUSED_CHUNK : CUDA_CLUSTER_SCAN))
        return "the module has no such kernel";
    if (mechanism == MECHANISM_CLUSTER_SCAN && size->sequences && !has(g, CUDA_SEQUENCE_SCAN))
        return "the module has no kernel of it for sequences of different lengths";
    if (size->query_heads == 0)
        return "answers queries, and here are none";
    if (precede_windows(g, size))
        return "begins with the first query's window, and here are keys before it";
    return mechanism == MECHANISM_CLUSTER_SCAN ? refuse_shared(g, size, candidate)
                                               : refuse_ahead(g, size, candidate);
}

const char *cuda_refusal(const struct fpa_cuda_geometry *g, const fpa_call_size *size,
                         const fpa_candidate *candidate)
{
    const cuda_mechanism mechanism = cuda_mechanism_of(candidate);
    if (mechanism == MECHANISMS)
        return "is no mechanism of CUDA kernels";
    if (candidate->segments < 1)
        return "needs a number of segments or blocks, at least 1";
    if (mechanism == MECHANISM_SPLIT)
        return refuse_split(g, size, candidate->variant);
    return mechanism == MECHANISM_FUSED_CHUNK || mechanism == MECHANISM_CLUSTER_SCAN
               ? refuse_fused(g, size, mechanism, candidate)
               : refuse_decode(g, size, mechanism);
}

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
        return "it computes the recurrent form only";
    if (!has(g, kernels[mechanism]))
        return "the module has no such kernel";
    if (size->recent && mechanism != MECHANISM_DECODE_RECENT && !g->window)
        return "it reads all tokens from the state, but this call has recent tokens that are not in it";
    if (!size->recent && mechanism == MECHANISM_DECODE_RECENT)
        return "it needs recent tokens that are not in the state, and this call has none";
    if (mechanism == MECHANISM_DECODE_RESIDENT && size->sequences)
        return "it needs one token of each sequence, and in a packed call (cu_seqlens) some may have none";
    if (mechanism == MECHANISM_DECODE_RESIDENT && size->length > 1)
        return "it computes one token a call, and this call has several";
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
        return "it computes the parallel and the chunked form only";
    if (size->form == FORM_CHUNKED && has(g, CUDA_FUSED_CHUNK) && size->query_heads > 0 &&
        !precede_windows(g, size))
        return "this module computes the chunked form by fused_chunk";
    if (!has(g, CUDA_CHUNK_OUTPUT))
        return "the module has no such kernel";
    if (variant & SPLIT_SMALL && !has(g, CUDA_CHUNK_STATE_SMALL))
        return "the module has no kernel chunk_state_small";
    if (variant & SPLIT_OVERLAPPED && g->unmasked && size->form == FORM_CHUNKED)
        return "it overlaps queries with updates of the state, but without a causal mask every query needs "
               "all keys first";
    if (variant & SPLIT_OVERLAPPED && !g->persistent)
        return "this module's chunk_output cannot run while chunk_state still writes states";
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
        return "each of its clusters keeps one head's matrix in shared memory, so it cannot go on to another "
               "head";
    if (!ordinary && !has(g, CUDA_SEQUENCE_SCAN))
        return "the module has no kernel sequence_scan, whose clusters process several sequences";
    if (candidate->variant & SCAN_SHARED && (size->sequences || !size->joined))
        return "clusters can share tokens evenly only if all sequences have one length and follow each other "
               "in memory (no cu_seqlens)";
    if (!ordinary && !counts_in_32_bits(g, size))
        return "this call has more tokens than 32-bit indices can count";
    return candidate->blocks < candidate->segments ? "it needs at least as many blocks as one cluster has"
                                                   : NULL;
}

/* Refusals of first segments that are computed ahead. */
static const char *refuse_ahead(const struct fpa_cuda_geometry *g, const fpa_call_size *size,
                                const fpa_candidate *candidate)
{
    if (!(candidate->variant & FUSED_AHEAD))
        return NULL;
    if (!g->fused_totals || g->unmasked)
        return "first segments can be computed ahead only for causal heads with a kernel that computes "
               "segment totals without queries";
    if (size->sequences)
        return "first segments can be computed ahead only if all sequences have one length";
    return candidate->segments < FUSED_AHEAD_LEAST ? "first segments can be computed ahead only if there is "
                                                     "a segment between the first and the last"
                                                   : NULL;
}

static const char *refuse_fused(const struct fpa_cuda_geometry *g, const fpa_call_size *size,
                                cuda_mechanism mechanism, const fpa_candidate *candidate)
{
    if (size->form != FORM_CHUNKED)
        return "it computes the chunked form only";
    if (!has(g, mechanism == MECHANISM_FUSED_CHUNK ? CUDA_FUSED_CHUNK : CUDA_CLUSTER_SCAN))
        return "the module has no such kernel";
    if (mechanism == MECHANISM_CLUSTER_SCAN && size->sequences && !has(g, CUDA_SEQUENCE_SCAN))
        return "the module has no kernel sequence_scan, which sequences of different lengths need";
    if (size->query_heads == 0)
        return "it computes outputs, and this call has no queries";
    if (precede_windows(g, size))
        return "it starts with the first query's window, but this call has recent keys before that window";
    return mechanism == MECHANISM_CLUSTER_SCAN ? refuse_shared(g, size, candidate)
                                               : refuse_ahead(g, size, candidate);
}

const char *cuda_refusal(const struct fpa_cuda_geometry *g, const fpa_call_size *size,
                         const fpa_candidate *candidate)
{
    const cuda_mechanism mechanism = cuda_mechanism_of(candidate);
    if (mechanism == MECHANISMS)
        return "CUDA kernels have no such mechanism";
    if (candidate->segments < 1)
        return "the number of segments or blocks must be at least 1";
    if (mechanism == MECHANISM_SPLIT)
        return refuse_split(g, size, candidate->variant);
    return mechanism == MECHANISM_FUSED_CHUNK || mechanism == MECHANISM_CLUSTER_SCAN
               ? refuse_fused(g, size, mechanism, candidate)
               : refuse_decode(g, size, mechanism);
}

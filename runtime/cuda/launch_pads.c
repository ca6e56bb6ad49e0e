/* launch_pads: launches of lift_rows and pad_rows. */
#include "launch_pads.h"

#include "base/round.h"
#include "launch_maps.h"

cuda_pads count_pads(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch,
                     cuda_mechanism mechanism)
{
    const cuda_padding padding = cuda_padding_of(g, mechanism);
    /* NAME_fused_chunk replaces NAME_cluster_scan if boxes cannot be fetched, and may need padding */
    const cuda_mechanism last = mechanism == MECHANISM_CLUSTER_SCAN ? MECHANISM_FUSED_CHUNK : mechanism;
    if (cuda_maps_in_place(g, mechanism) && cuda_maps_in_place(g, last))
        return (cuda_pads){0, 0, 0};
    const int vector = g->lifted_vector ? g->lifted_vector : padding.vector;
    const int64_t keys = cuda_batch(launch) * (cuda_tokens(launch) + cuda_recent(launch)) * launch->heads;
    return (cuda_pads){cuda_batch(launch) * cuda_tokens(launch) * launch->query_heads * vector, keys * vector,
                       keys * padding.value};
}

/* The largest number of elements by which a head's rows of values begin after a multiple of 16 bytes. */
static int most_lean(const struct fpa_cuda_call *call)
{
    int most = 0;
    for (long long head = 0; head < call->heads && head < 8; head++) {
        const int lean = (int)(head * call->v_stride[2] & 7);
        most = lean > most ? lean : most;
    }
    return most;
}

/* Whether keys can be described; packed or padded ones can. */
static bool describes_keys(const struct fpa_cuda_geometry *g, const struct fpa_cuda_call *call)
{
    return call->padded_keys || g->kernel[CUDA_PACK_ROWS].threads ||
           cuda_can_describe(call->k, call->k_stride, call->heads, call->length + call->recent, call->batch);
}

bool cuda_values_lean(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    return g->value_room && cuda->driver->cuTensorMapEncodeTiled && !g->key_mask && !call->state_in &&
           !call->state_out && !call->dot_rows && !call->dots && !call->column_weights &&
           most_lean(call) <= g->value_room && describes_keys(g, call) &&
           cuda_can_join(call->v, call->v_stride, g->value_width, call->heads, call->length + call->recent,
                         call->batch);
}

/* An operand, and the room for its padded rows (NULL: not wanted). */
typedef struct operand {
    const void **base;
    long long *stride;
    void **padded;
    long long heads, length;
    int width;      /* padded */
    bool by_tokens; /* packed batch: a sequence's place on the batch axis is its first token */
} operand;

/* Pieces of its padded rows; 0: it needs no padding. */
static int64_t count_pieces(const struct fpa_cuda_geometry *g, const struct fpa_cuda_call *call,
                            const operand *x)
{
    if (!*x->padded)
        return 0;
    if (!g->key_mask && cuda_can_describe(*x->base, x->stride, x->heads, x->length, call->batch)) {
        *x->padded = NULL;
        return 0;
    }
    return call->batch * x->length * x->heads * (x->width * g->element / 16);
}

/* Replaces the operand by its padded rows, [B][length][heads][padded width]. */
static void replace(const operand *x)
{
    if (!*x->padded)
        return;
    *x->base = *x->padded;
    x->stride[2] = x->width;
    x->stride[1] = x->heads * x->stride[2];
    x->stride[0] = x->by_tokens ? x->stride[1] : x->length * x->stride[1];
}

static void launch_lift(cuda_queue *q, struct fpa_cuda_call *call, const operand list[2])
{
    const struct fpa_cuda_module *cuda = q->cuda;
    /* the form does not matter: only tokens and heads count */
    const fpa_call_size size = {.batch = call->batch,
                                .length = call->length,
                                .query_heads = call->query_heads,
                                .heads = call->heads,
                                .recent = call->recent};
    call->lift_slices = cuda_lift_slices(&cuda->geometry, &cuda->room, &size);
    cuda_launch(q, CUDA_LIFT_ROWS, cuda_lift_blocks(&cuda->geometry, &cuda->room, &size), NULL, call);
    for (int i = 0; i < 2; i++)
        replace(&list[i]);
}

/* Pads the operands from number `first` on. */
static void launch_padding(cuda_queue *q, struct fpa_cuda_call *call, const operand list[3], int first)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    int64_t pieces = 0;
    for (int i = first; i < 3; i++)
        pieces += count_pieces(g, call, &list[i]);
    if (!pieces)
        return;
    cuda_launch(q, CUDA_PAD_ROWS, divide_up(pieces, g->kernel[CUDA_PAD_ROWS].threads), NULL, call);
    for (int i = first; i < 3; i++)
        replace(&list[i]);
}

void launch_pads(cuda_queue *q, struct fpa_cuda_call *call, bool values_lean)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const bool lifts = g->lifted_vector > 0;
    const int vector = lifts ? g->lifted_vector : g->padded_vector;
    const int64_t queries = call->length, keys = queries + call->recent;
    const bool ragged = call->cu_seqlens != NULL;
    if (values_lean)
        call->padded_values = NULL;
    const operand list[] = {
        {&call->q, call->q_stride, &call->padded_queries, call->query_heads, queries, vector, ragged},
        {&call->k, call->k_stride, &call->padded_keys, call->heads, keys, vector, ragged},
        {&call->v, call->v_stride, &call->padded_values, call->heads, keys, g->padded_value, ragged}};
    if (lifts)
        launch_lift(q, call, list);
    launch_padding(q, call, list, lifts ? 2 : 0);
}

#include "launch_pads.h"

#include "base/round.h"
#include "grid.h"
#include "launch_maps.h"

/* An operand, and the room for its padded rows: NULL, where they are not wanted. */
typedef struct operand {
    const void **base;
    long long *stride;
    void **padded;
    long long heads;
    int width; /* padded */
} operand;

/* Pieces of its padded rows; 0: it stays as it is. */
static int64_t count_pieces(const struct fpa_cuda_call *call, const operand *x)
{
    if (!*x->padded)
        return 0;
    if (cuda_can_describe(*x->base, x->stride, x->heads, call->length, call->batch)) {
        *x->padded = NULL;
        return 0;
    }
    return call->batch * call->length * x->heads * (x->width / 8);
}

/* [B][length][heads][padded width]. */
static void replace(const struct fpa_cuda_call *call, const operand *x)
{
    if (!*x->padded)
        return;
    *x->base = *x->padded;
    x->stride[2] = x->width;
    x->stride[1] = x->heads * x->stride[2];
    x->stride[0] = call->length * x->stride[1];
}

fpa_status launch_pads(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, cuda_sizes *s,
                       CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_cuda_call *call = &s->call;
    const operand list[] = {
        {&call->q, call->q_stride, &call->padded_queries, call->query_heads, g->padded_vector},
        {&call->k, call->k_stride, &call->padded_keys, call->heads, g->padded_vector},
        {&call->v, call->v_stride, &call->padded_values, call->heads, g->padded_value}};
    int64_t pieces = 0;
    for (int i = 0; i < 3; i++)
        pieces += count_pieces(call, &list[i]);
    if (!pieces)
        return FPA_OK;
    const fpa_cuda_grid grid = {CUDA_PAD_ROWS, divide_up(pieces, g->kernel[CUDA_PAD_ROWS].threads), NULL, 0};
    fpa_status status = cuda_launch(cuda, &grid, launch, call, stream, error);
    for (int i = 0; i < 3 && !status; i++)
        replace(call, &list[i]);
    return status;
}

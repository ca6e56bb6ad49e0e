#include "launch_backward_pads.h"

#include "base/round.h"
#include "grid.h"
#include "launch_backward_rows.h"

int64_t backward_pad_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return (row_group_of(launch) + 1) * row_tokens_of(launch) *
           (g->backward_padded_vector + g->backward_padded_value) * g->element;
}

void place_backward_pads(backward_pads *p, char *rows, int64_t sequences)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t keys = sequences * row_tokens_of(p->launch) * g->element,
                  queries = keys * row_group_of(p->launch);
    const int64_t vector = g->backward_padded_vector, value = g->backward_padded_value;
    p->back.padded_queries = rows;
    p->back.padded_keys = rows + queries * vector;
    p->back.padded_d_o = rows + (queries + keys) * vector;
    p->back.padded_values = rows + (queries + keys) * vector + queries * value;
}

static void take_place(const backward_pads *p, struct fpa_cuda_call *call, struct fpa_cuda_backward *back)
{
    const struct fpa_launch *f = p->launch;
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t key = back->first_sequence, query = key * row_group_of(f);
    const int64_t vector = g->backward_padded_vector, value = g->backward_padded_value;
    const int64_t vectors = row_tokens_of(f) * vector * g->element,
                  values = row_tokens_of(f) * value * g->element;
    if (vector) {
        call->q = rows_before(p->back.padded_queries, query, vectors);
        call->k = rows_before(p->back.padded_keys, key, vectors);
        set_row_strides(call->q_stride, f, f->query_heads, vector);
        set_row_strides(call->k_stride, f, f->heads, vector);
    }
    if (value) {
        back->d_o = rows_before(p->back.padded_d_o, query, values);
        call->v = rows_before(p->back.padded_values, key, values);
        set_row_strides(back->d_o_stride, f, f->query_heads, value);
        set_row_strides(call->v_stride, f, f->heads, value);
    }
}

fpa_status launch_backward_pads(backward_pads *p, struct fpa_cuda_call *call, struct fpa_cuda_backward *back,
                                CUstream stream, fpa_error *error)
{
    const int64_t blocks = divide_up(row_tokens_of(p->launch), FPA_CUDA_BACKWARD_PADDED);
    const fpa_cuda_grid grid = {CUDA_BACKWARD_PADS, back->sequences * (row_group_of(p->launch) + 1) * blocks,
                                &p->back, 0};
    p->back.first_sequence = back->first_sequence;
    p->back.sequences = back->sequences;
    take_place(p, call, back);
    return grid.blocks > 0 ? cuda_launch(p->cuda, &grid, p->launch, &p->call, stream, error) : FPA_OK;
}

#include "launch_made.h"

#include "base/round.h"
#include "grid.h"
#include "launch_backward_rows.h"

enum { ELEMENT = 2 };

int64_t made_sequence_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return 2 * (row_group_of(launch) + 1) * row_tokens_of(launch) * g->made_width * ELEMENT;
}

int64_t made_operand_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return 2 * (int64_t)g->made_operand * (g->made_per_head ? launch->heads : 1);
}

static int64_t made_parts(const struct fpa_launch *launch)
{
    return divide_up(row_tokens_of(launch), FPA_CUDA_MADE_STRIP);
}

int64_t made_part_entries(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return made_parts(launch) * g->backward_entries;
}

void made_place(made_rows *m, char *rows, int64_t sequences)
{
    const struct fpa_launch *f = &m->launch->forward;
    const int64_t keys = sequences * row_tokens_of(f) * m->cuda->geometry.made_width * ELEMENT;
    const int64_t queries = keys * row_group_of(f);
    m->back.made_queries = rows;
    m->back.made_d_queries = rows + queries;
    m->back.made_keys = rows + 2 * queries;
    m->back.made_d_keys = rows + 2 * queries + keys;
}

static fpa_status launch(const made_rows *m, cuda_kernel kernel, int64_t blocks, CUstream stream,
                         fpa_error *error)
{
    const fpa_cuda_grid grid = {kernel, blocks, &m->back, 0};
    return blocks > 0 ? cuda_launch(m->cuda, &grid, &m->launch->forward, &m->call, stream, error) : FPA_OK;
}

fpa_status made_begin(const made_rows *m, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &m->cuda->geometry;
    const struct fpa_launch *f = &m->launch->forward;
    const int64_t pieces = f->batch * row_tokens_of(f) > 0 ? made_operand_bytes(g, f) / 16 : 0;
    return launch(m, CUDA_BACKWARD_SPLIT, divide_up(pieces, g->kernel[CUDA_BACKWARD_SPLIT].threads), stream,
                  error);
}

/* ---- rows in the place of q and k ---- */

static void take_place(const made_rows *m, struct fpa_cuda_call *call, struct fpa_cuda_backward *back)
{
    const struct fpa_launch *f = &m->launch->forward;
    const int64_t width = m->cuda->geometry.made_width, bytes = row_tokens_of(f) * width * ELEMENT;
    const int64_t key = back->first_sequence, query = key * row_group_of(f);
    const bool queries = m->launch->d_q || m->matrices, keys = m->launch->d_k || m->matrices;
    call->q = rows_before(m->back.made_queries, query, bytes);
    call->k = rows_before(m->back.made_keys, key, bytes);
    back->d_q = queries ? rows_before(m->back.made_d_queries, query, bytes) : NULL;
    back->d_k = keys ? rows_before(m->back.made_d_keys, key, bytes) : NULL;
    set_row_strides(call->q_stride, f, f->query_heads, width);
    set_row_strides(call->k_stride, f, f->heads, width);
    set_row_strides(back->d_q_stride, f, f->query_heads, width);
    set_row_strides(back->d_k_stride, f, f->heads, width);
}

static void give_strides(const long long *from, int64_t *to)
{
    for (int i = 0; i < 3; i++)
        to[i] = from[i];
}

void made_give(const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back,
               struct fpa_backward_launch *launch)
{
    launch->forward.q = call->q;
    launch->forward.k = call->k;
    launch->d_q = back->d_q;
    launch->d_k = back->d_k;
    give_strides(call->q_stride, launch->forward.q_stride);
    give_strides(call->k_stride, launch->forward.k_stride);
    give_strides(back->d_q_stride, launch->d_q_stride);
    give_strides(back->d_k_stride, launch->d_k_stride);
}

/* Blocks of so many tokens, of each query head and of the key's. */
static int64_t count_blocks(const made_rows *m)
{
    const struct fpa_launch *f = &m->launch->forward;
    return m->back.sequences * (row_group_of(f) + 1) *
           divide_up(row_tokens_of(f), m->cuda->geometry.made_tokens);
}

fpa_status made_project(made_rows *m, struct fpa_cuda_call *call, struct fpa_cuda_backward *back,
                        CUstream stream, fpa_error *error)
{
    m->back.first_sequence = back->first_sequence;
    m->back.sequences = back->sequences;
    take_place(m, call, back);
    return launch(m, CUDA_BACKWARD_PROJECT, count_blocks(m), stream, error);
}

/* ---- what rows' gradients are to others ---- */

static fpa_status launch_products(made_rows *m, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &m->cuda->geometry;
    const int threads = g->kernel[CUDA_BACKWARD_PARTS].threads;
    m->back.part_count = made_parts(&m->launch->forward);
    m->back.adds = 0;
    fpa_status status = launch(m, CUDA_BACKWARD_PRODUCTS,
                               m->back.sequences * m->back.part_count * g->made_sides, stream, error);
    return status ? status
                  : launch(m, CUDA_BACKWARD_PARTS,
                           m->back.sequences * divide_up(g->backward_entries, threads), stream, error);
}

fpa_status made_unproject(made_rows *m, CUstream stream, fpa_error *error)
{
    fpa_status status = FPA_OK;
    if (m->launch->d_q || m->launch->d_k)
        status = launch(m, CUDA_BACKWARD_UNPROJECT, count_blocks(m), stream, error);
    return status || !m->matrices ? status : launch_products(m, stream, error);
}

fpa_status launch_weight_sums(const struct fpa_cuda_module *cuda, const struct fpa_backward_launch *launch,
                              const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back,
                              CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    struct fpa_launch matrices = launch->forward;
    const fpa_cuda_grid grid = {CUDA_BACKWARD_WEIGHTS,
                                divide_up(g->backward_shared + g->backward_per_head * call->heads,
                                          g->kernel[CUDA_BACKWARD_WEIGHTS].threads),
                                back, 0};
    matrices.weights = (const float *const *)launch->d_weights;
    return grid.blocks > 0 ? cuda_launch(cuda, &grid, &matrices, call, stream, error) : FPA_OK;
}

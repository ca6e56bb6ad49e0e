#include "launch_made.h"

#include "base/round.h"
#include "grid.h"
#include "launch_backward_rows.h"

/* So many numbers a token, and their gradients. */
static int64_t sequence_bytes(int width, const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return 2 * (row_group_of(launch) + 1) * row_tokens_of(launch) * width * g->element;
}

int64_t made_sequence_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return sequence_bytes(g->made_width, g, launch);
}

/* Of one query head of a sequence, or of its keys. */
static int64_t side_kept_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    const int64_t tokens = row_tokens_of(launch);
    return tokens * g->made_kept + (g->made_sums ? divide_up(tokens, g->made_tokens) * g->made_sums : 0);
}

int64_t made_kept_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return (row_group_of(launch) + 1) * side_kept_bytes(g, launch);
}

int64_t made_feature_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch)
{
    return sequence_bytes(g->pass_features, g, launch);
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
    const struct fpa_cuda_geometry *g = &m->cuda->geometry;
    const int64_t keys = sequences * row_tokens_of(f) * g->made_width * g->element;
    const int64_t queries = keys * row_group_of(f);
    m->back.made_queries = rows;
    m->back.made_d_queries = rows + queries;
    m->back.made_keys = rows + 2 * queries;
    m->back.made_d_keys = rows + 2 * queries + keys;
}

void made_place_kept(made_rows *m, char *kept, int64_t sequences)
{
    const struct fpa_launch *f = &m->launch->forward;
    m->back.made_kept_queries = kept;
    m->back.made_kept_keys = kept + sequences * row_group_of(f) * side_kept_bytes(&m->cuda->geometry, f);
}

static bool wants_queries(const made_rows *m)
{
    return m->launch->d_q || m->matrices;
}

static bool wants_keys(const made_rows *m)
{
    return m->launch->d_k || m->matrices;
}

void made_place_features(made_rows *m, char *features, int64_t sequences)
{
    const struct fpa_launch *f = &m->launch->forward;
    const struct fpa_cuda_geometry *g = &m->cuda->geometry;
    const int64_t keys = sequences * row_tokens_of(f) * g->pass_features * g->element;
    const int64_t queries = keys * row_group_of(f);
    m->features = true;
    m->back.feature_queries = features;
    m->back.feature_d_queries = wants_queries(m) ? features + queries : NULL;
    m->back.feature_keys = features + 2 * queries;
    m->back.feature_d_keys = wants_keys(m) ? features + 2 * queries + keys : NULL;
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
    if (!pieces)
        return FPA_OK;
    return launch(m, CUDA_BACKWARD_SPLIT, divide_up(pieces, g->kernel[CUDA_BACKWARD_SPLIT].threads), stream,
                  error);
}

/* ---- rows, or their features, in the place of q and k ---- */

static void take_place(const made_rows *m, struct fpa_cuda_call *call, struct fpa_cuda_backward *back)
{
    const struct fpa_launch *f = &m->launch->forward;
    const struct fpa_cuda_backward *own = &m->back;
    const bool line = m->features;
    const int64_t width = line ? m->cuda->geometry.pass_features : m->cuda->geometry.made_width;
    const int64_t bytes = row_tokens_of(f) * width * m->cuda->geometry.element;
    const int64_t key = back->first_sequence, query = key * row_group_of(f);
    call->q = rows_before(line ? own->feature_queries : own->made_queries, query, bytes);
    call->k = rows_before(line ? own->feature_keys : own->made_keys, key, bytes);
    back->d_q = wants_queries(m)
                    ? rows_before(line ? own->feature_d_queries : own->made_d_queries, query, bytes)
                    : NULL;
    back->d_k = wants_keys(m) ? rows_before(line ? own->feature_d_keys : own->made_d_keys, key, bytes) : NULL;
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
static int64_t count_blocks(const made_rows *m, int tokens)
{
    const struct fpa_launch *f = &m->launch->forward;
    return m->back.sequences * (row_group_of(f) + 1) * divide_up(row_tokens_of(f), tokens);
}

static fpa_status launch_product(const made_rows *m, cuda_kernel kernel, CUstream stream, fpa_error *error)
{
    return launch(m, kernel, count_blocks(m, m->cuda->geometry.made_tokens), stream, error);
}

/* A thread has a token. */
static fpa_status launch_line(const made_rows *m, cuda_kernel kernel, CUstream stream, fpa_error *error)
{
    const int tokens = m->cuda->geometry.kernel[kernel].threads;
    return m->features ? launch(m, kernel, count_blocks(m, tokens), stream, error) : FPA_OK;
}

fpa_status made_project(made_rows *m, struct fpa_cuda_call *call, struct fpa_cuda_backward *back,
                        CUstream stream, fpa_error *error)
{
    m->back.first_sequence = back->first_sequence;
    m->back.sequences = back->sequences;
    take_place(m, call, back);
    const fpa_status status = launch_product(m, CUDA_BACKWARD_PROJECT, stream, error);
    return status ? status : launch_line(m, CUDA_BACKWARD_FORM, stream, error);
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
    const struct fpa_cuda_geometry *g = &m->cuda->geometry;
    fpa_status status =
        wants_queries(m) || wants_keys(m) ? launch_line(m, CUDA_BACKWARD_JOIN, stream, error) : FPA_OK;
    if (!status && (m->launch->d_q || m->launch->d_k || (m->matrices && (g->made_kept || g->made_sums))))
        status = launch_product(m, CUDA_BACKWARD_UNPROJECT, stream, error);
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

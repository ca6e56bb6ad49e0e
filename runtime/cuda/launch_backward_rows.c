/* launch_backward_rows: padded and made rows of gradients: their places in the workspace, and their kernels. */
#include "launch_backward_rows.h"

#include "base/round.h"

/* Query heads of a key head. */
static int64_t row_group_of(const struct fpa_launch *f)
{
    return f->heads ? f->query_heads / f->heads : 1;
}

/* Tokens of a line: its sequence's or, in packed batches, those of all sequences. */
static int64_t row_tokens_of(const struct fpa_launch *f)
{
    return f->cu_seqlens ? f->total : f->length;
}

/* The address of sequence 0 of rows with `bytes` for each sequence, counted [B][heads], if sequence number `first` is at `rows`. */
static void *rows_before(void *rows, int64_t first, int64_t bytes)
{
    return (void *)((uintptr_t)rows - (uintptr_t)(first * bytes));
}

/* Strides of rows [B][heads][tokens][width]. In packed batches a sequence's place on the batch axis is its first token. */
static void set_row_strides(long long *stride, const struct fpa_launch *f, int64_t heads, int64_t width)
{
    stride[0] = f->cu_seqlens ? width : heads * row_tokens_of(f) * width;
    stride[1] = width;
    stride[2] = row_tokens_of(f) * width;
}

/* ---- padded rows: multiples of 16 bytes ---- */

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

static void take_padded(const backward_pads *p, struct fpa_cuda_call *call, struct fpa_cuda_backward *back)
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

void launch_backward_pads(cuda_queue *q, backward_pads *p, struct fpa_cuda_call *call,
                          struct fpa_cuda_backward *back)
{
    const int64_t blocks = divide_up(row_tokens_of(p->launch), FPA_CUDA_BACKWARD_PADDED);
    p->back.first_sequence = back->first_sequence;
    p->back.sequences = back->sequences;
    take_padded(p, call, back);
    cuda_launch(q, CUDA_BACKWARD_PADS, back->sequences * (row_group_of(p->launch) + 1) * blocks, &p->back,
                &p->call);
}

/* ---- made rows ---- */

/* Bytes of a sequence's rows of `width` numbers and their gradients. */
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

void made_begin(cuda_queue *q, const made_rows *m)
{
    const struct fpa_cuda_geometry *g = &m->cuda->geometry;
    const struct fpa_launch *f = &m->launch->forward;
    const int64_t pieces = f->batch * row_tokens_of(f) > 0 ? made_operand_bytes(g, f) / 16 : 0;
    if (pieces)
        cuda_launch(q, CUDA_BACKWARD_SPLIT, divide_up(pieces, g->kernel[CUDA_BACKWARD_SPLIT].threads),
                    &m->back, &m->call);
}

/* ---- made rows, or their features, in place of q and k ---- */

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

/* Blocks of `tokens` tokens, of each query head and of the keys. */
static int64_t count_blocks(const made_rows *m, int tokens)
{
    const struct fpa_launch *f = &m->launch->forward;
    return m->back.sequences * (row_group_of(f) + 1) * divide_up(row_tokens_of(f), tokens);
}

static void launch_blocks(cuda_queue *q, const made_rows *m, cuda_kernel kernel, int tokens)
{
    cuda_launch(q, kernel, count_blocks(m, tokens), &m->back, &m->call);
}

/* Launches a kernel in which a thread has a token. */
static void launch_line(cuda_queue *q, const made_rows *m, cuda_kernel kernel)
{
    if (m->features)
        launch_blocks(q, m, kernel, m->cuda->geometry.kernel[kernel].threads);
}

void made_project(cuda_queue *q, made_rows *m, struct fpa_cuda_call *call, struct fpa_cuda_backward *back)
{
    m->back.first_sequence = back->first_sequence;
    m->back.sequences = back->sequences;
    take_place(m, call, back);
    launch_blocks(q, m, CUDA_BACKWARD_PROJECT, m->cuda->geometry.made_tokens);
    launch_line(q, m, CUDA_BACKWARD_FORM);
}

/* ---- from gradients of made rows to those of q, k and matrices ---- */

static void launch_products(cuda_queue *q, made_rows *m)
{
    const struct fpa_cuda_geometry *g = &m->cuda->geometry;
    const int threads = g->kernel[CUDA_BACKWARD_PARTS].threads;
    m->back.part_count = made_parts(&m->launch->forward);
    m->back.adds = 0;
    cuda_launch(q, CUDA_BACKWARD_PRODUCTS, m->back.sequences * m->back.part_count * g->made_sides, &m->back,
                &m->call);
    cuda_launch(q, CUDA_BACKWARD_PARTS, m->back.sequences * divide_up(g->backward_entries, threads), &m->back,
                &m->call);
}

void made_unproject(cuda_queue *q, made_rows *m)
{
    const struct fpa_cuda_geometry *g = &m->cuda->geometry;
    if (wants_queries(m) || wants_keys(m))
        launch_line(q, m, CUDA_BACKWARD_JOIN);
    if (m->launch->d_q || m->launch->d_k || (m->matrices && (g->made_kept || g->made_sums)))
        launch_blocks(q, m, CUDA_BACKWARD_UNPROJECT, g->made_tokens);
    if (m->matrices)
        launch_products(q, m);
}

void launch_weight_sums(cuda_queue *q, const struct fpa_backward_launch *launch,
                        const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const struct fpa_launch *const given = q->launch;
    struct fpa_launch matrices = launch->forward;
    if (!launch->d_weights)
        return;
    matrices.weights = (const float *const *)launch->d_weights;
    q->launch = &matrices;
    cuda_launch(q, CUDA_BACKWARD_WEIGHTS,
                divide_up(g->backward_shared + g->backward_per_head * call->heads,
                          g->kernel[CUDA_BACKWARD_WEIGHTS].threads),
                back, call);
    q->launch = given;
}

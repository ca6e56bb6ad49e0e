/* launch_backward: gradients by the kernels of backward.cu.in: how a call is divided into chunks, segments and sequences at a time,
 * the parts of its workspace, and its launches. */
#include "launch_backward.h"

#include "base/round.h"
#include "grid.h"
#include "launch_backward_rows.h"
#include "launch_passes.h"
#include "sizes.h"

/* Limits of workspace in bytes, over all sequences in flight: copies of states; parts of gradients of matrices. */
static const int64_t copies_limit = INT64_C(1) << 29, parts_limit = INT64_C(1) << 27;
/* Totals of segments; made rows, which may also use what copies leave of their limit. */
static const int64_t totals_limit = INT64_C(1) << 27, rows_limit = INT64_C(1) << 28;

/* One call: which gradients are wanted, how it is divided, and its workspace. */
typedef struct pass {
    const struct fpa_cuda_module *cuda;
    const struct fpa_backward_launch *launch;
    bool queries, keys, matrices, gates; /* gradients that must be computed */
    bool both;                           /* copies of S and of R are kept at the same time */
    /* lines: [B][H], or in packed batches [H], with the parts of all sequences; query heads of a key head; blocks of a line's tokens */
    int64_t sequences, group, blocks;
    int64_t walks;   /* walks of states for each line: its sequences */
    int64_t at_once; /* lines in flight */
    struct fpa_cuda_call call;
    struct fpa_cuda_backward back;
    made_rows made; /* rows that kernels read in place of q and k */
    backward_pads pads;
    size_t bytes; /* of the workspace */
} pass;

/* ---- sizes ---- */

/* Parts of `tokens` tokens of a line; in packed batches the largest number that there can be (docs/decisions/0034). */
static int64_t parts_in(const pass *p, int64_t tokens)
{
    const struct fpa_launch *f = &p->launch->forward;
    return f->cu_seqlens ? f->total / tokens + f->batch : divide_up(f->length, tokens);
}

/* Numbers of the copies of states of one line. */
static int64_t copies_of(const pass *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    return (p->call.chunks + p->walks) * g->features * g->columns;
}

/* Bytes of a line's copies of states, independent of which gradients are wanted, so that chunks, and results to the last bit, are too.
 * Kernels of whole chunks keep copies of one side at a time, and states between parts. */
static int64_t copy_bytes(const pass *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    if (g->backward_walks)
        return copies_of(p) * g->copy_bytes + p->back.gate_parts * g->backward_boundary;
    return copies_of(p) * g->copy_bytes * (g->gate || g->backward_both ? 2 : 1);
}

/* Number of chunks of a line for kernels of whole chunks; each chunk is a multiple of a part. Blocks run in rounds of `room`; a round
 * takes as long as a chunk and BESIDE tokens. With several chunks, states are computed before, by other blocks, which also want to fill
 * the GPU. */
static int64_t count_walks(const pass *p, int64_t lines, int64_t room, int64_t length)
{
    enum {
        BESIDE = 128,
        STATES = 1,
        OF = 4
    }; /* tokens; states take STATES / OF of the time of a chunk's tokens */
    const int64_t part = (int64_t)p->cuda->geometry.chunk << p->back.part_shift;
    const int64_t all = divide_up(length, part), fill = divide_up(2 * room, lines) - 1;
    const int64_t first = fill < all ? fill : all;
    int64_t best = 1, least = divide_up(lines, room) * (length + BESIDE) * OF;
    for (int64_t count = first > 2 ? first : 2; count <= all && count <= 4 * first; count++) {
        const int64_t chunk = round_up(divide_up(length, count), part);
        const int64_t rounds = divide_up(lines * divide_up(length, chunk), room);
        const int64_t cost = rounds * (chunk + BESIDE) * OF + STATES * length * lines / room;
        if (cost >= least)
            continue;
        best = count;
        least = cost;
    }
    return best;
}

/* Bytes of a line: made rows, padded rows, and what they store for gradients of matrices; independent of which gradients are wanted. */
static int64_t row_bytes(const pass *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_launch *f = &p->launch->forward;
    return made_sequence_bytes(g, f) + made_kept_bytes(g, f) + backward_pad_bytes(g, f);
}

static int64_t at_most(int64_t sequences, int64_t limit, int64_t bytes)
{
    const int64_t most = bytes > 0 ? limit / bytes : sequences;
    return most < 1 ? 1 : most < sequences ? most : sequences;
}

/* Chunks of kernels of whole chunks: the longer, the fewer states are copied. For a single long line parts are longer, too, so that the
 * states between them do not exceed the limit. */
static void choose_walked_chunk(pass *p, int form)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t room = cuda_room_for(p->cuda, CUDA_BACKWARD_KEYS);
    const int64_t length =
        p->launch->forward.cu_seqlens ? p->launch->forward.total : p->launch->forward.length;
    const int64_t limit = (int64_t)(p->cuda->pass_limit / 2);
    int64_t part = g->chunk;
    while (parts_in(p, part) * g->backward_boundary > limit && part < length) {
        part *= 2;
        p->back.part_shift++;
    }
    p->back.gate_parts = parts_in(p, part);
    /* the lines in flight must fill the GPU, not all of the call's */
    const int64_t lines = at_most(at_most(p->sequences, limit, p->back.gate_parts * g->backward_boundary),
                                  rows_limit + copies_limit, row_bytes(p));
    const int64_t count = form == FORM_PARALLEL || lines < 1 ? 1 : count_walks(p, lines, room, length);
    p->call.chunk = round_up(divide_up(length > 0 ? length : 1, count), part);
    p->call.chunks = parts_in(p, p->call.chunk);
}

static void choose_chunk(pass *p, int form)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t length = p->launch->forward.length;
    if (g->backward_walks) {
        choose_walked_chunk(p, form);
        return;
    }
    p->call.chunk = form == FORM_PARALLEL ? round_up(length > 0 ? length : 1, g->backward_tokens) : g->chunk;
    p->call.chunks = parts_in(p, p->call.chunk);
    while (p->call.chunk < length && copy_bytes(p) > copies_limit) {
        p->call.chunk *= 2;
        p->call.chunks = parts_in(p, p->call.chunk);
    }
}

static int64_t parts_of(const pass *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t entries = g->made_width ? made_part_entries(g, &p->launch->forward)
                                          : p->group * p->blocks * g->backward_entries;
    return p->matrices ? entries : 0;
}

/* Number of sequences in flight, at most `most`, so that pieces are of like size and blocks take the fewest rounds: a round of few blocks
 * takes as long as a full one. */
static int64_t alike(const pass *p, int64_t most)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t walks = p->walks * g->chunk_state_slices * g->column_blocks;
    const int64_t least = most > 0 ? divide_up(p->sequences, most) : 0;
    int64_t best = most, fewest = INT64_MAX;
    for (int64_t pieces = least; pieces > 0 && pieces <= 2 * least && pieces <= p->sequences; pieces++) {
        const int64_t at_once = divide_up(p->sequences, pieces);
        const int64_t rounds = divide_up(p->sequences, at_once) *
                               (divide_up(at_once * walks, cuda_room_for(p->cuda, CUDA_BACKWARD_STATE)) +
                                divide_up(at_once * p->blocks, cuda_room_for(p->cuda, CUDA_BACKWARD_KEYS)));
        if (rounds >= fewest)
            continue;
        fewest = rounds;
        best = at_once;
    }
    return best;
}

/* Number of segments of a walk of states, so that walks in flight fill the GPU twice; independent of which gradients are wanted, so that
 * results are equal to the last bit. One segment if the state after the whole walk is wanted, since segments store only copies. */
static void choose_segments(pass *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t in_flight = at_most(p->sequences, copies_limit, copy_bytes(p));
    const int64_t walks = in_flight * g->chunk_state_slices * g->column_blocks;
    const int64_t room = cuda_room_for(p->cuda, CUDA_BACKWARD_STATE);
    const int64_t total = (int64_t)sizeof(float) * in_flight * g->features * g->columns;
    int64_t segments = walks > 0 && walks < room ? 2 * room / walks : 1;
    const int64_t most = p->call.chunks, kept = totals_limit / (total > 0 ? total : 1) + 1;
    segments = segments < most ? segments : most;
    segments = segments < kept ? segments : kept;
    if (segments < 2 || p->launch->d_state_in || p->launch->forward.cu_seqlens)
        segments = 1; /* packed batches: sequences are processed at the same time */
    p->back.segment_chunks = divide_up(p->call.chunks, segments);
    p->back.segments = p->back.segment_chunks ? divide_up(p->call.chunks, p->back.segment_chunks) : 1;
}

static void place(pass *p, char *base)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_launch *f = &p->launch->forward;
    struct fpa_cuda_backward *back = &p->back;
    const int64_t tokens = f->cu_seqlens ? f->total : f->batch * f->length;
    const int64_t queries = tokens * f->query_heads, copies = p->at_once * copies_of(p);
    p->call.gate_row = parts_in(p, 64) * 64;
    const int64_t gates = g->gate ? p->sequences * p->call.gate_row : 0;
    p->call.gates = cuda_take(base, &p->bytes, gates, 2 * sizeof(float));
    back->outputs = cuda_take(base, &p->bytes,
                              g->backward_outputs || g->kernel[CUDA_BACKWARD_OUTPUTS].threads ? queries : 0,
                              2 * sizeof(float));
    back->query_sums = cuda_take(
        base, &p->bytes, g->gate ? queries * (g->backward_walks ? g->backward_walks : 1) : 0, sizeof(double));
    back->key_sums = cuda_take(base, &p->bytes, g->gate ? tokens * f->heads : 0, sizeof(double));
    back->states = cuda_take(base, &p->bytes, copies, (size_t)g->copy_bytes);
    back->reversed = p->both ? cuda_take(base, &p->bytes, copies, (size_t)g->copy_bytes) : back->states;
    const int64_t parts = p->gates ? p->at_once * back->gate_parts : 0;
    back->boundaries = cuda_take(base, &p->bytes, parts, (size_t)g->backward_boundary);
    back->products = cuda_take(base, &p->bytes, parts, sizeof(double));
    back->totals = cuda_take(base, &p->bytes, p->at_once * (back->segments - 1) * g->features * g->columns,
                             sizeof(float));
    back->parts = cuda_take(base, &p->bytes, p->at_once * parts_of(p), sizeof(float));
    back->sequence_sums =
        cuda_take(base, &p->bytes, p->matrices ? p->sequences * g->backward_entries : 0, sizeof(float));
}

static void place_made(pass *p, char *base)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_launch *f = &p->launch->forward;
    if (!g->made_width)
        return;
    void *operands = cuda_take(base, &p->bytes, made_operand_bytes(g, f), 1);
    void *rows = cuda_take(base, &p->bytes, p->at_once * made_sequence_bytes(g, f), 1);
    void *kept = cuda_take(base, &p->bytes, p->matrices ? p->at_once * made_kept_bytes(g, f) : 0, 1);
    p->made = (made_rows){p->cuda, p->launch, p->matrices, false, p->call, p->back};
    p->made.back.made_operands = operands;
    if (rows)
        made_place(&p->made, rows, p->at_once);
    if (kept)
        made_place_kept(&p->made, kept, p->at_once);
}

static void place_pads(pass *p, char *base)
{
    const struct fpa_launch *f = &p->launch->forward;
    void *rows = cuda_take(base, &p->bytes, p->at_once * backward_pad_bytes(&p->cuda->geometry, f), 1);
    p->pads = (backward_pads){p->cuda, f, p->call, p->back};
    if (rows)
        place_backward_pads(&p->pads, rows, p->at_once);
}

static void set_operands(pass *p)
{
    const struct fpa_backward_launch *a = p->launch;
    struct fpa_cuda_backward *back = &p->back;
    cuda_fill_call(&a->forward, &p->call);
    p->call.state_out = NULL;
    back->d_o = a->d_o;
    back->d_state_out = a->d_state_out;
    back->d_q = a->d_q;
    back->d_k = a->d_k;
    back->d_v = a->d_v;
    back->d_state_in = a->d_state_in;
    back->den = a->forward.den;
    back->d_log_gate = a->d_log_gate;
    for (int i = 0; i < 3; i++) {
        back->d_o_stride[i] = a->d_o_stride[i];
        back->d_q_stride[i] = a->d_q_stride[i];
        back->d_k_stride[i] = a->d_k_stride[i];
        back->d_v_stride[i] = a->d_v_stride[i];
        back->den_stride[i] = a->forward.den_stride[i];
        back->d_log_gate_stride[i] = a->d_log_gate_stride[i];
    }
    if (a->forward.cu_seqlens) { /* a sequence's place on the batch axis is its first token */
        long long *const strides[] = {back->d_o_stride, back->d_q_stride, back->d_k_stride,
                                      back->d_v_stride, back->den_stride, back->d_log_gate_stride};
        for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
            strides[i][0] = strides[i][1];
    }
    for (int i = 0; i < 2; i++) {
        back->d_state_out_stride[i] = a->d_state_out_stride[i];
        back->d_state_in_stride[i] = a->d_state_in_stride[i];
    }
}

/* Sizes, operands and parts of the workspace. base: the workspace; NULL: only its size is computed. */
static void prepare(pass *p, const struct fpa_cuda_module *cuda, int form,
                    const struct fpa_backward_launch *a, char *base)
{
    /* blocks of queries and of keys alternate in runs of TURNS times as many blocks as the GPU runs at a time: so a
     * multiprocessor's instruction cache mostly holds the code of one side */
    enum { TURNS = 4 };
    const struct fpa_launch *f = &a->forward;
    *p = (pass){.cuda = cuda, .launch = a, .sequences = f->batch * f->heads, .walks = 1};
    if (f->cu_seqlens) {
        p->sequences = f->batch ? f->heads : 0;
        p->walks = f->batch;
    }
    p->matrices = a->d_weights && cuda->geometry.backward_entries;
    p->gates = a->d_log_gate;
    p->queries = a->d_q || p->matrices || p->gates || cuda->geometry.backward_outputs;
    p->keys = a->d_k || a->d_v || p->matrices || p->gates;
    p->both = !cuda->geometry.backward_walks &&
              (p->gates || (cuda->geometry.backward_both && p->queries && p->keys));
    p->group = f->heads ? f->query_heads / f->heads : 1;
    choose_chunk(p, form);
    p->blocks = cuda->geometry.backward_walks ? p->call.chunks : parts_in(p, cuda->geometry.backward_tokens);
    p->at_once = at_most(p->sequences, copies_limit, copy_bytes(p));
    p->at_once = at_most(p->at_once, parts_limit, parts_of(p) * (int64_t)sizeof(float));
    p->at_once = at_most(p->at_once, rows_limit + copies_limit, row_bytes(p) + copy_bytes(p));
    p->at_once = alike(p, p->at_once);
    choose_segments(p);
    set_operands(p);
    place(p, base);
    place_made(p, base);
    place_pads(p, base);
    if (cuda->geometry.backward_both && p->both)
        p->back.both_sides = TURNS * cuda_room_for(cuda, CUDA_BACKWARD_KEYS);
}

size_t cuda_backward_workspace(const fpa_module *module, int form, const struct fpa_backward_launch *launch)
{
    pass p;
    if (cuda_takes_passes(module, form, launch))
        return cuda_passes_workspace(module, form, launch);
    prepare(&p, module->handle, form, launch, NULL);
    return p.bytes;
}

/* ---- launches ---- */

static void launch_own(cuda_queue *q, const pass *p, cuda_kernel kernel, int64_t blocks)
{
    cuda_launch(q, kernel, blocks, &p->back, &p->call);
}

/* Launches once for all sequences: sums of gates, and normalisers of gradients of outputs. */
static void launch_first(cuda_queue *q, const pass *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t outputs = p->call.batch * p->call.query_heads * p->call.length;
    if (g->gate)
        cuda_launch(q, CUDA_GATE_SCAN, p->sequences * p->call.chunks, NULL, &p->call);
    if (g->kernel[CUDA_BACKWARD_OUTPUTS].threads)
        launch_own(q, p, CUDA_BACKWARD_OUTPUTS, divide_up(outputs, FPA_CUDA_BACKWARD_OUTPUTS));
}

static void launch_states(cuda_queue *q, pass *p, bool back, bool last)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t pieces = divide_up((int64_t)g->features * g->columns / FPA_CUDA_BACKWARD_SEGMENTS,
                                     g->kernel[CUDA_BACKWARD_SEGMENTS].threads);
    p->back.walks_back = back;
    p->back.last = last;
    launch_own(q, p, CUDA_BACKWARD_STATE,
               p->back.sequences * p->walks * p->back.segments * g->chunk_state_slices * g->column_blocks);
    if (p->back.segments > 1)
        launch_own(q, p, CUDA_BACKWARD_SEGMENTS, p->back.sequences * pieces);
}

static void launch_parts(cuda_queue *q, pass *p, int64_t count, bool adds)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int threads = g->kernel[CUDA_BACKWARD_PARTS].threads;
    p->back.part_count = count;
    p->back.adds = adds;
    if (p->matrices && !g->made_width)
        launch_own(q, p, CUDA_BACKWARD_PARTS, p->back.sequences * divide_up(g->backward_entries, threads));
}

static void launch_queries(cuda_queue *q, pass *p)
{
    const struct fpa_backward_launch *a = p->launch;
    /* for the product of both states after the last chunk */
    const bool last = p->both && p->gates && a->d_state_out;
    if (p->call.chunks > 1 || a->forward.state_in || last)
        launch_states(q, p, false, last);
    if (!p->back.both_sides)
        launch_own(q, p, CUDA_BACKWARD_QUERIES, p->back.sequences * p->group * p->blocks);
    launch_parts(q, p, p->group * p->blocks, false);
}

/* With both sides in one launch, operands that one has read are in the cache for the other. */
static void launch_keys(cuda_queue *q, pass *p)
{
    const struct fpa_backward_launch *a = p->launch;
    const int64_t sides = p->back.both_sides ? p->group + 1 : 1;
    if ((p->keys && (p->call.chunks > 1 || a->d_state_out)) || a->d_state_in)
        launch_states(q, p, true, false);
    if (!p->keys)
        return;
    launch_own(q, p, CUDA_BACKWARD_KEYS,
               p->back.sequences * p->blocks * p->cuda->geometry.backward_columns * sides);
    launch_parts(q, p, p->blocks, true);
}

/* Launches for the sequences in `back`. */
static void launch_sequences(cuda_queue *q, pass *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    if (g->made_width)
        made_project(q, &p->made, &p->call, &p->back);
    if (g->kernel[CUDA_BACKWARD_PADS].threads)
        launch_backward_pads(q, &p->pads, &p->call, &p->back);
    if (p->queries)
        launch_queries(q, p);
    launch_keys(q, p);
    if (p->gates)
        launch_own(q, p, CUDA_BACKWARD_GATES,
                   p->back.sequences * (p->back.gate_parts ? p->back.gate_parts : p->call.chunks));
    if (g->made_width)
        made_unproject(q, &p->made);
}

static void launch_all(cuda_queue *q, pass *p)
{
    launch_first(q, p);
    if (p->cuda->geometry.made_width)
        made_begin(q, &p->made);
    for (int64_t first = 0; first < p->sequences && !q->status; first += p->at_once) {
        p->back.first_sequence = first;
        p->back.sequences = p->sequences - first < p->at_once ? p->sequences - first : p->at_once;
        launch_sequences(q, p);
    }
    launch_weight_sums(q, p->launch, &p->call, &p->back);
}

fpa_status cuda_backward(const fpa_module *module, int form, const struct fpa_backward_launch *launch,
                         void *stream, fpa_error *error)
{
    cuda_queue q = cuda_begin(module, &launch->forward, stream, error);
    pass p;
    if (q.status)
        return q.status;
    if (cuda_takes_passes(module, form, launch)) {
        p = (pass){.launch = launch};
        set_operands(&p);
        cuda_launch_passes(&q, module, form, launch, &p.call, &p.back);
        return q.status;
    }
    prepare(&p, q.cuda, form, launch, launch->forward.workspace);
    cuda_check_workspace(&q, p.bytes);
    launch_all(&q, &p);
    return q.status;
}

#include "launch_passes.h"

#include <string.h>

#include "base/round.h"
#include "grid.h"
#include "head/form.h"
#include "launch.h"

enum { ALIGNMENT = 256, ELEMENT = 2 };

/* Sequences that are taken at once: some heads of one batch entry, or all heads of some. */
typedef struct piece {
    int64_t first, batch, heads;
} piece;

/* Bytes of each part of the workspace, one behind the other. */
typedef struct room {
    size_t outputs, rows, result, forward; /* rows: of queries, and again of keys */
} room;

/* One call. */
typedef struct passes {
    const fpa_module *module;
    const struct fpa_cuda_module *cuda;
    const struct fpa_backward_launch *launch;
    int form, d, dv; /* widths of results */
    int64_t at_once; /* sequences */
    room room;
    struct fpa_cuda_call call;
    struct fpa_cuda_backward back;
    char *forward; /* workspace of passes */
} passes;

bool cuda_takes_passes(const fpa_module *module, const struct fpa_backward_launch *launch)
{
    const struct fpa_launch *f = &launch->forward;
    return module->passes[PASS_ROWS] && f->query_heads == f->heads && !f->state_in && !launch->d_state_out &&
           !launch->d_state_in && !launch->d_weights;
}

/* ---- sizes ---- */

static size_t aligned(int64_t count, size_t size)
{
    return round_up(count * (int64_t)size, ALIGNMENT);
}

static piece piece_at(const passes *p, int64_t first)
{
    const struct fpa_launch *f = &p->launch->forward;
    if (p->at_once >= f->heads) {
        const int64_t left = f->batch - first / f->heads, most = p->at_once / f->heads;
        return (piece){first, left < most ? left : most, f->heads};
    }
    const int64_t left = f->heads - first % f->heads;
    return (piece){first, 1, left < p->at_once ? left : p->at_once};
}

static bool wants(const passes *p, fpa_pass pass)
{
    const struct fpa_backward_launch *a = p->launch;
    return pass == PASS_ROWS ? a->d_q || a->d_k : a->d_v != NULL;
}

/* What passes need for such sequences. */
static size_t forward_bytes(const passes *p, piece these)
{
    const struct fpa_launch sizes = {.batch = these.batch,
                                     .length = p->launch->forward.length,
                                     .query_heads = these.heads,
                                     .heads = these.heads};
    size_t most = 0;
    for (int i = 0; i < PASSES; i++) {
        const fpa_module *pass = p->module->passes[i];
        const size_t bytes = wants(p, i) ? pass->workspace(pass, p->form, &sizes, NULL) : 0;
        most = bytes > most ? bytes : most;
    }
    return aligned((int64_t)most, 1);
}

static size_t count_room(passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_launch *f = &p->launch->forward;
    const piece whole = piece_at(p, 0);
    const int64_t tokens = whole.batch * whole.heads * f->length;
    /* the last piece may be smaller: its sequences are cut into more segments */
    const int64_t period = p->at_once >= f->heads ? f->batch * f->heads : f->heads;
    const int64_t last = (period - 1) / (whole.batch * whole.heads) * (whole.batch * whole.heads);
    const size_t all = forward_bytes(p, whole), rest = forward_bytes(p, piece_at(p, last));
    const bool behind = p->launch->d_k || p->launch->d_v;
    p->room.outputs = g->kernel[CUDA_BACKWARD_OUTPUTS].threads
                          ? aligned(f->batch * f->heads * f->length, 2 * sizeof(float))
                          : 0;
    p->room.rows = aligned(tokens * g->pass_width, ELEMENT);
    p->room.result = behind ? aligned(tokens * round_up(p->d > p->dv ? p->d : p->dv, 8), ELEMENT) : 0;
    p->room.forward = all > rest ? all : rest;
    return p->room.outputs + 2 * p->room.rows + p->room.result + p->room.forward;
}

/* Of like size, and halved until there is room for one. */
static size_t choose_pieces(passes *p)
{
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t sequences = f->batch * f->heads;
    p->at_once = sequences;
    size_t bytes = count_room(p);
    for (int64_t pieces = 2; bytes > p->cuda->pass_limit && p->at_once > 1; pieces *= 2) {
        const int64_t some = divide_up(sequences, pieces);
        p->at_once = some >= f->heads ? some / f->heads * f->heads : some;
        bytes = count_room(p);
    }
    return bytes;
}

static size_t prepare(passes *p, const fpa_module *module, int form, const struct fpa_backward_launch *launch)
{
    const struct fpa_cuda_module *cuda = module->handle;
    *p = (passes){.module = module,
                  .cuda = cuda,
                  .launch = launch,
                  .form = form,
                  .d = cuda->geometry.pass_d,
                  .dv = cuda->geometry.pass_dv};
    return launch->forward.length > 0 ? choose_pieces(p) : 0;
}

size_t cuda_passes_workspace(const fpa_module *module, int form, const struct fpa_backward_launch *launch)
{
    passes p;
    return prepare(&p, module, form, launch);
}

/* ---- launches ---- */

static fpa_status launch_kernel(const passes *p, cuda_kernel kernel, int64_t blocks, CUstream stream,
                                fpa_error *error)
{
    const fpa_cuda_grid grid = {kernel, blocks, &p->back, 0};
    return cuda_launch(p->cuda, &grid, &p->launch->forward, &p->call, stream, error);
}

static fpa_status launch_tokens(const passes *p, cuda_kernel kernel, piece these, CUstream stream,
                                fpa_error *error)
{
    const int64_t blocks =
        these.batch * these.heads * divide_up(p->launch->forward.length, FPA_CUDA_PASS_TOKENS);
    return launch_kernel(p, kernel, blocks, stream, error);
}

static fpa_status launch_outputs(const passes *p, CUstream stream, fpa_error *error)
{
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t outputs = f->batch * f->heads * f->length;
    return p->back.outputs ? launch_kernel(p, CUDA_BACKWARD_OUTPUTS,
                                           divide_up(outputs, FPA_CUDA_BACKWARD_OUTPUTS), stream, error)
                           : FPA_OK;
}

static fpa_status gather(passes *p, piece these, bool reversed, CUstream stream, fpa_error *error)
{
    p->back.first_sequence = these.first;
    p->back.sequences = these.batch * these.heads;
    p->back.pass_reversed = reversed;
    return launch_tokens(p, CUDA_BACKWARD_GATHER, these, stream, error);
}

/* An operand or the result of a pass. */
typedef struct tensor {
    char *at;
    int64_t stride[3]; /* batch, token, head */
} tensor;

/* Numbers of rows of the workspace, from a column on. */
static tensor rows_of(const passes *p, piece these, void *rows, int width, int column)
{
    const int64_t length = p->launch->forward.length;
    return (tensor){(char *)rows + (size_t)column * ELEMENT,
                    {these.heads * length * width, width, length * width}};
}

static tensor given(piece these, int64_t heads, const void *base, const int64_t stride[3])
{
    const int64_t offset = these.first / heads * stride[0] + these.first % heads * stride[2];
    char *at = base ? (char *)(uintptr_t)base + offset * ELEMENT : NULL;
    return (tensor){at, {stride[0], stride[1], stride[2]}};
}

static struct fpa_launch launch_of(const passes *p, piece these, const tensor *q, const tensor *k,
                                   const tensor *v, const tensor *o)
{
    struct fpa_launch f = {.batch = these.batch,
                           .length = p->launch->forward.length,
                           .query_heads = these.heads,
                           .heads = these.heads,
                           .q = q->at,
                           .k = k->at,
                           .v = v->at,
                           .o = o->at,
                           .workspace = p->forward,
                           .workspace_size = p->room.forward};
    memcpy(f.q_stride, q->stride, sizeof f.q_stride);
    memcpy(f.k_stride, k->stride, sizeof f.k_stride);
    memcpy(f.v_stride, v->stride, sizeof f.v_stride);
    memcpy(f.o_stride, o->stride, sizeof f.o_stride);
    return f;
}

static fpa_status forward(const passes *p, fpa_pass pass, const struct fpa_launch *f, CUstream stream,
                          fpa_error *error)
{
    const fpa_module *module = p->module->passes[pass];
    return module->forward(module, p->form, f, NULL, stream, error);
}

/* Of operands as they are given. Where f' is constant and nothing is divided, rows are d_o and v. */
static bool is_plain(const passes *p, fpa_pass pass)
{
    return !p->back.outputs && (pass == PASS_VALUES || p->cuda->geometry.pass_input);
}

/* d_q: queries are [q, g, h], keys [k, v, 1], values k. */
static fpa_status launch_queries(passes *p, piece these, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_backward_launch *a = p->launch;
    const struct fpa_launch *f = &a->forward;
    const bool plain = is_plain(p, PASS_ROWS);
    const tensor v = given(these, f->heads, f->k, f->k_stride);
    const tensor o = given(these, f->heads, a->d_q, a->d_q_stride);
    const tensor q = plain ? given(these, f->heads, a->d_o, a->d_o_stride)
                           : rows_of(p, these, p->back.pass_queries, g->pass_width, g->pass_input);
    const tensor k = plain ? given(these, f->heads, f->v, f->v_stride)
                           : rows_of(p, these, p->back.pass_keys, g->pass_width, g->pass_input);
    const struct fpa_launch pass = launch_of(p, these, &q, &k, &v, &o);
    fpa_status status = plain ? FPA_OK : gather(p, these, false, stream, error);
    return status ? status : forward(p, PASS_ROWS, &pass, stream, error);
}

/* d_k or d_v of plain operands. */
static struct fpa_launch plain_launch(const passes *p, fpa_pass pass, piece these)
{
    const struct fpa_backward_launch *a = p->launch;
    const struct fpa_launch *f = &a->forward;
    const tensor q = given(these, f->heads, f->q, f->q_stride), k = given(these, f->heads, f->k, f->k_stride);
    const tensor v = given(these, f->heads, f->v, f->v_stride);
    const tensor d_o = given(these, f->heads, a->d_o, a->d_o_stride);
    const tensor d_k = given(these, f->heads, a->d_k, a->d_k_stride);
    const tensor d_v = given(these, f->heads, a->d_v, a->d_v_stride);
    return pass == PASS_ROWS ? launch_of(p, these, &v, &d_o, &q, &d_k)
                             : launch_of(p, these, &k, &q, &d_o, &d_v);
}

/* Whether kernels take the tokens from the last one on by themselves, of operands as they are given. */
static bool reverses(const passes *p, fpa_pass pass, piece these)
{
    const struct fpa_launch f = plain_launch(p, pass, these);
    return p->form == FORM_CHUNKED && is_plain(p, pass) && cuda_reverses(p->module->passes[pass], &f);
}

/* d_k: queries are [k, v, 1], keys [q, g, h], values q; d_v: queries k, keys q, values g. */
static fpa_status launch_rows(passes *p, fpa_pass pass, piece these, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const bool of_values = pass == PASS_VALUES;
    const int input = of_values ? 0 : g->pass_input;
    const int width = (int)round_up(of_values ? p->dv : p->d, 8);
    const tensor q = rows_of(p, these, p->back.pass_keys, g->pass_width, input);
    const tensor k = rows_of(p, these, p->back.pass_queries, g->pass_width, input);
    const tensor v = rows_of(p, these, p->back.pass_queries, g->pass_width, of_values ? g->pass_values : 0);
    const tensor o = rows_of(p, these, (void *)(uintptr_t)p->back.pass_result, width, 0);
    const struct fpa_launch f = launch_of(p, these, &q, &k, &v, &o);
    fpa_status status = forward(p, pass, &f, stream, error);
    p->back.scatters_values = of_values;
    return status ? status : launch_tokens(p, CUDA_BACKWARD_SCATTER, these, stream, error);
}

/* From the last token on; *gathered: rows in that order are there. */
static fpa_status launch_reversed(passes *p, fpa_pass pass, piece these, bool *gathered, CUstream stream,
                                  fpa_error *error)
{
    const struct fpa_launch f = plain_launch(p, pass, these);
    fpa_status status = FPA_OK;
    if (reverses(p, pass, these))
        return cuda_forward_reversed(p->module->passes[pass], &f, stream, error);
    if (!*gathered)
        status = gather(p, these, true, stream, error);
    *gathered = true;
    return status ? status : launch_rows(p, pass, these, stream, error);
}

static fpa_status launch_piece(passes *p, piece these, CUstream stream, fpa_error *error)
{
    const struct fpa_backward_launch *a = p->launch;
    bool gathered = false;
    fpa_status status = a->d_q ? launch_queries(p, these, stream, error) : FPA_OK;
    if (!status && a->d_k)
        status = launch_reversed(p, PASS_ROWS, these, &gathered, stream, error);
    return status || !a->d_v ? status : launch_reversed(p, PASS_VALUES, these, &gathered, stream, error);
}

static void place(passes *p, char *base)
{
    p->back.outputs = p->room.outputs ? (float *)base : NULL;
    p->back.pass_queries = base + p->room.outputs;
    p->back.pass_keys = (char *)p->back.pass_queries + p->room.rows;
    p->back.pass_result = (char *)p->back.pass_keys + p->room.rows;
    p->forward = (char *)p->back.pass_keys + p->room.rows + p->room.result;
}

fpa_status cuda_launch_passes(const fpa_module *module, int form, const struct fpa_backward_launch *launch,
                              const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back,
                              CUstream stream, fpa_error *error)
{
    const struct fpa_launch *f = &launch->forward;
    passes p;
    const size_t bytes = prepare(&p, module, form, launch);
    if (f->workspace_size < bytes)
        return fail(error, FPA_INVALID, "workspace", "has %zu bytes, but this call needs %zu",
                    f->workspace_size, bytes);
    if (!bytes || !(launch->d_q || launch->d_k || launch->d_v))
        return FPA_OK;
    p.call = *call;
    p.back = *back;
    place(&p, f->workspace);
    fpa_status status = launch_outputs(&p, stream, error);
    for (int64_t first = 0; first < f->batch * f->heads && !status;) {
        const piece these = piece_at(&p, first);
        status = launch_piece(&p, these, stream, error);
        first += these.batch * these.heads;
    }
    return status;
}

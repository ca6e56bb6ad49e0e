/* launch_passes_operands: the operands of passes: tensors as given, or rows of the workspace. */
#include "launch_passes_operands.h"

#include <string.h>

#include "base/round.h"
#include "launch_maps.h"
#include "launch_reversed.h"

enum { ELEMENT = 2 };

/* Rows of the workspace in the layout of the last gather, from a column on. */
static pass_tensor rows_of(const passes *p, void *rows, int width, int column)
{
    const int64_t length = p->back.pass_length;
    return (pass_tensor){(char *)rows + (size_t)column * ELEMENT,
                         {p->these.heads * length * width, width, length * width}};
}

pass_tensor pass_given(const passes *p, int64_t heads, const void *base, const int64_t stride[3])
{
    const int64_t offset = p->these.first / heads * stride[0] + p->these.first % heads * stride[2];
    char *at = base ? (char *)(uintptr_t)base + offset * ELEMENT : NULL;
    return (pass_tensor){at, {stride[0], stride[1], stride[2]}};
}

struct fpa_launch pass_launch_of(const passes *p, const pass_tensor *q, const pass_tensor *k,
                                 const pass_tensor *v, const pass_tensor *o)
{
    struct fpa_launch f = {.batch = p->these.batch,
                           .length = p->launch->forward.length,
                           .query_heads = p->these.heads,
                           .heads = p->these.heads,
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

/* Sets log-gates as given. */
void pass_set_gates(const passes *p, struct fpa_launch *pass)
{
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t *stride = f->gate_stride;
    if (p->zero) {
        pass->log_gate = p->zero;
        memset(pass->gate_stride, 0, sizeof pass->gate_stride);
    }
    if (!p->cuda->geometry.gate)
        return;
    pass->log_gate =
        f->log_gate + p->these.first / f->heads * stride[0] + p->these.first % f->heads * stride[2];
    memcpy(pass->gate_stride, stride, sizeof pass->gate_stride);
}

/* The same for gathered rows, of their number, with gathered log-gates. */
struct fpa_launch pass_launch_of_rows(const passes *p, const pass_tensor *q, const pass_tensor *k,
                                      const pass_tensor *v, const pass_tensor *o)
{
    struct fpa_launch f = pass_launch_of(p, q, k, v, o);
    f.length = p->behind ? (int64_t)round_up(p->reached, CUDA_TURNED) : p->back.pass_length;
    if (p->given) {
        pass_set_gates(p, &f);
        return f;
    }
    f.log_gate = p->back.pass_gates;
    f.gate_stride[0] = p->these.heads * p->back.pass_length;
    f.gate_stride[1] = 1;
    f.gate_stride[2] = p->back.pass_length;
    if (p->zero) {
        f.log_gate = p->zero;
        memset(f.gate_stride, 0, sizeof f.gate_stride);
    }
    return f;
}

/* Whether results must be converted to gradients, also for d_q: gradients of product rows, or bf16 in an f16 head. */
bool pass_scatters(const passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    return g->pass_formed || (g->pass_widened && !p->narrows);
}

static bool describes_all(const passes *p)
{
    const struct fpa_backward_launch *a = p->launch;
    const struct fpa_launch *f = &a->forward;
    return pass_describes(p, f->q, f->q_stride) && pass_describes(p, f->k, f->k_stride) &&
           pass_describes(p, f->v, f->v_stride) && pass_describes(p, a->d_o, a->d_o_stride);
}

/* Whether a pass reads operands as given. If f' is constant and nothing is divided, its rows are d_o and v. */
bool pass_is_plain(const passes *p, fpa_pass pass)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    if (p->back.outputs || (g->gate && !p->contracts) || g->pass_weighted || g->pass_formed ||
        g->pass_widened || p->group != 1 || (pass == PASS_ROWS && !pass_parts_are_given(p)))
        return false;
    return p->contracts ? p->d % 8 == 0 && !g->backward_padded_value && describes_all(p)
                        : pass == PASS_VALUES || g->pass_input;
}

/* Whether the pass for d_q reads d_o, v and log-gates as given: for a linear head its rows have no other numbers. */
bool pass_has_plain_values(const passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_launch *f = &p->launch->forward;
    if (g->pass_numbers)
        return p->group == 1;
    if (g->pass_widened || !g->pass_line || !(g->gate || g->pass_weighted) || p->back.outputs ||
        p->group != 1 || !pass_parts_are_given(p))
        return false;
    return !g->pass_weighted || (p->dv % 8 == 0 && pass_describes(p, f->v, f->v_stride) &&
                                 pass_describes(p, p->launch->d_o, p->launch->d_o_stride));
}

/* Whether it also reads q and k as given: not if they have weights. */
bool pass_is_plain_forth(const passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    return pass_has_plain_values(p) ? !g->pass_weighted : pass_is_plain(p, PASS_ROWS);
}

/* Whether results of a reversed pass are the gradients of keys: none is of a row of zeros before the last token. */
bool pass_is_direct(const passes *p)
{
    return !pass_scatters(p) && p->group == 1 && p->back.pass_length == p->launch->forward.length;
}

/* The same for gradients of values, which are given even with product rows. */
static bool values_are_direct(const passes *p)
{
    return !(p->cuda->geometry.pass_widened && !p->narrows) && p->group == 1 &&
           p->back.pass_length == p->launch->forward.length;
}

/* Numbers of a gathered row: only rows with other factors leave no room for values that are not gathered. */
static int row_width(const passes *p)
{
    const bool vectors = p->cuda->geometry.pass_kept && p->given_values;
    return pass_row_width(p, vectors ? GATHERS_VECTORS : GATHERS_ALL);
}

/* Rows of queries, or of keys, from a column on: operands of dots and values of a pass. */
pass_tensor pass_query_rows(const passes *p, int column)
{
    return rows_of(p, p->back.pass_queries, row_width(p), column);
}

pass_tensor pass_key_rows(const passes *p, int column)
{
    return rows_of(p, p->back.pass_keys, row_width(p), column);
}

pass_tensor pass_result_rows(const passes *p, int width)
{
    return rows_of(p, (void *)(uintptr_t)p->back.pass_result, (int)round_up(width, 8), 0);
}

pass_tensor pass_query_vectors(const passes *p)
{
    const struct fpa_launch *f = &p->launch->forward;
    return p->given ? pass_given(p, f->heads, f->q, f->q_stride) : pass_query_rows(p, 0);
}

pass_tensor pass_key_vectors(const passes *p)
{
    const struct fpa_launch *f = &p->launch->forward;
    return p->given ? pass_given(p, f->heads, f->k, f->k_stride) : pass_key_rows(p, 0);
}

pass_tensor pass_query_values(const passes *p)
{
    const struct fpa_backward_launch *a = p->launch;
    return p->given_values ? pass_given(p, a->forward.heads, a->d_o, a->d_o_stride)
                           : pass_query_rows(p, p->cuda->geometry.pass_values);
}

pass_tensor pass_key_values(const passes *p)
{
    const struct fpa_launch *f = &p->launch->forward;
    return p->given_values ? pass_given(p, f->heads, f->v, f->v_stride)
                           : pass_key_rows(p, p->cuda->geometry.pass_values);
}

/* The same tensor in reverse order of tokens. */
pass_tensor pass_turned(const passes *p, pass_tensor t)
{
    t.at += (p->launch->forward.length - 1) * t.stride[1] * ELEMENT;
    t.stride[1] = -t.stride[1];
    return t;
}

/* The launch for d_k or d_v from operands as given. */
struct fpa_launch pass_launch_of_given(const passes *p, fpa_pass pass)
{
    const struct fpa_backward_launch *a = p->launch;
    const struct fpa_launch *f = &a->forward;
    const pass_tensor q = pass_given(p, f->heads, f->q, f->q_stride),
                      k = pass_given(p, f->heads, f->k, f->k_stride);
    const pass_tensor v = pass_given(p, f->heads, f->v, f->v_stride);
    const pass_tensor d_o = pass_given(p, f->heads, a->d_o, a->d_o_stride);
    const pass_tensor d_k =
        a->d_k ? pass_given(p, f->heads, a->d_k, a->d_k_stride) : pass_result_rows(p, p->d);
    const pass_tensor d_v = pass_given(p, f->heads, a->d_v, a->d_v_stride);
    struct fpa_launch launch =
        pass == PASS_ROWS ? pass_launch_of(p, &v, &d_o, &q, &d_k) : pass_launch_of(p, &k, &q, &d_o, &d_v);
    pass_set_gates(p, &launch);
    return launch;
}

/* Whether a pass stores a gradient directly: by kernels whose results threads store, without weights and additional columns. */
bool pass_leaves_directly(const passes *p, fpa_pass pass)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const bool own = pass == PASS_ROWS
                         ? p->launch->d_k && g->pass_line && !g->pass_weighted
                         : g->pass_line || (p->contracts && !p->back.outputs && (!g->gate || p->given) &&
                                            !g->backward_padded_value);
    return own && (pass == PASS_ROWS ? pass_is_direct(p) : values_are_direct(p));
}

/* The launch for d_k or d_v from gathered rows. d_k: queries are [k, v, 1], keys [q, g, h], values q. d_v: queries are k, keys q, values
 * g, or [g, h] with a gate. */
struct fpa_launch pass_launch_back(const passes *p, fpa_pass pass)
{
    const struct fpa_backward_launch *a = p->launch;
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const bool of_rows = pass == PASS_ROWS;
    const int first = g->pass_input;
    const pass_tensor q = of_rows ? pass_key_rows(p, first) : pass_key_vectors(p),
                      k = of_rows ? pass_query_rows(p, first) : pass_query_vectors(p),
                      v = of_rows ? pass_query_rows(p, 0) : pass_query_values(p);
    pass_tensor o = of_rows ? pass_given(p, a->forward.heads, a->d_k, a->d_k_stride)
                            : pass_given(p, a->forward.heads, a->d_v, a->d_v_stride);
    if (!pass_leaves_directly(p, pass))
        o = pass_result_rows(p, of_rows ? p->d : p->dv);
    else if (!p->forth && !p->turns)
        o = pass_turned(p, o);
    return pass_launch_of_rows(p, &q, &k, &v, &o);
}

/* Whether a map of the copy engine can describe an operand's rows of all heads as one tensor. */
static bool joins(const passes *p, const pass_tensor *t)
{
    const long long stride[3] = {t->stride[0], t->stride[1], t->stride[2]};
    return p->cuda->driver->cuTensorMapEncodeTiled &&
           cuda_can_join(t->at, stride, p->d, p->these.heads, p->launch->forward.length, p->these.batch);
}

void pass_find_leaning(passes *p, bool given)
{
    const struct fpa_launch *f = &p->launch->forward;
    const pass_tensor q = pass_given(p, f->heads, f->q, f->q_stride),
                      k = pass_given(p, f->heads, f->k, f->k_stride);
    const bool of_queries = joins(p, &q), of_keys = joins(p, &k);
    p->apart = !given || of_queries != of_keys ||
               (of_keys && (q.stride[2] - k.stride[2]) % 8); /* numbers in 16 bytes */
    p->value_stride = of_keys && !p->apart ? k.stride[2] : 0;
}

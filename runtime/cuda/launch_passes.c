#include "launch_passes.h"

#include <string.h>

#include "base/round.h"
#include "grid.h"
#include "head/form.h"
#include "launch.h"
#include "launch_contraction.h"
#include "launch_passes_copies.h"
#include "launch_passes_operands.h"
#include "launch_passes_rows.h"
#include "launch_reversed.h"

size_t cuda_passes_workspace(const fpa_module *module, int form, const struct fpa_backward_launch *launch)
{
    passes p;
    return passes_prepare(&p, module, form, launch);
}

/* ---- forth ---- */

static fpa_status forward(const passes *p, fpa_pass pass, const struct fpa_launch *f, CUstream stream,
                          fpa_error *error)
{
    const fpa_module *module = p->module->passes[pass];
    return module->forward(module, p->form, f, NULL, stream, error);
}

/* d_q: queries are [q, g, h], keys [k, v, 1], values k. */
static fpa_status launch_queries(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_backward_launch *a = p->launch;
    const struct fpa_launch *f = &a->forward;
    const bool scatters = pass_scatters(p);
    const pass_tensor o = a->d_q && !scatters ? pass_given(these, f->query_heads, a->d_q, a->d_q_stride)
                                              : pass_result_rows(p, these, p->d);
    float *const dots = pass_outputs_read(p) ? NULL : p->read_dots;
    const bool plain = pass_is_plain_forth(p);
    if (plain || pass_has_plain_values(p)) {
        const pass_tensor q = pass_given(these, f->heads, a->d_o, a->d_o_stride);
        const pass_tensor k = pass_given(these, f->heads, f->v, f->v_stride);
        const pass_tensor v =
            plain ? pass_given(these, f->heads, f->k, f->k_stride) : pass_key_rows(p, these, 0);
        const pass_tensor with =
            plain ? pass_given(these, f->heads, f->q, f->q_stride) : pass_query_rows(p, these, 0);
        struct fpa_launch pass = pass_launch_of(p, these, &q, &k, &v, &o);
        pass_set_gates(p, these, &pass);
        return pass_forward_rows(p, these, &pass, &with, dots, p->kept, &p->states, stream, error);
    }
    const pass_tensor q = pass_query_rows(p, these, g->pass_input),
                      k = pass_key_rows(p, these, g->pass_input);
    const pass_tensor v = pass_key_rows(p, these, 0), with = pass_query_rows(p, these, 0);
    const struct fpa_launch pass = pass_launch_of_rows(p, these, &q, &k, &v, &o);
    const fpa_status status =
        pass_forward_rows(p, these, &pass, &with, dots, p->kept, &p->states, stream, error);
    return status || !scatters || !a->d_q ? status : pass_scatter(p, TO_QUERIES, stream, error);
}

/* What queries read, times its gradient: values are [v, 1], dots are with [g, h]. */
static fpa_status launch_reads(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const int values = p->cuda->geometry.pass_values;
    const pass_tensor q = pass_query_rows(p, these, 0), k = pass_key_rows(p, these, 0),
                      v = pass_key_rows(p, these, values);
    const pass_tensor o = pass_result_rows(p, these, p->dv), with = pass_query_rows(p, these, values);
    struct fpa_launch pass = pass_launch_of_rows(p, these, &q, &k, &v, &o);
    cuda_dots dots = {
        .rows = with.at, .stride = {with.stride[0], with.stride[1], with.stride[2]}, .dots = p->read_dots};
    pass.workspace = p->reads;
    pass.workspace_size = p->room.reads;
    return cuda_forward_dots(p->module->passes[PASS_VALUES], p->form, &pass, NULL, &dots, &p->states, stream,
                             error);
}

/* walked: the pass of values has left states in the launch's workspace. sums: of scores and values; NULL: not wanted. */
static fpa_status contract(const passes *p, const struct fpa_launch *pass, const pass_tensor *rows,
                           bool walked, float *dots, const pass_tensor *sums, const void **states,
                           CUstream stream, fpa_error *error)
{
    cuda_contraction c = {.rows = rows->at, .walked = walked, .reversed = p->behind, .dots = dots};
    memcpy(c.stride, rows->stride, sizeof c.stride);
    if (sums) {
        c.sums = sums->at;
        c.columns = p->cuda->geometry.pass_columns;
        memcpy(c.sum_stride, sums->stride, sizeof c.sum_stride);
    }
    return cuda_contract(p->module->passes[PASS_VALUES], p->form, pass, &c, states, stream, error);
}

/* d_q, of the pass of values' operands; what queries read, times its gradient. */
static fpa_status contract_queries(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const struct fpa_backward_launch *a = p->launch;
    const bool scatters = pass_scatters(p);
    const pass_tensor o = a->d_q && !scatters
                              ? pass_given(these, a->forward.query_heads, a->d_q, a->d_q_stride)
                              : pass_result_rows(p, these, p->d);
    const pass_tensor q = pass_query_vectors(p, these), k = pass_key_vectors(p, these),
                      v = pass_key_values(p, these), rows = pass_query_values(p, these);
    struct fpa_launch pass = pass_launch_of_rows(p, these, &q, &k, &v, &o);
    if (a->d_log_gate) { /* states stay there */
        pass.workspace = p->reads;
        pass.workspace_size = p->room.reads;
    }
    const fpa_status status = contract(p, &pass, &rows, false, a->d_log_gate ? p->read_dots : NULL, NULL,
                                       &p->states, stream, error);
    return status || !scatters || !a->d_q ? status : pass_scatter(p, TO_QUERIES, stream, error);
}

static fpa_status launch_forth(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const struct fpa_backward_launch *a = p->launch;
    const bool reads = a->d_log_gate && p->dots == PASS_VALUES, wanted = a->d_q || (a->d_log_gate && !reads);
    fpa_status status = FPA_OK;
    p->back.pass_length = a->forward.length;
    if (!p->given && ((wanted && !pass_is_plain_forth(p)) || reads))
        status = pass_gather(p, false, p->given_values || pass_has_plain_values(p), stream, error);
    if (!status && p->contracts)
        return a->d_q || a->d_log_gate ? contract_queries(p, these, stream, error) : FPA_OK;
    if (!status && reads)
        status = launch_reads(p, these, stream, error);
    return status || !wanted ? status : launch_queries(p, these, stream, error);
}

/* ---- back ---- */

/* Whether kernels take the tokens from the last one on by themselves, of operands as they are given. */
static bool reverses(const passes *p, fpa_pass pass, passes_piece these)
{
    const struct fpa_launch f = pass_launch_of_given(p, pass, these);
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const bool plain = g->gate || g->pass_numbers ? pass_is_plain_forth(p) : pass_is_plain(p, pass);
    return p->form == FORM_CHUNKED && plain && cuda_reverses(p->module->passes[pass], &f);
}

static fpa_status forward_plain(passes *p, fpa_pass pass, passes_piece these, CUstream stream,
                                fpa_error *error)
{
    const struct fpa_launch *f = &p->launch->forward;
    const pass_tensor with = pass_given(these, f->heads, f->k, f->k_stride);
    const struct fpa_launch launch = pass_launch_of_given(p, pass, these);
    return pass_forward_reversed(p, pass, these, &launch, &with, stream, error);
}

/* d_k. */
static fpa_status launch_keys(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const pass_tensor with = pass_key_rows(p, these, 0);
    const bool direct = pass_leaves_directly(p, PASS_ROWS);
    const struct fpa_launch f = pass_launch_back(p, PASS_ROWS, these);
    const fpa_status status = p->forth
                                  ? pass_forward_reversed(p, PASS_ROWS, these, &f, &with, stream, error)
                                  : pass_forward_rows(p, these, &f, &with, p->given_dots, p->reversed_kept,
                                                      &p->reversed_states, stream, error);
    return status || direct || !p->launch->d_k ? status : pass_scatter(p, TO_KEYS, stream, error);
}

/* d_v of rows as they lie, by kernels of chunks. */
static fpa_status forward_turned(passes *p, const struct fpa_launch *f, CUstream stream, fpa_error *error)
{
    const cuda_dots turned = {.reversed = p->behind};
    return cuda_forward_dots(p->module->passes[PASS_VALUES], p->form, f, NULL, &turned, &p->reversed_states,
                             stream, error);
}

/* d_v; with a gate dots are with [v, 1]. */
static fpa_status launch_values(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const pass_tensor with = pass_key_rows(p, these, p->cuda->geometry.pass_values);
    const bool direct = pass_leaves_directly(p, PASS_VALUES);
    const struct fpa_launch f = pass_launch_back(p, PASS_VALUES, these);
    const cuda_dots dots = {
        .rows = with.at, .stride = {with.stride[0], with.stride[1], with.stride[2]}, .dots = p->given_dots};
    const bool leaves = p->launch->d_log_gate && p->dots == PASS_VALUES && !p->contracts;
    const fpa_status status = p->behind ? forward_turned(p, &f, stream, error)
                              : p->forth
                                  ? pass_forward_reversed(p, PASS_VALUES, these, &f, &with, stream, error)
                              : leaves ? cuda_forward_dots(p->module->passes[PASS_VALUES], p->form, &f, NULL,
                                                           &dots, &p->reversed_states, stream, error)
                                       : forward(p, PASS_VALUES, &f, stream, error);
    return status || !p->launch->d_v || direct ? status : pass_scatter(p, TO_VALUES, stream, error);
}

/* Whether kernels take rows that were gathered from the first token on from the last one on. */
static bool turns(passes *p, fpa_pass pass, passes_piece these)
{
    const fpa_module *module = p->module->passes[pass];
    p->back.pass_length = p->launch->forward.length;
    p->forth = true;
    const struct fpa_launch f = pass_launch_back(p, pass, these);
    p->forth = false;
    return p->form == FORM_CHUNKED && cuda_reverses(module, &f) &&
           cuda_reversed_workspace(module, &f) <= p->room.forward;
}

/* Whether all results of passes of bf16 leave as an f16 head's gradients are: by the kernel that can, of rows gathered once, in both orders. Whichever of them
 * are wanted: those have room. */
static bool can_narrow(passes *p, passes_piece these)
{
    fpa_candidate found;
    for (int i = 0; i < PASSES; i++) {
        const struct fpa_cuda_module *pass = p->module->passes[i] ? p->module->passes[i]->handle : NULL;
        if (p->contracts || p->group != 1 || !pass || !pass->geometry.fused_narrows ||
            pass->geometry.cluster_reverses || (passes_want(p, (fpa_pass)i) && !turns(p, (fpa_pass)i, these)))
            return false;
    }
    const struct fpa_launch f = pass_launch_back(p, PASS_ROWS, these);
    return p->form == FORM_CHUNKED && passes_find(p, PASS_ROWS, &f, &found);
}

static bool turns_gathered(passes *p, fpa_pass pass, passes_piece these)
{
    const bool forth = p->forth, turned = turns(p, pass, these);
    p->forth = forth;
    return turned;
}

/* Rows for a pass from the last token on: those of the pass forth, if its kernels take these so, else in that order. *gathered: which are there. */
static fpa_status gather_back(passes *p, fpa_pass pass, passes_piece these, bool *gathered, CUstream stream,
                              fpa_error *error)
{
    const bool forth = p->forth;
    if (*gathered)
        return FPA_OK;
    if (turns(p, pass, these)) {
        p->forth = forth;
        return forth ? FPA_OK : pass_gather(p, false, false, stream, error);
    }
    *gathered = true;
    return pass_gather(p, true, false, stream, error);
}

/* From the last token on. */
static fpa_status launch_reversed(passes *p, fpa_pass pass, passes_piece these, bool *gathered,
                                  CUstream stream, fpa_error *error)
{
    if (reverses(p, pass, these))
        return forward_plain(p, pass, these, stream, error);
    if (p->cuda->geometry.pass_numbers && (p->group == 1 || !turns_gathered(p, pass, these)))
        return fail(error, FPA_INVALID, p->cuda->name,
                    "no pass takes the call's tokens from the last one on");
    const fpa_status status = gather_back(p, pass, these, gathered, stream, error);
    if (status)
        return status;
    return pass == PASS_ROWS ? launch_keys(p, these, stream, error) : launch_values(p, these, stream, error);
}

/* Whether d_v is found beside d_k, of whose pairs' dots scores are: in each call that wants it, so that its bits are the same. */
static bool contracts_values(const passes *p)
{
    return p->launch->d_v && pass_is_direct(p) &&
           cuda_contracts_values(p->module->passes[PASS_VALUES], p->form);
}

/* d_k, of the operands of d_v, and what keys give. */
static fpa_status contract_keys(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const struct fpa_backward_launch *a = p->launch;
    const pass_tensor q = pass_key_vectors(p, these), k = pass_query_vectors(p, these),
                      v = pass_query_values(p, these), rows = pass_key_values(p, these);
    const bool direct = a->d_k && pass_is_direct(p), both = contracts_values(p);
    pass_tensor o = direct ? pass_given(these, a->forward.heads, a->d_k, a->d_k_stride)
                           : pass_result_rows(p, these, p->d);
    if (direct && !p->turns)
        o = pass_turned(p, o);
    const struct fpa_launch f = pass_launch_of_rows(p, these, &q, &k, &v, &o);
    const pass_tensor d_v = pass_turned(p, pass_given(these, a->forward.heads, a->d_v, a->d_v_stride));
    const fpa_status status = contract(p, &f, &rows, a->d_v && !both, a->d_log_gate ? p->given_dots : NULL,
                                       both ? &d_v : NULL, &p->reversed_states, stream, error);
    return status || direct || !a->d_k ? status : pass_scatter(p, TO_KEYS, stream, error);
}

/* Rows from the last token on; or those of the way forth, in tiles from the last one on. */
static fpa_status gather_turned(passes *p, CUstream stream, fpa_error *error)
{
    p->behind = p->turns ? p->launch->forward.length : 0;
    p->back.pass_reversed = 0;
    if (!p->turns)
        return pass_gather(p, true, false, stream, error);
    p->back.pass_length = p->launch->forward.length;
    return p->given || p->forth ? FPA_OK : pass_gather(p, false, p->given_values, stream, error);
}

static fpa_status contract_back(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const bool keys = p->launch->d_k || p->launch->d_log_gate, values = p->launch->d_v;
    p->given = p->given && p->turns; /* others are copied in their order */
    p->given_values = p->given_values && p->turns;
    fpa_status status = keys || values ? gather_turned(p, stream, error) : FPA_OK;
    const bool both = contracts_values(p);
    if (!status && values && !both)
        status = launch_values(p, these, stream, error);
    return status || !(keys || both) ? status : contract_keys(p, these, stream, error);
}

static fpa_status launch_back(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    bool gathered = false;
    fpa_status status = FPA_OK;
    if (p->contracts)
        return contract_back(p, these, stream, error);
    if (p->launch->d_k || (p->launch->d_log_gate && p->dots == PASS_ROWS))
        status = launch_reversed(p, PASS_ROWS, these, &gathered, stream, error);
    return status || !passes_want(p, PASS_VALUES)
               ? status
               : launch_reversed(p, PASS_VALUES, these, &gathered, stream, error);
}

/* ---- gates, from what passes forth and back have left (p->dots) ---- */

static fpa_status launch_gates(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    struct fpa_cuda_backward *back = &p->back;
    fpa_status status = FPA_OK;
    if (p->chunks > 1)
        status = pass_state_products(p, these, stream, error);
    back->pass_reversed = !p->gives_ahead && !p->behind;
    back->pass_length = p->gives_ahead ? p->launch->forward.length
                        : p->behind    ? (int64_t)round_up(p->reached, CUDA_TURNED)
                                       : p->reached;
    back->pass_reads = p->read_dots + (pass_outputs_read(p) ? these.first * p->launch->forward.length : 0);
    back->pass_read_blocks = pass_outputs_read(p) ? 1 : pass_dot_blocks(p);
    back->pass_gives = p->given_dots;
    back->pass_products = p->products;
    back->pass_blocks = pass_dot_blocks(p);
    back->pass_chunks = p->chunks;
    back->pass_chunk = p->chunks > 1 ? p->chunk : p->launch->forward.length;
    return status ? status
                  : pass_launch(p, CUDA_BACKWARD_PASS_GATES, back->sequences / p->group * p->chunks, stream,
                                error);
}

/* ---- all of them ---- */

/* Rows by matrices of these sequences, which are in the place of q and k then, and their gradients. */
static fpa_status project(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    p->back.first_sequence = these.first / p->group; /* of keys */
    p->back.sequences = these.batch * these.heads / p->group;
    const fpa_status status = made_project(&p->made, &p->call, &p->back, stream, error);
    made_give(&p->call, &p->back, &p->of_rows);
    return status;
}

/* Operands of contractions as they are given. */
static void find_given(passes *p, passes_piece these)
{
    p->turns = passes_turn(p, these);
    p->given = p->contracts && pass_is_plain(p, PASS_ROWS);
    p->given_values = p->given || (p->contracts && pass_can_give_values(p));
}

static fpa_status launch_piece(passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const bool made = p->cuda->geometry.made_width;
    fpa_status status = made ? project(p, these, stream, error) : FPA_OK;
    p->gives_ahead = p->forth = false;
    p->behind = 0;
    p->back.first_sequence = these.first;
    p->back.sequences = these.batch * these.heads;
    pass_find_leaning(p, these, !p->contracts && reverses(p, PASS_ROWS, these));
    p->narrows = can_narrow(p, these);
    find_given(p, these);
    if (!status)
        status = launch_forth(p, these, stream, error);
    if (!status)
        status = launch_back(p, these, stream, error);
    if (!status && p->launch->d_log_gate)
        status = launch_gates(p, these, stream, error);
    return status || !made ? status : made_unproject(&p->made, stream, error);
}

fpa_status cuda_launch_passes(const fpa_module *module, int form, const struct fpa_backward_launch *launch,
                              const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back,
                              CUstream stream, fpa_error *error)
{
    const struct fpa_launch *f = &launch->forward;
    passes p;
    const size_t bytes = passes_prepare(&p, module, form, launch);
    if (f->workspace_size < bytes)
        return fail(error, FPA_INVALID, "workspace", "has %zu bytes, but this call needs %zu",
                    f->workspace_size, bytes);
    if (f->batch * f->length * f->query_heads == 0 ||
        !(p.launch->d_q || p.launch->d_k || launch->d_v || launch->d_log_gate))
        return FPA_OK;
    p.call = *call;
    p.back = *back;
    passes_place(&p, f->workspace);
    p.back.pass_reads = pass_outputs_read(&p) ? p.read_dots : NULL;
    fpa_status status = pass_outputs(&p, stream, error);
    if (!status)
        status = pass_weights(&p, stream, error);
    if (!status)
        status = pass_zero(&p, stream, error);
    if (!status && p.cuda->geometry.made_width)
        status = made_begin(&p.made, stream, error);
    for (int64_t first = 0; first < f->batch * f->query_heads && !status;) {
        const passes_piece these = passes_piece_at(&p, first);
        status = launch_piece(&p, these, stream, error);
        first += these.batch * these.heads;
    }
    return status || !launch->d_weights ? status
                                        : launch_weight_sums(p.cuda, launch, call, &p.back, stream, error);
}

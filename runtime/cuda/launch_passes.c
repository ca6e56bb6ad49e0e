/* launch_passes: gradients as forward passes of other heads: d_q in forward order, d_k and d_v in reverse order of tokens, gradients of
 * log-gates from numbers that both have stored. */
#include "launch_passes.h"

#include <string.h>

#include "base/round.h"
#include "head/form.h"
#include "launch_contraction.h"
#include "launch_passes_rows.h"
#include "launch_reversed.h"

size_t cuda_passes_workspace(const fpa_module *module, int form, const struct fpa_backward_launch *launch)
{
    passes p;
    return passes_prepare(&p, module, form, launch);
}

/* ---- the pass for d_q, in forward order ---- */

/* d_q, or room for the pass's result, if d_q is not wanted or is computed from it. */
static pass_tensor query_gradient(const passes *p)
{
    const struct fpa_backward_launch *a = p->launch;
    return a->d_q && !pass_scatters(p) ? pass_given(p, a->forward.query_heads, a->d_q, a->d_q_stride)
                                       : pass_result_rows(p, p->d);
}

static void scatter_queries(passes *p)
{
    if (p->launch->d_q && pass_scatters(p))
        pass_scatter(p, TO_QUERIES);
}

/* The pass for d_q: its queries are [q, g, h], its keys [k, v, 1], its values k. */
static void launch_queries(passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_backward_launch *a = p->launch;
    const struct fpa_launch *f = &a->forward;
    const pass_tensor o = query_gradient(p);
    float *const dots = pass_outputs_read(p) ? NULL : p->read_dots;
    const bool plain = pass_is_plain_forth(p);
    if (plain || pass_has_plain_values(p)) {
        const pass_tensor q = pass_given(p, f->heads, a->d_o, a->d_o_stride);
        const pass_tensor k = pass_given(p, f->heads, f->v, f->v_stride);
        const pass_tensor v = plain ? pass_given(p, f->heads, f->k, f->k_stride) : pass_key_rows(p, 0);
        const pass_tensor with = plain ? pass_given(p, f->heads, f->q, f->q_stride) : pass_query_rows(p, 0);
        struct fpa_launch pass = pass_launch_of(p, &q, &k, &v, &o);
        pass_set_gates(p, &pass);
        pass_forward_rows(p, &pass, &with, dots, p->kept, &p->states);
        return;
    }
    const pass_tensor q = pass_query_rows(p, g->pass_input), k = pass_key_rows(p, g->pass_input);
    const pass_tensor v = pass_key_rows(p, 0), with = pass_query_rows(p, 0);
    const struct fpa_launch pass = pass_launch_of_rows(p, &q, &k, &v, &o);
    pass_forward_rows(p, &pass, &with, dots, p->kept, &p->states);
    scatter_queries(p);
}

/* A pass of values that also stores the dot products of its outputs with other rows. */
static void forward_values(passes *p, const struct fpa_launch *f, const pass_tensor *with, float *dots,
                           const void **states)
{
    const cuda_dots leaves = {
        .rows = with->at, .stride = {with->stride[0], with->stride[1], with->stride[2]}, .dots = dots};
    cuda_forward_dots(p->queue, p->module->passes[PASS_VALUES], p->form, f, NULL, &leaves, states);
}

/* Query sums for gradients of log-gates: values are [v, 1], outputs are multiplied by [g, h]. */
static void launch_reads(passes *p)
{
    const int values = p->cuda->geometry.pass_values;
    const pass_tensor q = pass_query_rows(p, 0), k = pass_key_rows(p, 0), v = pass_key_rows(p, values);
    const pass_tensor o = pass_result_rows(p, p->dv), with = pass_query_rows(p, values);
    struct fpa_launch pass = pass_launch_of_rows(p, &q, &k, &v, &o);
    pass.workspace = p->reads;
    pass.workspace_size = p->room.reads;
    forward_values(p, &pass, &with, p->read_dots, &p->states);
}

/* A contraction. walked: the pass of values has left states in the launch's workspace. sums: of scores times values; NULL: not wanted. */
static void contract(const passes *p, const struct fpa_launch *pass, const pass_tensor *rows, bool walked,
                     float *dots, const pass_tensor *sums, const void **states)
{
    cuda_contraction c = {.rows = rows->at, .walked = walked, .reversed = p->behind, .dots = dots};
    memcpy(c.stride, rows->stride, sizeof c.stride);
    if (sums) {
        c.sums = sums->at;
        c.columns = p->cuda->geometry.pass_columns;
        memcpy(c.sum_stride, sums->stride, sizeof c.sum_stride);
    }
    cuda_contract(p->queue, p->module->passes[PASS_VALUES], p->form, pass, &c, states);
}

/* d_q by a contraction with the operands of the pass of values; and query sums for gradients of log-gates. */
static void contract_queries(passes *p)
{
    const struct fpa_backward_launch *a = p->launch;
    const pass_tensor o = query_gradient(p);
    const pass_tensor q = pass_query_vectors(p), k = pass_key_vectors(p), v = pass_key_values(p),
                      rows = pass_query_values(p);
    struct fpa_launch pass = pass_launch_of_rows(p, &q, &k, &v, &o);
    if (a->d_log_gate) { /* states are kept there */
        pass.workspace = p->reads;
        pass.workspace_size = p->room.reads;
    }
    contract(p, &pass, &rows, false, a->d_log_gate ? p->read_dots : NULL, NULL, &p->states);
    scatter_queries(p);
}

static void launch_forth(passes *p)
{
    const struct fpa_backward_launch *a = p->launch;
    const bool reads = a->d_log_gate && p->dots == PASS_VALUES, wanted = a->d_q || (a->d_log_gate && !reads);
    p->back.pass_length = a->forward.length;
    if (!p->given && ((wanted && !pass_is_plain_forth(p)) || reads))
        pass_gather(p, false, p->given_values || pass_has_plain_values(p));
    if (p->contracts) {
        if (a->d_q || a->d_log_gate)
            contract_queries(p);
        return;
    }
    if (reads)
        launch_reads(p);
    if (wanted)
        launch_queries(p);
}

/* ---- the passes for d_k and d_v, in reverse order of tokens ---- */

/* Whether the kernels can process operands as given in reverse order of tokens. */
static bool reverses(const passes *p, fpa_pass pass)
{
    const struct fpa_launch f = pass_launch_of_given(p, pass);
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const bool plain = g->gate || g->pass_numbers ? pass_is_plain_forth(p) : pass_is_plain(p, pass);
    return p->form == FORM_CHUNKED && plain && cuda_reverses(p->module->passes[pass], &f);
}

static void forward_plain(passes *p, fpa_pass pass)
{
    const struct fpa_launch *f = &p->launch->forward;
    const pass_tensor with = pass_given(p, f->heads, f->k, f->k_stride);
    const struct fpa_launch launch = pass_launch_of_given(p, pass);
    pass_forward_reversed(p, pass, &launch, &with);
}

/* The pass for d_k. */
static void launch_keys(passes *p)
{
    const pass_tensor with = pass_key_rows(p, 0);
    const bool direct = pass_leaves_directly(p, PASS_ROWS);
    const struct fpa_launch f = pass_launch_back(p, PASS_ROWS);
    if (p->forth)
        pass_forward_reversed(p, PASS_ROWS, &f, &with);
    else
        pass_forward_rows(p, &f, &with, p->given_dots, p->reversed_kept, &p->reversed_states);
    if (p->launch->d_k && !direct)
        pass_scatter(p, TO_KEYS);
}

/* The pass for d_v by kernels of the split schedule, which process forward rows in reverse order themselves. */
static void forward_turned(passes *p, const struct fpa_launch *f)
{
    const cuda_dots turned = {.reversed = p->behind};
    cuda_forward_dots(p->queue, p->module->passes[PASS_VALUES], p->form, f, NULL, &turned,
                      &p->reversed_states);
}

/* The pass for d_v; with a gate, its outputs are also multiplied by [v, 1]. */
static void launch_values(passes *p)
{
    const pass_tensor with = pass_key_rows(p, p->cuda->geometry.pass_values);
    const bool direct = pass_leaves_directly(p, PASS_VALUES);
    const struct fpa_launch f = pass_launch_back(p, PASS_VALUES);
    if (p->behind)
        forward_turned(p, &f);
    else if (p->forth)
        pass_forward_reversed(p, PASS_VALUES, &f, &with);
    else if (p->launch->d_log_gate && p->dots == PASS_VALUES && !p->contracts)
        forward_values(p, &f, &with, p->given_dots, &p->reversed_states);
    else
        cuda_forward_dots(p->queue, p->module->passes[PASS_VALUES], p->form, &f, NULL, NULL, NULL);
    if (p->launch->d_v && !direct)
        pass_scatter(p, TO_VALUES);
}

/* Whether kernels can process rows gathered in forward order from the last one on. */
static bool turns(passes *p, fpa_pass pass)
{
    const fpa_module *module = p->module->passes[pass];
    const bool forth = p->forth;
    p->back.pass_length = p->launch->forward.length;
    p->forth = true;
    const struct fpa_launch f = pass_launch_back(p, pass);
    p->forth = forth;
    return p->form == FORM_CHUNKED && cuda_reverses(module, &f) &&
           cuda_reversed_workspace(module, &f) <= p->room.forward;
}

/* Whether passes of bf16 can store all results as an f16 head's gradients: by the kernel that narrows them, from rows gathered once, in
 * both orders. For those gradients that are wanted. */
static bool can_narrow(passes *p)
{
    fpa_candidate found;
    for (int i = 0; i < PASSES; i++) {
        const struct fpa_cuda_module *pass = p->module->passes[i] ? p->module->passes[i]->handle : NULL;
        if (p->contracts || p->group != 1 || !pass || !pass->geometry.fused_narrows ||
            pass->geometry.cluster_reverses || (passes_want(p, (fpa_pass)i) && !turns(p, (fpa_pass)i)))
            return false;
    }
    const struct fpa_launch f = pass_launch_back(p, PASS_ROWS);
    return p->form == FORM_CHUNKED && passes_find(p, PASS_ROWS, &f, &found);
}

/* Gathers rows for a reversed pass: those of the forward pass, if its kernels reverse the order, else in reverse order. *gathered:
 * whether the latter are there. */
static void gather_back(passes *p, fpa_pass pass, bool *gathered)
{
    if (*gathered)
        return;
    const bool turned = turns(p, pass);
    *gathered = !turned;
    if (!turned)
        pass_gather(p, true, false);
    else if (!p->forth)
        pass_gather(p, false, false);
}

/* A pass in reverse order of tokens. */
static void launch_reversed(passes *p, fpa_pass pass, bool *gathered)
{
    if (reverses(p, pass)) {
        forward_plain(p, pass);
        return;
    }
    if (p->cuda->geometry.pass_numbers && (p->group == 1 || !turns(p, pass)) && !p->queue->status)
        p->queue->status =
            fail(p->queue->error, FPA_INVALID, p->cuda->name,
                 "no kernel of a gradient's pass supports this call in reverse order of tokens");
    gather_back(p, pass, gathered);
    if (pass == PASS_ROWS)
        launch_keys(p);
    else
        launch_values(p);
}

/* Whether d_v is computed beside d_k, from the same pairs; the same in each call that wants d_v, so that its bits are too. */
static bool contracts_values(const passes *p)
{
    return p->launch->d_v && pass_is_direct(p) &&
           cuda_contracts_values(p->module->passes[PASS_VALUES], p->form);
}

/* d_k by a contraction with the operands of d_v; and key sums for gradients of log-gates. */
static void contract_keys(passes *p)
{
    const struct fpa_backward_launch *a = p->launch;
    const pass_tensor q = pass_key_vectors(p), k = pass_query_vectors(p), v = pass_query_values(p),
                      rows = pass_key_values(p);
    const bool direct = a->d_k && pass_is_direct(p), both = contracts_values(p);
    pass_tensor o =
        direct ? pass_given(p, a->forward.heads, a->d_k, a->d_k_stride) : pass_result_rows(p, p->d);
    if (direct && !p->turns)
        o = pass_turned(p, o);
    const struct fpa_launch f = pass_launch_of_rows(p, &q, &k, &v, &o);
    const pass_tensor d_v = pass_turned(p, pass_given(p, a->forward.heads, a->d_v, a->d_v_stride));
    contract(p, &f, &rows, a->d_v && !both, a->d_log_gate ? p->given_dots : NULL, both ? &d_v : NULL,
             &p->reversed_states);
    if (a->d_k && !direct)
        pass_scatter(p, TO_KEYS);
}

/* Prepares rows for reversed contractions: gathers them in reverse order or, if kernels reverse the order of tiles themselves (turns), in
 * forward order. */
static void gather_turned(passes *p)
{
    p->behind = p->turns ? p->launch->forward.length : 0;
    p->back.pass_reversed = 0;
    if (!p->turns) {
        pass_gather(p, true, false);
        return;
    }
    p->back.pass_length = p->launch->forward.length;
    if (!p->given && !p->forth)
        pass_gather(p, false, p->given_values);
}

static void contract_back(passes *p)
{
    const bool keys = p->launch->d_k || p->launch->d_log_gate, values = p->launch->d_v;
    p->given = p->given && p->turns; /* else they are copied in reverse order */
    p->given_values = p->given_values && p->turns;
    if (keys || values)
        gather_turned(p);
    const bool both = contracts_values(p);
    if (values && !both)
        launch_values(p);
    if (keys || both)
        contract_keys(p);
}

static void launch_back(passes *p)
{
    bool gathered = false;
    if (p->contracts) {
        contract_back(p);
        return;
    }
    if (p->launch->d_k || (p->launch->d_log_gate && p->dots == PASS_ROWS))
        launch_reversed(p, PASS_ROWS, &gathered);
    if (passes_want(p, PASS_VALUES))
        launch_reversed(p, PASS_VALUES, &gathered);
}

/* ---- gradients of log-gates, from the numbers that passes have stored (p->dots) ---- */

static void launch_gates(passes *p)
{
    struct fpa_cuda_backward *back = &p->back;
    const int64_t length = p->launch->forward.length;
    if (p->chunks > 1)
        pass_state_products(p);
    back->pass_reversed = !p->gives_ahead && !p->behind;
    back->pass_length = p->gives_ahead ? length
                        : p->behind    ? (int64_t)round_up(p->reached, CUDA_TURNED)
                                       : p->reached;
    back->pass_reads = p->read_dots + (pass_outputs_read(p) ? p->these.first * length : 0);
    back->pass_read_blocks = pass_outputs_read(p) ? 1 : pass_dot_blocks(p);
    back->pass_gives = p->given_dots;
    back->pass_products = p->products;
    back->pass_blocks = pass_dot_blocks(p);
    back->pass_chunks = p->chunks;
    back->pass_chunk = p->chunks > 1 ? p->chunk : length;
    pass_launch(p, CUDA_BACKWARD_PASS_GATES, back->sequences / p->group * p->chunks);
}

/* ---- all passes of a call ---- */

/* Computes made rows of these sequences, which then replace q and k, and their gradients. */
static void project(passes *p)
{
    p->back.first_sequence = p->these.first / p->group; /* of keys */
    p->back.sequences = p->these.batch * p->these.heads / p->group;
    made_project(p->queue, &p->made, &p->call, &p->back);
    made_give(&p->call, &p->back, &p->of_rows);
}

/* Whether contractions read operands as given. */
static void find_given(passes *p)
{
    p->turns = passes_turn(p, p->these);
    p->given = p->contracts && pass_is_plain(p, PASS_ROWS);
    p->given_values = p->given || (p->contracts && pass_can_give_values(p));
}

static void launch_piece(passes *p)
{
    const bool made = p->cuda->geometry.made_width;
    if (made)
        project(p);
    p->gives_ahead = p->forth = false;
    p->behind = 0;
    p->back.first_sequence = p->these.first;
    p->back.sequences = p->these.batch * p->these.heads;
    pass_find_leaning(p, !p->contracts && reverses(p, PASS_ROWS));
    p->narrows = can_narrow(p);
    find_given(p);
    launch_forth(p);
    launch_back(p);
    if (p->launch->d_log_gate)
        launch_gates(p);
    if (made)
        made_unproject(p->queue, &p->made);
}

void cuda_launch_passes(cuda_queue *q, const fpa_module *module, int form,
                        const struct fpa_backward_launch *launch, const struct fpa_cuda_call *call,
                        const struct fpa_cuda_backward *back)
{
    const struct fpa_launch *f = &launch->forward;
    passes p;
    cuda_check_workspace(q, passes_prepare(&p, module, form, launch));
    if (q->status || f->batch * f->length * f->query_heads == 0 ||
        !(p.launch->d_q || p.launch->d_k || launch->d_v || launch->d_log_gate))
        return;
    p.queue = q;
    p.call = *call;
    p.back = *back;
    passes_place(&p, f->workspace);
    p.back.pass_reads = pass_outputs_read(&p) ? p.read_dots : NULL;
    pass_begin(&p);
    if (p.cuda->geometry.made_width)
        made_begin(q, &p.made);
    for (int64_t first = 0; first < f->batch * f->query_heads && !q->status;
         first += p.these.batch * p.these.heads) {
        p.these = passes_piece_at(&p, first);
        launch_piece(&p);
    }
    launch_weight_sums(q, launch, call, &p.back);
}

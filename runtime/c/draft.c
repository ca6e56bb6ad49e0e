#include "draft.h"

#include "head/form.h"

/* The launch of `count` sequences from number b on. */
static struct fpa_launch part_of(const fpa_draft_launch *draft, const struct fpa_launch *whole, int64_t b,
                                 int64_t count)
{
    struct fpa_launch part = *whole;
    const int64_t token = (int64_t)draft->element * b, state = (int64_t)draft->state_element * b;
    part.batch = count;
    part.total = count * part.length;
    if (whole->query_heads) {
        part.q = (const char *)whole->q + token * whole->q_stride[0];
        part.o = (char *)whole->o + token * whole->o_stride[0];
    }
    part.k = (const char *)whole->k + token * whole->k_stride[0];
    part.v = (const char *)whole->v + token * whole->v_stride[0];
    part.log_gate = whole->log_gate ? whole->log_gate + b * whole->gate_stride[0] : NULL;
    part.positions = whole->positions ? whole->positions + b * whole->position_stride[0] : NULL;
    part.key_mask = whole->key_mask ? whole->key_mask + b * whole->key_mask_stride[0] : NULL;
    part.den = whole->den ? whole->den + b * whole->den_stride[0] : NULL;
    if (whole->state_in_index)
        part.state_in_index = whole->state_in_index + b;
    else if (whole->state_in)
        part.state_in = (const char *)whole->state_in + state * whole->state_in_stride[0];
    if (whole->state_out_index)
        part.state_out_index = whole->state_out_index + b;
    else if (whole->state_out)
        part.state_out = (char *)whole->state_out + state * whole->state_out_stride[0];
    part.workspace = draft->workspace;
    part.workspace_size = draft->workspace_size;
    return part;
}

/* Whether a sequence writes a state; if not, it accepts nothing. */
static bool leaves_state(const fpa_draft_launch *draft, int64_t b)
{
    const struct fpa_launch *keys = draft->keys;
    return keys && (!keys->state_out_index || keys->state_out_index[b] >= 0);
}

/* Adds accepted tokens: one call for each run of sequences that accept equally many. A sequence that writes no
 * state is part of a call, which skips it. */
static fpa_status accept(const fpa_module *module, const fpa_draft_launch *draft, fpa_error *error)
{
    const struct fpa_launch *keys = draft->keys;
    fpa_status status = FPA_OK;
    for (int64_t b = 0, end; b < keys->batch && !status; b = end) {
        for (end = b + 1; end < keys->batch && draft->counts[end] == draft->counts[b]; end++)
            ;
        struct fpa_launch part = part_of(draft, keys, b, end - b);
        part.length = draft->counts[b];
        part.total = part.batch * part.length;
        status = module->forward(module, FORM_CHUNKED, &part, NULL, NULL, error);
    }
    return status;
}

/* Computes the queries, which read the new states, or the initial ones of sequences that wrote none. */
static fpa_status ask(const fpa_module *module, const fpa_draft_launch *draft, fpa_error *error)
{
    const struct fpa_launch *queries = draft->queries, *keys = draft->keys;
    fpa_status status = FPA_OK;
    for (int64_t b = 0, end; b < queries->batch && !status; b = end) {
        struct fpa_launch whole = *queries;
        for (end = b + 1; end < queries->batch && leaves_state(draft, end) == leaves_state(draft, b); end++)
            ;
        if (leaves_state(draft, b)) {
            whole.state_in = keys->state_out;
            whole.state_in_index = keys->state_out_index;
            whole.state_in_slots = keys->state_out_slots;
            whole.state_in_stride[0] = keys->state_out_stride[0];
            whole.state_in_stride[1] = keys->state_out_stride[1];
        }
        const struct fpa_launch part = part_of(draft, &whole, b, end - b);
        status = module->forward(module, FORM_CHUNKED, &part, NULL, NULL, error);
    }
    return status;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The workspace that suffices for any part of the sequences, whose heads threads may share or not. */
static size_t workspace_of(const fpa_module *module, const struct fpa_launch *whole)
{
    struct fpa_launch one = *whole;
    one.batch = 1;
    one.total = one.length;
    return larger(module->workspace(module, FORM_CHUNKED, whole, NULL),
                  module->workspace(module, FORM_CHUNKED, &one, NULL));
}

size_t draft_workspace(const fpa_module *module, const fpa_draft_launch *draft)
{
    const size_t keys = draft->keys ? workspace_of(module, draft->keys) : 0;
    return draft->queries ? larger(keys, workspace_of(module, draft->queries)) : keys;
}

fpa_status draft_forward(const fpa_module *module, const fpa_draft_launch *draft, void *stream,
                         fpa_error *error)
{
    (void)stream; /* the CPU has no streams */
    fpa_status status = draft->keys ? accept(module, draft, error) : FPA_OK;
    return status || !draft->queries ? status : ask(module, draft, error);
}

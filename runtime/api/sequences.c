#include "sequences.h"

#include <stdint.h>
#include <string.h>

static int64_t number_at(const fpa_view *view, int64_t i)
{
    const char *at = view->data + i * view->stride[0] * (int64_t)view_item(view);
    int64_t wide;
    int32_t narrow;
    if (view_item(view) == sizeof wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

/* Whether the contents of a tensor can be read here: it is on the CPU and has data. */
static bool is_readable(const fpa_view *view)
{
    return view->tensor && view->with_data && view->device.device_type == kDLCPU;
}

static void take(fpa_checks *c, fpa_view *view, const char *name, const DLTensor *tensor, bool may_be_wide,
                 const fpa_view *tokens)
{
    *view = (fpa_view){.name = name,
                       .tensor = tensor,
                       .device = tokens->device,
                       .is_index = true,
                       .may_be_wide = may_be_wide,
                       .axes = 1,
                       .with_data = tokens->with_data};
    view_check(c, view);
    view_contiguous(c, view, 0);
}

/* ---- cu_seqlens ---- */

static void fail_long(fpa_checks *c, const fpa_tensors *tensors, int64_t number, int64_t tokens)
{
    if (tensors->recent)
        checks_fail(c, FPA_INVALID, "cu_seqlens",
                    "says that sequence %lld has %lld tokens, but with recent = %lld a sequence has at most "
                    "that many and the query's own token",
                    (long long)number, (long long)tokens, (long long)tensors->recent);
    else
        checks_fail(c, FPA_INVALID, "cu_seqlens",
                    "says that sequence %lld has %lld tokens, but max_length is %lld", (long long)number,
                    (long long)tokens, (long long)tensors->max_length);
}

static void check_offsets(fpa_checks *c, const fpa_tensors *tensors, const fpa_view *view, int64_t total,
                          int64_t most)
{
    int64_t before = 0;
    for (int64_t i = 0; !c->status && is_readable(view) && i < view->shape[0]; i++) {
        const int64_t here = number_at(view, i);
        if (here < before)
            checks_fail(c, FPA_INVALID, view->name, "[%lld] is %lld, less than %lld%s", (long long)i,
                        (long long)here, (long long)before, i ? ", the offset before it" : "");
        if (here > total)
            checks_fail(c, FPA_INVALID, view->name, "[%lld] is %lld, but there are %lld tokens", (long long)i,
                        (long long)here, (long long)total);
        if (i > 0 && here - before > most)
            fail_long(c, tensors, i - 1, here - before);
        before = here;
    }
}

/* The most keys of a sequence. */
static int64_t longest(const fpa_tensors *tensors, int64_t total)
{
    const int64_t said = tensors->recent ? tensors->recent + 1 : tensors->max_length;
    return said && said < total ? said : total;
}

static void check_lengths(fpa_checks *c, const fpa_tensors *tensors, const fpa_view *tokens, fpa_sequences *s)
{
    if (!tensors->cu_seqlens && tensors->max_length)
        checks_fail(c, FPA_INVALID, "max_length", "is given, but there is no cu_seqlens");
    if (!tensors->cu_seqlens)
        return;
    if (tensors->max_length && tensors->recent)
        checks_fail(c, FPA_INVALID, "max_length", "is given with recent, which says how long sequences are");
    if (tensors->max_length < 0)
        checks_fail(c, FPA_INVALID, "max_length", "is %lld", (long long)tensors->max_length);
    view_axis(c, tokens, 0, 1, "batches", "with cu_seqlens there is");
    take(c, &s->cu_seqlens, "cu_seqlens", tensors->cu_seqlens, true, tokens);
    if (s->cu_seqlens.shape[0] == 0)
        checks_fail(c, FPA_INVALID, "cu_seqlens", "is empty, but S + 1 numbers are needed for S sequences");
    s->count = s->cu_seqlens.shape[0] - 1;
    check_offsets(c, tensors, &s->cu_seqlens, s->total, longest(tensors, s->total));
}

/* ---- state_index, state_out_index ---- */

/* Views an index of the states of `state`. */
static void take_index(fpa_checks *c, fpa_view *view, const char *name, const DLTensor *tensor,
                       const DLTensor *state, const char *state_name, const fpa_view *tokens, int64_t count)
{
    if (!tensor)
        return;
    if (!state)
        checks_fail(c, FPA_INVALID, name, "is given, but there is no %s", state_name);
    take(c, view, name, tensor, false, tokens);
    view_axis(c, view, 0, count, "numbers", "sequences are");
}

void sequences_check(fpa_checks *c, const fpa_tensors *tensors, const fpa_view *tokens, fpa_sequences *s)
{
    *s = (fpa_sequences){.count = tokens->shape[0], .total = tokens->shape[0] * tokens->shape[1]};
    check_lengths(c, tensors, tokens, s);
    take_index(c, &s->in, "state_index", tensors->state_index, tensors->state_in, "state_in", tokens,
               s->count);
    take_index(c, &s->out, "state_out_index", tensors->state_out_index, tensors->state_out, "state_out",
               tokens, s->count);
}

/* ---- contents of indices ---- */

static void check_slots(fpa_checks *c, const fpa_view *index, const fpa_view *state)
{
    for (int64_t i = 0; !c->status && is_readable(index) && i < index->shape[0]; i++) {
        const int64_t slot = number_at(index, i);
        if (slot < -1 || slot >= state->shape[0])
            checks_fail(c, FPA_INVALID, index->name, "[%lld] is %lld, but %s has %lld slots (-1: no slot)",
                        (long long)i, (long long)slot, state->name, (long long)state->shape[0]);
    }
}

enum { WINDOW_SLOTS = 1 << 15 }; /* slots that are checked at a time */

static bool is_in(const unsigned char *bits, int64_t slot)
{
    return slot >= 0 && slot < WINDOW_SLOTS && (bits[slot / 8] >> slot % 8 & 1);
}

/* Checks that no two sequences write the same slot, and that none writes a slot from which another sequence
 * starts, for WINDOW_SLOTS slots from `first` on. */
static void check_window(fpa_checks *c, const fpa_sequences *s, int64_t first, bool same_pool)
{
    unsigned char left[WINDOW_SLOTS / 8] = {0};
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t slot = number_at(&s->out, i) - first;
        if (is_in(left, slot))
            checks_fail(c, FPA_INVALID, s->out.name,
                        "[%lld] is %lld, but another sequence writes its state to that slot, too",
                        (long long)i, (long long)number_at(&s->out, i));
        if (slot >= 0 && slot < WINDOW_SLOTS)
            left[slot / 8] |= (unsigned char)(1 << slot % 8);
    }
    for (int64_t i = 0; same_pool && s->in.tensor && i < s->count; i++) {
        const int64_t slot = number_at(&s->in, i);
        if (is_in(left, slot - first) && number_at(&s->out, i) != slot)
            checks_fail(c, FPA_INVALID, s->out.name,
                        "has slot %lld, from which sequence %lld starts: another sequence would overwrite it",
                        (long long)slot, (long long)i);
    }
}

void sequences_check_states(fpa_checks *c, const fpa_sequences *s, const fpa_view *state_in,
                            const fpa_view *state_out)
{
    const bool same_pool = state_in->tensor && state_in->data == state_out->data;
    check_slots(c, &s->in, state_in);
    check_slots(c, &s->out, state_out);
    for (int64_t first = 0; !c->status && is_readable(&s->out) && first < state_out->shape[0];
         first += WINDOW_SLOTS)
        check_window(c, s, first, same_pool);
}

/* ---- the launch ---- */

void sequences_fill(const fpa_sequences *s, const fpa_tensors *tensors, const fpa_view *state_in,
                    const fpa_view *state_out, struct fpa_launch *launch)
{
    launch->total = s->total;
    if (s->cu_seqlens.tensor) {
        launch->cu_seqlens = view_address(&s->cu_seqlens);
        launch->cu_seqlens_bytes = (int64_t)view_item(&s->cu_seqlens);
        launch->length = tensors->recent ? 1 : longest(tensors, launch->total);
        launch->batch = s->count;
    }
    launch->state_in_index = view_address(&s->in);
    launch->state_out_index = view_address(&s->out);
    launch->state_in_slots = state_in->shape[0];
    launch->state_out_slots = state_out->shape[0];
}

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

/* Whether what it says can be looked at. */
static bool is_readable(const fpa_view *view)
{
    return view->tensor && view->with_data && view->device.device_type == kDLCPU;
}

static fpa_status take(fpa_view *view, const char *name, const DLTensor *tensor, bool may_be_wide,
                       const fpa_view *tokens, fpa_error *error)
{
    *view = (fpa_view){.name = name,
                       .tensor = tensor,
                       .device = tokens->device,
                       .is_index = true,
                       .may_be_wide = may_be_wide,
                       .axes = 1,
                       .with_data = tokens->with_data};
    fpa_status status = view_check(view, error);
    return status ? status : view_contiguous(view, 0, error);
}

/* ---- cu_seqlens ---- */

static fpa_status fail_long(const fpa_tensors *tensors, int64_t number, int64_t tokens, fpa_error *error)
{
    if (tensors->recent)
        return fail(
            error, FPA_INVALID, "cu_seqlens",
            "says that sequence %lld has %lld tokens, but recent is %lld: so many and the query's own",
            (long long)number, (long long)tokens, (long long)tensors->recent);
    return fail(error, FPA_INVALID, "cu_seqlens",
                "says that sequence %lld has %lld tokens, but max_length is %lld", (long long)number,
                (long long)tokens, (long long)tensors->max_length);
}

static fpa_status check_offsets(const fpa_tensors *tensors, const fpa_view *view, int64_t total, int64_t most,
                                fpa_error *error)
{
    int64_t before = 0;
    for (int64_t i = 0; is_readable(view) && i < view->shape[0]; i++) {
        const int64_t here = number_at(view, i);
        if (here < before)
            return fail(error, FPA_INVALID, view->name, "[%lld] is %lld, less than %lld%s", (long long)i,
                        (long long)here, (long long)before, i ? ", the offset before it" : "");
        if (here > total)
            return fail(error, FPA_INVALID, view->name, "[%lld] is %lld, but there are %lld tokens",
                        (long long)i, (long long)here, (long long)total);
        if (i > 0 && here - before > most)
            return fail_long(tensors, i - 1, here - before, error);
        before = here;
    }
    return FPA_OK;
}

/* Tokens of a sequence's keys, at most. */
static int64_t longest(const fpa_tensors *tensors, int64_t total)
{
    const int64_t said = tensors->recent ? tensors->recent + 1 : tensors->max_length;
    return said && said < total ? said : total;
}

static fpa_status check_lengths(const fpa_tensors *tensors, const fpa_view *tokens, fpa_sequences *s,
                                fpa_error *error)
{
    if (!tensors->cu_seqlens)
        return tensors->max_length
                   ? fail(error, FPA_INVALID, "max_length", "is given, but there is no cu_seqlens")
                   : FPA_OK;
    if (tensors->max_length && tensors->recent)
        return fail(error, FPA_INVALID, "max_length",
                    "is given with recent, which says how long sequences are");
    if (tensors->max_length < 0)
        return fail(error, FPA_INVALID, "max_length", "is %lld", (long long)tensors->max_length);
    fpa_status status = view_axis(tokens, 0, 1, "batches", "with cu_seqlens there is", error);
    if (!status)
        status = take(&s->cu_seqlens, "cu_seqlens", tensors->cu_seqlens, true, tokens, error);
    if (!status && s->cu_seqlens.shape[0] == 0)
        status =
            fail(error, FPA_INVALID, "cu_seqlens", "has no number, but S + 1 are needed for S sequences");
    if (status)
        return status;
    s->count = s->cu_seqlens.shape[0] - 1;
    return check_offsets(tensors, &s->cu_seqlens, s->total, longest(tensors, s->total), error);
}

/* ---- state_index, state_out_index ---- */

/* Of the states of `state`. */
static fpa_status take_index(fpa_view *view, const char *name, const DLTensor *tensor, const DLTensor *state,
                             const char *state_name, const fpa_view *tokens, int64_t count, fpa_error *error)
{
    if (!tensor)
        return FPA_OK;
    if (!state)
        return fail(error, FPA_INVALID, name, "is given, but there is no %s", state_name);
    fpa_status status = take(view, name, tensor, false, tokens, error);
    return status ? status : view_axis(view, 0, count, "numbers", "sequences are", error);
}

fpa_status sequences_check(const fpa_tensors *tensors, const fpa_view *tokens, fpa_sequences *s,
                           fpa_error *error)
{
    *s = (fpa_sequences){.count = tokens->shape[0], .total = tokens->shape[0] * tokens->shape[1]};
    fpa_status status = check_lengths(tensors, tokens, s, error);
    if (!status)
        status = take_index(&s->in, "state_index", tensors->state_index, tensors->state_in, "state_in",
                            tokens, s->count, error);
    return status ? status
                  : take_index(&s->out, "state_out_index", tensors->state_out_index, tensors->state_out,
                               "state_out", tokens, s->count, error);
}

/* ---- what indices say ---- */

static fpa_status check_slots(const fpa_view *index, const fpa_view *state, fpa_error *error)
{
    for (int64_t i = 0; is_readable(index) && i < index->shape[0]; i++) {
        const int64_t slot = number_at(index, i);
        if (slot < -1 || slot >= state->shape[0])
            return fail(error, FPA_INVALID, index->name,
                        "[%lld] is %lld, but %s has %lld slots, and -1 is none", (long long)i,
                        (long long)slot, state->name, (long long)state->shape[0]);
    }
    return FPA_OK;
}

enum { WINDOW_SLOTS = 1 << 15 }; /* that are looked at in one go */

static bool is_in(const unsigned char *bits, int64_t slot)
{
    return slot >= 0 && slot < WINDOW_SLOTS && (bits[slot / 8] >> slot % 8 & 1);
}

/* No two states are left in one slot of these from `first` on, nor in one that another sequence begins with. */
static fpa_status check_window(const fpa_sequences *s, int64_t first, bool same_pool, fpa_error *error)
{
    unsigned char left[WINDOW_SLOTS / 8] = {0};
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t slot = number_at(&s->out, i) - first;
        if (is_in(left, slot))
            return fail(error, FPA_INVALID, s->out.name,
                        "[%lld] is %lld, where another sequence leaves its state, too", (long long)i,
                        (long long)(slot + first));
        if (slot >= 0 && slot < WINDOW_SLOTS)
            left[slot / 8] |= (unsigned char)(1 << slot % 8);
    }
    for (int64_t i = 0; same_pool && s->in.tensor && i < s->count; i++) {
        const int64_t slot = number_at(&s->in, i);
        if (is_in(left, slot - first) && number_at(&s->out, i) != slot)
            return fail(error, FPA_INVALID, s->out.name,
                        "has slot %lld, with which sequence %lld begins: another one would overwrite it",
                        (long long)slot, (long long)i);
    }
    return FPA_OK;
}

fpa_status sequences_check_states(const fpa_sequences *s, const fpa_view *state_in, const fpa_view *state_out,
                                  fpa_error *error)
{
    const bool same_pool = state_in->tensor && state_in->data == state_out->data;
    fpa_status status = s->in.tensor ? check_slots(&s->in, state_in, error) : FPA_OK;
    if (!status && s->out.tensor)
        status = check_slots(&s->out, state_out, error);
    for (int64_t first = 0; !status && is_readable(&s->out) && first < state_out->shape[0];
         first += WINDOW_SLOTS)
        status = check_window(s, first, same_pool, error);
    return status;
}

/* ---- the launch ---- */

static const void *address(const fpa_view *view)
{
    return !view->tensor ? NULL : view->data ? view->data : (const void *)view->tensor;
}

void sequences_fill(const fpa_sequences *s, const fpa_tensors *tensors, const fpa_view *state_in,
                    const fpa_view *state_out, struct fpa_launch *launch)
{
    launch->total = s->total;
    if (s->cu_seqlens.tensor) {
        launch->cu_seqlens = address(&s->cu_seqlens);
        launch->cu_seqlens_bytes = (int64_t)view_item(&s->cu_seqlens);
        launch->length = tensors->recent ? 1 : longest(tensors, launch->total);
        launch->batch = s->count;
    }
    launch->state_in_index = address(&s->in);
    launch->state_out_index = address(&s->out);
    launch->state_in_slots = state_in->shape[0];
    launch->state_out_slots = state_out->shape[0];
}

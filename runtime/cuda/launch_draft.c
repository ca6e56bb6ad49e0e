/* launch_draft: the launches of a draft. */
#include "launch_draft.h"

#include "grid.h"
#include "machine/cuda_candidates.h"
#include "machine/cuda_slices.h"

#include <limits.h>
#include <string.h>

/* The half of a draft that is present: each has all sequences and heads. */
static const struct fpa_launch *any_half(const fpa_draft_launch *draft)
{
    return draft->queries ? draft->queries : draft->keys;
}

/* Blocks that share a head: as many as for decoding one token with a state that is only read. */
static int64_t count_slices(const struct fpa_cuda_module *cuda, const struct fpa_launch *any)
{
    const fpa_call_size size = {.form = FORM_RECURRENT,
                                .batch = any->batch,
                                .length = 1,
                                .query_heads = any->query_heads ? any->query_heads : any->heads,
                                .heads = any->heads,
                                .recent = 1,
                                .state_in = true};
    fpa_candidate fastest;
    return cuda_fastest(&cuda->geometry, &cuda->room, &size, &fastest) ? fastest.segments : 1;
}

static int64_t count_outputs(const fpa_draft_launch *draft)
{
    const struct fpa_launch *q = draft->queries;
    return q ? q->batch * q->query_heads * q->length : 0;
}

/* Room for parts of o, if blocks share a head. */
size_t cuda_draft_workspace(const fpa_module *module, const fpa_draft_launch *draft)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const int64_t slices = count_slices(cuda, any_half(draft));
    return slices > 1
               ? sizeof(float) * (size_t)(count_outputs(draft) * slices) * (size_t)cuda->geometry.columns
               : 0;
}

static void fill_accepted(const fpa_draft_launch *draft, struct fpa_cuda_call *call)
{
    const struct fpa_launch *keys = draft->keys;
    if (!keys)
        return;
    call->accepted_k = keys->k;
    call->accepted_v = keys->v;
    call->accepted_log_gate = keys->log_gate;
    for (int i = 0; i < 3; i++) {
        call->accepted_k_stride[i] = keys->k_stride[i];
        call->accepted_v_stride[i] = keys->v_stride[i];
        call->accepted_gate_stride[i] = keys->gate_stride[i];
    }
    call->accepted_counts = draft->counts;
    call->accepted = keys->length;
    call->state_out = keys->state_out;
    call->state_out_index = keys->state_out_index;
    call->state_out_slots = keys->state_out_slots;
    for (int i = 0; i < 2; i++)
        call->state_out_stride[i] = keys->state_out_stride[i];
}

static void fill_call(const struct fpa_cuda_module *cuda, const fpa_draft_launch *draft,
                      struct fpa_cuda_call *call)
{
    const struct fpa_launch *any = any_half(draft);
    memset(call, 0, sizeof *call);
    cuda_fill_call(any, call);
    call->length = draft->queries ? any->length : 0;
    call->longest = 1; /* no running state between tokens */
    call->slices = count_slices(cuda, any);
    call->share = cuda_slice_features(&cuda->geometry, call->slices);
    call->group = draft->queries ? any->query_heads / any->heads : 0;
    call->partial = draft->workspace;
    fill_accepted(draft, call);
}

fpa_status cuda_draft(const fpa_module *module, const fpa_draft_launch *draft, void *stream, fpa_error *error)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const struct fpa_launch *any = any_half(draft);
    const int64_t outputs = count_outputs(draft);
    cuda_queue q = {cuda, any, stream, error, cuda_check_context(cuda, error)};
    struct fpa_cuda_call call;
    if (!q.status && (any->batch > INT_MAX || any->heads > INT_MAX || outputs > INT_MAX))
        return fail(error, FPA_UNSUPPORTED, cuda->name,
                    "a draft computes at most %d rows of o in a call on a GPU: split the batch", INT_MAX);
    fill_call(cuda, draft, &call);
    const cuda_grid decode = {
        .kernel = CUDA_DECODE_DRAFT, .blocks = any->batch * any->heads * call.slices, .next = true};
    const cuda_grid reduction = {.kernel = CUDA_SPLIT_REDUCTION, .blocks = outputs, .next = true};
    cuda_launch_grid(&q, &decode, &call);
    if (call.slices > 1)
        cuda_launch_grid(&q, &reduction, &call);
    return q.status;
}

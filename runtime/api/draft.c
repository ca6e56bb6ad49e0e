/* draft: several tokens in one step, of which some are added to the state (fpa_draft). */
#include "base/dtype.h"
#include "runtime/kernel.h"
#include "sequences.h"
#include "tensors.h"

#include <stdio.h>
#include <string.h>

/* A call, as two launches: queries with their own keys, and keys that may be accepted. */
typedef struct draft {
    const fpa_kernel *kernel;
    fpa_tensors queries, keys;
    struct fpa_launch query_launch, key_launch;
    fpa_draft_launch launch;
} draft;

static fpa_status refuse_head(const fpa_kernel *kernel, fpa_error *error)
{
    const fpa_head *head = kernel->head;
    if (!head->causal)
        return fail(error, FPA_UNSUPPORTED, kernel->facts.name,
                    "is not causal: drafts of tokens to come need a causal head");
    if (head->window)
        return fail(error, FPA_UNSUPPORTED, kernel->facts.name,
                    "has a window, whose keys are not in the state: draft by fpa_forward with `recent` and "
                    "without state_out, and give the accepted tokens again with the next call");
    if (!kernel->module.draft)
        return fail(error, FPA_UNSUPPORTED, kernel->facts.name,
                    "was compiled for %s, where this head has no kernel for drafts: draft by fpa_forward "
                    "with state_in and without state_out, and add accepted tokens to the state by "
                    "fpa_forward without q and o",
                    kernel->facts.target);
    return FPA_OK;
}

static fpa_status check_call(const fpa_tensors *tensors, const fpa_accepted *accepted, fpa_error *error)
{
    const bool asks = tensors->q || tensors->o;
    if (tensors->recent || tensors->cu_seqlens)
        return fail(error, FPA_INVALID, tensors->recent ? "recent" : "cu_seqlens",
                    "is given, but drafts do not support it");
    if (!asks && (tensors->k || tensors->v))
        return fail(error, FPA_INVALID, "q",
                    "is NULL, but k or v is given: accepted tokens belong in `accepted`");
    if (!asks && !accepted)
        return fail(error, FPA_INVALID, "accepted",
                    "is NULL, and so is q: give q to draft, accepted to update the state, or both");
    if (accepted && !tensors->state_out)
        return fail(error, FPA_INVALID, "state_out",
                    "is NULL, but the state with the accepted tokens is written to it");
    if (!accepted && tensors->state_out)
        return fail(error, FPA_INVALID, "state_out",
                    "is given without accepted: a draft alone does not change the state");
    return FPA_OK;
}

/* Divides a call into its two launches: the one of accepted keys writes the state that the queries read. */
static void divide(draft *d, const fpa_tensors *tensors, const fpa_accepted *accepted)
{
    d->queries = *tensors;
    d->queries.state_out = NULL;
    d->queries.state_out_index = NULL;
    if (!accepted)
        return;
    d->keys = (fpa_tensors){.k = accepted->k,
                            .v = accepted->v,
                            .log_gate = accepted->log_gate,
                            .positions = accepted->positions,
                            .key_mask = accepted->key_mask,
                            .state_in = tensors->state_in,
                            .state_out = tensors->state_out,
                            .state_index = tensors->state_index,
                            .state_out_index = tensors->state_out_index,
                            .weights = tensors->weights,
                            .stream = tensors->stream};
}

static fpa_status check_length(const struct fpa_launch *launch, const char *name, fpa_error *error)
{
    if (launch->length >= 1 && launch->length <= FPA_DRAFT_TOKENS)
        return FPA_OK;
    return fail(error, FPA_INVALID, name, "has %lld tokens, but a draft has 1 to %d",
                (long long)launch->length, FPA_DRAFT_TOKENS);
}

/* Errors of the launch of keys name k and v as the caller's `accepted` does. */
static fpa_status of_accepted(fpa_status status, fpa_error *error)
{
    char name[sizeof error->where];
    if (status && error &&
        (!strcmp(error->where, "k") || !strcmp(error->where, "v") || !strcmp(error->where, "log_gate") ||
         !strcmp(error->where, "positions") || !strcmp(error->where, "key_mask"))) {
        snprintf(name, sizeof name, "accepted.%.32s", error->where);
        snprintf(error->where, sizeof error->where, "%s", name);
    }
    return status;
}

static fpa_status check_counts(draft *d, const DLTensor *count, DLDevice device, tensors_mode mode,
                               fpa_error *error)
{
    const bool readable = mode == TENSORS_DATA && device.device_type == kDLCPU;
    fpa_checks c = {error, FPA_OK};
    fpa_view view = {.name = "accepted.count",
                     .tensor = count,
                     .device = device,
                     .is_index = true,
                     .axes = 1,
                     .with_data = mode == TENSORS_DATA};
    view_check(&c, &view);
    view_contiguous(&c, &view, 0);
    view_axis(&c, &view, 0, d->key_launch.batch, "numbers", "sequences are");
    d->launch.counts = (const int32_t *)(const void *)view.data;
    for (int64_t b = 0; !c.status && readable && b < view.shape[0]; b++)
        if (d->launch.counts[b] < 0 || d->launch.counts[b] > d->key_launch.length)
            checks_fail(&c, FPA_INVALID, view.name, "[%lld] is %d, but there are %lld tokens", (long long)b,
                        (int)d->launch.counts[b], (long long)d->key_launch.length);
    return c.status;
}

static fpa_status check_keys(draft *d, const DLTensor *count, tensors_mode mode, DLDevice device,
                             const float **weights, fpa_error *error)
{
    const fpa_kernel *kernel = d->kernel;
    fpa_status status = of_accepted(
        tensors_check(kernel->head, &kernel->facts, device, mode, &d->keys, weights, &d->key_launch, error),
        error);
    if (!status)
        status = check_length(&d->key_launch, "accepted.k", error);
    if (!status)
        status = check_counts(d, count, device, mode, error);
    d->launch.keys = &d->key_launch;
    return status;
}

static fpa_status check_queries(draft *d, tensors_mode mode, DLDevice device, const float **weights,
                                fpa_error *error)
{
    const fpa_kernel *kernel = d->kernel;
    fpa_status status = tensors_check(kernel->head, &kernel->facts, device, mode, &d->queries, weights,
                                      &d->query_launch, error);
    if (!status)
        status = check_length(&d->query_launch, "q", error);
    d->launch.queries = &d->query_launch;
    return status;
}

/* Checks that both launches have the same sequences and heads, and that neither writes what the other one reads. */
static fpa_status check_halves(const draft *d, tensors_mode mode, fpa_error *error)
{
    const struct fpa_launch *q = &d->query_launch, *k = &d->key_launch;
    const fpa_head *head = d->kernel->head;
    fpa_tensors queries = d->queries;
    if (q->batch != k->batch || q->heads != k->heads)
        return fail(error, FPA_INVALID, "accepted.k",
                    "has %lld sequences of %lld heads, but k has %lld of %lld", (long long)k->batch,
                    (long long)k->heads, (long long)q->batch, (long long)q->heads);
    if (mode != TENSORS_DATA)
        return FPA_OK;
    queries.state_in = NULL; /* checked already: it may be the state that is updated */
    fpa_status status = tensors_apart(head, &d->keys, &queries, error);
    return status ? status : tensors_apart(head, &queries, &d->keys, error);
}

static fpa_status check_draft(draft *d, const fpa_kernel *kernel, const fpa_tensors *tensors,
                              const fpa_accepted *accepted, tensors_mode mode, const float **weights,
                              fpa_error *error)
{
    *d = (draft){.kernel = kernel};
    if (!tensors)
        return fail(error, FPA_INVALID, "tensors", "is NULL");
    d->launch.element = dtype_size(kernel->head->dtype);
    d->launch.state_element = dtype_size(kernel->head->state_dtype);
    const DLDevice device = {(DLDeviceType)kernel->module.backend->device_type, kernel->module.device};
    fpa_status status = refuse_head(kernel, error);
    if (!status)
        status = check_call(tensors, accepted, error);
    if (status)
        return status;
    divide(d, tensors, accepted);
    if (accepted)
        status = check_keys(d, accepted->count, mode, device, weights, error);
    if (!status && (tensors->q || tensors->o))
        status = check_queries(d, mode, device, weights, error);
    return status || !d->launch.keys || !d->launch.queries ? status : check_halves(d, mode, error);
}

static bool is_empty(const draft *d)
{
    const struct fpa_launch *any = d->launch.queries ? d->launch.queries : d->launch.keys;
    return any->batch == 0 || any->heads == 0;
}

static size_t needs(const draft *d)
{
    const fpa_module *module = &d->kernel->module;
    return is_empty(d) ? 0 : module->draft_workspace(module, &d->launch);
}

fpa_status fpa_draft_workspace(const fpa_kernel *kernel, const fpa_tensors *tensors,
                               const fpa_accepted *accepted, size_t *bytes, fpa_error *error)
{
    if (!kernel || !bytes)
        return fail(error, FPA_INVALID, kernel ? "bytes" : "kernel", "is NULL");
    const float *weights[kernel->description.weight_count + 1];
    draft d;
    *bytes = 0;
    fpa_status status = check_draft(&d, kernel, tensors, accepted, TENSORS_SHAPES, weights, error);
    if (!status)
        *bytes = needs(&d);
    return status;
}

static fpa_status check_workspace(const draft *d, size_t needed, fpa_error *error)
{
    const fpa_draft_launch *launch = &d->launch;
    const fpa_head *head = d->kernel->head;
    fpa_checks c = {error, FPA_OK};
    view_workspace(&c, launch->workspace, launch->workspace_size, needed, d->kernel->module.backend->memory,
                   "fpa_draft_workspace");
    if (!c.status && needed && launch->queries)
        c.status = tensors_workspace(head, &d->queries, launch->workspace, needed, error);
    if (!c.status && needed && launch->keys)
        c.status = tensors_workspace(head, &d->keys, launch->workspace, needed, error);
    return c.status;
}

fpa_status fpa_draft(const fpa_kernel *kernel, const fpa_tensors *tensors, const fpa_accepted *accepted,
                     void *workspace, size_t workspace_size, fpa_error *error)
{
    if (!kernel)
        return fail(error, FPA_INVALID, "kernel", "is NULL");
    const float *weights[kernel->description.weight_count + 1];
    draft d;
    fpa_status status = check_draft(&d, kernel, tensors, accepted, TENSORS_DATA, weights, error);
    if (status || is_empty(&d))
        return status;
    d.launch.workspace = workspace;
    d.launch.workspace_size = workspace_size;
    status = check_workspace(&d, needs(&d), error);
    return status ? status : kernel->module.draft(&kernel->module, &d.launch, tensors->stream, error);
}

fpa_status fpa_accept(const fpa_kernel *kernel, const fpa_tensors *tensors, const fpa_accepted *accepted,
                      void *workspace, size_t workspace_size, fpa_error *error)
{
    if (tensors && (tensors->q || tensors->o))
        return fail(error, FPA_INVALID, tensors->q ? "q" : "o",
                    "is given, but fpa_accept only updates the state; fpa_draft also computes outputs");
    return fpa_draft(kernel, tensors, accepted, workspace, workspace_size, error);
}

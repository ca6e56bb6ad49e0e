/* fpa: calls on a kernel: fpa_describe, fpa_forward, fpa_step and others. */
#include "forward.h"
#include "runtime/kernel.h"
#include "tensors.h"
#include "view.h"

static bool has_form(const fpa_kernel *kernel, fpa_form form)
{
    return form >= 0 && form <= FPA_FORM_RECURRENT && (kernel->facts.forms >> (int)form & 1);
}

const char *fpa_version(void)
{
    return FPA_VERSION;
}

const fpa_description *fpa_describe(const fpa_kernel *kernel)
{
    return kernel ? &kernel->description : NULL;
}

fpa_form fpa_choose_form(const fpa_kernel *kernel, int64_t length, int with_state)
{
    if (!kernel)
        return FPA_FORM_AUTO;
    int64_t crossover = kernel->facts.crossover;
    if (length == 1 && with_state && has_form(kernel, FPA_FORM_RECURRENT))
        return FPA_FORM_RECURRENT;
    bool short_enough = crossover == 0 || length < crossover;
    if (has_form(kernel, FPA_FORM_PARALLEL) && (short_enough || !has_form(kernel, FPA_FORM_CHUNKED)))
        return FPA_FORM_PARALLEL;
    return has_form(kernel, FPA_FORM_CHUNKED) ? FPA_FORM_CHUNKED : FPA_FORM_RECURRENT;
}

static fpa_status refuse_form(const fpa_kernel *kernel, fpa_form form, fpa_error *error)
{
    const fpa_head *head = kernel->head;
    char has[64];
    snprintf(has, sizeof has, "%s%s%s", has_form(kernel, FPA_FORM_PARALLEL) ? " parallel (0)" : "",
             has_form(kernel, FPA_FORM_CHUNKED) ? " chunked (1)" : "",
             has_form(kernel, FPA_FORM_RECURRENT) ? " recurrent (2)" : "");
    if (form < FPA_FORM_PARALLEL || form > FPA_FORM_RECURRENT)
        return fail(error, FPA_UNSUPPORTED, kernel->facts.name, "has no form %d; it has:%s", (int)form, has);
    return fail(error, FPA_UNSUPPORTED, kernel->facts.name, "has no %s form (%d)%s; it has:%s",
                form_name((fpa_form_index)form), (int)form,
                head->causal ? ""
                             : ": it is not causal (causal = false), so each token needs later keys, which "
                               "the state does not contain",
                has);
}

/* Replaces AUTO by a form. A form that the head does not have is an error that lists those it has. */
static fpa_status resolve_form(const fpa_kernel *kernel, const fpa_tensors *tensors,
                               const struct fpa_launch *launch, fpa_form *form, fpa_error *error)
{
    const bool keys_only = launch->query_heads == 0 && launch->heads > 0;
    const bool windowed = kernel->head->window > 0; /* with a window every form supports `recent` */
    if (*form == FPA_FORM_AUTO)
        *form = launch->recent && !windowed ? FPA_FORM_RECURRENT
                : keys_only && has_form(kernel, FPA_FORM_CHUNKED)
                    ? FPA_FORM_CHUNKED
                    : fpa_choose_form(kernel, launch->length,
                                      launch->recent || tensors->state_in || tensors->state_out);
    if (launch->recent && !windowed && *form != FPA_FORM_RECURRENT)
        return fail(error, FPA_INVALID, "recent",
                    "is %lld, but only the recurrent form (2) supports tokens that are not in the state",
                    (long long)launch->recent);
    if ((launch->recent || keys_only) && !kernel->module.decodes_recent)
        return fail(error, FPA_UNSUPPORTED, launch->recent ? "recent" : "q",
                    "%s was compiled for %s, which supports neither recent tokens outside the state nor "
                    "calls without q yet: update the state at every token, and give q and o",
                    kernel->facts.name, kernel->facts.target);
    if ((launch->cu_seqlens || launch->state_in_index || launch->state_out_index) &&
        !kernel->module.takes_sequences)
        return fail(error, FPA_UNSUPPORTED, launch->cu_seqlens ? "cu_seqlens" : "state_index",
                    "%s was compiled for %s, which supports neither sequences of different lengths nor pools "
                    "of states yet",
                    kernel->facts.name, kernel->facts.target);
    if (launch->den && !kernel->module.saves_den)
        return fail(error, FPA_UNSUPPORTED, "den",
                    "%s was compiled for %s, whose kernels do not store the sums of scores (den) yet",
                    kernel->facts.name, kernel->facts.target);
    if (has_form(kernel, *form))
        return FPA_OK;
    return refuse_form(kernel, *form, error);
}

/* Whether a launch writes nothing. It is then skipped, so that emitted code need not handle this case. */
static bool is_empty(const struct fpa_launch *launch)
{
    return launch->batch == 0 || launch->heads == 0 || (launch->length == 0 && !launch->state_out);
}

/* The device on which the tensors of a call must be. */
static DLDevice forward_device(const fpa_kernel *kernel)
{
    const fpa_module *module = &kernel->module;
    return (DLDevice){(DLDeviceType)module->backend->device_type, module->device};
}

fpa_status forward_prepare(const fpa_kernel *kernel, tensors_mode mode, const fpa_tensors *tensors,
                           fpa_form *form, const float **weights, struct fpa_launch *launch, bool *empty,
                           fpa_error *error)
{
    fpa_status status = tensors_check(kernel->head, &kernel->facts, forward_device(kernel), mode, tensors,
                                      weights, launch, error);
    if (!status)
        status = resolve_form(kernel, tensors, launch, form, error);
    *empty = !status && is_empty(launch);
    return status;
}

fpa_status workspace_size_by(const fpa_kernel *kernel, const fpa_candidate *candidate, fpa_form form,
                             const fpa_tensors *tensors, size_t *bytes, fpa_error *error)
{
    if (!kernel || !bytes)
        return fail(error, FPA_INVALID, kernel ? "bytes" : "kernel", "is NULL");
    const float *weights[kernel->description.weight_count + 1];
    struct fpa_launch launch;
    bool empty;
    *bytes = 0;
    fpa_status status =
        forward_prepare(kernel, TENSORS_SHAPES, tensors, &form, weights, &launch, &empty, error);
    if (!status && !empty)
        *bytes = kernel->module.workspace(&kernel->module, form, &launch, candidate);
    return status;
}

fpa_status fpa_workspace_size(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *tensors,
                              size_t *bytes, fpa_error *error)
{
    return workspace_size_by(kernel, NULL, form, tensors, bytes, error);
}

fpa_status forward_check_workspace(const fpa_kernel *kernel, const fpa_tensors *tensors,
                                   const struct fpa_launch *launch, size_t needed, const char *query,
                                   fpa_error *error)
{
    fpa_checks c = {error, FPA_OK};
    view_workspace(&c, launch->workspace, launch->workspace_size, needed, kernel->module.backend->memory,
                   query);
    return c.status || !needed ? c.status
                               : tensors_workspace(kernel->head, tensors, launch->workspace, needed, error);
}

fpa_status forward_by(const fpa_kernel *kernel, const fpa_candidate *candidate, fpa_form form,
                      const fpa_tensors *tensors, void *workspace, size_t workspace_size, fpa_error *error)
{
    if (!kernel)
        return fail(error, FPA_INVALID, "kernel", "is NULL");
    const float *weights[kernel->description.weight_count + 1]; /* on the stack: at most 32 KiB */
    struct fpa_launch launch;
    bool empty;
    fpa_status status =
        forward_prepare(kernel, TENSORS_DATA, tensors, &form, weights, &launch, &empty, error);
    if (status || empty)
        return status;
    launch.workspace = workspace;
    launch.workspace_size = workspace_size;
    /* chosen once for workspace and launch, since choosing takes as long as launching */
    fpa_candidate fastest;
    if (!candidate && kernel->module.choose &&
        kernel->module.choose(&kernel->module, form, &launch, &fastest))
        candidate = &fastest;
    const size_t needed = kernel->module.workspace(&kernel->module, form, &launch, candidate);
    status = forward_check_workspace(kernel, tensors, &launch, needed, "fpa_workspace_size", error);
    if (status)
        return status;
    void *stream = tensors->stream; /* NOLINT(clang-analyzer-core.NullDereference): they were checked */
    return kernel->module.forward(&kernel->module, form, &launch, candidate, stream, error);
}

fpa_status fpa_forward(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *tensors, void *workspace,
                       size_t workspace_size, fpa_error *error)
{
    return forward_by(kernel, NULL, form, tensors, workspace, workspace_size, error);
}

fpa_status forward_check_step(const fpa_tensors *tensors, fpa_error *error)
{
    if (tensors && (!tensors->state_in || !tensors->state_out))
        return fail(
            error, FPA_INVALID, tensors->state_in ? "state_out" : "state_in",
            "is NULL, but a step needs both states (give the same tensor twice to update it in place)");
    return FPA_OK;
}

fpa_status fpa_step(const fpa_kernel *kernel, const fpa_tensors *tensors, void *workspace,
                    size_t workspace_size, fpa_error *error)
{
    fpa_status status = forward_check_step(tensors, error);
    return status ? status
                  : fpa_forward(kernel, FPA_FORM_RECURRENT, tensors, workspace, workspace_size, error);
}

void fpa_close(fpa_kernel *kernel)
{
    kernel_free(kernel);
}

#include "run_kernel.h"

#include "bundle_heads.h"
#include "command.h"
#include "device.h"
#include "head/layer.h"
#include "operand.h"
#include "runtime/api/open.h"

/* Describes a layer as if it were one head; state elements are those of a sequence, for all heads. */
static void describe_layer(run_kernel *opened)
{
    const fpa_layer_description *layer = fpa_describe_layer(opened->layer);
    opened->kernel = (fpa_kernel *)(uintptr_t)opened->layer->kernels[0];
    opened->about = (fpa_description){.name = layer->name,
                                      .target = layer->target,
                                      .dtype = layer->dtype,
                                      .state_dtype = layer->state_dtype,
                                      .d = layer->d,
                                      .dv = layer->dv,
                                      .gate = layer->gate,
                                      .normalized = layer->normalized,
                                      .key_mask = layer->key_mask,
                                      .positions = layer->positions,
                                      .window = layer->window,
                                      .heads = layer->heads,
                                      .state_elements = layer->state_elements,
                                      .weight_count = layer->weight_count,
                                      .weight_names = layer->weight_names};
}

/* The layer of that name; without a name, the only layer of a file with several heads. NULL: a head is computed. */
static const fpa_layer_spec *find_layer(const fpa_head_list *list, const char *name)
{
    return name || list->count > 1 ? layer_find(list, name) : NULL;
}

fpa_status run_open(const char *spec, const char *name, const char *dtype, const fpa_options *options,
                    run_kernel *opened, fpa_error *error)
{
    fpa_head_list list = {0};
    const fpa_head *only; /* the head to open, if there is exactly one */
    int first, end;
    *opened = (run_kernel){.kernel = NULL};
    const bool bundle = is_bundle(spec);
    if (bundle && dtype)
        return fail(error, FPA_INVALID, "--dtype", "is that of a bundle's kernels: %s was written with it",
                    spec);
    fpa_status status = select_with_layers(spec, name, dtype, &list, &first, &end, error);
    if (status)
        return status;
    const fpa_layer_spec *layer = find_layer(&list, name);
    if (layer) {
        status = bundle ? fpa_open_bundle_layer(spec, layer->name, options, &opened->layer, error)
                        : open_layer_of(&list, layer, options, &opened->layer, error);
        if (!status)
            describe_layer(opened);
        head_list_free(&list);
        return status;
    }
    status = head_list_find(&list, name, spec, &only, error);
    if (!status && bundle)
        status = fpa_open_bundle(spec, only->name, options, &opened->kernel, error);
    else if (!status) {
        fpa_head *head = list.heads[first];
        list.heads[first] = NULL;
        status = open_parsed_head(head, options, &opened->kernel, error);
    }
    if (!status)
        opened->about = *fpa_describe(opened->kernel);
    head_list_free(&list);
    return status;
}

void run_close(run_kernel *opened)
{
    if (opened->layer)
        fpa_close_layer(opened->layer);
    else
        fpa_close(opened->kernel);
}

fpa_status run_workspace(const run_kernel *opened, fpa_form form, const fpa_tensors *tensors,
                         void **workspace, size_t *size, fpa_error *error)
{
    if (!opened->layer)
        return workspace_new(opened->kernel, NULL, form, tensors, workspace, size, error);
    *workspace = NULL;
    fpa_status status = fpa_layer_workspace_size(opened->layer, form, tensors, size, error);
    return status ? status : device_allocate(opened->kernel, *size, workspace, error);
}

/* Computes a draft, then accepts its tokens. The workspace serves both calls; the device's context is the current
 * one. */
static fpa_status draft_and_accept(const fpa_kernel *kernel, const fpa_tensors *draft,
                                   const fpa_tensors *states, const fpa_accepted *accepted, void *workspace,
                                   size_t size, fpa_error *error)
{
    fpa_status status = fpa_draft(kernel, draft, NULL, workspace, size, error);
    return status ? status : fpa_accept(kernel, states, accepted, workspace, size, error);
}

fpa_status run_draft(const run_kernel *opened, const fpa_tensors *tensors, const DLTensor *count,
                     fpa_error *error)
{
    const fpa_kernel *kernel = opened->kernel;
    const fpa_accepted accepted = {
        count, tensors->k, tensors->v, tensors->log_gate, tensors->positions, tensors->key_mask};
    fpa_tensors draft = *tensors, states = *tensors;
    size_t size, more;
    void *workspace = NULL;
    draft.state_out = NULL;
    states.q = states.k = states.v = NULL;
    states.o = NULL;
    states.log_gate = states.positions = states.key_mask = NULL;
    fpa_status status = fpa_draft_workspace(kernel, &draft, NULL, &size, error);
    if (!status)
        status = fpa_draft_workspace(kernel, &states, &accepted, &more, error);
    if (!status)
        status = device_allocate(kernel, size > more ? size : more, &workspace, error);
    if (!status)
        status = device_enter(kernel, error);
    if (!status) {
        status =
            draft_and_accept(kernel, &draft, &states, &accepted, workspace, size > more ? size : more, error);
        device_leave(kernel);
    }
    if (!status)
        status = device_finish(kernel, error);
    device_release(kernel, workspace);
    return status;
}

fpa_status run_forward(const run_kernel *opened, fpa_form form, const fpa_tensors *tensors, void *workspace,
                       size_t size, fpa_error *error)
{
    return opened->layer ? fpa_layer_forward(opened->layer, form, tensors, workspace, size, error)
                         : fpa_forward(opened->kernel, form, tensors, workspace, size, error);
}

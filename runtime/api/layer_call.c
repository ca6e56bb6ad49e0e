/* Calls on a layer: the tensors are divided among its parts, whose launches the back end executes together. */
#include "forward.h"
#include "layer.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- forward ---- */

#define ROW(name, axes, written) TENSOR_ROW(fpa_tensors, name, axes, written)
static const tensor_row forward_rows[] = {
    ROW(q, AXES_QUERIES, false),
    ROW(k, AXES_KEYS, false),
    ROW(v, AXES_VALUES, false),
    ROW(o, AXES_OUTPUTS, true),
    ROW(log_gate, AXES_KEY_NUMBERS, false),
    ROW(den, AXES_QUERY_NUMBERS, true),
    ROW(positions, AXES_POSITIONS, false),
    ROW(key_mask, AXES_MASK, false),
    ROW(state_in, AXES_STATES, false),
    ROW(state_out, AXES_STATES, true),
    ROW(cu_seqlens, AXES_INDEX, false),
    ROW(state_index, AXES_INDEX, false),
    ROW(state_out_index, AXES_INDEX, false),
};
#undef ROW

enum { FORWARD_ROWS = sizeof forward_rows / sizeof *forward_rows };

_Static_assert((int)FORWARD_ROWS <= (int)LAYER_TENSORS, "layer.h counts them");

/* Tokens before the queries that a part uses: heads with a window use the newest ones; if some head has a window,
 * the others have these tokens in their states. */
static int64_t recent_of(const fpa_layer *layer, int part, int64_t recent)
{
    const int window = layer->parts[part].head->window;
    if (!layer->description.window)
        return recent;
    if (!window)
        return 0;
    return recent < window - 1 ? recent : window - 1;
}

/* Operations of one head for one sequence. */
static double work_of(const fpa_kernel *kernel, int form, const struct fpa_launch *launch)
{
    const double length = (double)launch->length;
    return kernel->facts.flop[form] * (form == FORM_PARALLEL ? length * (length + 1) / 2 : length);
}

/* Rewrites a weight's name in a part's error, "weights[0] (A)", as the layer's, "weights[3] (HEAD.A)". */
static fpa_status name_weight(const fpa_layer *layer, int part, fpa_status status, fpa_error *error)
{
    static const char list[] = "weights[";
    char *name = status && error ? strstr(error->where, list) : NULL; /* for a gradient it follows "d_" */
    if (!name)
        return status;
    const int at = layer->parts[part].first_weight + (int)strtol(name + strlen(list), NULL, 10);
    snprintf(name, sizeof error->where - (size_t)(name - error->where), "%s%d] (%.63s)", list, at,
             layer->weight_names[at]);
    return status;
}

static fpa_status prepare_part(const layer_call *c, int number, const fpa_tensors *whole, fpa_form form,
                               const float **weights, fpa_part *part, bool *empty, fpa_error *error)
{
    const fpa_layer *layer = c->layer;
    const fpa_kernel *kernel = layer->kernels[number];
    layer_slice slices[LAYER_TENSORS];
    fpa_tensors tensors = *whole;
    tensors.recent = recent_of(layer, number, whole->recent);
    tensors.weights = whole->weights ? whole->weights + layer->parts[number].first_weight : NULL;
    layer_cut(c, number, tensors.recent, slices, &tensors);
    fpa_status status = forward_prepare(kernel, c->with_data ? TENSORS_DATA : TENSORS_SHAPES, &tensors, &form,
                                        weights, &part->launch, empty, error);
    if (status)
        return name_weight(layer, number, status, error);
    part->module = &kernel->module;
    part->form = form;
    part->work = work_of(kernel, form, &part->launch);
    part->chosen = !*empty && kernel->module.choose &&
                   kernel->module.choose(&kernel->module, form, &part->launch, &part->fastest);
    return FPA_OK;
}

/* Makes the launches of the parts that have something to compute, *count of them. weights: room for the layer's
 * pointers. */
static fpa_status prepare(layer_call *c, const fpa_tensors *tensors, fpa_form form, const float **weights,
                          fpa_part *parts, int *count, fpa_error *error)
{
    const fpa_layer *layer = c->layer;
    *count = 0;
    if (!tensors)
        return fail(error, FPA_INVALID, "tensors", "is NULL");
    c->rows = forward_rows;
    c->count = FORWARD_ROWS;
    c->tensors = tensors;
    c->weights = tensors->weights;
    c->recent = tensors->recent;
    fpa_status status = layer_look(c, error);
    for (int i = 0; i < layer->description.part_count && !status; i++) {
        bool empty = false;
        status = prepare_part(c, i, tensors, form, weights + layer->parts[i].first_weight, &parts[*count],
                              &empty, error);
        *count += !status && !empty;
    }
    return status;
}

fpa_status fpa_layer_workspace_size(const fpa_layer *layer, fpa_form form, const fpa_tensors *tensors,
                                    size_t *bytes, fpa_error *error)
{
    if (!layer || !bytes)
        return fail(error, FPA_INVALID, layer ? "bytes" : "layer", "is NULL");
    const float *weights[layer->description.weight_count + 1];
    fpa_part parts[layer->description.part_count];
    layer_call c = {.layer = layer};
    int count;
    *bytes = 0;
    fpa_status status = prepare(&c, tensors, form, weights, parts, &count, error);
    if (!status)
        *bytes = layer->backend->together->workspace(parts, count);
    return status;
}

fpa_status fpa_layer_forward(const fpa_layer *layer, fpa_form form, const fpa_tensors *tensors,
                             void *workspace, size_t workspace_size, fpa_error *error)
{
    if (!layer)
        return fail(error, FPA_INVALID, "layer", "is NULL");
    const float *weights[layer->description.weight_count + 1];
    fpa_part parts[layer->description.part_count];
    layer_call c = {.layer = layer, .with_data = true};
    int count;
    fpa_status status = prepare(&c, tensors, form, weights, parts, &count, error);
    if (!status)
        status = layer_check_workspace(&c, workspace, workspace_size,
                                       layer->backend->together->workspace(parts, count),
                                       "fpa_layer_workspace_size", error);
    if (status || !count)
        return status;
    void *stream = tensors->stream; /* NOLINT(clang-analyzer-core.NullDereference): they were checked */
    return layer->backend->together->forward(layer->handle, parts, count, workspace, workspace_size, stream,
                                             error);
}

fpa_status fpa_layer_step(const fpa_layer *layer, const fpa_tensors *tensors, void *workspace,
                          size_t workspace_size, fpa_error *error)
{
    fpa_status status = forward_check_step(tensors, error);
    return status ? status
                  : fpa_layer_forward(layer, FPA_FORM_RECURRENT, tensors, workspace, workspace_size, error);
}

/* ---- backward: one part after the other ---- */

_Static_assert((int)GRADIENT_ROWS <= (int)LAYER_TENSORS, "layer.h counts them");

static fpa_status look_backward(layer_call *c, const fpa_gradient_tensors *tensors, fpa_error *error)
{
    const fpa_layer *layer = c->layer;
    if (!tensors)
        return fail(error, FPA_INVALID, "tensors", "is NULL");
    for (int i = 0; i < layer->description.part_count; i++)
        if (!layer->kernels[i]->backward.backward)
            return fail(error, FPA_UNSUPPORTED, layer->name,
                        "its head %s was opened without gradients: open the layer with backward = 1 in the "
                        "options",
                        layer->parts[i].head->name);
    c->rows = gradient_rows;
    c->count = GRADIENT_ROWS;
    c->tensors = tensors;
    c->weights = tensors->weights;
    c->d_weights = (const DLTensor *const *)tensors->d_weights;
    return layer_look(c, error);
}

static fpa_gradient_tensors cut_backward(const layer_call *c, const fpa_gradient_tensors *whole, int part,
                                         layer_slice slices[LAYER_TENSORS])
{
    const int first = c->layer->parts[part].first_weight;
    fpa_gradient_tensors tensors = *whole;
    tensors.weights = whole->weights ? whole->weights + first : NULL;
    tensors.d_weights = whole->d_weights ? whole->d_weights + first : NULL;
    layer_cut(c, part, 0, slices, &tensors);
    return tensors;
}

/* The largest workspace of a part. */
static fpa_status backward_bytes(const layer_call *c, fpa_form form, const fpa_gradient_tensors *whole,
                                 size_t *bytes, fpa_error *error)
{
    fpa_status status = FPA_OK;
    *bytes = 0;
    for (int i = 0; i < c->layer->description.part_count && !status; i++) {
        layer_slice slices[LAYER_TENSORS];
        const fpa_gradient_tensors tensors = cut_backward(c, whole, i, slices);
        size_t its;
        status = fpa_backward_workspace(c->layer->kernels[i], form, &tensors, &its, error);
        name_weight(c->layer, i, status, error);
        *bytes = !status && its > *bytes ? its : *bytes;
    }
    return status;
}

fpa_status fpa_layer_backward_workspace(const fpa_layer *layer, fpa_form form,
                                        const fpa_gradient_tensors *tensors, size_t *bytes, fpa_error *error)
{
    if (!layer || !bytes)
        return fail(error, FPA_INVALID, layer ? "bytes" : "layer", "is NULL");
    layer_call c = {.layer = layer};
    *bytes = 0;
    fpa_status status = look_backward(&c, tensors, error);
    return status ? status : backward_bytes(&c, form, tensors, bytes, error);
}

fpa_status fpa_layer_backward(const fpa_layer *layer, fpa_form form, const fpa_gradient_tensors *tensors,
                              void *workspace, size_t workspace_size, fpa_error *error)
{
    size_t needed;
    if (!layer)
        return fail(error, FPA_INVALID, "layer", "is NULL");
    layer_call c = {.layer = layer, .with_data = true};
    fpa_status status = look_backward(&c, tensors, error);
    if (!status) /* all parts are checked before the first one writes */
        status = backward_bytes(&c, form, tensors, &needed, error);
    if (!status)
        status = layer_check_workspace(&c, workspace, workspace_size, needed, "fpa_layer_backward_workspace",
                                       error);
    for (int i = 0; !status && i < layer->description.part_count; i++) {
        layer_slice slices[LAYER_TENSORS];
        const fpa_gradient_tensors part = cut_backward(&c, tensors, i, slices);
        status = fpa_backward(layer->kernels[i], form, &part, workspace, workspace_size, error);
        name_weight(layer, i, status, error);
    }
    return status;
}

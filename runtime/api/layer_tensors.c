/* The tensors of a call on a layer: checked as a whole, and divided into those of its parts, which share their
 * memory. */
#include "layer.h"

#include <string.h>

static int find_row(const layer_call *c, tensor_axes axes)
{
    for (int i = 0; i < c->count; i++)
        if (c->rows[i].axes == axes)
            return i;
    return -1;
}

static int count_axes(tensor_axes axes, const DLTensor *tensor)
{
    switch (axes) {
    case AXES_QUERY_NUMBERS:
    case AXES_KEY_NUMBERS:
        return 3;
    case AXES_POSITIONS:
        return tensor->ndim == 2 ? 2 : 3;
    case AXES_MASK:
    case AXES_STATES:
        return 2;
    case AXES_INDEX:
        return 1;
    default:
        return 4;
    }
}

static fpa_dtype dtype_of(const layer_call *c, tensor_axes axes)
{
    const fpa_head *head = c->layer->kernels[0]->head;
    if (axes == AXES_STATES)
        return head->state_dtype;
    return axes <= AXES_OUTPUTS ? head->dtype : FPA_F32;
}

/* ---- as a whole ---- */

static void look(fpa_checks *checks, layer_call *c, int row)
{
    const fpa_layer_description *about = &c->layer->description;
    const tensor_axes axes = c->rows[row].axes;
    fpa_view *view = &c->view[row];
    const DLTensor *tensor = tensor_of_row(&c->rows[row], c->tensors);
    *view = (fpa_view){.name = c->rows[row].name};
    if (!tensor)
        return;
    view->tensor = tensor;
    view->device = (DLDevice){(DLDeviceType)c->layer->backend->device_type, about->device};
    view->dtype = dtype_of(c, axes);
    view->is_mask = axes == AXES_MASK;
    view->is_index = axes == AXES_INDEX;
    view->may_be_wide = view->is_index && strcmp(view->name, "cu_seqlens") == 0;
    view->axes = count_axes(axes, tensor);
    view->with_data = c->with_data;
    view_check(checks, view);
    if (axes == AXES_KEYS || axes == AXES_VALUES || axes == AXES_KEY_NUMBERS)
        view_axis(checks, view, 2, about->heads, "heads", "those of the layer are");
    if (axes != AXES_STATES)
        return;
    view_axis(checks, view, 1, about->state_elements, "elements", "the states of the layer's heads have");
    view_contiguous(checks, view, 1);
}

/* Sets call->group, which all heads have in common, by the number of query heads. */
static void find_group(fpa_checks *checks, layer_call *c)
{
    const int heads = c->layer->description.heads, row = find_row(c, AXES_QUERIES);
    const fpa_view *q = &c->view[row];
    c->group = 0;
    if (checks->status || !q->tensor)
        return;
    c->group = q->shape[2] / heads;
    if (c->group < 1 || q->shape[2] % heads)
        checks_fail(
            checks, FPA_INVALID, q->name,
            "axis 2 has %lld heads, but the layer has %d key/value heads: a positive multiple is needed",
            (long long)q->shape[2], heads);
    for (int i = 0; i < c->count; i++)
        if (c->view[i].tensor && (c->rows[i].axes == AXES_QUERIES || c->rows[i].axes == AXES_OUTPUTS ||
                                  c->rows[i].axes == AXES_QUERY_NUMBERS))
            view_axis(checks, &c->view[i], 2, q->shape[2], "heads", "q has");
}

static void check_recent(fpa_checks *checks, const layer_call *c)
{
    const fpa_view *k = &c->view[find_row(c, AXES_KEYS)];
    if (c->recent < 0 || (c->recent && k->tensor && c->recent > k->shape[1]))
        checks_fail(checks, FPA_INVALID, "recent", "is %lld, but k has %lld tokens", (long long)c->recent,
                    (long long)(k->tensor ? k->shape[1] : 0));
    for (int i = 0; i < c->count && c->recent; i++) {
        const tensor_axes axes = c->rows[i].axes;
        const bool tokens =
            axes == AXES_VALUES || axes == AXES_KEY_NUMBERS || axes == AXES_POSITIONS || axes == AXES_MASK;
        if (tokens && c->view[i].tensor && k->tensor)
            view_axis(checks, &c->view[i], 1, k->shape[1], "tokens", "k has");
        if (c->layer->description.window && axes == AXES_INDEX && c->view[i].may_be_wide && c->view[i].tensor)
            checks_fail(
                checks, FPA_INVALID, "recent",
                "is %lld, but cannot be combined with cu_seqlens if a head of the layer has a window: give "
                "sequences with the same number of recent tokens as a batch, with state_index",
                (long long)c->recent);
    }
}

/* Views a run-time matrix or its gradient; its shape is checked with its head. */
static void look_weight(fpa_checks *checks, const layer_call *c, const DLTensor *tensor, const char *name,
                        fpa_view *view)
{
    const fpa_layer_description *about = &c->layer->description;
    *view = (fpa_view){.name = name, .tensor = tensor};
    if (!tensor)
        return;
    view->device = (DLDevice){(DLDeviceType)c->layer->backend->device_type, about->device};
    view->dtype = FPA_F32;
    view->axes = tensor->ndim;
    view->with_data = c->with_data;
    view_check(checks, view);
}

static bool is_in_place(const layer_call *c, int output, int other)
{
    const fpa_view *a = &c->view[output], *b = &c->view[other];
    return c->rows[output].axes == AXES_STATES && c->rows[other].axes == AXES_STATES &&
           !c->rows[other].written && strcmp(c->rows[output].name, "state_out") == 0 && a->data == b->data &&
           a->stride[0] == b->stride[0];
}

/* Checks an output against all other tensors. row: its own row; -1: it has none. */
static void check_apart(fpa_checks *checks, const layer_call *c, const fpa_view *output, int row)
{
    for (int i = 0; i < c->count; i++)
        if (i != row && c->view[i].tensor && !(row >= 0 && is_in_place(c, row, i)))
            view_apart(checks, output, &c->view[i]);
    for (int i = 0; i < 2 * c->layer->description.weight_count; i++) {
        const DLTensor *const *all = i % 2 ? c->d_weights : c->weights;
        fpa_view weight;
        if (!all)
            continue;
        look_weight(checks, c, all[i / 2], i % 2 ? "d_weights" : "weights", &weight);
        if (weight.tensor && weight.tensor != output->tensor)
            view_apart(checks, output, &weight);
    }
}

static void check_outputs(fpa_checks *checks, const layer_call *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->rows[i].written && c->view[i].tensor)
            check_apart(checks, c, &c->view[i], i);
    for (int i = 0; c->d_weights && i < c->layer->description.weight_count; i++) {
        fpa_view view;
        look_weight(checks, c, c->d_weights[i], "d_weights", &view);
        if (view.tensor)
            check_apart(checks, c, &view, -1);
    }
}

fpa_status layer_look(layer_call *call, fpa_error *error)
{
    fpa_checks checks = {error, FPA_OK};
    for (int i = 0; i < call->count; i++)
        look(&checks, call, i);
    find_group(&checks, call);
    check_recent(&checks, call);
    if (call->with_data && !checks.status)
        check_outputs(&checks, call);
    return checks.status;
}

fpa_status layer_check_workspace(const layer_call *call, void *workspace, size_t size, size_t needed,
                                 const char *query, fpa_error *error)
{
    fpa_checks checks = {error, FPA_OK};
    const fpa_view memory =
        view_workspace(&checks, workspace, size, needed, call->layer->backend->memory, query);
    check_apart(&checks, call, &memory, -1);
    return checks.status;
}

/* ---- as parts ---- */

/* Restricts a tensor to `count` entries of an axis from `first` on. */
static void cut(layer_slice *s, int axis, int64_t first, int64_t count, size_t item)
{
    s->shape[axis] = count;
    s->tensor.byte_offset += (uint64_t)(first * s->stride[axis]) * item;
}

/* Views states [sequences, elements] as [sequences, heads, elements of a head] for one part. */
static void cut_states(layer_slice *s, const fpa_layer_part *part, size_t item)
{
    cut(s, 1, part->state_offset, part->heads, item);
    s->shape[2] = part->head->state_elements;
    s->stride[1] = part->head->state_elements;
    s->stride[2] = 1;
    s->tensor.ndim = 3;
}

static void cut_tokens(layer_slice *s, int64_t older, size_t item)
{
    cut(s, 1, older, s->shape[1] - older, item);
}

static void cut_row(const layer_call *c, int row, const fpa_layer_part *part, int64_t older, layer_slice *s)
{
    const fpa_view *view = &c->view[row];
    const size_t item = view_item(view);
    const tensor_axes axes = c->rows[row].axes;
    *s = (layer_slice){.tensor = *view->tensor};
    memcpy(s->shape, view->shape, sizeof s->shape);
    memcpy(s->stride, view->stride, sizeof s->stride);
    s->tensor.shape = s->shape;
    s->tensor.strides = s->stride;
    if (axes == AXES_STATES) {
        s->stride[1] = 1;
        cut_states(s, part, item);
    } else if (axes == AXES_QUERIES || axes == AXES_OUTPUTS || axes == AXES_QUERY_NUMBERS) {
        cut(s, 2, part->first * c->group, part->heads * c->group, item);
    } else if (axes == AXES_KEYS || axes == AXES_VALUES || axes == AXES_KEY_NUMBERS) {
        cut(s, 2, part->first, part->heads, item);
        cut_tokens(s, older, item);
    } else if (axes == AXES_POSITIONS || axes == AXES_MASK) {
        cut_tokens(s, older, item);
    }
}

/* Whether a head uses a tensor; others are not passed to it. */
static bool takes(const fpa_description *head, const char *name, tensor_axes axes)
{
    switch (axes) {
    case AXES_KEY_NUMBERS: /* log-gates */
        return head->gate;
    case AXES_QUERY_NUMBERS: /* den */
        return head->normalized;
    case AXES_POSITIONS:
        return head->positions > 0;
    case AXES_MASK:
        return head->key_mask;
    default:
        return name != NULL;
    }
}

void layer_cut(const layer_call *call, int part, int64_t recent, layer_slice slices[LAYER_TENSORS],
               void *tensors)
{
    const fpa_layer_part *about = &call->layer->parts[part];
    for (int i = 0; i < call->count; i++) {
        const tensor_row *row = &call->rows[i];
        const DLTensor *cut = NULL;
        if (call->view[i].tensor && takes(about->head, row->name, row->axes)) {
            cut_row(call, i, about, call->recent - recent, &slices[i]);
            cut = row->axes == AXES_INDEX ? call->view[i].tensor : &slices[i].tensor;
        }
        memcpy((char *)tensors + row->offset, &cut, sizeof cut);
    }
}

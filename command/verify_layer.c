#include "verify_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "head/form.h"
#include "head/layer.h"
#include "layer_operands.h"
#include "runtime/api/open.h"

enum { VERIFY_LAYER_TEXT = 256 };

/* A call, computed by the layer in the first set of operands and head by head in the second one. */
typedef struct trial {
    const fpa_layer *layer;
    fpa_form form;
    layer_operands operands;
    void *workspace;
    char *wrote[2]; /* contents of both sets afterwards */
} trial;

/* A tensor of some heads, or of their states, with its shape and strides. */
typedef struct cut {
    DLTensor tensor;
    int64_t shape[4], stride[4];
} cut;

/* Heads first .. first + heads - 1 of axis 2, without the oldest tokens; NULL: the tensor is not given. */
static DLTensor *cut_heads(cut *c, const layer_operand *x, int64_t first, int64_t heads, int64_t older)
{
    int64_t step = 1;
    if (!x->given)
        return NULL;
    *c = (cut){.tensor = x->tensor};
    for (int a = x->tensor.ndim - 1; a >= 0; step *= x->shape[a--]) {
        c->shape[a] = x->shape[a];
        c->stride[a] = step;
    }
    const int64_t item = (int64_t)x->size / (step ? step : 1);
    c->tensor.byte_offset = (uint64_t)(older * c->stride[1] * item);
    c->shape[1] -= older;
    if (heads) {
        c->tensor.byte_offset += (uint64_t)(first * c->stride[2] * item);
        c->shape[2] = heads;
    }
    c->tensor.shape = c->shape;
    c->tensor.strides = c->stride;
    return &c->tensor;
}

static DLTensor *cut_states(cut *c, const layer_operand *x, const fpa_layer_part *part)
{
    const int64_t elements = part->head->state_elements;
    if (!x->given)
        return NULL;
    *c = (cut){.tensor = x->tensor,
               .shape = {x->shape[0], part->heads, elements},
               .stride = {x->shape[1], elements, 1}};
    c->tensor.ndim = 3;
    c->tensor.shape = c->shape;
    c->tensor.strides = c->stride;
    c->tensor.byte_offset = (uint64_t)part->state_offset * dtype_size(x->dtype);
    return &c->tensor;
}

static fpa_status call_head(trial *t, int number, fpa_error *error)
{
    const fpa_layer_part *part = &t->layer->parts[number];
    const fpa_kernel *kernel = t->layer->kernels[number];
    const layer_operand *x = t->operands.operand;
    const int64_t group = x[LAYER_Q].shape[2] / x[LAYER_K].shape[2];
    const int64_t before = t->operands.tensors.recent, window = part->head->window;
    const int64_t taken = window - 1 < before ? (window ? window - 1 : 0) : before, older = before - taken;
    cut q, k, v, o, gate, positions, mask, in, out;
    fpa_tensors call = t->operands.tensors;
    size_t bytes;
    void *workspace;
    call.recent = taken;
    call.q = cut_heads(&q, &x[LAYER_Q], part->first * group, part->heads * group, 0);
    call.o = cut_heads(&o, &x[LAYER_O], part->first * group, part->heads * group, 0);
    call.k = cut_heads(&k, &x[LAYER_K], part->first, part->heads, older);
    call.v = cut_heads(&v, &x[LAYER_V], part->first, part->heads, older);
    call.log_gate =
        part->head->gate ? cut_heads(&gate, &x[LAYER_GATE], part->first, part->heads, older) : NULL;
    call.positions = part->head->positions ? cut_heads(&positions, &x[LAYER_POSITIONS], 0, 0, older) : NULL;
    call.key_mask = part->head->key_mask ? cut_heads(&mask, &x[LAYER_MASK], 0, 0, older) : NULL;
    call.state_in = cut_states(&in, &x[LAYER_STATE_IN], part);
    call.state_out = cut_states(&out, &x[LAYER_STATE_OUT], part);
    call.weights = t->operands.weights + part->first_weight;
    fpa_status status = fpa_workspace_size(kernel, t->form, &call, &bytes, error);
    if (!status)
        status = device_allocate(kernel, bytes, &workspace, error);
    if (status)
        return status;
    status = fpa_forward(kernel, t->form, &call, workspace, bytes, error);
    if (!status)
        status = device_finish(kernel, error);
    device_release(kernel, workspace);
    return status;
}

static fpa_status call_layer(trial *t, fpa_error *error)
{
    size_t bytes;
    fpa_status status = fpa_layer_workspace_size(t->layer, t->form, &t->operands.tensors, &bytes, error);
    if (!status)
        status = device_allocate(t->operands.kernel, bytes, &t->workspace, error);
    if (!status)
        status = fpa_layer_forward(t->layer, t->form, &t->operands.tensors, t->workspace, bytes, error);
    return status ? status : device_finish(t->operands.kernel, error);
}

static fpa_status fetch(trial *t, int set, fpa_error *error)
{
    const layer_operands *x = &t->operands;
    const fpa_memory *memory = x->kernel->module.backend->memory;
    const char *from = x->memory + x->set_bytes * (size_t)set;
    t->wrote[set] = malloc(x->set_bytes);
    if (!t->wrote[set])
        return fail_memory(error);
    if (memory)
        return memory->download(&x->kernel->module, t->wrote[set], from, x->set_bytes, error);
    memcpy(t->wrote[set], from, x->set_bytes);
    return FPA_OK;
}

static fpa_status compare(const trial *t, int which, const char *name, fpa_error *error)
{
    const layer_operand *x = &t->operands.operand[which];
    const char *ours = t->wrote[0] + x->offset, *theirs = t->wrote[1] + x->offset;
    const size_t item = dtype_size(x->dtype);
    for (size_t i = 0; x->given && i < x->size; i++)
        if (ours[i] != theirs[i])
            return fail(error, FPA_REFUSED, t->layer->name,
                        "%s form, number %zu of %s differs from that of its head by itself",
                        form_name((fpa_form_index)t->form), i / item, name);
    return FPA_OK;
}

static fpa_status run_trial(trial *t, const layer_size *size, fpa_error *error)
{
    fpa_status status = layer_operands_describe(&t->operands, t->layer, size, error);
    if (!status)
        status = layer_operands_make(&t->operands, 2, error);
    if (!status)
        status = call_layer(t, error);
    layer_operands_turn_to(&t->operands, 1);
    for (int i = 0; i < t->layer->description.part_count && !status; i++)
        status = call_head(t, i, error);
    for (int set = 0; set < 2 && !status; set++)
        status = fetch(t, set, error);
    if (!status)
        status = compare(t, LAYER_O, "o", error);
    return status ? status : compare(t, LAYER_STATE_OUT, "state_out", error);
}

static fpa_status try_size(const fpa_layer *layer, fpa_form form, const layer_size *size, fpa_error *error)
{
    trial t = {.layer = layer, .form = form, .operands.kernel = layer->kernels[0]};
    fpa_status status = device_enter(layer->kernels[0], error);
    if (status)
        return status;
    status = run_trial(&t, size, error);
    device_leave(layer->kernels[0]);
    device_release(layer->kernels[0], t.workspace);
    layer_operands_free(&t.operands);
    free(t.wrote[0]);
    free(t.wrote[1]);
    return status;
}

static bool all_have(const fpa_layer *layer, int form)
{
    bool all = true;
    for (int i = 0; i < layer->description.part_count; i++)
        all = all && (layer->kernels[i]->facts.forms >> form & 1);
    return all;
}

static fpa_status try_forms(const fpa_layer *layer, char *text, fpa_error *error)
{
    static const layer_size sizes[] = {
        {.batch = 2, .length = 200, .group = 2, .in = true, .out = true},
        {.batch = 1, .length = 77, .group = 1, .out = true},
        {.batch = 3, .length = 1, .group = 1, .in = true, .out = true, .before_window = true},
    };
    const int count = sizeof sizes / sizeof *sizes;
    fpa_status status = FPA_OK;
    int calls = 0;
    char forms[64] = "";
    for (int form = 0; form < FORMS && !status; form++) {
        if (!all_have(layer, form))
            continue;
        snprintf(forms + strlen(forms), sizeof forms - strlen(forms), " %s", form_name((fpa_form_index)form));
        for (int i = 0; i < count && !status; i++, calls++)
            status = try_size(layer, (fpa_form)form, &sizes[i], error);
    }
    snprintf(text, VERIFY_LAYER_TEXT, "%d calls have the bits of its heads' own,%s", calls, forms);
    return status;
}

static fpa_status verify_layer(const fpa_head_list *list, const fpa_layer_spec *layer,
                               const fpa_options *options, char *text, fpa_error *error)
{
    fpa_layer *opened = NULL;
    fpa_status status = open_layer_of(list, layer, options, &opened, error);
    if (!status)
        status = try_forms(opened, text, error);
    fpa_close_layer(opened);
    return status;
}

static void show(fpa_json *json, const fpa_layer_spec *layer, fpa_status status, const char *text,
                 const fpa_error *error)
{
    if (json) {
        json_object(json, NULL);
        json_text(json, "layer", layer->name);
        json_text(json, "verdict", !status ? "verified" : status == FPA_REFUSED ? "refused" : "failed");
        json_text(json, "message", status ? error->message : text);
        json_close(json);
    } else if (!status) {
        printf("layer %s: %s: verified\n", layer->name, text);
    }
    if (status)
        report(error);
    fflush(stdout);
}

/* Verifies the layers of a spec, whose heads have been verified and are in the cache. */
static int verify_spec(const char *spec, const char *name, const char *dtype, const fpa_options *options,
                       fpa_json *json, int code)
{
    fpa_head_list list = {0};
    fpa_error error;
    int first, end;
    if (select_with_layers(spec, name, dtype, &list, &first, &end, &error))
        return code; /* reported before */
    for (int i = 0; i < list.layer_count; i++) {
        const fpa_layer_spec *layer = &list.layers[i];
        char text[VERIFY_LAYER_TEXT];
        if (name && strcmp(name, layer->name) != 0)
            continue;
        progress("layer %s", layer->name);
        const fpa_status status = verify_layer(&list, layer, options, text, &error);
        progress_end();
        show(json, layer, status, text, &error);
        if (status)
            code = status == FPA_REFUSED ? EXIT_REFUSED : code == EXIT_OK ? EXIT_FAILED : code;
    }
    head_list_free(&list);
    return code;
}

int verify_layers(const fpa_texts *specs, const char *name, const char *dtype, const fpa_options *options,
                  fpa_json *json, int code)
{
    for (int i = 0; i < specs->count; i++)
        code = verify_spec(specs->text[i], name, dtype, options, json, code);
    return code;
}

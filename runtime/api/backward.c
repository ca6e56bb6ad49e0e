/* backward: fpa_backward: a caller's tensors of gradients, checked, as the launch that emitted code takes. */
#include <stdio.h>
#include <string.h>

#include "fpa.h"
#include "runtime/kernel.h"
#include "tensors.h"
#include "view.h"

/* Tensors beside the matrices: operands, which are checked as a forward pass's are, then gradients that are read, then
 * those that are written. */
enum {
    Q,
    K,
    V,
    O,
    DEN,
    LOG_GATE,
    STATE_IN,
    D_O,
    D_STATE_OUT,
    D_Q,
    D_K,
    D_V,
    D_LOG_GATE,
    D_STATE_IN,
    TENSORS
};

/* One call while it is checked. */
typedef struct call {
    const fpa_kernel *kernel;
    const fpa_gradient_tensors *tensors;
    bool with_data;
    struct fpa_backward_launch launch; /* its forward part was checked */
} call;

/* What a tensor of a call has to be. */
typedef struct wanted {
    const char *name;
    const DLTensor *tensor; /* NULL: not given */
    fpa_dtype dtype;
    int axes, contiguous; /* the first axis from which on it is in C order */
    int64_t shape[4];
} wanted;

static wanted vectors(const call *c, const char *name, const DLTensor *tensor, bool queries, int width)
{
    const struct fpa_launch *f = &c->launch.forward;
    const bool packed = f->cu_seqlens;
    return (wanted){.name = name,
                    .tensor = tensor,
                    .dtype = c->kernel->head->dtype,
                    .axes = 4,
                    .contiguous = 3,
                    .shape = {packed ? 1 : f->batch, packed ? f->total : f->length,
                              queries ? f->query_heads : f->heads, width}};
}

static wanted numbers(const call *c, const char *name, const DLTensor *tensor, bool queries)
{
    wanted w = vectors(c, name, tensor, queries, 0);
    w.dtype = FPA_F32;
    w.axes = w.contiguous = 3;
    return w;
}

/* [B, H, N], or [B, H, D, dv] when there is no z behind S. */
static wanted state(const call *c, const char *name, const DLTensor *tensor, int64_t count)
{
    const struct fpa_launch *f = &c->launch.forward;
    const fpa_head *head = c->kernel->head;
    const fpa_facts *facts = &c->kernel->facts;
    const bool matrix = tensor && tensor->ndim == 4 && head->normalize == FPA_NORMALIZE_NONE;
    return (wanted){.name = name,
                    .tensor = tensor,
                    .dtype = head->state_dtype,
                    .axes = matrix ? 4 : 3,
                    .contiguous = 2,
                    .shape = {count, f->heads, matrix ? facts->features : facts->state_elements, head->dv}};
}

static wanted tensor_at(const call *c, int i)
{
    const fpa_gradient_tensors *t = c->tensors;
    const fpa_head *head = c->kernel->head;
    const struct fpa_launch *f = &c->launch.forward;
    switch (i) {
    case Q:
        return vectors(c, "q", t->q, true, head_width(head));
    case K:
        return vectors(c, "k", t->k, false, head_width(head));
    case V:
        return vectors(c, "v", t->v, false, head->dv);
    case O:
        return vectors(c, "o", t->o, true, head->dv);
    case DEN:
        return numbers(c, "den", t->den, true);
    case LOG_GATE:
        return numbers(c, "log_gate", t->log_gate, false);
    case STATE_IN:
        return state(c, "state_in", t->state_in, f->state_in_index ? f->state_in_slots : f->batch);
    case D_O:
        return vectors(c, "d_o", t->d_o, true, head->dv);
    case D_STATE_OUT:
        return state(c, "d_state_out", t->d_state_out, f->batch);
    case D_Q:
        return vectors(c, "d_q", t->d_q, true, head_width(head));
    case D_K:
        return vectors(c, "d_k", t->d_k, false, head_width(head));
    case D_V:
        return vectors(c, "d_v", t->d_v, false, head->dv);
    case D_LOG_GATE:
        return numbers(c, "d_log_gate", t->d_log_gate, false);
    case D_STATE_IN:
        return state(c, "d_state_in", t->d_state_in, f->batch);
    default:
        return (wanted){.name = ""};
    }
}

/* Run-time matrix number i, or its gradient. */
static wanted matrix_at(const call *c, int i, bool gradient, char name[HEAD_MAX_NAME + 48])
{
    const fpa_gradient_tensors *t = c->tensors;
    const DLTensor *const *all = gradient ? (const DLTensor *const *)t->d_weights : t->weights;
    const fpa_head *head = c->kernel->head;
    int m = 0, axes = 0;
    for (int left = i; left > 0 || head->matrices[m].kind == FPA_MATRIX_CONSTANT; m++)
        left -= head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    const fpa_matrix *matrix = &head->matrices[m];
    wanted w = {.name = name, .tensor = all ? all[i] : NULL, .dtype = FPA_F32};
    snprintf(name, HEAD_MAX_NAME + 48, "%sweights[%d] (%.63s)", gradient ? "d_" : "", i, matrix->name);
    if (matrix->per_head)
        w.shape[axes++] = c->launch.forward.heads;
    if (matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL)
        w.shape[axes++] = matrix->rows;
    if (!tensors_is_column(matrix, w.tensor))
        w.shape[axes++] = matrix->cols;
    w.axes = axes;
    return w;
}

static DLDevice device_of(const call *c)
{
    return (DLDevice){(DLDeviceType)c->kernel->module.backend->device_type, c->kernel->module.device};
}

/* Everything about one tensor by itself. */
static fpa_status look(const call *c, const wanted *w, bool written, fpa_view *view, fpa_error *error)
{
    *view = (fpa_view){.name = w->name,
                       .tensor = w->tensor,
                       .device = device_of(c),
                       .dtype = w->dtype,
                       .axes = w->axes,
                       .with_data = c->with_data};
    fpa_status status = view_check(view, error);
    for (int a = 0; !status && a < w->axes; a++)
        status = view_axis(view, a, w->shape[a], "elements", "the operands have", error);
    if (!status)
        status = view_contiguous(view, w->contiguous, error);
    return status || !written ? status : view_distinct(view, error);
}

/* Tensor number i of a call, matrices and their gradients behind the others. False: not given. */
static bool find(const call *c, int i, bool *written, wanted *w, char name[HEAD_MAX_NAME + 48])
{
    const int matrices = c->kernel->description.weight_count;
    *written = i >= D_Q && i < TENSORS;
    if (i < TENSORS) {
        *w = tensor_at(c, i);
    } else {
        *written = i >= TENSORS + matrices;
        *w = matrix_at(c, (i - TENSORS) % matrices, *written, name);
    }
    return w->tensor != NULL;
}

static int count_of(const call *c)
{
    return TENSORS + 2 * c->kernel->description.weight_count;
}

/* An output shares no memory with offsets and indices. */
static fpa_status check_apart_from_numbers(const call *c, const fpa_view *output, fpa_error *error)
{
    const DLTensor *const numbers[] = {c->tensors->cu_seqlens, c->tensors->state_index};
    fpa_status status = FPA_OK;
    for (int i = 0; i < 2 && !status; i++) {
        fpa_view other = {.name = i ? "state_index" : "cu_seqlens",
                          .tensor = numbers[i],
                          .device = device_of(c),
                          .is_index = true,
                          .may_be_wide = true,
                          .axes = 1,
                          .with_data = c->with_data};
        if (!numbers[i])
            continue;
        status = view_check(&other, error);
        if (!status)
            status = view_apart(output, &other, error);
    }
    return status;
}

/* An output shares no memory with any other tensor. */
static fpa_status check_apart(const call *c, const fpa_view *output, int index, fpa_error *error)
{
    char name[HEAD_MAX_NAME + 48];
    fpa_status status = FPA_OK;
    for (int i = 0; i < count_of(c) && !status; i++) {
        fpa_view other;
        bool written;
        wanted w;
        if (i == index || !find(c, i, &written, &w, name))
            continue;
        status = look(c, &w, false, &other, error);
        if (!status)
            status = view_apart(output, &other, error);
    }
    return status ? status : check_apart_from_numbers(c, output, error);
}

static fpa_status check_gradients(const call *c, fpa_error *error)
{
    char name[HEAD_MAX_NAME + 48];
    fpa_status status = FPA_OK;
    for (int i = D_O; i < count_of(c) && !status; i++) {
        fpa_view view;
        bool written;
        wanted w;
        if (!find(c, i, &written, &w, name))
            continue;
        status = look(c, &w, written, &view, error);
        if (!status && written && c->with_data)
            status = check_apart(c, &view, i, error);
    }
    return status;
}

/* What cannot be missing, and what cannot be wanted. */
static fpa_status check_given(const call *c, fpa_error *error)
{
    const fpa_gradient_tensors *t = c->tensors;
    const fpa_head *head = c->kernel->head;
    if (t->d_log_gate && !head->gate)
        return fail(error, FPA_INVALID, "d_log_gate", "is given, but %s has no gate", head->name);
    if (t->den && head->normalize == FPA_NORMALIZE_NONE)
        return fail(error, FPA_INVALID, "den", "is given, but %s has no normaliser", head->name);
    if (!c->with_data)
        return FPA_OK;
    if (!t->d_o)
        return fail(error, FPA_INVALID, "d_o", "is NULL, but it is needed");
    if (!t->den && head->normalize != FPA_NORMALIZE_NONE)
        return fail(error, FPA_INVALID, "den",
                    "is NULL, but %s is normalised: give fpa_forward a den, and it here", head->name);
    return FPA_OK;
}

/* Address and strides of a tensor that was checked; NULL: not given. */
static void *place(const call *c, int i, int64_t *stride, size_t axes)
{
    char name[HEAD_MAX_NAME + 48];
    fpa_view view;
    bool written;
    wanted w;
    if (!find(c, i, &written, &w, name) || look(c, &w, false, &view, NULL))
        return NULL;
    memcpy(stride, view.stride, axes * sizeof *stride);
    return view.data ? (void *)view.data : (void *)(uintptr_t)w.tensor;
}

static void fill(call *c, float **matrices)
{
    struct fpa_backward_launch *a = &c->launch;
    int64_t none[4];
    a->d_o = place(c, D_O, a->d_o_stride, 3);
    a->d_state_out = place(c, D_STATE_OUT, a->d_state_out_stride, 2);
    a->d_q = place(c, D_Q, a->d_q_stride, 3);
    a->d_k = place(c, D_K, a->d_k_stride, 3);
    a->d_v = place(c, D_V, a->d_v_stride, 3);
    a->d_log_gate = place(c, D_LOG_GATE, a->d_log_gate_stride, 3);
    a->d_state_in = place(c, D_STATE_IN, a->d_state_in_stride, 2);
    a->d_weights = NULL;
    for (int i = 0; i < c->kernel->description.weight_count; i++) {
        matrices[i] = place(c, TENSORS + c->kernel->description.weight_count + i, none, 0);
        if (matrices[i])
            a->d_weights = matrices;
    }
}

static fpa_status resolve_form(const fpa_kernel *kernel, int64_t length, fpa_form *form, fpa_error *error)
{
    if (*form == FPA_FORM_AUTO)
        *form = length < kernel->backward_facts.crossover ? FPA_FORM_PARALLEL : FPA_FORM_CHUNKED;
    if (*form == FPA_FORM_PARALLEL || *form == FPA_FORM_CHUNKED)
        return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, kernel->facts.name,
                "has no gradients in form %d; it has them in: parallel (0) chunked (1)", (int)*form);
}

/* weights, matrices: room for so many pointers as the kernel has run-time matrices. */
static fpa_status check(call *c, const float **weights, float **matrices, fpa_form *form, fpa_error *error)
{
    const fpa_gradient_tensors *t = c->tensors;
    const fpa_kernel *kernel = c->kernel;
    if (!t)
        return fail(error, FPA_INVALID, "tensors", "is NULL");
    if (!kernel->backward.backward)
        return fail(error, FPA_UNSUPPORTED, kernel->facts.name,
                    "was opened without gradients: open it with backward = 1 in the options");
    const fpa_tensors operands = {.q = t->q,
                                  .k = t->k,
                                  .v = t->v,
                                  .o = (DLTensor *)(uintptr_t)t->o,
                                  .den = (DLTensor *)(uintptr_t)t->den,
                                  .log_gate = t->log_gate,
                                  .positions = t->positions,
                                  .key_mask = t->key_mask,
                                  .state_in = t->state_in,
                                  .weights = t->weights,
                                  .stream = t->stream,
                                  .cu_seqlens = t->cu_seqlens,
                                  .max_length = t->max_length,
                                  .state_index = t->state_index};
    fpa_status status = tensors_check(kernel->head, &kernel->facts, device_of(c),
                                      c->with_data ? TENSORS_DATA : TENSORS_SHAPES, &operands, weights,
                                      &c->launch.forward, error);
    if (!status)
        status = check_given(c, error);
    if (!status)
        status = check_gradients(c, error);
    if (!status)
        status = resolve_form(kernel, c->launch.forward.length, form, error);
    if (!status)
        fill(c, matrices);
    return status;
}

/* No head, and so nothing to write but gradients of matrices, which are zero then. */
static bool is_empty(const call *c)
{
    return c->launch.forward.batch == 0 || c->launch.forward.heads == 0;
}

static void clear_matrices(const call *c)
{
    char name[HEAD_MAX_NAME + 48];
    for (int i = 0; c->launch.d_weights && i < c->kernel->description.weight_count; i++) {
        const wanted w = matrix_at(c, i, true, name);
        size_t entries = 1;
        for (int a = 0; a < w.axes; a++)
            entries *= (size_t)w.shape[a];
        if (c->launch.d_weights[i])
            memset(c->launch.d_weights[i], 0, entries * sizeof(float));
    }
}

fpa_status fpa_backward_workspace(const fpa_kernel *kernel, fpa_form form,
                                  const fpa_gradient_tensors *tensors, size_t *bytes, fpa_error *error)
{
    if (!kernel || !bytes)
        return fail(error, FPA_INVALID, kernel ? "bytes" : "kernel", "is NULL");
    const float *weights[kernel->description.weight_count + 1];
    float *matrices[kernel->description.weight_count + 1];
    call c = {.kernel = kernel, .tensors = tensors};
    *bytes = 0;
    fpa_status status = check(&c, weights, matrices, &form, error);
    if (!status && !is_empty(&c))
        *bytes = kernel->backward.backward_workspace(&kernel->backward, (int)form, &c.launch);
    return status;
}

static fpa_status check_workspace(const call *c, fpa_form form, fpa_error *error)
{
    const struct fpa_launch *f = &c->launch.forward;
    const fpa_module *module = &c->kernel->backward;
    const size_t needed = module->backward_workspace(module, (int)form, &c->launch);
    const size_t alignment = c->kernel->module.backend->memory ? 256 : 64; /* as device memory is allocated */
    const fpa_view memory = {.name = "workspace", .data = f->workspace, .high = (int64_t)needed};
    if (f->workspace_size < needed || (needed && !f->workspace))
        return fail(error, FPA_INVALID, "workspace",
                    "has %zu bytes, but this call needs %zu (fpa_backward_workspace)",
                    f->workspace ? f->workspace_size : 0, needed);
    if ((uintptr_t)f->workspace % alignment)
        return fail(error, FPA_INVALID, "workspace", "is not aligned to %zu bytes", alignment);
    return check_apart(c, &memory, -1, error);
}

fpa_status fpa_backward(const fpa_kernel *kernel, fpa_form form, const fpa_gradient_tensors *tensors,
                        void *workspace, size_t workspace_size, fpa_error *error)
{
    if (!kernel)
        return fail(error, FPA_INVALID, "kernel", "is NULL");
    const float *weights[kernel->description.weight_count + 1];
    float *matrices[kernel->description.weight_count + 1];
    call c = {.kernel = kernel, .tensors = tensors, .with_data = true};
    fpa_status status = check(&c, weights, matrices, &form, error);
    const bool nothing = !status && is_empty(&c), on_device = kernel->module.backend->memory;
    if (nothing && !on_device)
        clear_matrices(&c);
    if (status || (nothing && !on_device))
        return status;
    c.launch.forward.workspace = workspace;
    c.launch.forward.workspace_size = workspace_size;
    status = check_workspace(&c, form, error);
    if (status)
        return status;
    void *stream = tensors->stream; /* NOLINT(clang-analyzer-core.NullDereference): they were checked */
    return kernel->backward.backward(&kernel->backward, (int)form, &c.launch, stream, error);
}

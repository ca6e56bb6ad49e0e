/* backward: fpa_backward checks a caller's tensors of gradients and makes a launch of them. */
#include <stdio.h>
#include <string.h>

#include "fpa.h"
#include "runtime/kernel.h"
#include "tensors.h"
#include "view.h"

/* Tensors other than matrices: operands, which are checked as in a forward pass; gradients that are read;
 * gradients that are written; then further operands. */
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
    CU_SEQLENS,
    STATE_INDEX,
    POSITIONS,
    KEY_MASK,
};

#define ROW(name, axes, written) TENSOR_ROW(fpa_gradient_tensors, name, axes, written)
const tensor_row gradient_rows[GRADIENT_ROWS] = {
    [Q] = ROW(q, AXES_QUERIES, false),
    [K] = ROW(k, AXES_KEYS, false),
    [V] = ROW(v, AXES_VALUES, false),
    [O] = ROW(o, AXES_OUTPUTS, false),
    [DEN] = ROW(den, AXES_QUERY_NUMBERS, false),
    [LOG_GATE] = ROW(log_gate, AXES_KEY_NUMBERS, false),
    [STATE_IN] = ROW(state_in, AXES_STATES, false),
    [D_O] = ROW(d_o, AXES_OUTPUTS, false),
    [D_STATE_OUT] = ROW(d_state_out, AXES_STATES, false),
    [D_Q] = ROW(d_q, AXES_QUERIES, true),
    [D_K] = ROW(d_k, AXES_KEYS, true),
    [D_V] = ROW(d_v, AXES_VALUES, true),
    [D_LOG_GATE] = ROW(d_log_gate, AXES_KEY_NUMBERS, true),
    [D_STATE_IN] = ROW(d_state_in, AXES_STATES, true),
    [CU_SEQLENS] = ROW(cu_seqlens, AXES_INDEX, false),
    [STATE_INDEX] = ROW(state_index, AXES_INDEX, false),
    [POSITIONS] = ROW(positions, AXES_POSITIONS, false),
    [KEY_MASK] = ROW(key_mask, AXES_MASK, false),
};
#undef ROW

/* A call while it is checked. */
typedef struct call {
    const fpa_kernel *kernel;
    const fpa_gradient_tensors *tensors;
    bool with_data;
    struct fpa_backward_launch launch; /* the forward part has been checked */
    /* [count_of]: views of the rows' tensors, of the matrices, and of their gradients; tensor NULL: not given */
    fpa_view *views;
    fpa_checks checks;
} call;

static int count_of(const fpa_kernel *kernel)
{
    return GRADIENT_ROWS + 2 * kernel->description.weight_count;
}

static bool is_written(const call *c, int i)
{
    return i < GRADIENT_ROWS ? gradient_rows[i].written
                             : i >= GRADIENT_ROWS + c->kernel->description.weight_count;
}

static DLDevice device_of(const call *c)
{
    return (DLDevice){(DLDeviceType)c->kernel->module.backend->device_type, c->kernel->module.device};
}

/* The axes that a tensor of a row must have: sets shape and returns their number. *contiguous: the axis from which
 * on the tensor must be in C order. */
static int shape_of(const call *c, tensor_axes axes, const DLTensor *tensor, int64_t count, int64_t shape[4],
                    int *contiguous)
{
    const struct fpa_launch *f = &c->launch.forward;
    const fpa_head *head = c->kernel->head;
    const fpa_facts *facts = &c->kernel->facts;
    const bool queries = axes == AXES_QUERIES || axes == AXES_OUTPUTS || axes == AXES_QUERY_NUMBERS;
    if (axes == AXES_STATES) { /* [B, H, N], or [B, H, D, dv] if there is no z after S */
        const bool matrix = tensor->ndim == 4 && head->normalize == FPA_NORMALIZE_NONE;
        const int64_t its[] = {count, f->heads, matrix ? facts->features : facts->state_elements, head->dv};
        memcpy(shape, its, sizeof its);
        *contiguous = 2;
        return matrix ? 4 : 3;
    }
    const int64_t its[] = {f->cu_seqlens ? 1 : f->batch, f->cu_seqlens ? f->total : f->length,
                           queries ? f->query_heads : f->heads,
                           axes == AXES_VALUES || axes == AXES_OUTPUTS ? head->dv : head_width(head)};
    memcpy(shape, its, sizeof its);
    *contiguous = 3;
    return axes <= AXES_OUTPUTS ? 4 : 3;
}

/* Checks one tensor by itself. cu_seqlens, indices, positions and masks have been checked with the operands. */
static void look(call *c, int i)
{
    const tensor_row *row = &gradient_rows[i];
    const struct fpa_launch *f = &c->launch.forward;
    const bool pooled = i == STATE_IN && f->state_in_index;
    const DLTensor *tensor = tensor_of_row(row, c->tensors);
    fpa_view *view = &c->views[i];
    int64_t shape[4];
    int contiguous = 0;
    *view =
        (fpa_view){.name = row->name, .tensor = tensor, .device = device_of(c), .with_data = c->with_data};
    if (!tensor)
        return;
    view->is_index = view->may_be_wide = row->axes == AXES_INDEX;
    view->is_mask = row->axes == AXES_MASK;
    view->dtype = row->axes == AXES_STATES    ? c->kernel->head->state_dtype
                  : row->axes <= AXES_OUTPUTS ? c->kernel->head->dtype
                                              : FPA_F32;
    const bool beside = i >= CU_SEQLENS;
    view->axes =
        beside ? tensor->ndim
               : shape_of(c, row->axes, tensor, pooled ? f->state_in_slots : f->batch, shape, &contiguous);
    view_check(&c->checks, view);
    for (int a = 0; !beside && a < view->axes; a++)
        view_axis(&c->checks, view, a, shape[a], "elements", "the operands have");
    if (!beside)
        view_contiguous(&c->checks, view, contiguous);
    if (row->written)
        view_distinct(&c->checks, view);
}

/* Checks run-time matrix i, or its gradient. */
static void look_at_matrix(call *c, int i, bool gradient, char name[HEAD_MAX_NAME + 48])
{
    const fpa_gradient_tensors *t = c->tensors;
    const DLTensor *const *all = gradient ? (const DLTensor *const *)t->d_weights : t->weights;
    const fpa_head *head = c->kernel->head;
    const int count = c->kernel->description.weight_count;
    fpa_view *view = &c->views[GRADIENT_ROWS + (gradient ? count : 0) + i];
    int64_t shape[3];
    int m = 0, axes = 0;
    *view = (fpa_view){.name = name, .tensor = all ? all[i] : NULL, .device = device_of(c)};
    if (!view->tensor)
        return;
    for (int left = i; left > 0 || head->matrices[m].kind == FPA_MATRIX_CONSTANT; m++)
        left -= head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    const fpa_matrix *matrix = &head->matrices[m];
    snprintf(name, HEAD_MAX_NAME + 48, "%sweights[%d] (%.63s)", gradient ? "d_" : "", i, matrix->name);
    if (matrix->per_head)
        shape[axes++] = c->launch.forward.heads;
    if (matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL)
        shape[axes++] = matrix->rows;
    if (!tensors_is_column(matrix, view->tensor))
        shape[axes++] = matrix->cols;
    view->dtype = FPA_F32;
    view->axes = axes;
    view->with_data = c->with_data;
    view_check(&c->checks, view);
    for (int a = 0; a < axes; a++)
        view_axis(&c->checks, view, a, shape[a], "elements", "the operands have");
    view_contiguous(&c->checks, view, 0);
    if (gradient)
        view_distinct(&c->checks, view);
}

/* Checks that an output shares no memory with any other tensor. */
static void check_apart(call *c, const fpa_view *output)
{
    for (int i = 0; i < count_of(c->kernel); i++)
        if (c->views[i].tensor && output != &c->views[i])
            view_apart(&c->checks, output, &c->views[i]);
}

/* Checks all tensors. names: room for the names of matrices and their gradients. */
static void check_tensors(call *c, char (*names)[HEAD_MAX_NAME + 48])
{
    const int count = c->kernel->description.weight_count;
    for (int i = 0; i < GRADIENT_ROWS; i++)
        look(c, i);
    for (int i = 0; i < 2 * count; i++)
        look_at_matrix(c, i % count, i >= count, names[i]);
    for (int i = D_O; c->with_data && !c->checks.status && i < count_of(c->kernel); i++)
        if (is_written(c, i) && c->views[i].tensor)
            check_apart(c, &c->views[i]);
}

/* Checks that required tensors are given, and that no impossible gradient is wanted. */
static void check_given(call *c)
{
    const fpa_gradient_tensors *t = c->tensors;
    const fpa_head *head = c->kernel->head;
    if (t->d_log_gate && !head->gate)
        checks_fail(&c->checks, FPA_INVALID, "d_log_gate", "is given, but %s has no gate", head->name);
    if (t->den && head->normalize == FPA_NORMALIZE_NONE)
        checks_fail(&c->checks, FPA_INVALID, "den", "is given, but %s has no normaliser", head->name);
    if (c->with_data && !t->d_o)
        checks_fail(&c->checks, FPA_INVALID, "d_o", "is NULL, but it is needed");
    if (c->with_data && !t->den && head->normalize != FPA_NORMALIZE_NONE)
        checks_fail(&c->checks, FPA_INVALID, "den",
                    "is NULL, but %s is normalised: give den to fpa_forward, which writes it, and here again",
                    head->name);
}

/* The address of a checked tensor, and its strides; NULL: it is not given. */
static void *place(const call *c, int i, int64_t *stride, size_t axes)
{
    memcpy(stride, c->views[i].stride, axes * sizeof *stride);
    return view_address(&c->views[i]);
}

static void fill(call *c, float **matrices)
{
    struct fpa_backward_launch *a = &c->launch;
    const int count = c->kernel->description.weight_count;
    a->d_o = place(c, D_O, a->d_o_stride, 3);
    a->d_state_out = place(c, D_STATE_OUT, a->d_state_out_stride, 2);
    a->d_q = place(c, D_Q, a->d_q_stride, 3);
    a->d_k = place(c, D_K, a->d_k_stride, 3);
    a->d_v = place(c, D_V, a->d_v_stride, 3);
    a->d_log_gate = place(c, D_LOG_GATE, a->d_log_gate_stride, 3);
    a->d_state_in = place(c, D_STATE_IN, a->d_state_in_stride, 2);
    a->d_weights = NULL;
    for (int i = 0; i < count; i++) {
        matrices[i] = view_address(&c->views[GRADIENT_ROWS + count + i]);
        if (matrices[i])
            a->d_weights = matrices;
    }
}

static void resolve_form(call *c, fpa_form *form)
{
    const fpa_kernel *kernel = c->kernel;
    if (*form == FPA_FORM_AUTO)
        *form = c->launch.forward.length < kernel->backward_facts.crossover ? FPA_FORM_PARALLEL
                                                                            : FPA_FORM_CHUNKED;
    if (*form != FPA_FORM_PARALLEL && *form != FPA_FORM_CHUNKED)
        checks_fail(&c->checks, FPA_UNSUPPORTED, kernel->facts.name,
                    "has no gradients in form %d; it has them in: parallel (0) chunked (1)", (int)*form);
}

static void check_operands(call *c, const float **weights)
{
    const fpa_gradient_tensors *t = c->tensors;
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
    c->checks.status = tensors_check(c->kernel->head, &c->kernel->facts, device_of(c),
                                     c->with_data ? TENSORS_DATA : TENSORS_SHAPES, &operands, weights,
                                     &c->launch.forward, c->checks.error);
}

/* No batch entry or no head: nothing is written except gradients of matrices, which are then zero. */
static bool is_empty(const call *c)
{
    return c->launch.forward.batch == 0 || c->launch.forward.heads == 0;
}

static void clear_matrices(const call *c)
{
    const int count = c->kernel->description.weight_count;
    for (int i = 0; c->launch.d_weights && i < count; i++)
        if (c->launch.d_weights[i])
            memset(c->launch.d_weights[i], 0, (size_t)c->views[GRADIENT_ROWS + count + i].high);
}

typedef struct memory {
    void *bytes;
    size_t size;
} memory;

/* Computes the workspace's size or, if `workspace` is given, the gradients. */
static fpa_status run(const fpa_kernel *kernel, fpa_form form, const fpa_gradient_tensors *tensors,
                      const memory *workspace, size_t *needed, fpa_error *error)
{
    const int count = kernel->description.weight_count;
    const float *weights[count + 1];
    float *matrices[count + 1];
    fpa_view views[count_of(kernel)];
    char names[2 * count + 1][HEAD_MAX_NAME + 48];
    call c = {.kernel = kernel,
              .tensors = tensors,
              .with_data = workspace,
              .views = views,
              .checks = {error, FPA_OK}};
    const fpa_module *module = &kernel->backward;
    const bool on_device = kernel->module.backend->memory;
    if (!tensors)
        return fail(error, FPA_INVALID, "tensors", "is NULL");
    if (!module->backward)
        return fail(error, FPA_UNSUPPORTED, kernel->facts.name,
                    "was opened without gradients: open it with backward = 1 in the options");
    check_operands(&c, weights);
    if (c.checks.status)
        return c.checks.status;
    check_given(&c);
    check_tensors(&c, names);
    resolve_form(&c, &form);
    if (c.checks.status)
        return c.checks.status;
    fill(&c, matrices);
    const bool nothing = is_empty(&c) && !(on_device && workspace);
    *needed = nothing ? 0 : module->backward_workspace(module, (int)form, &c.launch);
    if (nothing && workspace)
        clear_matrices(&c);
    if (nothing || !workspace)
        return FPA_OK;
    const fpa_view written = view_workspace(&c.checks, workspace->bytes, workspace->size, *needed, on_device,
                                            "fpa_backward_workspace");
    check_apart(&c, &written);
    c.launch.forward.workspace = workspace->bytes;
    c.launch.forward.workspace_size = workspace->size;
    return c.checks.status ? c.checks.status
                           : module->backward(module, (int)form, &c.launch, tensors->stream, error);
}

fpa_status fpa_backward_workspace(const fpa_kernel *kernel, fpa_form form,
                                  const fpa_gradient_tensors *tensors, size_t *bytes, fpa_error *error)
{
    if (!kernel || !bytes)
        return fail(error, FPA_INVALID, kernel ? "bytes" : "kernel", "is NULL");
    *bytes = 0;
    return run(kernel, form, tensors, NULL, bytes, error);
}

fpa_status fpa_backward(const fpa_kernel *kernel, fpa_form form, const fpa_gradient_tensors *tensors,
                        void *workspace, size_t workspace_size, fpa_error *error)
{
    const memory given = {workspace, workspace_size};
    size_t needed;
    if (!kernel)
        return fail(error, FPA_INVALID, "kernel", "is NULL");
    return run(kernel, form, tensors, &given, &needed, error);
}

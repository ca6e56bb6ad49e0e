/* piece: one sequence in pieces, on several devices (fpa_piece_total, fpa_piece_outputs). */
#include "forward.h"
#include "head/form.h"
#include "runtime/kernel.h"

/* A checked call, of the total or of the outputs. copies: bytes of workspace if kernels keep copies of states
 * between the two calls, else 0. */
typedef struct piece {
    const float **weights; /* room for the kernel's pointers to run-time matrices */
    struct fpa_launch launch;
    bool empty;
    size_t copies;
} piece;

static fpa_status check_tensors(const fpa_kernel *kernel, const fpa_tensors *tensors, bool total,
                                fpa_error *error)
{
    const bool asks = tensors->q || tensors->o;
    if (!kernel->head->causal)
        return fail(error, FPA_UNSUPPORTED, kernel->facts.name,
                    "is not causal: queries of a piece would need later keys, which the state before the "
                    "piece does not contain");
    if (kernel->head->window)
        return fail(error, FPA_UNSUPPORTED, kernel->facts.name,
                    "has a window, whose keys are not in the state: queries of a piece would need the keys "
                    "before it");
    if (tensors->recent)
        return fail(error, FPA_INVALID, "recent", "is given, but pieces of a sequence do not support it");
    if (total && (asks || tensors->state_in))
        return fail(
            error, FPA_INVALID,
            tensors->q ? "q"
            : asks     ? "o"
                       : "state_in",
            "is given, but fpa_piece_total reads only keys and values; it belongs to fpa_piece_outputs");
    if (total && !tensors->state_out)
        return fail(error, FPA_INVALID, "state_out", "is NULL, but the piece's total is written to it");
    if (!total && tensors->state_out)
        return fail(error, FPA_INVALID, "state_out", "is given, but only fpa_piece_total writes it");
    if (!total && !asks)
        return fail(error, FPA_INVALID, "q", "is NULL, but fpa_piece_outputs needs q and o");
    return FPA_OK;
}

static fpa_status prepare(const fpa_kernel *kernel, tensors_mode mode, const fpa_tensors *tensors, bool total,
                          piece *p, fpa_error *error)
{
    const fpa_module *module = &kernel->module;
    fpa_form form = FPA_FORM_CHUNKED;
    if (!tensors)
        return fail(error, FPA_INVALID, "tensors", "is NULL");
    fpa_status status = check_tensors(kernel, tensors, total, error);
    if (!status)
        status = forward_prepare(kernel, mode, tensors, &form, p->weights, &p->launch, &p->empty, error);
    if (!status)
        p->copies = module->piece && p->launch.length > 0 ? module->piece_workspace(module, &p->launch) : 0;
    return status;
}

/* The launch of the total of the same piece as `outputs`. */
static struct fpa_launch total_of(const struct fpa_launch *outputs)
{
    static char somewhere;
    struct fpa_launch total = *outputs;
    total.q = NULL;
    total.o = NULL;
    total.den = NULL;
    total.query_heads = 0;
    total.state_in = NULL;
    total.state_in_index = NULL;
    total.state_out = &somewhere;
    return total;
}

static size_t needs(const fpa_kernel *kernel, const struct fpa_launch *launch, size_t copies)
{
    const fpa_module *module = &kernel->module;
    return copies ? module->piece_workspace(module, launch)
                  : module->workspace(module, FORM_CHUNKED, launch, NULL);
}

fpa_status fpa_piece_workspace(const fpa_kernel *kernel, const fpa_tensors *tensors, size_t *bytes,
                               fpa_error *error)
{
    if (!kernel || !bytes)
        return fail(error, FPA_INVALID, kernel ? "bytes" : "kernel", "is NULL");
    const float *weights[kernel->description.weight_count + 1];
    piece p = {.weights = weights};
    *bytes = 0;
    fpa_status status = prepare(kernel, TENSORS_SHAPES, tensors, false, &p, error);
    if (status || p.launch.batch == 0 || p.launch.heads == 0)
        return status;
    /* launched even without tokens, since it writes a state */
    const struct fpa_launch total = total_of(&p.launch);
    const size_t outputs = p.empty ? 0 : needs(kernel, &p.launch, p.copies),
                 keys = needs(kernel, &total, p.copies);
    *bytes = outputs > keys ? outputs : keys;
    return FPA_OK;
}

static fpa_status run(const fpa_kernel *kernel, const fpa_tensors *tensors, bool total, void *workspace,
                      size_t workspace_size, fpa_error *error)
{
    if (!kernel)
        return fail(error, FPA_INVALID, "kernel", "is NULL");
    const fpa_module *module = &kernel->module;
    const float *weights[kernel->description.weight_count + 1];
    piece p = {.weights = weights};
    fpa_status status = prepare(kernel, TENSORS_DATA, tensors, total, &p, error);
    if (status || p.empty)
        return status;
    p.launch.workspace = workspace;
    p.launch.workspace_size = workspace_size;
    const size_t needed = needs(kernel, &p.launch, p.copies);
    status = forward_check_workspace(kernel, tensors, &p.launch, needed, "fpa_piece_workspace", error);
    void *stream = tensors->stream; /* NOLINT(clang-analyzer-core.NullDereference): they were checked */
    if (status)
        return status;
    return p.copies ? module->piece(module, &p.launch, stream, error)
                    : module->forward(module, FORM_CHUNKED, &p.launch, NULL, stream, error);
}

fpa_status fpa_piece_total(const fpa_kernel *kernel, const fpa_tensors *tensors, void *workspace,
                           size_t workspace_size, fpa_error *error)
{
    return run(kernel, tensors, true, workspace, workspace_size, error);
}

fpa_status fpa_piece_outputs(const fpa_kernel *kernel, const fpa_tensors *tensors, void *workspace,
                             size_t workspace_size, fpa_error *error)
{
    return run(kernel, tensors, false, workspace, workspace_size, error);
}

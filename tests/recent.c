#include "recent.h"
#include "claims.h"

#include <stdlib.h>

/* Tokens [first, first + count) of an operand, in place. */
typedef struct view {
    DLTensor tensor;
    int64_t shape[4], stride[4];
} view;

static DLTensor *take(view *v, const gpu_operand *from, int64_t first, int64_t count)
{
    const int axes = from->tensor.ndim;
    int64_t step = 1;
    v->tensor = from->tensor;
    for (int a = axes - 1; a >= 0; a--) {
        v->shape[a] = a == 1 ? count : from->shape[a];
        v->stride[a] = step;
        step *= from->shape[a];
    }
    v->tensor.shape = v->shape;
    v->tensor.strides = v->stride;
    v->tensor.byte_offset += (uint64_t)first * (uint64_t)v->stride[1] * dtype_size(from->dtype);
    return &v->tensor;
}

/* One call of a loop: its tensors, and where they come from. */
typedef struct call {
    gpu_problem *problem;
    const fpa_kernel *kernel;
    bool begun; /* the final state holds the tokens before the recent ones */
    view q, k, v, o, gate;
    fpa_tensors tensors;
} call;

static void take_keys(call *c, int64_t first, int64_t count)
{
    const gpu_operand *all = c->problem->operand;
    c->tensors = (fpa_tensors){.stream = c->problem->tensors.stream};
    c->tensors.k = take(&c->k, &all[IN_K], first, count);
    c->tensors.v = take(&c->v, &all[IN_V], first, count);
    if (c->problem->tensors.log_gate)
        c->tensors.log_gate = take(&c->gate, &all[IN_GATE], first, count);
    c->tensors.state_in = c->begun ? c->problem->tensors.state_out : NULL;
}

static void compute(call *c, fpa_form form)
{
    const test_gpu *gpu = c->problem->gpu;
    size_t size;
    fpa_error error;
    CUdeviceptr device = 0;
    assert_ok(fpa_workspace_size(c->kernel, form, &c->tensors, &size, &error), &error);
    void *host = gpu ? NULL : aligned_alloc(64, (size + 127) / 64 * 64);
    if (gpu)
        CUDA(gpu, cuMemAlloc(&device, size + 256));
    assert_ok(fpa_forward(c->kernel, form, &c->tensors, gpu ? (void *)(uintptr_t)device : host, size, &error),
              &error);
    if (gpu) {
        CUDA(gpu, cuStreamSynchronize(gpu->stream));
        CUDA(gpu, cuMemFree(device));
    }
    free(host);
}

void decode_with_recent(gpu_problem *problem, const fpa_kernel *kernel, int64_t most, fpa_form folding)
{
    const int64_t length = problem->operand[IN_Q].shape[1];
    call c = {.problem = problem, .kernel = kernel};
    int64_t recent = 0;
    problem_poison(problem);
    for (int64_t t = 0; t < length; t++) {
        take_keys(&c, t - recent, recent + 1);
        c.tensors.q = take(&c.q, &problem->operand[IN_Q], t, 1);
        c.tensors.o = take(&c.o, &problem->operand[OUT_O], t, 1);
        c.tensors.recent = recent;
        compute(&c, FPA_FORM_RECURRENT);
        if (++recent < most && t + 1 < length)
            continue;
        take_keys(&c, t + 1 - recent, recent);
        c.tensors.state_out = problem->tensors.state_out;
        compute(&c, folding);
        c.begun = true;
        recent = 0;
    }
    problem_fetch(problem);
}

void run_with_window(gpu_problem *problem, const fpa_kernel *kernel, int window, int64_t piece, bool lags)
{
    static const fpa_form forms[] = {FPA_FORM_PARALLEL, FPA_FORM_CHUNKED, FPA_FORM_RECURRENT};
    const int64_t length = problem->operand[IN_Q].shape[1];
    call c = {.problem = problem, .kernel = kernel};
    int64_t entered = 0; /* keys that the state has */
    int number = 0;
    problem_poison(problem);
    for (int64_t first = 0; first < length; first += piece, number++) {
        const int64_t count = first + piece < length ? piece : length - first, end = first + count;
        const bool keeps = !lags || number % 2 == 1 || end == length;
        take_keys(&c, entered, end - entered);
        c.tensors.q = take(&c.q, &problem->operand[IN_Q], first, count);
        c.tensors.o = take(&c.o, &problem->operand[OUT_O], first, count);
        c.tensors.recent = first - entered;
        c.tensors.state_out = keeps ? problem->tensors.state_out : NULL;
        compute(&c, forms[number % 3]);
        if (!keeps)
            continue;
        c.begun = true;
        entered = end - window + 1 > entered ? end - window + 1 : entered;
    }
    problem_fetch(problem);
}

/* ---- heads on the CPU and on a GPU ---- */

static fpa_kernel *open_on(const recent_fixture *f, const char *target, const char *head)
{
    fpa_kernel *kernel;
    fpa_error error;
    const fpa_options options = {.target = target, .cache_dir = ""};
    if (!fpa_open_text(f->file, f->specs, head, &options, &kernel, &error))
        return kernel;
    print_error("%s, %s: %s: %s\n", head, target, error.where, error.message);
    return NULL;
}

int recent_open(recent_fixture *f)
{
    bool fine = true;
    f->ready = gpu_open(&f->gpu, 0);
    for (int i = 0; i < f->count; i++) {
        f->c[i] = open_on(f, float_target(), f->names[i]);
        f->cuda[i] = f->ready ? open_on(f, "cuda", f->names[i]) : NULL;
        fine = fine && f->c[i] && (!f->ready || f->cuda[i]);
    }
    return fine ? 0 : -1;
}

int recent_close(void **state)
{
    recent_fixture *f = *state;
    for (int i = 0; i < f->count; i++) {
        fpa_close(f->c[i]);
        fpa_close(f->cuda[i]);
    }
    gpu_close(&f->gpu);
    return 0;
}

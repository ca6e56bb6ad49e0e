/* launch_step: how many blocks share a head in the recurrent form, its workspace, its launches. */
#include "launch_step.h"
#include "launch_cuda.h"

#include <limits.h>
#include <string.h>

enum {
    ALIGNMENT = 256,
    MOST_BLOCKS = 8,  /* of one multiprocessor that a head is divided for */
    BUSY_BLOCKS = 3,  /* that keep a multiprocessor's loads on their way */
    BLOCK_ROUNDS = 1, /* what starting a block costs, in rounds of rows */
    SLICE_ROUNDS =
        16, /* rounds that writing, launching and gathering parts of o costs, spread over BUSY_BLOCKS */
};

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- slices ---- */

/* Rounds of rows that the multiprocessor with most blocks takes, one after another; too few blocks leave
 * it waiting for memory. */
static int64_t cost_of(const struct fpa_cuda_module *cuda, int64_t heads, int64_t rounds, int64_t slices)
{
    const int64_t busy = least(BUSY_BLOCKS, cuda->step_resident);
    const int64_t blocks = divide_up(heads * slices, cuda->multiprocessors);
    const int64_t cost = (blocks < busy ? busy : blocks) * (divide_up(rounds, slices) + BLOCK_ROUNDS);
    return slices > 1 ? cost + SLICE_ROUNDS : cost;
}

/* Blocks that share a head's features: as few as fill the GPU. */
static int64_t choose_slices(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch)
{
    const int64_t heads = launch->batch * launch->heads;
    const int64_t rounds = divide_up(cuda->geometry.features, cuda->geometry.step_features);
    int64_t best = 1;
    for (int64_t blocks = 1; blocks <= MOST_BLOCKS && heads > 0; blocks++) {
        int64_t slices = least(blocks * cuda->multiprocessors / heads, rounds);
        if (slices < 1)
            continue;
        slices = divide_up(rounds, divide_up(rounds, slices));
        if (cost_of(cuda, heads, rounds, slices) < cost_of(cuda, heads, rounds, best))
            best = slices;
    }
    return best;
}

/* ---- workspace ---- */

/* Sizes and parts of the workspace in call; returns its bytes. */
static size_t find_parts(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, char *base,
                         struct fpa_cuda_call *call)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t outputs = launch->batch * launch->query_heads * launch->length;
    const int64_t state = divide_up(g->state_elements, 4) * 4; /* rows stay aligned from head to head */
    size_t partial = 0, running = 0;
    call->slices = choose_slices(cuda, launch);
    if (call->slices > 1) /* a part of o is no wider than a row of the copies of the state */
        partial = sizeof(float) * (size_t)(outputs * call->slices) * (size_t)g->columns;
    if (launch->length > 1)
        running = sizeof(float) * (size_t)(launch->batch * launch->heads) * (size_t)state;
    partial = (partial + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (base) {
        call->partial = (float *)(void *)base;
        call->running = (float *)(void *)(base + partial);
    }
    return partial + running;
}

size_t step_workspace(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch)
{
    struct fpa_cuda_call call;
    return find_parts(cuda, launch, NULL, &call);
}

/* ---- launches ---- */

/* The kernels count heads and rows of o with 32 bits; said before the first of them runs. */
static fpa_status check_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                              int64_t outputs, fpa_error *error)
{
    if (launch->batch <= INT_MAX && launch->query_heads <= INT_MAX && launch->heads <= INT_MAX &&
        outputs <= INT_MAX)
        return FPA_OK;
    return fail(
        error, FPA_UNSUPPORTED, cuda->name,
        "the recurrent form computes at most %d rows of o in a call on a GPU: split the batch, or use "
        "the chunked form",
        INT_MAX);
}

fpa_status step_forward(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, CUstream stream,
                        fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const int64_t heads = launch->batch * launch->heads;
    const int64_t outputs = launch->batch * launch->query_heads * launch->length;
    struct fpa_cuda_call call;
    memset(&call, 0, sizeof call);
    fpa_status status = check_sizes(cuda, launch, outputs, error);
    if (status || heads == 0 || (launch->length == 0 && !launch->state_out))
        return status;
    cuda_fill_call(launch, &call);
    find_parts(cuda, launch, launch->workspace, &call);
    const fpa_cuda_grid step = {cuda->step, "the recurrent form", heads * call.slices, g->step_threads,
                                g->step_bytes};
    const fpa_cuda_grid gather = {cuda->gather, "the sum of the parts of o", outputs, g->gather_threads, 0};
    status = cuda_launch(cuda, &step, launch, &call, stream, error);
    if (!status && call.slices > 1 && outputs > 0)
        status = cuda_launch(cuda, &gather, launch, &call, stream, error);
    return status;
}

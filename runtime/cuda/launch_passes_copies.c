#include "launch_passes_copies.h"

#include "base/round.h"
#include "grid.h"

fpa_status pass_launch(const passes *p, cuda_kernel kernel, int64_t blocks, CUstream stream, fpa_error *error)
{
    const fpa_cuda_grid grid = {kernel, blocks, &p->back, 0};
    return cuda_launch(p->cuda, &grid, &p->launch->forward, &p->call, stream, error);
}

/* Blocks for so many tokens of each sequence. */
static fpa_status launch_tokens(const passes *p, cuda_kernel kernel, int64_t sequences, int64_t length,
                                CUstream stream, fpa_error *error)
{
    return pass_launch(p, kernel, sequences * divide_up(length, FPA_CUDA_PASS_TOKENS), stream, error);
}

/* Whoever gathers rows makes what they are divided by. */
fpa_status pass_outputs(const passes *p, CUstream stream, fpa_error *error)
{
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t outputs = f->batch * f->query_heads * f->length;
    return p->cuda->geometry.pass_numbers
               ? pass_launch(p, CUDA_BACKWARD_OUTPUTS, divide_up(outputs, FPA_CUDA_BACKWARD_OUTPUTS), stream,
                             error)
               : FPA_OK;
}

/* The log-gate of lines without one, of which passes with numbers have one. */
fpa_status pass_zero(const passes *p, CUstream stream, fpa_error *error)
{
    const struct fpa_cuda_module *cuda = p->cuda;
    const CUresult result =
        p->zero ? cuda->driver->cuMemsetD8Async((uintptr_t)p->zero, 0, sizeof(float), stream) : 0;
    return result ? driver_fail(cuda->driver, result, cuda->name, "a log-gate of zero", error) : FPA_OK;
}

/* Weights of coordinates, for passes of rows. */
fpa_status pass_weights(passes *p, CUstream stream, fpa_error *error)
{
    p->back.pass_weights = p->weights;
    const fpa_status status = p->weights ? pass_launch(p, CUDA_BACKWARD_GATHER, 1, stream, error) : FPA_OK;
    p->back.pass_weights = NULL;
    return status;
}

/* vectors: q and k alone. */
fpa_status pass_gather(passes *p, bool reversed, bool vectors, CUstream stream, fpa_error *error)
{
    p->forth = !reversed && (!vectors || p->given_values);
    p->back.pass_vectors = vectors;
    p->back.pass_reversed = reversed;
    p->back.pass_length = reversed ? p->reached : p->launch->forward.length;
    return launch_tokens(p, CUDA_BACKWARD_GATHER, p->back.sequences, p->back.pass_length, stream, error);
}

fpa_status pass_scatter(passes *p, scattered to, CUstream stream, fpa_error *error)
{
    const int64_t group = to == TO_QUERIES ? 1 : p->group;
    p->back.scatters_values = to == TO_VALUES;
    p->back.scatters_queries = to == TO_QUERIES;
    return launch_tokens(p, CUDA_BACKWARD_SCATTER, p->back.sequences / group, p->launch->forward.length,
                         stream, error);
}

#include "call.h"

#include <stdlib.h>

#include "base/error.h"

DLTensor call_tensor(float *data, int dimensions, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = dimensions, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

fpa_status call_forward(const fpa_kernel *kernel, const fpa_tensors *tensors, fpa_error *error)
{
    size_t size;
    fpa_status status = fpa_workspace_size(kernel, FPA_FORM_CHUNKED, tensors, &size, error);
    if (status)
        return status;
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!workspace)
        return fail_memory(error);
    status = fpa_forward(kernel, FPA_FORM_CHUNKED, tensors, workspace, size, error);
    free(workspace);
    return status;
}

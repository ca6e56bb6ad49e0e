/* launch_backward_pads: gradients of heads whose rows are no whole pieces of 16 bytes: kernels have padded rows in the place of q and k, of v and d_o. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_PADS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_PADS_H

#include "module.h"
#include "runtime/backend.h"

/* One call. `call` and `back` are of tensors as they are given. */
typedef struct backward_pads {
    const struct fpa_cuda_module *cuda;
    const struct fpa_launch *launch;
    struct fpa_cuda_call call;
    struct fpa_cuda_backward back;
} backward_pads;

/* Bytes of a sequence's padded rows, of all its query heads. */
int64_t backward_pad_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* The workspace's rows of the sequences in flight. */
void place_backward_pads(backward_pads *p, char *rows, int64_t sequences);

/* Rows of some sequences, which call and back then have in the place of those that are given. */
fpa_status launch_backward_pads(backward_pads *p, struct fpa_cuda_call *call, struct fpa_cuda_backward *back,
                                CUstream stream, fpa_error *error);

#endif

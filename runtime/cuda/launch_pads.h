/* launch_pads: operands in the workspace in place of those given: coordinates of a lift, padded rows for the copy engine, values with
 * zeros for masked keys. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PADS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PADS_H

#include "machine/cuda_padding.h"
#include "sizes.h"
#include "grid.h"

/* Elements of the workspace for each operand; 0: not wanted. */
typedef struct cuda_pads {
    int64_t queries, keys, values;
} cuda_pads;

cuda_pads count_pads(const struct fpa_cuda_geometry *geometry, const struct fpa_launch *launch,
                     cuda_mechanism mechanism);

/* Whether kernels of the split schedule can fetch the call's values as given although heads' rows begin inside pieces of 16 bytes: all
 * rows of a head have the same offset, and sums have columns for it (geometry.value_room). Not for calls with states, whose columns do
 * not have this offset, nor for sums from which gradients are computed. */
bool cuda_values_lean(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call);

/* Launches preparation of those of q, k and v that the call has room for: coordinates by NAME_lift_rows; padded rows by NAME_pad_rows, if
 * widths are no multiples of 16 bytes and strides are not either; values if keys may be masked. The call then has them as q, k and v.
 * values_lean: values need no padding. */
void launch_pads(cuda_queue *q, struct fpa_cuda_call *call, bool values_lean);

#endif

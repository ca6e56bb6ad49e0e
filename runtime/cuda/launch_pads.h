/* launch_pads: operands that kernels take from the workspace: coordinates, rows that the copy engine can fetch, values of
 * masked keys as zeros. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PADS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PADS_H

#include "machine/cuda_padding.h"
#include "sizes.h"
#include "grid.h"

/* Their parts of the workspace: elements, NULL what is not wanted. */
typedef struct cuda_pads {
    int64_t queries, keys, values;
} cuda_pads;

cuda_pads count_pads(const struct fpa_cuda_geometry *geometry, const struct fpa_launch *launch,
                     cuda_mechanism mechanism);

/* Whether kernels of the split schedule fetch the call's values as they are, though their rows begin amid 16 bytes: all of a head's equally
 * far behind one, and sums have columns for that (geometry.value_room). A state that is given, or left, has columns of its own, and so have
 * sums that gradients are made of. */
bool cuda_values_lean(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call);

/* q, k and v that the call has room for: coordinates by NAME_lift_rows; by NAME_pad_rows rows whose widths are no whole
 * pieces of 16 bytes, unless their strides are multiples of 16 bytes all the same, and values where keys may be masked.
 * They are in the call's place of q, k and v from then on. values_lean: such values stay as they are. */
void launch_pads(cuda_queue *q, struct fpa_cuda_call *call, bool values_lean);

#endif

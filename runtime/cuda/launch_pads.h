/* launch_pads: operands that the copy engine cannot fetch, brought to rows that it can. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PADS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PADS_H

#include "sizes.h"

/* q, k and v that find_sizes has room for (their widths are no whole pieces of 16 bytes), unless their strides are
 * multiples of 16 bytes all the same: padded by one launch, and in the call's place from then on. */
fpa_status launch_pads(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, cuda_sizes *s,
                       CUstream stream, fpa_error *error);

#endif

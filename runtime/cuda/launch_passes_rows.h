/* launch_passes_rows: passes of gradients forth and from the last token on, and what they leave for gates; of parts of values, one after the other. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_ROWS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_ROWS_H

#include "launch_passes_operands.h"

/* A pass of rows. Of a gated line it leaves, where these are wanted, dots of its outputs with the other factor of q.d_q or k.d_k, and
 * states; else it is carried out in any way. */
fpa_status pass_forward_rows(const passes *p, passes_piece these, const struct fpa_launch *f,
                             const pass_tensor *with, float *dots, void *kept, const void **states,
                             CUstream stream, fpa_error *error);

/* A pass of tokens as they lie, from the last one on; with: what its outputs' dots are with. */
fpa_status pass_forward_reversed(passes *p, fpa_pass pass, passes_piece these,
                                 const struct fpa_launch *launch, const pass_tensor *with, CUstream stream,
                                 fpa_error *error);

/* Products of what both have left of states, over all parts. */
fpa_status pass_state_products(const passes *p, passes_piece these, CUstream stream, fpa_error *error);

#endif

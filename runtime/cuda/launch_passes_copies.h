/* launch_passes_copies: what comes before passes and behind them: rows that are gathered, and results that are scattered. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_COPIES_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_COPIES_H

#include "launch_passes_sizes.h"

/* A kernel of the call, with p->back as it is. */
fpa_status pass_launch(const passes *p, cuda_kernel kernel, int64_t blocks, CUstream stream,
                       fpa_error *error);

/* Once a call. What rows are divided by, where nobody gathers them; a log-gate of zero; weights of coordinates. */
fpa_status pass_outputs(const passes *p, CUstream stream, fpa_error *error);
fpa_status pass_zero(const passes *p, CUstream stream, fpa_error *error);
fpa_status pass_weights(passes *p, CUstream stream, fpa_error *error);

/* Rows of the sequences in flight; vectors: q and k alone. */
fpa_status pass_gather(passes *p, bool reversed, bool vectors, CUstream stream, fpa_error *error);

/* A result, as it was left, to one of the gradients. */
typedef enum scattered { TO_KEYS, TO_VALUES, TO_QUERIES } scattered;
fpa_status pass_scatter(passes *p, scattered to, CUstream stream, fpa_error *error);

#endif

/* launch_passes_rows: passes of gradients forth and from the last token on, and what they leave for gates; of parts of values, one after the
 * other. What comes before and behind them: rows that are gathered, and results that are scattered. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_ROWS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_ROWS_H

#include "launch.h"
#include "launch_passes_operands.h"

/* A pass of rows. Of a gated line it leaves, where these are wanted, dots of its outputs with the other factor of q.d_q or k.d_k, and
 * states; else it is carried out in any way. */
void pass_forward_rows(const passes *p, const struct fpa_launch *f, const pass_tensor *with, float *dots,
                       void *kept, const void **states);

/* A pass of tokens as they lie, from the last one on; with: what its outputs' dots are with. */
void pass_forward_reversed(passes *p, fpa_pass pass, const struct fpa_launch *launch,
                           const pass_tensor *with);

/* Products of what both have left of states, over all parts. */
void pass_state_products(const passes *p);

/* A kernel of the call, with p->back as it is. */
void pass_launch(const passes *p, cuda_kernel kernel, int64_t blocks);

/* Computes once per call what passes need beside rows: 1 / n and h of outputs where no kernel gathers them; the
 * coordinates' weights; a log-gate of zero for heads without one, if their passes have numbers beside tokens. */
void pass_begin(passes *p);

/* Gathers rows of the sequences in flight; vectors: of q and k alone. */
void pass_gather(passes *p, bool reversed, bool vectors);

/* Stores a pass's result as one of the gradients. */
typedef enum scattered { TO_KEYS, TO_VALUES, TO_QUERIES } scattered;
void pass_scatter(passes *p, scattered to);

#endif

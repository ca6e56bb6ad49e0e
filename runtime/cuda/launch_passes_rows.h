/* launch_passes_rows: launches of passes in forward and reverse order of tokens, one for each part of the values; of kernels that gather
 * rows before them and scatter results after them; and of the products of their states. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_ROWS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_ROWS_H

#include "launch.h"
#include "launch_passes_operands.h"

/* A pass of rows in forward order. For a gated linear head it also stores, if they are wanted, dot products of its outputs with `with`,
 * the other factor of q.d_q or k.d_k, and its states. */
void pass_forward_rows(const passes *p, const struct fpa_launch *f, const pass_tensor *with, float *dots,
                       void *kept, const void **states);

/* A pass that processes tokens in reverse order itself. with: rows for the dot products with its outputs. */
void pass_forward_reversed(passes *p, fpa_pass pass, const struct fpa_launch *launch,
                           const pass_tensor *with);

/* Products of the states that both passes have stored, summed over all parts. */
void pass_state_products(const passes *p);

/* Launches a kernel with p->back as parameter. */
void pass_launch(const passes *p, cuda_kernel kernel, int64_t blocks);

/* Computes once per call what passes need in addition to rows: 1 / n and h of outputs if the kernel that gathers rows does not; weights
 * of coordinates; a log-gate of zero for heads without a gate whose passes read two numbers for each token. */
void pass_begin(passes *p);

/* Gathers rows of the sequences in flight, in forward or reverse order of tokens; vectors: only q and k. */
void pass_gather(passes *p, bool reversed, bool vectors);

/* Converts a pass's result to one of the gradients. */
typedef enum scattered { TO_KEYS, TO_VALUES, TO_QUERIES } scattered;
void pass_scatter(passes *p, scattered to);

#endif

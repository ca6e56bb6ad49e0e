/* launch_backward_rows: rows of sequences in flight that gradients have in the workspace, in the place of an operand. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_ROWS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_ROWS_H

#include "runtime/backend.h"

/* Query heads of a key's; tokens of a head: its sequence's, or where lengths differ those of all sequences. */
int64_t row_group_of(const struct fpa_launch *f);
int64_t row_tokens_of(const struct fpa_launch *f);

/* Where rows of `bytes` a sequence would begin, so that sequence number `first`, counted [B][heads], is at `rows`; strides of
 * numbers of [B][heads][tokens][width]. Where lengths differ, a sequence's place on the batch's axis is its first token. */
void *rows_before(void *rows, int64_t first, int64_t bytes);
void set_row_strides(long long *stride, const struct fpa_launch *f, int64_t heads, int64_t width);

#endif

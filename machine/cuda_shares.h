/* cuda_shares: how long a segment of fused_chunk is beside the others of its sequence. */
#ifndef FPAC_MACHINE_CUDA_SHARES_H
#define FPAC_MACHINE_CUDA_SHARES_H

#include "cuda_division.h"

/* Clocks in which a block that is alone on a multiprocessor walks 16 tokens for a segment's totals. */
double cuda_total_clocks(const cuda_task *task);

/* A walk for a segment's totals over one of it with queries, where nothing else is on the multiprocessor: 1 where it
 * takes as long. */
double cuda_total_ratio(const cuda_task *task);

/* A first segment's share of the sequence, when NAME_fused_chunk walks it in so many. */
double cuda_first_share(const cuda_task *task, int64_t segments);

#endif

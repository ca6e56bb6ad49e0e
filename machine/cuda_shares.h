/* cuda_shares: relative lengths of the segments of fused_chunk. */
#ifndef FPAC_MACHINE_CUDA_SHARES_H
#define FPAC_MACHINE_CUDA_SHARES_H

#include "cuda_division.h"

/* The time of a walk for a segment's total relative to one with queries, on an otherwise empty multiprocessor; at most 1. */
double cuda_total_ratio(const cuda_task *task);

/* The share of a sequence in the first of `segments` segments of NAME_fused_chunk, which run at the same time. */
double cuda_first_share(const cuda_task *task, int64_t segments);

#endif

/* cuda_carry: NAME_segment_scan at the same time as the queries that read the copies which it updates. */
#ifndef FPAC_MACHINE_CUDA_CARRY_H
#define FPAC_MACHINE_CUDA_CARRY_H

#include "candidate.h"
#include "cuda_division.h"

/* The fewest blocks that keep up with the queries. Each fills a multiprocessor, and processes its part of the copies, one segment after
 * the other. The other multiprocessors run queries, which wait for the parts of their copy. */
typedef struct cuda_carry {
    int64_t blocks; /* 0: the scan runs before the queries */
    int64_t parts;  /* parts of a copy, each for a block */
    fpa_cost cost;  /* of scan and queries, if blocks > 0 */
} cuda_carry;

/* For a call in which all copies are updated (cuda_piece): all chunks of all sequences, in `segments` segments. */
cuda_carry cuda_carry_beside(const cuda_task *task, int64_t segments);

#endif

/* cuda_carry: NAME_segment_scan beside the queries that read the copies which it brings up to date. */
#ifndef FPAC_MACHINE_CUDA_CARRY_H
#define FPAC_MACHINE_CUDA_CARRY_H

#include "candidate.h"
#include "cuda_division.h"

/* As few blocks as keep up with the queries; each fills a multiprocessor, and takes a part of one segment's copies after the other.
 * The rest of the GPU has queries, which wait for the parts of their copy. */
typedef struct cuda_carry {
    int64_t blocks; /* 0: none, the scan comes first */
    int64_t parts;  /* of a copy: so many blocks share it */
    fpa_cost cost;  /* of both, where there are blocks */
} cuda_carry;

/* Of a call whose copies are all carried (cuda_piece): all chunks of all sequences, in so many segments. */
cuda_carry cuda_carry_beside(const cuda_task *task, int64_t segments);

#endif

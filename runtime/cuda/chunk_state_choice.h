/* chunk_state_choice: how the keys of a call are walked by warpgroups: which kernel, how many blocks, and
 * whether queries follow. */
#ifndef FPAC_RUNTIME_CUDA_CHUNK_STATE_CHOICE_H
#define FPAC_RUNTIME_CUDA_CHUNK_STATE_CHOICE_H

#include "module.h"

typedef struct chunk_state_task {
    int64_t sequences, query_sequences; /* batch entries times heads, of keys and of queries */
    int64_t chunks;                     /* of a sequence */
    int64_t most;                       /* segments that it may be walked in */
} chunk_state_task;

typedef struct chunk_state_choice {
    bool second;      /* by NAME_chunk_state_small */
    int slices;       /* blocks that share the features of a head */
    int64_t segments; /* of each sequence */
    int64_t blocks; /* of the launch: each takes one walk after the other; a multiple of slices and columns */
    bool overlapped; /* queries are read beside it: segments is 1 */
} chunk_state_choice;

/* The choice that a model of clocks says is the fastest. Needs geometry.stays. */
chunk_state_choice chunk_state_choose(const struct fpa_cuda_module *cuda, const chunk_state_task *task);

#endif

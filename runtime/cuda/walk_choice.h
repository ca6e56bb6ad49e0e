/* walk_choice: how the keys of a call are walked by warpgroups: which kernel, how many blocks, and
 * whether queries follow. */
#ifndef FPAC_RUNTIME_CUDA_WALK_CHOICE_H
#define FPAC_RUNTIME_CUDA_WALK_CHOICE_H

#include "module.h"

typedef struct walk_task {
    int64_t sequences, query_sequences; /* batch entries times heads, of keys and of queries */
    int64_t chunks;                     /* of a sequence */
    int64_t most;                       /* segments that it may be walked in */
} walk_task;

typedef struct walk_choice {
    bool second;      /* by NAME_state2 */
    int slices;       /* blocks that share the features of a head */
    int64_t segments; /* of each sequence */
    int64_t blocks; /* of the launch: each takes one walk after the other; a multiple of slices and columns */
    bool followed;  /* queries are read beside it: segments is 1 */
} walk_choice;

/* The choice that a model of clocks says is the fastest. Needs geometry.stays. */
walk_choice walk_choose(const struct fpa_cuda_module *cuda, const walk_task *task);

#endif

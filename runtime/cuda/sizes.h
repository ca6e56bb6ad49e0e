/* sizes: what a call of the parallel or chunked form is divided into, and the workspace that it needs. */
#ifndef FPAC_RUNTIME_CUDA_SIZES_H
#define FPAC_RUNTIME_CUDA_SIZES_H

#include "machine/candidate.h"
#include "module.h"

/* What one call of the parallel or chunked form needs. */
typedef struct cuda_sizes {
    struct fpa_cuda_call call; /* sizes and parts of the workspace; operands come later */
    bool in_segments;          /* some sequence may have more than one segment */
    bool is_fused;             /* NAME_fused_chunk: one pass, behind a walk of all segments but the last */
    int cluster_scan;          /* or NAME_cluster_scan, by clusters of so many blocks; 0: not */
    int64_t clusters;          /* of which so many share all sequences; 0: each has one */
    bool whole;    /* no sequence is cut between two; else, and of packed calls, by NAME_sequence_scan, */
    float *left;   /* the states that they leave to each other */
    bool walks;    /* else the keys are walked for copies of the state */
    bool small;    /* by NAME_chunk_state_small, */
    bool parallel; /* NAME_parallel_output in the place of NAME_chunk_output */
    int64_t walk_blocks;       /* in a launch of so many blocks, which take one walk after the other */
    int64_t carry_blocks;      /* NAME_segment_scan runs beside queries, in so many blocks; 0: before them */
    void *keys, *queries;      /* packed vectors */
    int64_t progress;          /* bytes of call.progress */
    struct fpa_cuda_maps maps; /* of the operands, where kernels take them */
    bool apart;                /* no map of NAME_fused_chunk has all heads' rows as one */
    size_t bytes;              /* of the workspace */
} cuda_sizes;

/* Sizes of a call that a candidate carries out, and parts of the workspace at base; base NULL: only
 * sizes->bytes is wanted. */
void find_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, int form,
                const fpa_candidate *candidate, char *base, cuda_sizes *s);

/* The same of a call in two halves, of which the second reads copies that the first has left (cuda_piece): what both use lies
 * alike, whether the launch is of one or the other. chunk: tokens of one. */
void find_piece_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                      const fpa_candidate *candidate, int64_t chunk, char *base, cuda_sizes *s);

/* For a launch of the state kernel with no consumer running at the same time: a block for each segment, and no
 * counters that announce finished copies of the state. */
void walk_alone(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, cuda_sizes *s);

/* Room for count elements of a workspace; NULL when there are none, or no workspace yet. Parts begin at multiples of 256 bytes. */
void *cuda_take(char *base, size_t *used, int64_t count, size_t size);

/* NAME_chunk_output, or NAME_parallel_output. */
cuda_kernel queries_kernel(const cuda_sizes *s);
/* Blocks of it that calls of any size would have. */
int64_t count_items(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch, const cuda_sizes *s);

#endif

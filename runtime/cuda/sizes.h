/* sizes: the division of a call of the parallel or chunked form, and its workspace. */
#ifndef FPAC_RUNTIME_CUDA_SIZES_H
#define FPAC_RUNTIME_CUDA_SIZES_H

#include "machine/candidate.h"
#include "module.h"

/* The launches and workspace of one call. */
typedef struct cuda_sizes {
    struct fpa_cuda_call call; /* sizes and workspace are set; operands are set later */
    bool in_segments;          /* sequences may have more than one segment */
    bool is_fused;             /* NAME_fused_chunk: one pass, after a walk of all segments but the last */
    int cluster_scan;          /* or NAME_cluster_scan: blocks of a cluster; 0: not */
    int64_t clusters; /* clusters among which all sequences are divided; 0: a cluster for each sequence */
    /* no sequence is divided between two clusters; else, and for packed batches, by NAME_sequence_scan */
    bool whole;
    float *left;         /* states that clusters pass to each other if sequences are divided */
    bool walks;          /* not is_fused: the keys are walked for copies of the state */
    bool small;          /* that walk is by NAME_chunk_state_small */
    bool parallel;       /* NAME_parallel_output in the place of NAME_chunk_output */
    int64_t walk_blocks; /* blocks of the walk's launch, each of which processes its walks in turn */
    /* blocks of NAME_segment_scan, which runs at the same time as queries; 0: it runs before them */
    int64_t carry_blocks;
    void *keys, *queries;      /* packed vectors */
    int64_t progress;          /* bytes of call.progress */
    struct fpa_cuda_maps maps; /* of the operands, if kernels use them */
    bool apart;                /* maps of NAME_fused_chunk describe each head's rows as a tensor of its own */
    size_t bytes;              /* of the workspace */
} cuda_sizes;

/* The sizes of a call by a candidate, and the parts of the workspace at base. base NULL: only sizes, as for measuring the workspace. */
void find_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, int form,
                const fpa_candidate *candidate, char *base, cuda_sizes *s);

/* The same for a call in two halves, the second of which reads copies of states that the first has stored (cuda_piece): what both use has
 * the same addresses in both. chunk: tokens per chunk. */
void find_piece_sizes(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch,
                      const fpa_candidate *candidate, int64_t chunk, char *base, cuda_sizes *s);

/* For a launch of the state kernel without a consumer that runs at the same time: a block for each segment, and no counters of finished
 * copies. */
void walk_alone(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, cuda_sizes *s);

/* Takes the next part of a workspace, of `count` elements; NULL if count or base is 0. Parts begin at multiples of 256 bytes. */
void *cuda_take(char *base, size_t *used, int64_t count, size_t size);

/* The kernel for queries: NAME_chunk_output or NAME_parallel_output. */
cuda_kernel queries_kernel(const cuda_sizes *s);
/* Its items of work, each of which would be a block in kernels without persistent blocks. */
int64_t count_items(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch, const cuda_sizes *s);

#endif

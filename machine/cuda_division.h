/* cuda_division: chunks and segments of sequences in the parallel and the chunked form, and the distribution of sequences among
 * clusters. */
#ifndef FPAC_MACHINE_CUDA_DIVISION_H
#define FPAC_MACHINE_CUDA_DIVISION_H

#include "base/round.h"
#include "candidate.h"
#include "gpu_room.h"

enum { MOST_SEGMENTS = 64 };

/* The work of a call of the parallel or chunked form, for any mechanism. */
typedef struct cuda_task {
    const struct fpa_cuda_geometry *geometry;
    const fpa_gpu_room *room;
    const fpa_call_size *size;
    int64_t chunk, chunks; /* tokens of a chunk; chunks of a sequence */
    int64_t tail;          /* a last chunk of at most so many tokens is added to the chunk before it */
    int64_t whole;         /* if lengths differ: a sequence of at most so many tokens is one chunk */
    int64_t sequences;     /* batch entries times key heads, */
    int64_t queries;       /* and times query heads */
    bool walked; /* keys are walked for states, since a state is given or wanted, or a chunk needs one */
    /* chunked without a mask: queries read the state of all keys, and have no scores with keys */
    bool summed;
} cuda_task;

cuda_task cuda_task_of(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                       const fpa_call_size *size);

/* Changes the length of chunks. */
void cuda_take_chunk(cuda_task *task, int64_t chunk);

/* For the split schedule, if no other call reads its copies of states: adds a short last chunk to the chunk before it, whose copy of the
 * state its queries read. Only for heads on warpgroups with a mask and without gates, since sums of gates begin with chunks. */
void cuda_take_tail(cuda_task *task);

/* A division of a sequence into segments of whole chunks. */
typedef struct cuda_division {
    int64_t segments;       /* at least 1; may be fewer than requested */
    int64_t segment_chunks; /* chunks of each; the last one may have fewer, */
    int64_t first_chunks;   /* the first one more, or fewer if it is computed ahead */
} cuda_division;

cuda_division cuda_divide(int64_t chunks, int64_t segments);

/* Chunks that NAME_chunk_state walks: all for a final state, and without a mask, since every query reads all keys; otherwise all but the
 * last, which only its own queries read. */
static inline int64_t cuda_walked_chunks(const cuda_task *task)
{
    const int64_t chunks = task->size->state_out || task->summed ? task->chunks : task->chunks - 1;
    return chunks > 0 ? chunks : 0;
}

/* For NAME_fused_chunk: the first of two segments may be longer, since it does not wait for totals. */
cuda_division cuda_divide_fused(const cuda_task *task, int64_t segments);

/* The same if first segments are computed at the same time as the totals of others: they must take no longer than the total of another
 * segment. At least three segments. */
cuda_division cuda_divide_ahead(const cuda_task *task, int64_t segments);

/* Places for spans of one head, which NAME_sequence_scan divides among its clusters: at least as many as there are spans. */
static inline int64_t cuda_span_places(int64_t tokens, int64_t sequences)
{
    return tokens / FPA_CUDA_SPAN + sequences;
}

/* The number of its clusters if the GPU runs `room` at a time: a multiple of the lines (blocks of columns of query heads) if that leaves
 * few unused. */
static inline int64_t cuda_scan_clusters(int64_t room, int64_t lines)
{
    const int64_t over = lines > 0 ? room % lines : 0;
    return room >= lines && over <= room / 16 ? room - over : room;
}

/* Clusters that process whole items (sequences of a line) in turn, if `places` fit: one for each item, or the fewest that need no more
 * rounds. So all have about the same number of items; if the number of clusters is a multiple of that of lines, heads
 * of a token are read at about the same time. */
static inline int64_t cuda_even_clusters(int64_t items, int64_t places)
{
    return places < 1 || items <= places ? items : divide_up(items, divide_up(items, places));
}

/* Whether lengths differ: false if `batch` sequences of the longest length, which have all tokens, are all there are. */
static inline bool cuda_lengths_differ(const fpa_call_size *size)
{
    return size->sequences > size->batch;
}

/* Items to be divided: sequences of all lines. */
static inline int64_t cuda_scanned_items(const cuda_task *task)
{
    const fpa_call_size *size = task->size;
    return (size->sequences ? size->sequences : size->batch) * size->query_heads *
           task->geometry->column_blocks;
}

/* Blocks of NAME_fused_chunk for one segment of all sequences, with queries. */
static inline int64_t cuda_fused_blocks(const cuda_task *task)
{
    return task->queries * task->geometry->column_blocks;
}

/* Heads whose queries NAME_chunk_output processes together, if they do not run at the same time as the walk. With one chunk: as many as
 * fill the GPU twice, so that blocks of queries that run at a time share few heads' keys, which stay in the second-level cache. With
 * several chunks: all heads of a sequence, whose rows of a token are adjacent in memory, as far as blocks of queries that read the same
 * copy still run at about the same time. */
int64_t cuda_heads_beside(const cuda_task *task);

#endif

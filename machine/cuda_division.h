/* cuda_division: the segments that a sequence is walked in by the parallel and the chunked form. */
#ifndef FPAC_MACHINE_CUDA_DIVISION_H
#define FPAC_MACHINE_CUDA_DIVISION_H

#include "base/round.h"
#include "candidate.h"
#include "gpu_room.h"

enum { MOST_SEGMENTS = 64 };

/* What a call of the parallel or chunked form asks of kernels, whatever the mechanism. */
typedef struct cuda_task {
    const struct fpa_cuda_geometry *geometry;
    const fpa_gpu_room *room;
    const fpa_call_size *size;
    int64_t chunk, chunks; /* tokens of a chunk; chunks of a sequence */
    int64_t tail;          /* a last chunk of so many tokens, at most, is counted with the one before */
    int64_t whole;         /* where lengths differ: a sequence of so many tokens, at most, is one chunk */
    int64_t sequences;     /* batch entries times heads of keys, */
    int64_t queries;       /* and of queries */
    bool walked;           /* by NAME_chunk_state, if at all: there is a state, or a chunk that needs one */
    bool summed;           /* chunked without a mask: queries read the state of all keys, and no keys */
} cuda_task;

cuda_task cuda_task_of(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                       const fpa_call_size *size);

/* The same with chunks of so many tokens. */
void cuda_take_chunk(cuda_task *task, int64_t chunk);

/* The same by the split schedule where no other call reads its copies: a short last chunk is the tail of the one before,
 * whose copy of the state its queries read. Of heads on warpgroups with a mask and without gates, whose sums begin with chunks. */
void cuda_take_tail(cuda_task *task);

/* Runs of whole chunks. */
typedef struct cuda_division {
    int64_t segments;       /* at least 1; perhaps fewer than were asked for */
    int64_t segment_chunks; /* of each, but the last may be shorter, */
    int64_t first_chunks;   /* and the first longer, or shorter where it goes ahead */
} cuda_division;

cuda_division cuda_divide(int64_t chunks, int64_t segments);

/* Chunks that NAME_chunk_state walks: a final state needs all, and so does a query that sees all keys; else the last
 * one is read by queries only. */
static inline int64_t cuda_walked_chunks(const cuda_task *task)
{
    const int64_t chunks = task->size->state_out || task->summed ? task->chunks : task->chunks - 1;
    return chunks > 0 ? chunks : 0;
}

/* For NAME_fused_chunk: a first segment that has no totals to wait for may be longer. */
cuda_division cuda_divide_fused(const cuda_task *task, int64_t segments);

/* The same if first segments are launched with the totals: they must take no longer than the total of another
 * segment, of which there are at least two. */
cuda_division cuda_divide_ahead(const cuda_task *task, int64_t segments);

/* Places of spans that NAME_sequence_scan deals to its clusters, of one head: at least as many as there are. */
static inline int64_t cuda_span_places(int64_t tokens, int64_t sequences)
{
    return tokens / FPA_CUDA_SPAN + sequences;
}

/* Clusters of it, where there is room for `room`: as many for each line (a query head's block of columns), if that leaves out few. */
static inline int64_t cuda_scan_clusters(int64_t room, int64_t lines)
{
    const int64_t over = lines > 0 ? room % lines : 0;
    return room >= lines && over <= room / 16 ? room - over : room;
}

/* Clusters that take whole items (sequences of a line) in turn, where there is room for so many: one for each item, or as few as take no more
 * rounds. So all have as many, and where lines divide them heads of a token are read at about the same time. */
static inline int64_t cuda_even_clusters(int64_t items, int64_t places)
{
    return places < 1 || items <= places ? items : divide_up(items, divide_up(items, places));
}

/* Not where as many sequences as have all tokens at the longest one's length are all there are. */
static inline bool cuda_lengths_differ(const fpa_call_size *size)
{
    return size->sequences > size->batch;
}

/* Items that are dealt: sequences of all lines. */
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

/* Heads whose queries NAME_chunk_output takes together, where it does not follow the walk. Of one chunk those that fill the GPU twice: blocks of queries
 * that run at a time share few heads' keys, which are in the second-level cache then. Of several chunks all of a sequence, whose rows of a token lie beside
 * each other in memory, if blocks of queries that read the same copy still run at about the same time. */
int64_t cuda_heads_beside(const cuda_task *task);

#endif
